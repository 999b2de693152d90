import Basics
import Foundation
import HTTPClient
import Lockstep

/// The one place that says what an answer, or its absence, means (invariant M7).
///
/// The rule: *refused* only where it is certain that nothing happened, *done* only where the answer can be read,
/// *unknown* for all else.
///
/// | what came | change | read |
/// | --- | --- | --- |
/// | no answer, and the request was certainly not sent | refused `notSent` | same |
/// | no answer in time | unknown `timedOut` | same |
/// | connection or TLS broke after sending | unknown `connectionLost` | same |
/// | an answer that HTTP or our size limit can't take | unknown `unreadable` | same |
/// | the caller went away after sending | unknown `cancelled` | same |
/// | 2xx of the expected shape | done | done |
/// | 2xx with HTML, half a body, another shape | unknown `unreadable` | same |
/// | 1xx, 3xx, no status at all | unknown `unreadable` | same |
/// | 401 that survived a fresh token | refused `unauthorized` | same |
/// | 404 from Payrails (JSON) | refused `notFound` | same |
/// | 404 from something in between (HTML, text) | refused `rejected` | same |
/// | 408, `request.timeout` | unknown `timedOut` | same |
/// | 409 with another code than `request.conflict` | refused `conflict` | same |
/// | 409 with `request.conflict` or without a code | unknown `timedOut` | refused `conflict` |
/// | 429, from whomever | refused `rateLimited` | same |
/// | 499, `request.canceled` | unknown `cancelled` | same |
/// | `internal`, `service.unavailable` under any status | unknown `serverError` | same |
/// | a 4xx whose reason leaves open what the payment provider did, like `workflow.action.failed` after its time-out | unknown `serverError` | same |
/// | any other 4xx, JSON or not | refused `rejected` | same |
/// | a 4xx that isn't Payrails' own, 401 or 429, to a request that was sent twice | unknown `connectionLost` | as above |
/// | 5xx with Payrails' own JSON | unknown `serverError` | same |
/// | 5xx of something in between, which Payrails keeps under no key | unknown `connectionLost` | same |
enum OutcomeTable {
    enum Verdict: Equatable {
        case done
        case refused(Refusal.Kind)
        case unknown(Doubt.Kind)
    }

    /// What a status means, with the problem that the body tells, if it is one of Payrails' own.
    static func verdict(status: Int, problem: ProviderProblem?, changesSomething: Bool) -> Verdict {
        switch status {
        case 200...299: return .done
        case 400...499:
            // A code can only add doubt to a 4xx: it says that the request got further than the status tells.
            if let doubt = problem?.doubt { return .unknown(doubt) }
        case 500...599: return .unknown(problem == nil ? .connectionLost : .serverError)
        default: return .unknown(.unreadable)
        }
        switch status {
        case 401: return .refused(.unauthorized)
        // "Not there" must come from Payrails; a proxy's page says only that the address led nowhere.
        case 404: return .refused(problem == nil ? .rejected : .notFound)
        // Payrails may have given up waiting while the action goes on (section 1.5: the same key again is safe).
        case 408: return .unknown(.timedOut)
        // The first request under this key may still be running, and may still succeed (section 12, 1).
        case 409:
            let mayBeRunning = problem?.code == nil || problem?.code == "request.conflict"
            return changesSomething && mayBeRunning ? .unknown(.timedOut) : .refused(.conflict)
        case 429: return .refused(.rateLimited)
        // "Cancelled by the client": a proxy saw us leave, which says nothing about what was begun.
        case 499: return .unknown(.cancelled)
        default: return .refused(.rejected)
        }
    }

    /// What it means that there is no answer.
    static func outcome<Value: Sendable>(of error: HTTPClientError) -> Outcome<Value> {
        let detail = "\(error.code): \(Scrubber.scrub(error.detail))"
        // The transport knows best: also a time-out while connecting has sent nothing.
        guard error.mayHaveBeenSent else { return .refused(Refusal(kind: .notSent, detail: detail)) }
        switch error.code {
        case .timedOut: return .unknown(Doubt(kind: .timedOut, detail: detail))
        case .cancelled: return .unknown(Doubt(kind: .cancelled, detail: detail))
        case .responseTooLarge, .malformedResponse: return .unknown(Doubt(kind: .unreadable, detail: detail))
        // The last group should never claim to have been sent; if it does, doubt wins.
        case .connectionLost, .tls, .other, .shutDown, .cannotConnect, .cannotResolve, .invalidRequest,
            .plainHTTPRefused, .tooManyRequests:
            return .unknown(Doubt(kind: .connectionLost, detail: detail))
        }
    }

    /// What an answer means; `read` gives nil for a 2xx of the wrong shape.
    static func outcome<Value: Sendable>(
        of response: HTTPClientResponse, changesSomething: Bool, what: String, read: (JSON) -> Value?
    ) -> Outcome<Value> {
        let body = try? JSON(parsing: response.body)
        let problem = body.flatMap(ProviderProblem.init)
        // Whoever turned the second sending down, the first one may have reached Payrails and taken effect. Payrails'
        // own words are believed: under the same key it answers as it did the first time. But who calls, how often, and
        // whether such a request is let in at all, it looks at before it looks at the key.
        let isAboutKey = problem?.code != nil && ![401, 403, 405, 429].contains(response.status)
        if response.wasResent, changesSomething, !isAboutKey, (400...499).contains(response.status) {
            return .unknown(Doubt(kind: .connectionLost, detail: detail(response, problem) + ", to a second sending"))
        }
        switch verdict(status: response.status, problem: problem, changesSomething: changesSomething) {
        case .done:
            if let body, let value = read(body) { return .done(value) }
            let shape = body == nil ? "is not JSON" : "is not \(what)"
            return .unknown(Doubt(kind: .unreadable, detail: "HTTP \(response.status), but the body \(shape)"))
        case .refused(let kind):
            return .refused(
                Refusal(
                    kind: kind, code: problem?.code, result: problem?.reason, detail: detail(response, problem),
                    retryAfterSeconds: RetryAfter.seconds(response.headers)))
        case .unknown(let kind):
            return .unknown(Doubt(kind: kind, detail: detail(response, problem)))
        }
    }

    /// How long all calls should pause after this answer; nil: not at all.
    static func pause(after response: HTTPClientResponse, _ configuration: PayrailsConfiguration) -> Duration? {
        guard response.status == 429 else { return nil }
        return RetryAfter.seconds(response.headers).map { .seconds($0) } ?? configuration.rateLimitPause
    }

    private static func detail(_ response: HTTPClientResponse, _ problem: ProviderProblem?) -> String {
        guard let problem else { return "HTTP \(response.status) without an error that can be read" }
        return (["HTTP \(response.status)", problem.code, problem.reason, problem.detail] as [String?])
            .compactMap { $0 }.joined(separator: ", ")
    }
}
