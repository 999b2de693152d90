import Basics
import Foundation
import Lockstep

/// How a call of the API goes: who is it, what does the key say, does it go wrong, what does it do.
extension PayrailsSandbox {
    /// Answers one call of the API (not of the controls).
    func answer(_ request: APIRequest) async -> APIResponse {
        let found = RouteMatch.find(method: request.method, path: request.path)
        let match: RouteMatch? = if case .found(let match) = found { match } else { nil }
        let call = record(request, route: match?.route)
        guard let match else {
            var response = refusal(APIError.notFound("no such path"))
            if case .wrongMethod(let allowed) = found {
                response = refusal(APIError(405, "request.method-not-allowed", "method not allowed"))
                response.headers["Allow"] = allowed.joined(separator: ", ")
            }
            finish(call, status: response.status)
            return response
        }
        let response = written(await answer(request, match, call: call))
        finish(call, status: response.status)
        return response
    }

    private func answer(_ request: APIRequest, _ match: RouteMatch, call: Int) async -> APIResponse {
        let caller: World.Caller
        let body: JSON
        do {
            caller = try authenticate(request, match)
            body = try content(request, match.route)
            try checkKey(request, match.route)
        } catch {
            return refusal(error)
        }
        let key = match.route.needsKey ? scopedKey(request, caller) : nil
        let begin = state.withLock { state in
            key.map { state.keys.begin($0, at: state.world.now) } ?? .first
        }
        if case .running = begin {
            return refusal(APIError(409, "request.conflict", "a request with this idempotency key is in progress"))
        }
        guard takePermit() else {
            if let key, case .first = begin { state.withLock { $0.keys.abandon(key) } }
            return refusal(.fault(429))
        }
        let faults = takeFaults(match, request, call: call)
        await pause(faults.delayBefore + configuration.latency)
        if case .lateEffect(let status, let milliseconds) = faults.kind, case .first = begin {
            let response = refusal(.fault(status))
            state.withLock { state in
                if let key { state.keys.finish(key, status: status, body: response.body, at: state.world.now) }
                state.dispatching += 1
            }
            Task {
                await pause(.milliseconds(milliseconds))
                _ = await process(request, match, caller, body, key: nil, faults: nil)
                state.withLock { $0.dispatching -= 1 }
            }
            return response
        }
        if let response = early(faults.kind, request: request, key: key, begin: begin) { return response }
        var response: APIResponse
        if case .replay(let stored) = begin {
            note(call) { $0.isReplay = true }
            response = .json(stored.status, stored.body)
        } else {
            response = await process(request, match, caller, body, key: key, faults: faults.kind)
        }
        await pause(faults.delayAfter)
        return late(faults.kind, response)
    }

    /// The way Payrails writes amounts.
    private func written(_ response: APIResponse) -> APIResponse {
        guard configuration.minimumDecimals > 0, let body = try? JSON(parsing: response.body) else { return response }
        var response = response
        response.body = body.amounts(withDecimals: configuration.minimumDecimals).bytes
        return response
    }

    /// Performs the call and keeps its answer under the key.
    private func process(
        _ request: APIRequest, _ match: RouteMatch, _ caller: World.Caller, _ body: JSON, key: String?,
        faults: SandboxFault.Kind?
    ) async -> APIResponse {
        if match.route == .getExecution || match.route == .clientGetExecution {
            return await longPoll(request, match, caller)
        }
        if match.route.access == .nobody { return page(match) }
        let query = Query(request.query)
        let body = if match.route == .lookup, case .amountIgnored = faults { body.without("amount") } else { body }
        return perform { state in
            let response: APIResponse
            var isStored = true
            do throws(APIError) {
                let answer = try state.world.run(match, query: query, body: body, caller: caller)
                response = .json(answer.status, answer.body.bytes, isPrivate: match.route == .token)
            } catch {
                response = .json(error.status, error.body(using: &state.world.random).bytes)
                isStored = error.isStored
            }
            guard let key else { return response }
            var stored = response
            if case .errorAfter(let status) = faults, isStored {
                stored = .json(status, APIError.fault(status).body(using: &state.world.random).bytes)
            }
            if isStored {
                state.keys.finish(key, status: stored.status, body: stored.body, at: state.world.now)
            } else {
                state.keys.abandon(key)
            }
            return stored
        }
    }

    // MARK: who and what

    private func authenticate(_ request: APIRequest, _ match: RouteMatch) throws(APIError) -> World.Caller {
        switch match.route.access {
        case .nobody: return .merchant
        case .apiKey:
            let secret = match.parameters["clientId"].flatMap { id in state.withLock { $0.world.credentials[id] } }
            guard let secret, request.headers["x-api-key"] == secret else {
                throw .unauthorized("unknown client id or secret")
            }
            return .merchant
        case .merchant:
            let token = try bearer(request)
            let isKnown = state.withLock { state in
                state.world.accessTokens[token].map { $0.expiresAt > state.world.now } ?? false
            }
            guard isKnown else { throw .unauthorized("the access token is unknown or has expired") }
            return .merchant
        case .client:
            let token = try bearer(request)
            let session = state.withLock { state in
                state.world.clientSessions[token].flatMap { $0.expiresAt > state.world.now ? $0 : nil }
            }
            guard let session else { throw .unauthorized("the session is unknown or has expired") }
            if let wanted = match.parameters["id"], match.route != .clientUpdateInstrument,
                match.route != .clientDeleteInstrument, wanted != session.executionID
            {
                throw APIError(403, "request.forbidden", "the session belongs to another execution", isStored: false)
            }
            return .client(session)
        }
    }

    private func bearer(_ request: APIRequest) throws(APIError) -> String {
        guard let field = request.headers["Authorization"] else { throw .unauthorized("no access token") }
        let parts = field.split(separator: " ")
        guard parts.count == 2, parts[0].lowercased() == "bearer" else { throw .unauthorized("not a bearer token") }
        return String(parts[1])
    }

    /// The body as JSON, for calls that have one; an empty one stands for no members.
    private func content(_ request: APIRequest, _ route: SandboxRoute) throws(APIError) -> JSON {
        if route.access == .merchant, request.headers["Accept"].map(Self.acceptsJSON) != true {
            throw .headerMissing("Accept: application/json")
        }
        guard ["POST", "PATCH", "PUT"].contains(request.method), route != .token, !request.body.isEmpty else {
            return [:]
        }
        guard let type = request.headers["Content-Type"], type.lowercased().hasPrefix("application/json") else {
            throw .headerMissing("Content-Type: application/json")
        }
        do { return try JSON(parsing: request.body) } catch {
            throw APIError(400, "request.malformed", error.reason, isStored: false)
        }
    }

    private static func acceptsJSON(_ accept: String) -> Bool {
        let accept = accept.lowercased()
        return accept.contains("application/json") || accept.contains("*/*")
    }

    /// Section 1.5: there must be a key, and it must be a UUID.
    private func checkKey(_ request: APIRequest, _ route: SandboxRoute) throws(APIError) {
        guard route.needsKey else { return }
        guard let key = request.headers["x-idempotency-key"] else { throw .headerMissing("x-idempotency-key") }
        guard Shape.parseUUID(key) != nil else { throw .headerInvalid("x-idempotency-key must be a UUID") }
    }

    private func scopedKey(_ request: APIRequest, _ caller: World.Caller) -> String? {
        guard let key = request.headers["x-idempotency-key"]?.lowercased() else { return nil }
        return if case .client = caller { "client \(key)" } else { "merchant \(key)" }
    }

    func refusal(_ error: APIError) -> APIResponse {
        state.withLock { .json(error.status, error.body(using: &$0.world.random).bytes) }
    }

    private func pause(_ duration: Duration) async {
        guard duration > .zero else { return }
        try? await configuration.pacing.sleep(duration)
    }

    // MARK: the record

    private func record(_ request: APIRequest, route: SandboxRoute?) -> Int {
        let body = request.body.isEmpty ? nil : try? JSON(parsing: request.body)
        let limit = configuration.recordLimit
        return state.withLock { state in
            state.callsBegun += 1
            if state.calls.count >= limit * 2 { state.calls.removeFirst(limit) }
            state.calls.append(
                SandboxCall(
                    sequence: state.callsBegun, time: state.world.now, route: route, method: request.method,
                    path: request.path, query: request.query, key: request.headers["x-idempotency-key"],
                    trace: request.headers["traceparent"], body: body))
            return state.callsBegun
        }
    }

    func note(_ call: Int, _ change: (inout SandboxCall) -> Void) {
        state.withLock { state in
            guard let first = state.calls.first?.sequence, state.calls.indices.contains(call - first) else { return }
            change(&state.calls[call - first])
        }
    }

    private func finish(_ call: Int, status: Int) { note(call) { $0.status = status } }
}

extension JSON {
    fileprivate func without(_ name: String) -> JSON {
        guard var members = object else { return self }
        members[name] = nil
        return .object(members)
    }
}
