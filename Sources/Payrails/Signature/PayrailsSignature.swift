import Basics
import Crypto
import Foundation

/// A key that notifications are signed with, and a name for it that may be logged (S8).
public struct WebhookKey: Sendable {
    public enum Encoding: String, Sendable {
        /// The bytes of the key as Payrails shows it: what every official sample does.
        case utf8
        /// The bytes that its hexadecimal digits stand for (section 12, 13).
        case hex
    }

    /// Not secret: says which of several keys matched, so that an old one can be retired.
    public let id: String
    let bytes: Secret<Data>

    /// Nil for an empty key, and for one that isn't hexadecimal where it should be.
    public init?(id: String, key: Secret<String>, encoding: Encoding = .utf8) {
        let bytes =
            switch encoding {
            case .utf8: Data(key.reveal.utf8)
            case .hex: WebhookKey.decodeHex(key.reveal)
            }
        guard let bytes, !bytes.isEmpty else { return nil }
        self.id = id
        self.bytes = Secret(bytes)
    }

    private static func decodeHex(_ text: String) -> Data? {
        let digits = text.utf8.map { Character(Unicode.Scalar($0)).hexDigitValue }
        guard digits.count.isMultiple(of: 2), !digits.contains(nil) else { return nil }
        let values = digits.compactMap { $0 }
        return Data(stride(from: 0, to: values.count, by: 2).map { UInt8(values[$0] << 4 | values[$0 + 1]) })
    }
}

/// `X-Signature` (section 5.1): base64 of HMAC-SHA-256 over the bytes of the body as they came (S1, S9).
public enum PayrailsSignature {
    /// The id of the key that the body is signed with; nil when it is none of them.
    ///
    /// Every key is tried, whichever matches, so that the time tells nothing about them. The header must be exactly
    /// the 44 characters that a signer would write: no blanks, no other alphabet, no other text for the same bytes.
    public static func verify(body: Data, header: String, keys: [WebhookKey]) -> String? {
        guard header.utf8.count == 44, let given = Data(base64Encoded: header), given.count == 32,
            given.base64EncodedString() == header
        else { return nil }
        var match: String?
        for key in keys {
            let expected = Crypto.hmacSHA256(key: key.bytes.reveal, message: body)
            if Crypto.constantTimeEqual(expected, given), match == nil { match = key.id }
        }
        return match
    }

    /// The header for a body, as Payrails would write it. For stand-ins and tests.
    public static func sign(body: Data, key: WebhookKey) -> String {
        Crypto.hmacSHA256(key: key.bytes.reveal, message: body).base64EncodedString()
    }
}
