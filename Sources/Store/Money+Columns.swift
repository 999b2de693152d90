import Lockstep

extension Money {
    /// Reads an amount back from its two columns.
    init(minor: Int64, code: String, table: String) throws {
        guard let currency = Currency(code: code), let money = Money(minor: minor, currency: currency) else {
            throw CorruptRow(table: table, detail: "an amount that is none: \(minor) \(code)")
        }
        self = money
    }

    static func optional(minor: Int64?, code: String?, table: String) throws -> Money? {
        guard let minor, let code else { return nil }
        return try Money(minor: minor, code: code, table: table)
    }
}

/// Reads a value that the schema's CHECK keeps legal.
func legal<Value: RawRepresentable>(_ raw: String, _ table: String) throws -> Value where Value.RawValue == String {
    guard let value = Value(rawValue: raw) else { throw CorruptRow(table: table, detail: "\(raw) is no \(Value.self)") }
    return value
}
