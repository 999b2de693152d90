import Basics
import Foundation

/// Where a call goes wrong on request.
extension PayrailsSandbox {
    struct TakenFaults {
        var delayBefore = Duration.zero
        var delayAfter = Duration.zero
        var kind: SandboxFault.Kind?
    }

    func takeFaults(_ match: RouteMatch, _ request: APIRequest, call: Int) -> TakenFaults {
        let taken = state.withLock {
            $0.faults.take(for: match.route) { request.path + " " + String(decoding: request.body, as: UTF8.self) }
        }
        guard !taken.isEmpty else { return TakenFaults() }
        note(call) { $0.faults = taken.map(\.name) }
        var faults = TakenFaults()
        for fault in taken {
            switch fault.kind {
            case .delay(let milliseconds): faults.delayBefore += .milliseconds(milliseconds)
            case .delayAfter(let milliseconds): faults.delayAfter += .milliseconds(milliseconds)
            default: faults.kind = fault.kind
            }
        }
        return faults
    }

    /// Section 1.6: whether the account's rate allows one more call now.
    func takePermit() -> Bool {
        guard let rate = configuration.requestsPerSecond else { return true }
        return state.withLock { state in
            let now = state.world.now
            let refill = state.permitsAt.map { max(.zero, now - $0) / .seconds(1) * rate } ?? rate
            state.permits = min(rate, state.permits + refill)
            state.permitsAt = now
            guard state.permits >= 1 else { return false }
            state.permits -= 1
            return true
        }
    }

    /// What goes wrong before anything happened; nil when the call goes on.
    func early(
        _ kind: SandboxFault.Kind?, request: APIRequest, key: String?, begin: IdempotencyStore.Begin
    ) -> APIResponse? {
        let isFirst = if case .first = begin { true } else { false }
        func giveUp() {
            guard isFirst, let key else { return }
            state.withLock { $0.keys.abandon(key) }
        }
        switch kind {
        case .errorBefore(let status, let stored):
            let response = refusal(.fault(status))
            if stored, isFirst, let key {
                state.withLock { $0.keys.finish(key, status: status, body: response.body, at: $0.world.now) }
            } else {
                giveUp()
            }
            return response
        case .closeBefore:
            giveUp()
            return APIResponse(status: 500, breaks: .beforeAnything)
        case .html(let status, effect: false):
            giveUp()
            return .html(status, Self.blockedPage)
        case .rateLimited(let retryAfterSeconds):
            giveUp()
            var response = refusal(APIError(429, "request.rate-limit", "too many requests"))
            if let retryAfterSeconds { response.headers["Retry-After"] = String(retryAfterSeconds) }
            return response
        case .expiredToken:
            giveUp()
            let token = request.headers["Authorization"]?.split(separator: " ").last.map(String.init)
            state.withLock { state in
                guard let token else { return }
                state.world.accessTokens[token] = nil
                state.world.clientSessions[token] = nil
            }
            return refusal(.unauthorized("the access token is unknown or has expired"))
        default: return nil
        }
    }

    /// What goes wrong after the effect.
    func late(_ kind: SandboxFault.Kind?, _ response: APIResponse) -> APIResponse {
        var response = response
        switch kind {
        case .errorAfter(let status) where response.status < 500: return refusal(.fault(status))
        case .closeAfter: response.breaks = .beforeAnything
        case .halfBody: response.breaks = .inTheBody
        case .html(let status, effect: true): return .html(status, Self.blockedPage)
        case .lowercaseHeaders:
            response.headers = HTTPHeaders(
                response.headers.fields.map { .init(name: $0.name.lowercased(), value: $0.value) })
        default: break
        }
        return response
    }

    /// Like what stands in front of the API when it doesn't let a caller in (section 1.2).
    private static let blockedPage = """
        <!DOCTYPE html><html><head><title>Attention Required!</title></head>
        <body><h1>Sorry, you have been blocked</h1><p>Ray ID: 8f0000000000</p></body></html>
        """
}

extension APIError {
    /// The error envelope that belongs to a status of a fault.
    static func fault(_ status: Int) -> APIError {
        switch status {
        case 408: APIError(408, "request.timeout", "the request timed out")
        case 409: APIError(409, "request.conflict", "conflict")
        case 429: APIError(429, "request.rate-limit", "too many requests")
        case 499: APIError(499, "request.canceled", "the request was canceled")
        case 503: APIError(503, "service.unavailable", "the service is unavailable")
        case 400: APIError(400, "request.malformed", "the request is malformed")
        case 403: APIError(403, "request.forbidden", "forbidden")
        default: APIError(status, "internal", "internal error")
        }
    }
}
