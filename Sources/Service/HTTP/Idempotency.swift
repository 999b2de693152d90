import Basics
import Crypto
import Foundation
import Lockstep

/// The caller's key of a POST, and what it was sent with.
public struct IdempotencyContext: Hashable, Sendable {
    /// 1 to 255 visible ASCII characters.
    public let key: String
    /// SHA-256 over method, path, query and the body as canonical JSON: equal for the same request.
    public let requestHash: Data
    /// Whose key it is: keys of different credentials never meet.
    public let owner: UUID
}

/// An answer as it is kept under a key.
public struct StoredAnswer: Hashable, Sendable {
    public let status: Int
    public let headers: HTTPHeaders
    public let body: Data
    public init(status: Int, headers: HTTPHeaders, body: Data) {
        self.status = status
        self.headers = headers
        self.body = body
    }
}

/// What the keeper of the keys says at the beginning of a request.
public enum IdempotencyBeginning: Hashable, Sendable {
    /// Go on: never seen, or stopped before it was finished (the handler then goes on where it stopped). Until then the
    /// key is this request's; after it, another one's, unless it was renewed.
    case fresh(until: Timestamp)
    /// Finished earlier with this answer.
    case replay(StoredAnswer)
    /// The key stands for another request.
    case reused
    /// The same request is running at this moment.
    case inUse
}

/// Keeps answers under their keys for at least 24 hours.
public protocol IdempotencyKeeper: Sendable {
    /// Reserves the key, in one statement.
    func begin(_ context: IdempotencyContext) async throws -> IdempotencyBeginning
    /// How often the key of a request that still runs is renewed.
    var renewalInterval: Duration { get }
    /// The request still runs: the key goes on being its own.
    ///
    /// - Parameter until: as it was given last.
    /// - Returns: until when it is now; nil where it is no longer this request's.
    func renew(_ context: IdempotencyContext, until: Timestamp) async throws -> Timestamp?
    /// Keeps the answer, which is final.
    func finish(_ context: IdempotencyContext, with answer: StoredAnswer) async throws
    /// The request ended without a final answer (5xx, or one with `Retry-After`): the same request may run again at once,
    /// unless it runs already, since this one's lease had ended.
    func release(_ context: IdempotencyContext, until: Timestamp) async throws
}

extension IdempotencyContext {
    /// Reads `Idempotency-Key`; nil where there is none.
    ///
    /// - Throws: 400 `idempotency-key-invalid` for a doubled one, a wrong form, or a card number.
    static func key(from headers: HTTPHeaders) throws(Problem) -> String? {
        let values = headers.all("Idempotency-Key")
        guard let key = values.first else { return nil }
        guard values.count == 1 else { throw Problem(.idempotencyKeyInvalid, "Idempotency-Key stands twice") }
        guard (1...255).contains(key.utf8.count), key.utf8.allSatisfy({ (0x21...0x7E).contains($0) }) else {
            throw Problem(.idempotencyKeyInvalid, "Idempotency-Key must be 1 to 255 visible ASCII characters")
        }
        guard !CardNumber.appears(in: key) else {
            throw Problem(.idempotencyKeyInvalid, "Idempotency-Key must not hold a card number")
        }
        // It is stored as it is, so one of our own tokens, sent in the wrong field, must not become a row.
        guard Scrubber.scrub(key) == key else {
            throw Problem(.idempotencyKeyInvalid, "Idempotency-Key must not hold a token or a key of this service")
        }
        return key
    }

    /// The same for the same request, whatever the order and spacing of its body's members.
    static func requestHash(method: String, path: String, query: String, body: JSON?) -> Data {
        var bytes = Data()
        for part in [method, path, query] {
            bytes.append(contentsOf: part.utf8)
            bytes.append(0)
        }
        if let body { bytes.append(body.bytes) }
        return Crypto.sha256(bytes)
    }
}
