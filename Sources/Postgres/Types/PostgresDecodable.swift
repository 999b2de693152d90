import Foundation

/// A value that can be read from a column.
///
/// A type around a raw value (`RawRepresentable`) needs only to name the protocol.
public protocol PostgresDecodable: Sendable {
    /// - Throws: ``PostgresError`` with the code `decoding` when the column has another type, a value out of range, or
    ///   NULL where the type has no place for it.
    init(postgres value: PostgresValue) throws
}

extension PostgresDecodable where Self: RawRepresentable, RawValue: PostgresDecodable {
    public init(postgres value: PostgresValue) throws {
        guard let known = Self(rawValue: try RawValue(postgres: value)) else {
            throw PostgresError(.decoding, "not one of \(Self.self)")
        }
        self = known
    }
}

extension Optional: PostgresDecodable where Wrapped: PostgresDecodable {
    public init(postgres value: PostgresValue) throws {
        self = value.isNull ? nil : try Wrapped(postgres: value)
    }
}

/// Any of int2, int4 and int8 that fits is taken, and a numeric without a fraction, which is what `sum` returns.
extension PostgresDecodable where Self: FixedWidthInteger {
    public init(postgres value: PostgresValue) throws {
        guard let fitting = Self(exactly: try value.wholeNumber()) else {
            throw PostgresError(.decoding, "a number out of the range of \(Self.self)")
        }
        self = fitting
    }
}

extension Int16: PostgresDecodable {}
extension Int32: PostgresDecodable {}
extension Int64: PostgresDecodable {}
extension Int: PostgresDecodable {}

extension Bool: PostgresDecodable {
    public init(postgres value: PostgresValue) throws {
        try value.expect(.bool)
        self = try value.integer(UInt8.self) != 0
    }
}

extension String: PostgresDecodable {
    public init(postgres value: PostgresValue) throws {
        guard value.type == .jsonb || value.type.isTextual else { throw value.mismatch("a text") }
        self = try value.withBytes { bytes in
            var text = bytes[...]
            if value.type == .jsonb {
                guard bytes.first == PostgresJSON.version else {
                    throw PostgresError(.decoding, "an unknown version of jsonb")
                }
                text = bytes.dropFirst()
            }
            guard let string = String(validating: text, as: UTF8.self) else {
                throw PostgresError(.decoding, "a text that is not UTF-8")
            }
            return string
        }
    }
}

extension UUID: PostgresDecodable {
    public init(postgres value: PostgresValue) throws {
        try value.expect(.uuid)
        self = try value.withBytes { bytes in
            guard bytes.count == 16 else { throw PostgresError(.decoding, "a UUID of \(bytes.count) bytes") }
            return UUID(uuid: bytes.loadUnaligned(as: uuid_t.self))
        }
    }
}

extension Data: PostgresDecodable {
    public init(postgres value: PostgresValue) throws {
        try value.expect(.bytea)
        self = try value.withBytes { Data($0) }
    }
}

extension Array: PostgresDecodable where Element: PostgresDecodable {
    public init(postgres value: PostgresValue) throws {
        var elements: [Element] = []
        try value.forEachElement { elements.append(try Element(postgres: $0)) }
        self = elements
    }
}
