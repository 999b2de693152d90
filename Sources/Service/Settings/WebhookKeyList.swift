import Basics
import Foundation

/// The keys of `PAYRAILS_WEBHOOK_KEYS`: by the name of the endpoint, several for each while they rotate.
public struct WebhookKeyList: Sendable, Hashable {
    public struct Key: Sendable, Hashable {
        public let text: Secret<String>
        /// Whether the text stands for bytes in hexadecimal (section 12, 13 of the reference); else it is used as it is.
        public let isHexadecimal: Bool
    }

    /// Under the empty name: the keys of `/webhooks/payrails` itself.
    public let keys: [String: [Key]]

    /// Reads `endpoint=key,endpoint=key`; a bare `key` is for `/webhooks/payrails`, and so is `=key`.
    ///
    /// A key may hold `=` (base64 ends with it). The first `=` parts name and key, unless nothing but `=` follows: then
    /// the whole is a bare key in base64. What stands before must be a name that a segment of a path can be as it stands:
    /// of letters, digits and `-._~` (RFC 3986, 2.3). So a bare key with `=` inside is written `=key`. `hex:` before a key says that it stands for bytes. Parts may also be parted by line ends.
    ///
    /// - Returns: nil for anything else.
    public init?(_ text: String) {
        var keys: [String: [Key]] = [:]
        for part in text.split(whereSeparator: { $0 == "," || $0.isNewline }) {
            let part = SettingText.trimmed(part)
            if part.isEmpty { continue }
            guard let (name, rest) = Self.sides(of: part) else { return nil }
            let isHexadecimal = rest.hasPrefix("hex:")
            let keyText = isHexadecimal ? String(rest.dropFirst(4)) : rest
            let isFit = isHexadecimal ? keyText.count.isMultiple(of: 2) && keyText.allSatisfy(\.isHexDigit) : true
            guard !keyText.isEmpty, isFit, !keyText.contains(where: \.isWhitespace) else { return nil }
            let key = Key(text: Secret(keyText), isHexadecimal: isHexadecimal)
            if !(keys[name] ?? []).contains(key) { keys[name, default: []].append(key) }
        }
        guard !keys.isEmpty else { return nil }
        self.keys = keys
    }

    private static func sides(of part: String) -> (name: String, key: String)? {
        guard let equals = part.firstIndex(of: "=") else { return ("", part) }
        let name = part[..<equals]
        let key = part[part.index(after: equals)...]
        if key.allSatisfy({ $0 == "=" }) { return name.isEmpty ? nil : ("", part) }
        return isName(name) ? (String(name), String(key)) : nil
    }

    /// `.` and `..` stand for other paths, so nobody could call them.
    private static func isName(_ text: Substring) -> Bool {
        let isUnreserved = text.utf8.allSatisfy { byte in
            switch byte {
            case 0x30...0x39, 0x41...0x5A, 0x61...0x7A: true
            case UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"), UInt8(ascii: "~"): true
            default: false
            }
        }
        return isUnreserved && text.utf8.count <= 64 && text != "." && text != ".."
    }
}

extension SettingForm where Value == WebhookKeyList {
    static let webhookKeys = SettingForm(
        "endpoint=key,endpoint=key with names of letters, digits and -._~, or a key alone",
        optionally: WebhookKeyList.init)
}
