/// One field of a result, in its binary form.
public struct PostgresValue: Sendable {
    public let type: PostgresType
    /// Keeps the memory that ``range`` points into.
    private let result: ResultHandle
    /// Where the field begins and how long it is; nil for NULL.
    private let range: (address: UInt, count: Int)?

    init(type: PostgresType, result: ResultHandle, bytes: UnsafeRawBufferPointer?) {
        self.type = type
        self.result = result
        range = bytes.map { (UInt(bitPattern: $0.baseAddress), $0.count) }
    }

    public var isNull: Bool { range == nil }

    /// The bytes, as long as `body` runs.
    /// - Throws: the code `decoding` for NULL.
    public func withBytes<R>(_ body: (UnsafeRawBufferPointer) throws -> R) throws -> R {
        guard let range else { throw PostgresError(.decoding, "NULL") }
        return try withExtendedLifetime(result) {
            try body(UnsafeRawBufferPointer(start: UnsafeRawPointer(bitPattern: range.address), count: range.count))
        }
    }

    public func expect(_ expected: PostgresType) throws {
        guard type == expected else { throw mismatch("type \(expected.rawValue)") }
    }

    func mismatch(_ wanted: String) -> PostgresError {
        PostgresError(.decoding, "type \(type.rawValue) where \(wanted) was asked for")
    }

    /// The field as one integer in network order.
    func integer<T: FixedWidthInteger>(_: T.Type = T.self) throws -> T {
        try withBytes { bytes in
            guard bytes.count == MemoryLayout<T>.size else {
                throw PostgresError(.decoding, "\(bytes.count) bytes for \(T.self)")
            }
            return T(bigEndian: bytes.loadUnaligned(as: T.self))
        }
    }

    func wholeNumber() throws -> Int64 {
        switch type {
        case .int2: Int64(try integer(Int16.self))
        case .int4: Int64(try integer(Int32.self))
        case .int8: try integer(Int64.self)
        case .numeric: try wholeNumeric()
        default: throw mismatch("a whole number")
        }
    }

    /// `numeric_send` in PostgreSQL's `numeric.c`: digit count, weight of the first digit, sign, scale, then digits to
    /// the base 10,000.
    private func wholeNumeric() throws -> Int64 {
        try withBytes { bytes in
            var reader = BigEndianReader(bytes)
            let digitCount = Int(try reader.next(Int16.self))
            let weight = Int(try reader.next(Int16.self))
            let sign = try reader.next(UInt16.self)
            _ = try reader.next(Int16.self)
            guard sign == 0 || sign == 0x4000 else { throw PostgresError(.decoding, "not a number") }
            var value: Int64 = 0
            for place in 0..<max(digitCount, weight + 1) {
                let digit = place < digitCount ? Int64(try reader.next(Int16.self)) : 0
                if place > weight {
                    if digit != 0 { throw PostgresError(.decoding, "a fraction where a whole number was asked for") }
                    continue
                }
                // Negative all along, since the least Int64 has no positive twin.
                let (product, tooLarge) = value.multipliedReportingOverflow(by: 10_000)
                let (sum, stillTooLarge) = product.subtractingReportingOverflow(digit)
                if tooLarge || stillTooLarge { throw PostgresError(.decoding, "a number out of the range of Int64") }
                value = sum
            }
            if sign == 0x4000 { return value }
            guard value != .min else { throw PostgresError(.decoding, "a number out of the range of Int64") }
            return -value
        }
    }

    /// Calls `body` for each element of a one-dimensional array.
    func forEachElement(_ body: (PostgresValue) throws -> Void) throws {
        try withBytes { bytes in
            var reader = BigEndianReader(bytes)
            let dimensions = try reader.next(Int32.self)
            _ = try reader.next(Int32.self)
            let element = PostgresType(rawValue: try reader.next(UInt32.self))
            if dimensions == 0 { return }
            guard dimensions == 1 else { throw PostgresError(.decoding, "an array of \(dimensions) dimensions") }
            let count = try reader.next(Int32.self)
            _ = try reader.next(Int32.self)
            for _ in 0..<max(count, 0) {
                let length = try reader.next(Int32.self)
                let field = length < 0 ? nil : try reader.bytes(Int(length))
                try body(PostgresValue(type: element, result: result, bytes: field))
            }
        }
    }
}

/// Reads network order from a buffer and never past its end.
private struct BigEndianReader {
    private var rest: Slice<UnsafeRawBufferPointer>

    init(_ bytes: UnsafeRawBufferPointer) { rest = bytes[...] }

    mutating func bytes(_ count: Int) throws -> UnsafeRawBufferPointer {
        guard rest.count >= count else { throw PostgresError(.decoding, "a field that ends too early") }
        defer { rest = rest.dropFirst(count) }
        return UnsafeRawBufferPointer(rebasing: rest.prefix(count))
    }

    mutating func next<T: FixedWidthInteger>(_: T.Type) throws -> T {
        T(bigEndian: try bytes(MemoryLayout<T>.size).loadUnaligned(as: T.self))
    }
}
