import Basics

/// Where a request's body ends, by RFC 9112, 6; and what else must be right before its body is read.
enum BodyFraming: Equatable {
    case none
    case length(Int)
    case chunked

    /// - Throws: `badFraming` wherever two readers could come to two ends (both `Content-Length` and
    ///   `Transfer-Encoding`, more than one of either, a length that isn't plain digits, a coding other than exactly
    ///   `chunked`) or to two hosts; `unsupportedEncoding` for a `Content-Encoding`.
    init(_ head: RequestHead) throws(HTTPServerRefusal.Kind) {
        var hosts = 0
        var length: Int?
        var isChunked = false
        for field in head.headers.fields {
            switch field.name.utf8.count {
            case 4 where field.name.equalsIgnoringASCIICase("host"):
                hosts += 1
                guard field.value.utf8.allSatisfy(\.isHostByte) else { throw .badFraming }
            case 14 where field.name.equalsIgnoringASCIICase("content-length"):
                guard length == nil, let value = Self.length(field.value) else { throw .badFraming }
                length = value
            case 16 where field.name.equalsIgnoringASCIICase("content-encoding"):
                guard field.value.equalsIgnoringASCIICase("identity") else { throw .unsupportedEncoding }
            case 17 where field.name.equalsIgnoringASCIICase("transfer-encoding"):
                guard !isChunked, head.isVersion11, field.value.equalsIgnoringASCIICase("chunked") else {
                    throw .badFraming
                }
                isChunked = true
            default: break
            }
        }
        guard hosts == 1 || hosts == 0 && !head.isVersion11, !(isChunked && length != nil) else { throw .badFraming }
        self = isChunked ? .chunked : length.map { $0 == 0 ? .none : .length($0) } ?? .none
    }

    /// Eighteen digits fit an `Int` whatever they are.
    private static func length(_ text: String) -> Int? {
        guard (1...18).contains(text.utf8.count), text.utf8.allSatisfy({ $0 >= 0x30 && $0 <= 0x39 }) else { return nil }
        return Int(text)
    }
}

extension UInt8 {
    /// What a host and port are made of (RFC 3986, 3.2.2 and 3.2.3).
    fileprivate var isHostByte: Bool {
        switch self {
        case UInt8(ascii: "^"), UInt8(ascii: "`"), UInt8(ascii: "|"), UInt8(ascii: "#"): false
        case UInt8(ascii: ":"), UInt8(ascii: "["), UInt8(ascii: "]"), UInt8(ascii: "("), UInt8(ascii: ")"),
            UInt8(ascii: ";"), UInt8(ascii: "="):
            true
        default: isTokenCharacter
        }
    }
}
