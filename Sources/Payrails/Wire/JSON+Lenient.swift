import Basics
import Foundation
import Lockstep

/// Reading what others wrote: a member of the wrong type is a member that isn't there.
extension JSON {
    /// A code or an id: 1 to 128 visible ASCII characters. Nothing else may pass for one, so nothing needs escaping.
    var word: String? {
        guard let string, (1...128).contains(string.utf8.count), string.utf8.allSatisfy({ (0x21...0x7E).contains($0) })
        else { return nil }
        return string
    }

    /// A ``word`` that may be shown to anybody: nothing in it could be a card number or a token.
    var code: String? { word.flatMap { Scrubber.scrub($0) == $0 ? $0 : nil } }

    /// A reference of the shop: up to 512 bytes, any script, no control characters.
    var reference: String? {
        guard let string, (1...512).contains(string.utf8.count),
            !string.unicodeScalars.contains(where: { $0.properties.generalCategory == .control })
        else { return nil }
        return string
    }

    /// `{"value": "57.49", "currency": "EUR"}`, exactly. A number, a sign, or a digit too many is nil, never rounded. Zeros
    /// beyond the currency's decimals are no more than another way to write it: `"500.00"` is 500 of a currency that has
    /// none (Payrails writes two decimals where it was sent none, section 4).
    var money: Money? {
        guard let value = self["value"]?.string, let currency = self["currency"]?.string.flatMap(Currency.init(code:))
        else { return nil }
        return try? Money(value: value.withoutZeros(beyond: currency.exponent), currency: currency)
    }

    /// RFC 3339 with up to nine fractional digits.
    var timestamp: Timestamp? { string.flatMap(Timestamp.init(rfc3339:)) }

    func identifier<ID: Identifier>(as type: ID.Type = ID.self) -> ID? { string.flatMap(ID.init) }

    /// Whole numbers, also as text with leading zeros (`"09"`).
    var wholeNumber: Int? {
        if let integer { return Int(exactly: integer) }
        guard let string, !string.isEmpty, string.utf8.allSatisfy({ (0x30...0x39).contains($0) }) else { return nil }
        return Int(string)
    }
}

extension String {
    /// A decimal without the zeros after so many decimals; anything else as it is.
    fileprivate func withoutZeros(beyond decimals: Int) -> String {
        guard let dot = firstIndex(of: ".") else { return self }
        let surplus = self[index(after: dot)...].dropFirst(decimals)
        guard !surplus.isEmpty, surplus.allSatisfy({ $0 == "0" }) else { return self }
        return String(decimals == 0 ? self[..<dot] : self[..<surplus.startIndex])
    }
}

extension Money {
    /// `{value, currency}` in canonical form: always the currency's decimals, always the same text for one amount.
    var json: JSON { ["value": .string(value), "currency": .string(currency.code)] }
}

/// A link of Payrails: a bare address, or `{href, method}` (section 2.2).
public struct PayrailsLink: Hashable, Sendable {
    public let href: String
    /// Nil where only the address is given.
    public let method: String?

    init?(_ json: JSON) {
        guard let href = json.string ?? json["href"]?.string, !href.isEmpty else { return nil }
        self.href = href
        method = json["method"]?.word
    }

    /// Every link of a `links` object that can be read; empty for anything else, also for `[]`.
    static func all(_ json: JSON?) -> [String: PayrailsLink] {
        (json?.object ?? [:]).compactMapValues(PayrailsLink.init)
    }
}
