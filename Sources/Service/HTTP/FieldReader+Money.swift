import Basics
import Foundation
import Lockstep

extension FieldReader {
    /// Reads `value` and `currency` of this object, telling the faults of both at once.
    static func money(in reader: FieldReader) -> Money? {
        let text = reader.value("value")
        let code = reader.value("currency")
        if text == nil { reader.fault("value", "is required") }
        if code == nil { reader.fault("currency", "is required") }
        let currency = code?.string.flatMap(Currency.init(code:))
        if code != nil, currency == nil { reader.fault("currency", Money.Fault.unknownCurrency.detail) }
        guard let text else { return nil }
        guard let decimal = text.string else {
            reader.fault("value", Money.Fault.notDecimal.detail)
            return nil
        }
        guard let currency else {
            // Whether it is a decimal at all doesn't hang on the currency; the most lenient one tells.
            if case .failure(.notDecimal) = amount(decimal, StandIn.widestCurrency, allowingZero: true) {
                reader.fault("value", Money.Fault.notDecimal.detail)
            }
            return nil
        }
        switch amount(decimal, currency, allowingZero: false) {
        case .success(let money): return money
        case .failure(let fault):
            reader.fault("value", fault.detail)
            return nil
        }
    }

    /// A decimal string as money; zero is a fault unless it is allowed.
    static func amount(_ text: String, _ currency: Currency, allowingZero: Bool) -> Result<Money, Money.Fault> {
        Result { () throws(Money.Fault) in
            let money = try Money(value: text, currency: currency)
            guard allowingZero || !money.isZero else { throw .zero }
            return money
        }
    }
}

/// Values that stand in for those that are wrong, until all faults are told. None ever reaches a handler.
enum StandIn {
    static let uuid = UUID(uuid: (0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0))
    static let date = CivilDate(year: 1970, month: 1, day: 1)

    static let widestCurrency: Currency = {
        guard let widest = Currency.all.max(by: { $0.exponent < $1.exponent }) else {
            preconditionFailure("the table of currencies is empty")
        }
        return widest
    }()

    static let money: Money = {
        guard let money = Money(minor: 0, currency: widestCurrency) else { preconditionFailure("zero is an amount") }
        return money
    }()

    static func first<Word: CaseIterable>(of type: Word.Type) -> Word {
        guard let first = type.allCases.first else { preconditionFailure("an enum without cases can't be read") }
        return first
    }
}

/// Forms of text that bodies and queries share.
enum TextForm {
    static let dateWording = "must be a day like \"2026-12-31\""
    static let timeWording = "must be a time of RFC 3339 like \"2026-12-31T23:59:59Z\""

    /// A day that exists, as `YYYY-MM-DD`.
    static func date(_ text: String) -> CivilDate? { CivilDate(text) }
}
