import Basics

/// The request line and the header fields, read strictly (RFC 9112, 2 to 5).
///
/// The library reads requests leniently: it joins folded lines, takes bare line feeds, and cuts values at a NUL. A
/// proxy in front may read such bytes in another way, and what two parties read differently can smuggle a request. So
/// the bytes are read here once more, and whatever isn't plain is refused.
struct RequestHead {
    let method: String
    let headers: HTTPHeaders
    /// HTTP/1.1 or a later 1.x, as opposed to 1.0.
    let isVersion11: Bool

    /// Reads a head in which the library has overwritten what it split at (the blanks of the request line, the first
    /// colon of each field line, both bytes of each CRLF) by NULs.
    /// - Parameter fieldCount: how many fields the library found. Fewer here or there means bytes that were read twice.
    /// - Returns: nil for what isn't plain.
    init?(splitByNULs bytes: UnsafeRawBufferPointer, targetByteCount: Int, fieldCount: Int) {
        guard let methodEnd = bytes.firstIndex(of: 0), (1...32).contains(methodEnd),
            bytes[..<methodEnd].allSatisfy(\.isTokenCharacter)
        else { return nil }
        let version = methodEnd + targetByteCount + 2
        guard version + 12 <= bytes.count, bytes[methodEnd + 1] != 0x20, bytes[version - 1] == 0,
            bytes[version..<version + 7].elementsEqual("HTTP/1.".utf8),
            bytes[version + 8] == 0, bytes[version + 9] == 0
        else { return nil }
        guard let fields = Self.fields(in: bytes, from: version + 10, count: fieldCount) else { return nil }
        method = String(decoding: bytes[..<methodEnd], as: UTF8.self)
        headers = HTTPHeaders(fields)
        isVersion11 = bytes[version + 7] != UInt8(ascii: "0")
    }

    private static func fields(
        in bytes: UnsafeRawBufferPointer, from start: Int, count: Int
    ) -> [HTTPHeaders.Field]? {
        var fields: [HTTPHeaders.Field] = []
        fields.reserveCapacity(count)
        var at = start
        while at < bytes.count, bytes[at] != 0 {
            guard let nameEnd = bytes[at...].firstIndex(of: 0), bytes[at..<nameEnd].allSatisfy(\.isTokenCharacter),
                let valueEnd = bytes[(nameEnd + 1)...].firstIndex(of: 0), valueEnd + 1 < bytes.count,
                bytes[valueEnd + 1] == 0, let value = value(in: bytes[(nameEnd + 1)..<valueEnd])
            else { return nil }
            fields.append(.init(name: String(decoding: bytes[at..<nameEnd], as: UTF8.self), value: value))
            at = valueEnd + 2
        }
        guard at + 2 == bytes.count, bytes[at] == 0, bytes[at + 1] == 0, fields.count == count else { return nil }
        return fields
    }

    private static func value(in bytes: Slice<UnsafeRawBufferPointer>) -> String? {
        var bytes = bytes
        while bytes.first?.isBlank == true { bytes.removeFirst() }
        while bytes.last?.isBlank == true { bytes.removeLast() }
        guard bytes.allSatisfy(\.isFieldValueByte) else { return nil }
        return String(validating: bytes, as: UTF8.self)
    }
}
