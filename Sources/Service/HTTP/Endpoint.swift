import Basics
import Lockstep

/// What the contract says about one call, without the code behind it. The catalogue stands in `API/`; a handler is
/// bound to an endpoint with ``handled(by:)``, and the OpenAPI document is made from it.
public struct Endpoint: Sendable {
    /// Who may call.
    public enum Access: Sendable, Hashable {
        /// Anyone. Webhooks prove themselves by their signature.
        case open
        /// Every merchant key; the handler looks at the scopes.
        case anyKey
        /// A merchant key with this scope.
        case scope(Scope)
        /// A merchant key with this scope, or a client token. Where `checkout` names a parameter of the path, the
        /// router itself answers 404 to a token of another checkout; otherwise the handler calls
        /// ``Credential/mustReach(_:)``.
        case scopeOrClient(Scope, checkout: String?)
    }

    /// What body it takes.
    public enum Body: Sendable, Hashable {
        case none
        /// An object; `optional`: an empty body is an empty object.
        case json(optional: Bool)
        /// Bytes as they are, up to a size; nothing reads, scans or logs them.
        case raw(maximumBytes: Int)
    }

    public enum Idempotency: Sendable, Hashable { case none, understood, required }

    /// What it competes with when more comes than can be served.
    public enum Lane: String, Sendable, Hashable, CaseIterable {
        case ordinary
        /// Readers of the feed, who mostly wait.
        case feed
        /// Has connections to the database of its own, and answers everybody.
        case gate
        /// Have a queue of their own, which says when it is full.
        case notifications
        /// Probes and scrapes: always answered.
        case probes

        /// Whether its requests wait for the same connections to the database as most others.
        var sharesDatabase: Bool { self == .ordinary || self == .feed }
    }

    public let name: String
    public let method: String
    public let pattern: PathPattern
    public let access: Access
    public let body: Body
    public let idempotency: Idempotency
    public let needsIfMatch: Bool
    public let lane: Lane
    public let summary: String
    public let query: [QueryParameter]
    /// The name of a schema.
    public let request: String?
    public let responses: [Response]
    public let problems: [ProblemKind]

    /// One answer that isn't a problem.
    public struct Response: Sendable {
        public let status: Int
        /// The name of a schema; nil for an answer without a body.
        public let schema: String?
        public let contentType: String
        public let description: String
        /// Whether it says, by `Location`, where what it tells of is from now on.
        var hasLocation = false
    }

    /// - Parameters:
    ///   - name: the OpenAPI document's `operationId`.
    ///   - problems: those of the call itself; the ones that every call of its kind can have are added by the document.
    init(
        _ name: String, _ method: String, _ pattern: PathPattern, access: Access, body: Body = .none,
        idempotency: Idempotency = .none, needsIfMatch: Bool = false, lane: Lane = .ordinary, summary: String,
        query: [QueryParameter] = [], request: String? = nil, responses: [Response], problems: [ProblemKind] = []
    ) {
        self.name = name
        self.method = method
        self.pattern = pattern
        self.access = access
        self.body = body
        self.idempotency = idempotency
        self.needsIfMatch = needsIfMatch
        self.lane = lane
        self.summary = summary
        self.query = query
        self.request = request
        self.responses = responses
        self.problems = problems
    }

    /// The same call for other people: `/metrics` for `ops` only, by setting.
    public func restricted(to access: Access) -> Endpoint {
        Endpoint(
            name, method, pattern, access: access, body: body, idempotency: idempotency, needsIfMatch: needsIfMatch,
            lane: lane, summary: summary, query: query, request: request, responses: responses, problems: problems)
    }

    /// Whether a token may make only so many of these calls. Not the gate's, where a 429 would keep a customer from
    /// paying, nor notifications and probes, which have no token.
    var isRateLimited: Bool { lane.sharesDatabase && access != .open }

    /// Binds the code that answers it.
    public func handled(by handler: @escaping Route.Handler) -> Route { Route(endpoint: self, handler: handler) }
}

extension Endpoint.Response {
    static func json(_ status: Int, _ schema: String, _ description: String) -> Self {
        Self(status: status, schema: schema, contentType: "application/json", description: description)
    }
    static func empty(_ status: Int, _ description: String) -> Self {
        Self(status: status, schema: nil, contentType: "", description: description)
    }

    /// The same answer, with `Location`.
    func located() -> Self {
        var copy = self
        copy.hasLocation = true
        return copy
    }
}

/// One name that a query may hold. Names that an endpoint doesn't list, and names that stand twice, are a 422.
public struct QueryParameter: Sendable, Hashable {
    public let name: String
    public let description: String
    /// Its schema, as the document shows it.
    public let schema: JSON
    public let required: Bool

    init(_ name: String, _ schema: JSON, _ description: String, required: Bool = false) {
        self.name = name
        self.schema = schema
        self.description = description
        self.required = required
    }
}
