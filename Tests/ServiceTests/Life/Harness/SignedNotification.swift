import Basics
import Crypto
import Foundation
import TestKit

/// A notification as Payrails would send it, with its signature.
struct SignedNotification: Sendable {
    let body: Data
    let signature: String

    init(_ body: Data, key: String = ServiceHarness.notificationKey) {
        self.body = body
        signature = Crypto.hmacSHA256(key: Data(key.utf8), message: body).base64EncodedString()
    }

    init(_ text: String, key: String = ServiceHarness.notificationKey) { self.init(Data(text.utf8), key: key) }

    func send(to caller: JSONCaller, path: String = ServiceHarness.endpoint) async throws -> JSONCaller.Reply {
        try await caller.call("POST", path, body: body, headers: ["X-Signature": signature])
    }
}
