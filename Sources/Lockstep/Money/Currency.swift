import Foundation

/// A currency of ISO 4217 with its exponent: how many decimals its minor unit has.
public struct Currency: Hashable, Sendable, CustomStringConvertible {
    /// Three capital letters.
    public let code: String
    /// 0 to 4.
    public let exponent: Int

    /// Nil for a code that the table (`config/currencies.csv`) doesn't hold.
    public init?(code: String) {
        guard let exponent = Currency.exponents[code] else { return nil }
        self.code = code
        self.exponent = exponent
    }

    /// Every code of the table, in alphabetical order.
    public static var all: [Currency] { exponents.keys.sorted().compactMap(Currency.init(code:)) }

    public var description: String { code }

    /// `config/currencies.csv`, compiled in, so that an amount never depends on a file that can go missing.
    private static let exponents: [String: Int] = {
        let text = String(decoding: PackageResources.currencies_csv, as: UTF8.self)
        var table: [String: Int] = [:]
        for line in text.split(whereSeparator: \.isNewline) where !line.hasPrefix("#") {
            let columns = line.split(separator: ",")
            guard columns.count >= 2, let exponent = Int(columns[1]) else { continue }
            table[String(columns[0])] = exponent
        }
        return table
    }()
}
