import Foundation

/// A value that can be bound to a parameter of a ``PostgresQuery``.
///
/// A type around a raw value (`RawRepresentable`) needs only to name the protocol.
public protocol PostgresEncodable: Sendable {
    /// The type that the parameter is declared as.
    static var postgresType: PostgresType { get }
    /// Binary, unless the type says otherwise.
    static var postgresFormat: PostgresFormat { get }
    /// Whether this value is bound as NULL.
    var isPostgresNull: Bool { get }
    /// Appends the value in the declared format.
    func encode(into buffer: inout PostgresBuffer) throws
}

extension PostgresEncodable {
    public static var postgresFormat: PostgresFormat { .binary }
    public var isPostgresNull: Bool { false }
}

/// The bytes of a parameter while it is being written, in network order.
public struct PostgresBuffer: Sendable {
    var bytes: [UInt8] = []

    public mutating func append(_ integer: some FixedWidthInteger) {
        withUnsafeBytes(of: integer.bigEndian) { bytes.append(contentsOf: $0) }
    }

    public mutating func append(contentsOf more: some Sequence<UInt8>) {
        bytes.append(contentsOf: more)
    }

    /// Appends a text, which PostgreSQL keeps without zero bytes.
    public mutating func append(text: String) throws {
        var text = text
        let hasZero = text.withUTF8 { utf8 in
            bytes.append(contentsOf: utf8)
            return utf8.contains(0)
        }
        if hasZero { throw PostgresError(.encoding, "a text with a zero byte") }
    }
}

extension PostgresEncodable where Self: FixedWidthInteger {
    public func encode(into buffer: inout PostgresBuffer) { buffer.append(self) }
}

extension Int16: PostgresEncodable { public static var postgresType: PostgresType { .int2 } }
extension Int32: PostgresEncodable { public static var postgresType: PostgresType { .int4 } }
extension Int64: PostgresEncodable { public static var postgresType: PostgresType { .int8 } }
extension Int: PostgresEncodable { public static var postgresType: PostgresType { .int8 } }

extension Bool: PostgresEncodable {
    public static var postgresType: PostgresType { .bool }
    public func encode(into buffer: inout PostgresBuffer) { buffer.append(self ? UInt8(1) : 0) }
}

/// A string travels as text of unspecified type, so that it fits wherever its text is a legal input: text, varchar,
/// an enum, a date, a numeric, json. Where the server can't infer one (an argument of a polymorphic function), write
/// `\(value)::text`.
extension String: PostgresEncodable {
    public static var postgresType: PostgresType { .unspecified }
    public static var postgresFormat: PostgresFormat { .text }
    public func encode(into buffer: inout PostgresBuffer) throws { try buffer.append(text: self) }
}

extension UUID: PostgresEncodable {
    public static var postgresType: PostgresType { .uuid }
    public func encode(into buffer: inout PostgresBuffer) {
        withUnsafeBytes(of: uuid) { buffer.append(contentsOf: $0) }
    }
}

extension Data: PostgresEncodable {
    public static var postgresType: PostgresType { .bytea }
    public func encode(into buffer: inout PostgresBuffer) {
        withUnsafeBytes { bytes in buffer.append(contentsOf: bytes) }
    }
}

extension Optional: PostgresEncodable where Wrapped: PostgresEncodable {
    public static var postgresType: PostgresType { Wrapped.postgresType }
    public static var postgresFormat: PostgresFormat { Wrapped.postgresFormat }
    public var isPostgresNull: Bool { self?.isPostgresNull ?? true }
    public func encode(into buffer: inout PostgresBuffer) throws { try self?.encode(into: &buffer) }
}

extension PostgresEncodable where Self: RawRepresentable, RawValue: PostgresEncodable {
    public static var postgresType: PostgresType { RawValue.postgresType }
    public static var postgresFormat: PostgresFormat { RawValue.postgresFormat }
    public var isPostgresNull: Bool { rawValue.isPostgresNull }
    public func encode(into buffer: inout PostgresBuffer) throws { try rawValue.encode(into: &buffer) }
}
