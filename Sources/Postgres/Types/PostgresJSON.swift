/// A JSON text that is bound as `jsonb`, and read from `json` or `jsonb`.
///
/// The server checks the syntax; `jsonb` keeps the value, not the spelling.
public struct PostgresJSON: Hashable, Sendable {
    public var text: String
    public init(_ text: String) { self.text = text }
    public init(text: String) { self.text = text }

    /// The binary form of `jsonb` is this byte, then the text.
    static let version: UInt8 = 1
}

extension PostgresJSON: PostgresEncodable, PostgresArrayElement {
    public static var postgresType: PostgresType { .jsonb }
    public static var postgresArrayType: PostgresType { .jsonbArray }

    public func encode(into buffer: inout PostgresBuffer) throws {
        buffer.append(Self.version)
        try buffer.append(text: text)
    }
}

extension PostgresJSON: PostgresDecodable {
    public init(postgres value: PostgresValue) throws {
        guard value.type == .jsonb || value.type == .json else { throw value.mismatch("JSON") }
        try self.init(String(postgres: value))
    }
}
