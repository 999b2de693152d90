import Basics
import Foundation
import Lockstep

/// What `X-Request-Id` carries: the caller's, if it is sane, or a new UUID.
public struct RequestID: Hashable, Sendable, CustomStringConvertible {
    /// 1 to 128 characters of `[A-Za-z0-9._-]`, never a card number or one of our tokens.
    public let text: String

    /// Nil for a text that isn't sane: it is written to logs, so it must not be able to carry anything else there.
    public init?(_ text: String) {
        guard (1...128).contains(text.utf8.count),
            text.utf8.allSatisfy({ byte in
                switch byte {
                case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                    UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "."), UInt8(ascii: "_"), UInt8(ascii: "-"):
                    true
                default: false
                }
            }), Scrubber.scrub(text) == text
        else { return nil }
        self.text = text
    }

    public init(_ uuid: UUID) { text = uuid.lowercased }

    /// The caller's, where it sent one and it is sane; else a new one.
    init(callers headers: HTTPHeaders, else identifiers: IdentifierSource) {
        let sent = headers.all("X-Request-Id")
        self = (sent.count == 1 ? RequestID(sent[0]) : nil) ?? RequestID(identifiers.next())
    }

    public var description: String { text }
}
