import Basics

/// An endpoint with the code behind it.
public struct Route: Sendable {
    /// Throw a ``Problem`` for what the caller must know; anything else becomes a 500 or, by the router's mapping, a 503.
    public typealias Handler = @Sendable (Request) async throws -> Answer
    public typealias Refresher = @Sendable (Answer, Request) async throws -> Answer
    public typealias Fallback = @Sendable (BrokenRequest) throws -> Answer

    public let endpoint: Endpoint
    let handler: Handler
    private(set) var refresher: Refresher?
    private(set) var fallback: Fallback?
    private(set) var budget: Duration?
    private(set) var authenticator: (any Authenticator)?

    init(endpoint: Endpoint, handler: @escaping Handler) {
        self.endpoint = endpoint
        self.handler = handler
    }

    /// Completes a stored answer before it is given again: a new `clientToken` in place of the one that wasn't kept.
    public func refreshingReplays(_ refresher: @escaping Refresher) -> Route {
        var copy = self
        copy.refresher = refresher
        return copy
    }

    /// For a call whose credentials somebody else checks than the router's usual one.
    public func authenticated(by authenticator: any Authenticator) -> Route {
        var copy = self
        copy.authenticator = authenticator
        return copy
    }

    /// For a call that must answer whatever is broken: when it isn't let in, when credentials can't be checked, when
    /// the handler throws anything but a 4xx problem, and when `budget` is over since the request came in, `fallback` answers.
    /// It may throw a problem for a body of a wrong shape. The handler is told to stop, and no longer waited for.
    public func answeringAnyway(within budget: Duration, _ fallback: @escaping Fallback) -> Route {
        var copy = self
        copy.budget = budget
        copy.fallback = fallback
        return copy
    }
}

/// What is known about a request that couldn't be served.
public struct BrokenRequest: Sendable {
    public let id: RequestID
    public let headers: HTTPHeaders
    public let body: JSON?
    /// What was thrown, or ``OutOfTime``.
    public let error: any Error

    /// Reads the body as ``Request/read(unknownMembers:_:)`` does.
    public func read<Value>(
        unknownMembers: FieldReader.UnknownMembers = .refused, _ reading: (FieldReader) -> Value
    ) throws(Problem) -> Value {
        try FieldReader.read(body ?? [:], unknownMembers: unknownMembers, reading)
    }
}

/// The budget of a route was over before its handler had an answer.
public struct OutOfTime: Error, Hashable, Sendable {}
