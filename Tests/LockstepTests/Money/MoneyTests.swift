import Testing

@testable import Lockstep

@Suite("Money is exact")
struct MoneyTests {
    private func currency(_ code: String) throws -> Currency { try #require(Currency(code: code)) }

    @Test("every currency of the table goes out and comes back the same, with exactly its decimals (M1)")
    func roundTripOfEveryCurrency() throws {
        #expect(Currency.all.count > 150)
        for currency in Currency.all {
            for minor: Int64 in [0, 1, 9, 10, 99, 100, 101, 999, 1000, 1001, 12_345_678, 999_999_999_999_999] {
                let money = try #require(Money(minor: minor, currency: currency))
                let parts = money.value.split(separator: ".", omittingEmptySubsequences: false)
                #expect(parts.count == (currency.exponent == 0 ? 1 : 2))
                #expect((parts.count == 2 ? parts[1].count : 0) == currency.exponent)
                #expect(try Money(value: money.value, currency: currency) == money)
                #expect(try Money(value: money.value, currencyCode: currency.code) == money)
            }
        }
    }

    @Test("all 10,000 prices of two digits are exact (M7, M8)")
    func everyPrice() throws {
        let euro = try currency("EUR")
        for minor in 0..<10_000 {
            let cents = minor % 100
            let text = "\(minor / 100).\(cents < 10 ? "0" : "")\(cents)"
            let money = try Money(value: text, currency: euro)
            #expect(money.minor == Int64(minor))
            #expect(money.value == text)
        }
    }

    @Test(
        "decimals are the currency's own, and fewer may be given",
        arguments: [
            ("1", "JPY", Int64(1), "1"), ("10000", "JPY", 10_000, "10000"), ("0", "JPY", 0, "0"),
            ("1.25", "KWD", 1250, "1.250"), ("1.250", "KWD", 1250, "1.250"), ("0.001", "KWD", 1, "0.001"),
            ("1", "KWD", 1000, "1.000"), ("1.2345", "CLF", 12_345, "1.2345"), ("0.0001", "CLF", 1, "0.0001"),
            ("7", "CLF", 70_000, "7.0000"), ("49.9", "EUR", 4990, "49.90"), ("0.5", "EUR", 50, "0.50"),
            ("0", "EUR", 0, "0.00"), ("0.00", "EUR", 0, "0.00"), ("500", "CLP", 500, "500"),
            ("9999999999999.99", "EUR", 999_999_999_999_999, "9999999999999.99"),
            ("999999999999999", "JPY", 999_999_999_999_999, "999999999999999"),
            ("999999999999.999", "KWD", 999_999_999_999_999, "999999999999.999"),
            ("99999999999.9999", "CLF", 999_999_999_999_999, "99999999999.9999"),
        ])
    func decimals(text: String, code: String, minor: Int64, written: String) throws {
        let money = try Money(value: text, currencyCode: code)
        #expect(money.minor == minor)
        #expect(money.value == written)
        #expect(money.description == "\(written) \(code)")
    }

    static let notDecimal: [String] = [
        "", " ", ".", "..", "1.", ".1", "0.", ".0", "1..2", "1.2.3", "01", "00", "00.1", "007.00", "0001",
        "+1", "-1", "-0", "+0", "−1", "- 1", "1-", "1e2", "1E2", "1e-2", "1.0e0", "0x10", "0b1", "0o7", "1_000",
        "1,000", "1,00", "1 000", "1'000", " 1", "1 ", "\t1", "1\n", "1\r\n", "\u{A0}1", "1\u{202F}000", "1\u{0}",
        "\u{0}1", "\u{0}", "1.0\u{0}", "١", "٤٩.٩٩", "१२", "１", "４９.９９", "4９.99", "1．5", "1٫5", "²", "½", "Ⅷ",
        "1\u{0301}", "1\u{FE0F}\u{20E3}", "\u{FEFF}1", "1\u{200B}", "NaN", "nan", "inf", "Infinity", "null", "true",
        "EUR 1", "1 EUR", "€1", "1€", "$1", "(1)", "\"1\"", "1/2", "1%", "1.5f", "a", "1a", "a1", "--1", "1.+2", "1.-2",
    ]

    @Test("what is not in the grammar is refused, never read generously (M9)", arguments: notDecimal)
    func grammar(text: String) throws {
        #expect(throws: Money.Fault.notDecimal) { try Money(value: text, currencyCode: "EUR") }
        #expect(throws: Money.Fault.notDecimal) { try Money(value: text, currencyCode: "JPY") }
    }

    @Test(
        "M9: too many decimals are refused, never rounded",
        arguments: [
            ("1.0", "JPY", 0), ("0.0", "JPY", 0), ("1.001", "EUR", 2), ("57.490", "USD", 2), ("0.000", "EUR", 2),
            ("1.0000", "KWD", 3), ("1.00000", "CLF", 4), ("8.165", "EUR", 2), ("1.00000000000000000000", "EUR", 2),
        ])
    func tooManyDecimals(text: String, code: String, allowed: Int) throws {
        #expect(throws: Money.Fault.tooManyDecimals(allowed: allowed)) { try Money(value: text, currencyCode: code) }
    }

    @Test(
        "M9: more than 15 digits in minor units are refused, however long",
        arguments: [
            ("10000000000000", "EUR"), ("10000000000000.00", "EUR"), ("1000000000000000", "JPY"),
            ("1000000000000", "KWD"), ("100000000000", "CLF"), ("9223372036854775807", "JPY"),
            ("9223372036854775808", "JPY"), ("18446744073709551616", "JPY"),
            (String(repeating: "9", count: 400), "EUR"),
        ])
    func tooLarge(text: String, code: String) throws {
        #expect(throws: Money.Fault.tooLarge) { try Money(value: text, currencyCode: code) }
    }

    @Test("minor units outside 0 to 15 digits make no money")
    func minorBounds() throws {
        let euro = try currency("EUR")
        #expect(Money(minor: -1, currency: euro) == nil)
        #expect(Money(minor: .min, currency: euro) == nil)
        #expect(Money(minor: .max, currency: euro) == nil)
        #expect(Money(minor: Money.maximumMinor + 1, currency: euro) == nil)
        #expect(Money(minor: Money.maximumMinor, currency: euro)?.minor == 999_999_999_999_999)
    }

    @Test("zero is an amount; refusing it is the caller's affair")
    func zero() throws {
        let zero = try Money(value: "0", currencyCode: "EUR")
        #expect(zero.isZero)
        #expect(try !Money(value: "0.01", currencyCode: "EUR").isZero)
    }

    @Test("equal digits of two currencies are two amounts")
    func currencyCounts() throws {
        #expect(try Money(value: "1.00", currencyCode: "EUR") != Money(value: "1.00", currencyCode: "USD"))
    }

    @Test("a fault's sentence doesn't repeat what was sent", arguments: ["12.3456", "secret"])
    func faultsAreSilent(text: String) throws {
        do {
            _ = try Money(value: text, currencyCode: "EUR")
            Issue.record("read")
        } catch {
            #expect(!error.detail.contains(text))
            #expect(!error.detail.isEmpty)
        }
    }
}

@Suite("Currencies are those of ISO 4217")
struct CurrencyTests {
    @Test(
        "exponents that people get wrong",
        arguments: [
            ("BIF", 0), ("CLP", 0), ("DJF", 0), ("GNF", 0), ("ISK", 0), ("JPY", 0), ("KMF", 0), ("KRW", 0), ("PYG", 0),
            ("RWF", 0), ("UGX", 0), ("UYI", 0), ("VND", 0), ("VUV", 0), ("XAF", 0), ("XOF", 0), ("XPF", 0),
            ("BHD", 3), ("IQD", 3), ("JOD", 3), ("KWD", 3), ("LYD", 3), ("OMR", 3), ("TND", 3), ("CLF", 4), ("UYW", 4),
            ("HUF", 2), ("TWD", 2), ("IDR", 2), ("MGA", 2), ("MRU", 2), ("LAK", 2), ("COP", 2), ("EUR", 2), ("USD", 2),
            ("ZWG", 2), ("SLE", 2), ("VED", 2), ("VES", 2), ("XCG", 2), ("BYN", 2), ("STN", 2), ("GHS", 2),
        ])
    func exponent(code: String, exponent: Int) {
        #expect(Currency(code: code)?.exponent == exponent)
    }

    @Test("only the table's exponents other than two are the ones above")
    func noOtherExponents() {
        let unusual = Currency.all.filter { $0.exponent != 2 }.map(\.code)
        #expect(
            unusual == [
                "BHD", "BIF", "CLF", "CLP", "DJF", "GNF", "IQD", "ISK", "JOD", "JPY", "KMF", "KRW", "KWD", "LYD", "OMR",
                "PYG", "RWF", "TND", "UGX", "UYI", "UYW", "VND", "VUV", "XAF", "XOF", "XPF",
            ])
    }

    @Test(
        "withdrawn codes, metals, test codes and anything but three capitals are refused",
        arguments: [
            "HRK", "BGN", "ANG", "CUC", "SLL", "ZWL", "VEF", "DEM", "MRO", "STD", "BYR", "XXX", "XTS", "XAU", "XAG",
            "XPT",
            "XPD", "XDR", "XUA", "XSU", "BTC", "eur", "Eur", "EU", "EURO", "", " EUR", "EUR ", "ＥＵＲ", "E\u{0}R", "€",
            "EUR\n", "#", "# ISO 4217: code", "EÙR",
        ])
    func refused(code: String) {
        #expect(Currency(code: code) == nil)
        #expect(throws: Money.Fault.unknownCurrency) { try Money(value: "1", currencyCode: code) }
    }

    @Test("codes are three capital letters, once each, in alphabetical order")
    func table() {
        let codes = Currency.all.map(\.code)
        #expect(codes == codes.sorted() && Set(codes).count == codes.count)
        #expect(codes.allSatisfy { $0.utf8.count == 3 && $0.utf8.allSatisfy { (0x41...0x5A).contains($0) } })
        #expect(Currency.all.allSatisfy { (0...4).contains($0.exponent) })
    }
}
