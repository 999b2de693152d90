import Basics
import Foundation
import Lockstep

/// Takes a request through every step that all calls share, and gives it to its handler.
///
/// In this order: path (400, 404, 405), the token's quota (429), room for one more (503), credentials (401), scope (403), query (422), body (413, 415, 400, 422),
/// idempotency key (400, 422, 409, or the stored answer), handler. So nothing is read for those who may not call, and
/// nothing runs for what is malformed.
public struct Router: Sendable {
    /// What the router needs of the rest of the service.
    public struct Surroundings: Sendable {
        public var authenticator: any Authenticator
        public var idempotency: any IdempotencyKeeper
        public var log: Log
        public var metrics: HTTPMetrics
        public var clock: WallClock
        public var identifiers: IdentifierSource
        public var corsOrigins: Set<String>
        public var admission: Admission
        public var rateLimits: RateLimits
        /// What an error of the store or of a pool means to the caller; nil: nobody foresaw it, a 500.
        public var explain: @Sendable (any Error) -> Problem?

        public init(
            authenticator: any Authenticator, idempotency: any IdempotencyKeeper, log: Log, metrics: HTTPMetrics,
            clock: WallClock = .system, identifiers: IdentifierSource = .system(), corsOrigins: Set<String> = [],
            admission: Admission = Admission(), rateLimits: RateLimits = RateLimits(),
            explain: @escaping @Sendable (any Error) -> Problem? = { _ in nil }
        ) {
            self.authenticator = authenticator
            self.idempotency = idempotency
            self.log = log
            self.metrics = metrics
            self.clock = clock
            self.identifiers = identifiers
            self.corsOrigins = corsOrigins
            self.admission = admission
            self.rateLimits = rateLimits
            self.explain = explain
        }
    }

    let table: RouteTable
    let around: Surroundings
    let crossOrigin: CrossOrigin

    public init(routes: [Route], _ surroundings: Surroundings) {
        table = RouteTable(routes)
        around = surroundings
        crossOrigin = CrossOrigin(origins: surroundings.corsOrigins)
    }

    /// The endpoints that are routed.
    public var endpoints: [Endpoint] { table.routes.map(\.endpoint) }

    /// Answers, whatever comes. Never throws, and logs and counts every answer.
    public func respond(to incoming: IncomingRequest) async -> Answer {
        let requestID = RequestID(callers: incoming.headers, else: around.identifiers)
        let traces = incoming.headers.all("traceparent")
        let trace = traces.count == 1 ? TraceParent(traces[0]) : nil
        var log = around.log.with(.request(requestID))
        if let trace { log = log.with(.trace(trace)) }

        around.metrics.inFlight.add(1)
        defer { around.metrics.inFlight.add(-1) }
        var (answer, endpoint) = await TraceParent.$current.withValue(trace) {
            await dispatch(incoming, requestID, trace, log)
        }
        answer.headers["X-Request-Id"] = requestID.text
        if let endpoint {
            for field in crossOrigin.fields(for: incoming.headers, endpoint).fields {
                answer.headers[field.name] = field.value
            }
            if case .open = endpoint.access {} else { answer.headers["Cache-Control"] = "no-store" }
        }
        around.metrics.record(answer, endpoint, took: .now - incoming.arrival, at: incoming.path, log)
        return answer
    }

    private func dispatch(
        _ incoming: IncomingRequest, _ id: RequestID, _ trace: TraceParent?, _ log: Log
    ) async -> (Answer, Endpoint?) {
        guard let segments = PercentDecoding.segments(of: incoming.path) else {
            return (Problem(.malformedRequest, "the path can't be decoded").answer(requestID: id), nil)
        }
        if incoming.method == "OPTIONS" {
            guard case .otherMethods(let routes) = table.match(method: "OPTIONS", segments: segments) else {
                return (Problem.notFound.answer(requestID: id), nil)
            }
            return (
                crossOrigin.preflight(
                    incoming.headers, endpoints: routes.map(\.endpoint), allow: RouteTable.allow(routes)), nil
            )
        }
        switch table.match(method: incoming.method, segments: segments) {
        case .nothing: return (Problem.notFound.answer(requestID: id), nil)
        case .otherMethods(let routes):
            return (
                Problem(.methodNotAllowed, headers: ["Allow": RouteTable.allow(routes)]).answer(requestID: id), nil
            )
        case .route(let route, let parameters):
            let passage = Passage(
                router: self, route: route, parameters: parameters, incoming: incoming, id: id, trace: trace, log: log)
            return (await passage.answer(), route.endpoint)
        }
    }

    /// What an error becomes for the caller. Its own words go to the log only.
    func problem(for error: any Error, _ log: Log) -> Problem {
        if let problem = error as? Problem { return problem }
        if let problem = around.explain(error) {
            log.warning("a request could not be served", .error(error), .problem(problem.kind))
            return problem
        }
        if error is CancellationError || error is OutOfTime { return Problem(.unavailable) }
        log.error("an error that nobody foresaw", .error(error))
        return Problem(.internalError)
    }
}
