/// An exact amount: whole minor units of a currency (invariant M8). No floating point, no rounding.
public struct Money: Hashable, Sendable, CustomStringConvertible {
    /// 0 to 999,999,999,999,999 (15 digits).
    public let minor: Int64
    public let currency: Currency

    /// The largest amount: 15 digits counted in minor units.
    public static let maximumMinor: Int64 = 999_999_999_999_999

    /// Nil outside 0 to ``maximumMinor``.
    public init?(minor: Int64, currency: Currency) {
        guard (0...Money.maximumMinor).contains(minor) else { return nil }
        self.minor = minor
        self.currency = currency
    }

    /// Why a text is not an amount.
    public enum Fault: Error, Hashable, Sendable {
        case unknownCurrency
        case notDecimal
        case tooManyDecimals(allowed: Int)
        case tooLarge
        case zero

        /// A sentence for the caller.
        public var detail: String {
            switch self {
            case .unknownCurrency: "must be a currency code of ISO 4217 in capital letters, like \"EUR\""
            case .notDecimal: "must be a decimal string like \"49.99\": digits, and a dot with more digits if needed"
            case .tooManyDecimals(let allowed):
                allowed == 0
                    ? "has decimals, and this currency has none" : "has more than the currency's \(allowed) decimals"
            case .tooLarge: "has more than 15 digits in minor units"
            case .zero: "must be more than zero"
            }
        }
    }

    /// Reads the contract's grammar `(0|[1-9][0-9]*)(\.[0-9]+)?` in major units; refuses, never rounds.
    public init(value: String, currency: Currency) throws(Fault) {
        let parts = value.utf8.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        let isDigits = { (part: Substring.UTF8View.SubSequence) in
            !part.isEmpty && part.allSatisfy { (0x30...0x39).contains($0) }
        }
        guard parts.count == 1 || parts.count == 2, parts.allSatisfy({ isDigits(Substring($0).utf8) }),
            parts[0].count == 1 || parts[0].first != UInt8(ascii: "0")
        else { throw .notDecimal }
        let decimals = parts.count == 2 ? parts[1].count : 0
        guard decimals <= currency.exponent else { throw .tooManyDecimals(allowed: currency.exponent) }
        var minor: Int64 = 0
        for digit in parts.joined() {
            minor = minor * 10 + Int64(digit - 0x30)
            guard minor <= Money.maximumMinor else { throw .tooLarge }
        }
        for _ in decimals..<currency.exponent {
            minor *= 10
            guard minor <= Money.maximumMinor else { throw .tooLarge }
        }
        self.minor = minor
        self.currency = currency
    }

    /// ``init(value:currency:)`` with the currency by its code.
    public init(value: String, currencyCode: String) throws(Fault) {
        guard let currency = Currency(code: currencyCode) else { throw .unknownCurrency }
        try self.init(value: value, currency: currency)
    }

    /// Major units with exactly the currency's decimals: `49.90`, `500` for JPY, `1.250` for KWD.
    public var value: String {
        let digits = String(minor)
        guard currency.exponent > 0 else { return digits }
        let padded = String(repeating: "0", count: max(0, currency.exponent + 1 - digits.count)) + digits
        return "\(padded.dropLast(currency.exponent)).\(padded.suffix(currency.exponent))"
    }

    public var description: String { "\(value) \(currency.code)" }
    public var isZero: Bool { minor == 0 }
}
