import Basics
import Foundation
import HTTPClient
import Lockstep

/// Takes a call through the limiter, the token and the network, within the call's time.
struct PayrailsCaller: Sendable {
    let configuration: PayrailsConfiguration
    let transport: any HTTPTransport
    let clock: SteadyClock
    let limiter: RateLimiter
    let tokens: TokenKeeper

    init(_ configuration: PayrailsConfiguration, transport: any HTTPTransport, clock: SteadyClock) {
        self.configuration = configuration
        self.transport = transport
        self.clock = clock
        limiter = RateLimiter(configuration, clock: clock)
        tokens = TokenKeeper(configuration, transport: transport, limiter: limiter, clock: clock)
    }

    /// The call's answer, whatever its status, or why there is none.
    ///
    /// A 401 is tried once more with another token, under the same idempotency key, since the intent is the same
    /// (invariant M12). A 401 that stays is the answer.
    func answer(to call: PayrailsCall) async -> Outcome<HTTPClientResponse> {
        let deadline = clock.now() + call.timeout
        var refused: AccessToken?
        // Whether a sending before this one may have reached Payrails, although the token was refused then.
        var isInDoubt = false
        func refusal(_ refusal: Refusal) -> Outcome<HTTPClientResponse> {
            guard isInDoubt else { return .refused(refusal) }
            return .unknown(Doubt(kind: .connectionLost, detail: "\(refusal.detail), after a second sending"))
        }
        while true {
            // The token first: calls that took their places and then waited for one would all leave together.
            let token: AccessToken
            switch await tokens.token(insteadOf: refused, until: deadline) {
            case .done(let usable): token = usable
            case .refused(let reason): return refusal(PayrailsCaller.notSent(reason))
            case .unknown(let doubt):
                return refusal(Refusal(kind: .notSent, detail: "no access token: \(doubt.detail)"))
            }
            guard clock.now() < deadline else {
                return refusal(Refusal(kind: .notSent, detail: "no time was left after waiting for a token"))
            }
            if let reason = await limiter.admit(until: deadline) { return refusal(reason) }
            let remaining = deadline - clock.now()
            guard remaining > .zero else {
                return refusal(Refusal(kind: .notSent, detail: "no time was left after waiting for a place"))
            }
            var response: HTTPClientResponse
            do {
                response = try await transport.send(request(call, token: token, timeout: remaining))
            } catch {
                let outcome: Outcome<HTTPClientResponse> = OutcomeTable.outcome(of: error)
                if case .refused(let reason) = outcome { return refusal(reason) }
                return outcome
            }
            if let pause = OutcomeTable.pause(after: response, configuration) { await limiter.pause(for: pause) }
            if isInDoubt { response.wasResent = true }
            guard response.status == 401, refused == nil else { return .done(response) }
            refused = token
            isInDoubt = response.wasResent && call.changesSomething
        }
    }

    /// The call's answer as a value; `read` gives nil for an answer of the wrong shape.
    func send<Value: Sendable>(
        _ call: PayrailsCall, what: String, read: (JSON) -> Value?
    ) async -> Outcome<Value> {
        switch await answer(to: call) {
        case .done(let response):
            OutcomeTable.outcome(of: response, changesSomething: call.changesSomething, what: what, read: read)
        case .refused(let refusal): .refused(refusal)
        case .unknown(let doubt): .unknown(doubt)
        }
    }

    private func request(_ call: PayrailsCall, token: AccessToken, timeout: Duration) -> HTTPClientRequest {
        let query = call.query.isEmpty ? "" : "?" + call.query
        var request = HTTPClientRequest(
            method: call.method, url: configuration.baseURL + call.path + query, headers: call.headers(token: token),
            body: call.body?.bytes, timeout: timeout)
        request.maximumResponseBytes = configuration.maximumResponseBytes
        return request
    }

    /// Without a token the call itself was not sent, or was answered 401 and not sent again: nothing happened.
    private static func notSent(_ refusal: Refusal) -> Refusal {
        Refusal(
            kind: .notSent, code: refusal.code, detail: "no access token: \(refusal.detail)",
            retryAfterSeconds: refusal.retryAfterSeconds)
    }
}
