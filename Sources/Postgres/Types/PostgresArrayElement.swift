import Foundation

/// What may stand in an array parameter, for `unnest` and `= ANY`.
public protocol PostgresArrayElement: PostgresEncodable {
    /// The element's type, which the array's header repeats.
    static var postgresElementType: PostgresType { get }
    static var postgresArrayType: PostgresType { get }
}

extension PostgresArrayElement {
    public static var postgresElementType: PostgresType { postgresType }
}

extension Bool: PostgresArrayElement { public static var postgresArrayType: PostgresType { .boolArray } }
extension Int16: PostgresArrayElement { public static var postgresArrayType: PostgresType { .int2Array } }
extension Int32: PostgresArrayElement { public static var postgresArrayType: PostgresType { .int4Array } }
extension Int64: PostgresArrayElement { public static var postgresArrayType: PostgresType { .int8Array } }
extension Int: PostgresArrayElement { public static var postgresArrayType: PostgresType { .int8Array } }
extension UUID: PostgresArrayElement { public static var postgresArrayType: PostgresType { .uuidArray } }
extension Data: PostgresArrayElement { public static var postgresArrayType: PostgresType { .byteaArray } }

/// In an array a string is a `text`: cast the parameter (`\(ids)::uuid[]`) where another type is meant.
extension String: PostgresArrayElement {
    public static var postgresElementType: PostgresType { .text }
    public static var postgresArrayType: PostgresType { .textArray }
}

extension Optional: PostgresArrayElement where Wrapped: PostgresArrayElement {
    public static var postgresElementType: PostgresType { Wrapped.postgresElementType }
    public static var postgresArrayType: PostgresType { Wrapped.postgresArrayType }
}

extension PostgresArrayElement where Self: RawRepresentable, RawValue: PostgresArrayElement {
    public static var postgresElementType: PostgresType { RawValue.postgresElementType }
    public static var postgresArrayType: PostgresType { RawValue.postgresArrayType }
}

/// The binary form of arrays (`array_recv` in PostgreSQL's `arrayfuncs.c`): dimensions, whether there are NULLs, the
/// element's type, then per dimension its size and first index, then each element with its length.
extension Array: PostgresEncodable where Element: PostgresArrayElement {
    public static var postgresType: PostgresType { Element.postgresArrayType }

    public func encode(into buffer: inout PostgresBuffer) throws {
        buffer.append(Int32(isEmpty ? 0 : 1))
        buffer.append(Int32(contains { $0.isPostgresNull } ? 1 : 0))
        buffer.append(Element.postgresElementType.rawValue)
        if isEmpty { return }
        guard let size = Int32(exactly: count) else { throw PostgresError(.encoding, "an array of \(count) elements") }
        buffer.append(size)
        buffer.append(Int32(1))
        for element in self {
            guard !element.isPostgresNull else {
                buffer.append(Int32(-1))
                continue
            }
            let lengthAt = buffer.bytes.count
            buffer.append(Int32(0))
            try element.encode(into: &buffer)
            let length = buffer.bytes.count - lengthAt - 4
            guard let length = Int32(exactly: length) else {
                throw PostgresError(.encoding, "an array element of \(length) bytes")
            }
            Swift.withUnsafeBytes(of: length.bigEndian) {
                buffer.bytes.replaceSubrange(lengthAt..<lengthAt + 4, with: $0)
            }
        }
    }
}
