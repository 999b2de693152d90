import Foundation

extension Sequence<UInt8> {
    /// Lower-case hexadecimal.
    public var hexadecimal: String {
        var out: [UInt8] = []
        let digits = Array("0123456789abcdef".utf8)
        for byte in self {
            out.append(digits[Int(byte >> 4)])
            out.append(digits[Int(byte & 15)])
        }
        return String(decoding: out, as: UTF8.self)
    }
}

extension Data {
    /// Base64 for URLs (RFC 4648 section 5), without padding.
    public var base64URL: String {
        base64EncodedString().replacing("+", with: "-").replacing("/", with: "_").replacing("=", with: "")
    }
}
