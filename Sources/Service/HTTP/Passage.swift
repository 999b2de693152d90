import Basics
import Foundation
import Lockstep

/// One request on its way through the router: who, what, once, and then the handler.
struct Passage: Sendable {
    let router: Router
    let route: Route
    let parameters: [String: String]
    let incoming: IncomingRequest
    let id: RequestID
    let trace: TraceParent?
    let log: Log

    private var endpoint: Endpoint { route.endpoint }

    func answer() async -> Answer {
        let token = bearer()
        let standing = endpoint.isRateLimited ? token.flatMap(router.around.rateLimits.count) : nil
        var answer: Answer
        if let standing, standing.isRefused {
            router.around.metrics.limited.add(1, standing.policy.name)
            answer = Problem(.tooManyRequests, retryAfterSeconds: standing.resetSeconds).answer(requestID: id)
        } else {
            answer = await self.answer(to: token)
        }
        // Who isn't known has no quota.
        if let standing, answer.status != 401 {
            for field in standing.fields.fields { answer.headers[field.name] = field.value }
        }
        return answer
    }

    private func answer(to token: BearerToken?) async -> Answer {
        do {
            try enter()
            defer { router.around.admission.leave(endpoint.lane) }
            guard let budget = route.budget else { return try await serve(token) }
            return try await withBudget(budget - (.now - incoming.arrival)) { try await serve(token) }
        } catch {
            guard let fallback = route.fallback, !isTheCallersFault(error) else {
                return router.problem(for: error, log).answer(requestID: id)
            }
            log.error("a call that must answer was answered without its handler", .error(error))
            return answerAnyway(fallback, after: error)
        }
    }

    private func enter() throws(Problem) {
        do {
            try router.around.admission.enter(endpoint.lane)
        } catch {
            router.around.metrics.turnedAway.add(1, endpoint.lane.rawValue, error.rawValue)
            throw .overloaded
        }
    }

    private func isTheCallersFault(_ error: any Error) -> Bool {
        if let problem = error as? Problem { problem.kind.status < 500 } else { false }
    }

    private func answerAnyway(_ fallback: Route.Fallback, after error: any Error) -> Answer {
        do {
            return try fallback(BrokenRequest(id: id, headers: incoming.headers, body: try readBody(), error: error))
        } catch {
            return router.problem(for: error, log).answer(requestID: id)
        }
    }

    private func serve(_ token: BearerToken?) async throws -> Answer {
        let caller = try await authenticate(token)
        let query = try readQuery()
        let body = try readBody()
        let idempotency = try idempotencyContext(caller, body)
        let request = Request(
            id: id, trace: trace, endpoint: endpoint, parameters: parameters, headers: incoming.headers, body: body,
            rawBody: incoming.body, caller: caller, idempotency: idempotency, receivedAt: incoming.receivedAt,
            arrival: incoming.arrival, log: log, queryPairs: query)
        guard let idempotency else { return try await route.handler(request) }
        return try await serveOnce(request, idempotency)
    }
}

/// Who.
extension Passage {
    private func authenticate(_ token: BearerToken?) async throws -> Credential? {
        if case .open = endpoint.access { return nil }
        let authenticator = route.authenticator ?? router.around.authenticator
        guard let token, let caller = try await authenticator.authenticate(token) else {
            throw Problem(.unauthorized, "Authorization must be a Bearer token that is in force")
        }
        switch (endpoint.access, caller) {
        case (.open, _), (.anyKey, .merchantKey): break
        case (.scope(let scope), .merchantKey), (.scopeOrClient(let scope, _), .merchantKey):
            guard caller.has(scope) else {
                throw Problem(.forbidden, "the key's scopes don't hold \(scope.rawValue)")
            }
        case (.scopeOrClient(_, let name), .client):
            // Somebody else's checkout, and one that can't be, are both not there.
            if let name {
                try caller.mustReach(parameters[name].flatMap { CheckoutID($0) } ?? CheckoutID(StandIn.uuid))
            }
        case (.scope, .client), (.anyKey, .client):
            throw Problem(.forbidden, "a client token doesn't reach this")
        }
        return caller
    }

    /// The one token of the one `Authorization` field; the scheme's name is the same in either case.
    private func bearer() -> BearerToken? {
        let values = incoming.headers.all("Authorization")
        guard values.count == 1 else { return nil }
        let parts = values[0].split(separator: " ", maxSplits: 1)
        guard parts.count == 2, String(parts[0]).equalsIgnoringASCIICase("Bearer") else { return nil }
        return BearerToken(String(parts[1].drop { $0 == " " }))
    }
}

/// What.
extension Passage {
    private func readQuery() throws(Problem) -> [(name: String, value: String)] {
        if parameters.values.contains(where: CardNumber.appears(in:)) {
            throw Problem(.cardNumber, "the path holds a card number")
        }
        guard let pairs = PercentDecoding.pairs(of: incoming.query) else {
            throw Problem(.malformedRequest, "the query can't be decoded")
        }
        // Probes and scrapers add parameters of their own to the open paths.
        if case .open = endpoint.access { return pairs }
        let faults = FaultCollector()
        var seen: Set<String> = []
        for (name, value) in pairs {
            if CardNumber.appears(in: name) || CardNumber.appears(in: value) {
                throw Problem(.cardNumber, "the query holds a card number")
            }
            if !endpoint.query.contains(where: { $0.name == name }) {
                faults.add(Fault(Fault.pointer("", String(name.prefix(64))), "is not a parameter that is known here"))
            } else if !seen.insert(name).inserted {
                faults.add(Fault("/\(name)", "must stand only once"))
            }
        }
        for parameter in endpoint.query where parameter.required {
            if !pairs.contains(where: { $0.name == parameter.name && !$0.value.isEmpty }) {
                faults.add(Fault("/\(parameter.name)", "is required"))
            }
        }
        try faults.throwIfAny()
        return pairs
    }

    private func readBody() throws(Problem) -> JSON? {
        switch endpoint.body {
        case .none: return nil
        case .json(let optional): return try BodyReader.json(incoming, mayBeEmpty: optional)
        case .raw(let maximum):
            guard incoming.body.count <= maximum else { throw BodyReader.tooLarge(maximum) }
            return nil
        }
    }
}

/// Once.
extension Passage {
    private func idempotencyContext(_ caller: Credential?, _ body: JSON?) throws(Problem) -> IdempotencyContext? {
        guard endpoint.idempotency != .none, let caller else { return nil }
        guard let key = try IdempotencyContext.key(from: incoming.headers) else {
            if endpoint.idempotency == .understood { return nil }
            throw Problem(.idempotencyKeyMissing, "this call needs an Idempotency-Key")
        }
        return IdempotencyContext(
            key: key,
            requestHash: IdempotencyContext.requestHash(
                method: incoming.method, path: incoming.path, query: incoming.query, body: body),
            owner: caller.owner)
    }

    private func serveOnce(_ request: Request, _ context: IdempotencyContext) async throws -> Answer {
        let keeper = router.around.idempotency
        let until: Timestamp
        switch try await keeper.begin(context) {
        case .reused: throw Problem(.idempotencyKeyReused, "the key was used for another request; take a new one")
        case .inUse: throw Problem(.idempotencyKeyInUse, "the same request is still running")
        case .replay(let stored):
            let answer = Answer(status: stored.status, headers: stored.headers, body: stored.body)
            var replayed = try await route.refresher?(answer, request) ?? answer
            replayed.headers["Idempotent-Replayed"] = "true"
            return replayed
        case .fresh(let end): until = end
        }
        let renewing = renewing(context, until: until)
        let answer: Answer
        do {
            answer = try await route.handler(request)
        } catch {
            answer = router.problem(for: error, log).answer(requestID: id)
        }
        renewing.cancel()
        // The answer is true whether or not it could be kept; without it, the same request goes on where it stopped.
        do {
            if answer.isFinal {
                try await keeper.finish(context, with: answer.storable)
            } else {
                try await keeper.release(context, until: await renewing.value)
            }
        } catch {
            log.warning("an answer could not be kept under its key", .error(error), .status(answer.status))
        }
        return answer
    }

    /// Keeps the key for a request whose handler runs, however long that takes: else the same request, sent again, would
    /// run beside it as if this one had died. The lease of one that did die just ends.
    ///
    /// - Returns: to be cancelled when the handler is done; the value is the end of the lease that is in force then.
    private func renewing(_ context: IdempotencyContext, until end: Timestamp) -> Task<Timestamp, Never> {
        let keeper = router.around.idempotency
        let log = log
        return Task {
            var end = end
            while (try? await Task.sleep(for: keeper.renewalInterval)) != nil {
                // By a task that nobody cancels: after an update that was broken off no one would know which end holds.
                let renewal = Task { [end] in try await keeper.renew(context, until: end) }
                do {
                    guard let next = try await renewal.value else { return end }
                    end = next
                } catch {
                    log.warning("the lease of an Idempotency-Key could not be renewed", .error(error))
                }
            }
            return end
        }
    }
}

extension Answer {
    /// Whether the same request may be told the same again. Not for 5xx; nor for "come back later", which would
    /// otherwise be all that the caller ever gets under this key.
    fileprivate var isFinal: Bool { status < 500 && headers["Retry-After"] == nil }
}
