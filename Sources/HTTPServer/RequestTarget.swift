/// A request target in origin form, absolute form or `*` (RFC 9112, 3.2), split but not decoded.
struct RequestTarget: Hashable {
    let path: String
    let query: String?
    /// How long the target was on the wire.
    let byteCount: Int

    /// Nil for bytes that may not stand in a target (blanks, controls, anything but ASCII, `#`), and for the authority
    /// form that only `CONNECT` has.
    init?(_ bytes: UnsafeRawBufferPointer) {
        guard !bytes.isEmpty, bytes.allSatisfy({ $0 > 0x20 && $0 < 0x7F && $0 != UInt8(ascii: "#") }) else {
            return nil
        }
        guard let pathStart = Self.startOfPath(in: bytes) else { return nil }
        let question = bytes[pathStart...].firstIndex(of: UInt8(ascii: "?"))
        let path = bytes[pathStart..<(question ?? bytes.endIndex)]
        byteCount = bytes.count
        self.path = path.isEmpty ? "/" : String(decoding: path, as: UTF8.self)
        query = question.map { String(decoding: bytes[($0 + 1)...], as: UTF8.self) }
    }

    private static func startOfPath(in bytes: UnsafeRawBufferPointer) -> Int? {
        if bytes[0] == UInt8(ascii: "/") || bytes.count == 1 && bytes[0] == UInt8(ascii: "*") { return 0 }
        for scheme in ["http://", "https://"] where bytes.count > scheme.utf8.count {
            let prefix = bytes.prefix(scheme.utf8.count)
            guard zip(prefix, scheme.utf8).allSatisfy({ $0 | 0x20 == $1 | 0x20 }) else { continue }
            let authority = bytes[scheme.utf8.count...]
            let end = authority.firstIndex { $0 == UInt8(ascii: "/") || $0 == UInt8(ascii: "?") } ?? bytes.endIndex
            return end > authority.startIndex ? end : nil
        }
        return nil
    }
}
