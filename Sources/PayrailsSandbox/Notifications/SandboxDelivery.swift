import Basics
import Crypto
import Foundation

/// One notification on its way to one address.
public struct SandboxDelivery: Sendable {
    public enum State: String, Sendable {
        /// Held back, or between two attempts.
        case waiting
        case sending
        /// Acknowledged with exactly 200.
        case delivered
        /// Never sent, on request.
        case lost
        /// Every attempt failed.
        case dead
    }

    public struct Attempt: Sendable {
        public let time: Timestamp
        /// Nil when there was no answer.
        public let status: Int?
        public let failure: String?
    }

    /// From 1, in the order in which deliveries were made up.
    public let id: Int
    /// The same for every delivery of one notification.
    public let notificationID: String
    public let event: String
    public let action: String?
    public let success: Bool?
    public let executionID: String
    public let merchantReference: String
    public let url: String
    /// The bytes that are signed and sent.
    public let body: Data
    /// `X-Signature` of the last attempt; empty before the first.
    public internal(set) var signature = ""
    let key: String
    let isSignedWrongly: Bool
    public internal(set) var state = State.waiting
    public internal(set) var attempts: [Attempt] = []
}

extension SandboxDelivery {
    init(again old: SandboxDelivery, id: Int) {
        self.init(
            id: id, notificationID: old.notificationID, event: old.event, action: old.action, success: old.success,
            executionID: old.executionID, merchantReference: old.merchantReference, url: old.url, body: old.body,
            key: old.key, isSignedWrongly: old.isSignedWrongly)
    }
}

/// Section 5.1: base64 of HMAC-SHA-256 over the raw body, keyed by the UTF-8 bytes of the key as it is displayed.
enum NotificationSignature {
    static func of(_ body: Data, key: String) -> String {
        Crypto.hmacSHA256(key: Data(key.utf8), message: body).base64EncodedString()
    }
}
