import Basics
import Crypto
import Foundation

/// The signature of the Standard Webhooks specification (version 1.0.0, "Signature scheme"), symmetric: HMAC-SHA-256
/// over `id.timestamp.payload`, in base64 behind `v1,`.
///
/// While a secret rotates there are several: each signs, and a receiver takes the one that it knows.
struct WebhookSignature: Sendable {
    /// The bytes behind `whsec_`.
    let secrets: [Secret<Data>]

    /// The three headers of one attempt.
    ///
    /// - Parameters:
    ///   - id: the same for every attempt. Holds no `.`, which would let a part of it pass for another.
    ///   - time: the attempt's, so that a receiver can turn down what was recorded and is played again.
    ///   - payload: exactly the bytes that are sent.
    func headers(id: String, time: Timestamp, payload: Data) -> HTTPHeaders {
        let timestamp = String(time.seconds)
        let signed = Data("\(id).\(timestamp).".utf8) + payload
        let signatures = secrets.map { secret in
            "v1,\(Crypto.hmacSHA256(key: secret.reveal, message: signed).base64EncodedString())"
        }
        return [
            "webhook-id": id, "webhook-timestamp": timestamp, "webhook-signature": signatures.joined(separator: " "),
        ]
    }
}
