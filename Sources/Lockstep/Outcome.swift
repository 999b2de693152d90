/// What became of a call that may change something outside: done, refused, or unknown (invariant M7).
///
/// There is no way to get at the value without saying what the other two mean here.
public enum Outcome<Value: Sendable>: Sendable {
    /// It happened, and this is the answer.
    case done(Value)
    /// It certainly did not happen.
    case refused(Refusal)
    /// It may have happened: no answer, a 5xx, a broken answer. Look it up; never guess.
    case unknown(Doubt)

    public func map<Other>(_ transform: (Value) -> Other) -> Outcome<Other> {
        switch self {
        case .done(let value): .done(transform(value))
        case .refused(let refusal): .refused(refusal)
        case .unknown(let doubt): .unknown(doubt)
        }
    }
}

/// Why the provider certainly did not do it.
public struct Refusal: Error, Hashable, Sendable {
    public enum Kind: String, Sendable {
        /// Nothing was sent at all (no connection, our own limit). Trying again is harmless.
        case notSent
        /// The provider doesn't accept the request: malformed, not allowed in this state, unknown id.
        case rejected
        /// 401 that survived a fresh token: bad credentials, or an amount that doesn't match.
        case unauthorized
        case notFound
        /// 409: the state of the resource forbids it, or the same key is still running.
        case conflict
        /// 429: try later.
        case rateLimited
    }
    public let kind: Kind
    /// The provider's code, e.g. `workflow.action.not-allowed`.
    public let code: String?
    /// The result of an action that failed, e.g. `InsufficientBalance`.
    public let result: String?
    /// A sentence for an operator; never holds a secret or personal data.
    public let detail: String
    /// After how long the provider wants to be asked again, if it said so.
    public let retryAfterSeconds: Int?

    public init(
        kind: Kind, code: String? = nil, result: String? = nil, detail: String, retryAfterSeconds: Int? = nil
    ) {
        self.kind = kind
        self.code = code
        self.result = result
        self.detail = detail
        self.retryAfterSeconds = retryAfterSeconds
    }
}

/// Why nobody knows whether it happened.
public struct Doubt: Error, Hashable, Sendable {
    public enum Kind: String, Sendable {
        /// No answer in time, or 408.
        case timedOut
        /// The connection broke after the request may have been sent.
        case connectionLost
        /// A 5xx; the provider stores it under the idempotency key and will replay it.
        case serverError
        /// An answer of 2xx that can't be read: HTML, half a body, a missing field.
        case unreadable
        /// The caller stopped waiting.
        case cancelled
    }
    public let kind: Kind
    public let detail: String

    public init(kind: Kind, detail: String) {
        self.kind = kind
        self.detail = detail
    }
}
