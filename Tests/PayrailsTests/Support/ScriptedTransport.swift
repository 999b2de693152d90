import Basics
import Foundation
import Lockstep
import Synchronization

@testable import HTTPClient
@testable import Payrails

/// Answers requests from a script and remembers them. The token call answers itself unless the script says otherwise.
final class ScriptedTransport: HTTPTransport {
    typealias Script = @Sendable (HTTPClientRequest, Int) async throws(HTTPClientError) -> HTTPClientResponse

    private let script: Script
    private let tokenScript: Script
    private let log = Mutex<(calls: [HTTPClientRequest], tokens: [HTTPClientRequest])>(([], []))

    /// The script gets the request and how many came before it, token calls not counted (and the other way round).
    init(
        token: @escaping Script = { _, index throws(HTTPClientError) in .json(200, Samples.token("token-\(index)")) },
        _ script: @escaping Script
    ) {
        self.script = script
        tokenScript = token
    }

    convenience init(_ answers: [HTTPClientResponse]) {
        self.init { _, index throws(HTTPClientError) in answers[min(index, answers.count - 1)] }
    }

    /// Calls that aren't for a token.
    var calls: [HTTPClientRequest] { log.withLock { $0.calls } }
    var tokenCalls: [HTTPClientRequest] { log.withLock { $0.tokens } }

    func send(_ request: HTTPClientRequest) async throws(HTTPClientError) -> HTTPClientResponse {
        if request.url.contains("/auth/token/") {
            let index = log.withLock { log in
                log.tokens.append(request)
                return log.tokens.count - 1
            }
            return try await tokenScript(request, index)
        }
        let index = log.withLock { log in
            log.calls.append(request)
            return log.calls.count - 1
        }
        return try await script(request, index)
    }
}

extension HTTPClientResponse {
    static func json(_ status: Int, _ body: String, headers: HTTPHeaders = HTTPHeaders()) -> HTTPClientResponse {
        HTTPClientResponse(status: status, headers: headers, body: Data(body.utf8), httpVersion: "1.1")
    }

    static let cloudflare = "<!DOCTYPE html><html><head><title>Attention Required! | Cloudflare</title></head></html>"

    static func html(_ status: Int, headers: HTTPHeaders = HTTPHeaders()) -> HTTPClientResponse {
        json(status, cloudflare, headers: headers)
    }
}

extension HTTPClientError {
    static func failure(_ code: Code, sent: Bool, _ detail: String = "scripted") -> HTTPClientError {
        HTTPClientError(code, mayHaveBeenSent: sent, detail: detail)
    }
}

extension PayrailsConfiguration {
    /// Without a rate limit, so that tests don't wait, and with the time that a busy machine needs.
    static var test: PayrailsConfiguration {
        var configuration = PayrailsConfiguration(
            baseURL: "https://api.example.test", clientID: "client-1", clientSecret: Secret("$ecret!^*@"))
        configuration.requestsPerSecond = 0
        configuration.readTimeout = .seconds(60)
        configuration.changeTimeout = .seconds(60)
        configuration.tokenTimeout = .seconds(60)
        return configuration
    }

    static func test(_ change: (inout PayrailsConfiguration) -> Void) -> PayrailsConfiguration {
        var configuration = test
        change(&configuration)
        return configuration
    }
}

/// A clock whose hand a test moves; waiting is real.
final class HandClock: Sendable {
    private let hand = Mutex(Duration.zero)
    func advance(by time: Duration) { hand.withLock { $0 += time } }
    var clock: SteadyClock {
        SteadyClock(now: { self.hand.withLock { $0 } }, sleep: { try await Task.sleep(for: $0) })
    }
}

/// A clock on which waiting takes no time: it moves the hand instead.
final class JumpClock: Sendable {
    private let hand = Mutex(Duration.seconds(1000))
    var now: Duration { hand.withLock { $0 } }
    var clock: SteadyClock {
        SteadyClock(
            now: { self.now },
            sleep: { time in
                try Task.checkCancellation()
                self.hand.withLock { $0 += max(.zero, time) }
            })
    }
}

/// Lets some tasks through at once, when as many as it waits for have come.
actor Gate {
    private let count: Int
    private var waiting: [CheckedContinuation<Void, Never>] = []
    init(count: Int) { self.count = count }
    func pass() async {
        await withCheckedContinuation { continuation in
            waiting.append(continuation)
            if waiting.count >= count {
                for one in waiting { one.resume() }
                waiting = []
            }
        }
    }
}

extension Outcome {
    var value: Value? { if case .done(let value) = self { value } else { nil } }
    var refusal: Refusal? { if case .refused(let refusal) = self { refusal } else { nil } }
    var doubt: Doubt? { if case .unknown(let doubt) = self { doubt } else { nil } }
}

extension Money {
    static func of(_ value: String, _ currency: String = "EUR") -> Money? {
        try? Money(value: value, currencyCode: currency)
    }
}

extension HTTPClientRequest {
    var json: JSON? { body.flatMap { try? JSON(parsing: $0) } }
}
