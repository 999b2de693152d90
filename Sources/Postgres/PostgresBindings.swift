import CPostgres

/// The parameters of one statement, laid out as `PQsendQueryParams` wants them.
struct PostgresBindings: Sendable {
    private(set) var types: [UInt32] = []
    private var formats: [Int32] = []
    private var lengths: [Int32] = []
    /// Where each value begins in ``buffer``; nil is NULL.
    private var offsets: [Int?] = []
    private var buffer = PostgresBuffer()
    /// The first value that could not be encoded; said when the statement is run, since interpolation can't throw.
    private(set) var failure: PostgresError?

    /// The protocol counts parameters in 16 bits.
    private static let maximumCount = 65_535

    var count: Int { types.count }

    mutating func append<T: PostgresEncodable>(_ value: T) {
        let start = buffer.bytes.count
        do {
            if count == Self.maximumCount { throw PostgresError(.encoding, "more than \(count) parameters") }
            if !value.isPostgresNull { try value.encode(into: &buffer) }
            guard let length = Int32(exactly: buffer.bytes.count - start) else {
                throw PostgresError(.encoding, "a parameter of more than 2 GiB")
            }
            lengths.append(length)
            // libpq finds the end of a text by its zero.
            if T.postgresFormat == .text { buffer.append(UInt8(0)) }
        } catch {
            failure = failure ?? (error as? PostgresError) ?? PostgresError(.encoding, "\(error)")
            lengths.append(0)
        }
        types.append(T.postgresType.rawValue)
        formats.append(T.postgresFormat.rawValue)
        offsets.append(value.isPostgresNull ? nil : start)
    }

    /// Hands out the parameters in libpq's form: values, lengths, formats.
    func withPointers<R>(
        _ body: (UnsafePointer<UnsafePointer<CChar>?>?, UnsafePointer<Int32>?, UnsafePointer<Int32>?) -> R
    ) -> R {
        buffer.bytes.withUnsafeBytes { bytes in
            // An empty value isn't NULL, so it needs an address even where the buffer has none.
            var empty: CChar = 0
            return withUnsafePointer(to: &empty) { emptyAddress in
                let values = offsets.map { offset -> UnsafePointer<CChar>? in
                    guard let offset else { return nil }
                    guard let base = bytes.baseAddress else { return emptyAddress }
                    return (base + offset).assumingMemoryBound(to: CChar.self)
                }
                return body(values, lengths, formats)
            }
        }
    }
}
