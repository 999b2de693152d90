import Basics
import Foundation
import HTTPClient
import Lockstep

/// Payrails' server API (sections 1 to 7 of the reference) as a ``PaymentProvider``.
///
/// One client is made for the whole process: its calls share a token and a rate limit. It never tries a call twice
/// by itself, but for a 401 with an old token; what an unknown outcome means is the caller's to find out.
public struct PayrailsClient: Sendable {
    public let configuration: PayrailsConfiguration
    let caller: PayrailsCaller

    /// - Parameter clock: what time-outs, token lives and the rate limit are counted by.
    public init(
        _ configuration: PayrailsConfiguration, transport: any HTTPTransport, clock: SteadyClock = .system
    ) {
        var configuration = configuration
        while configuration.baseURL.hasSuffix("/") { configuration.baseURL.removeLast() }
        self.configuration = configuration
        caller = PayrailsCaller(configuration, transport: transport, clock: clock)
    }

    func change<Value: Sendable>(
        _ path: String, method: PayrailsCall.Method = .post, body: JSON?, key: IdempotencyKey, what: String,
        read: (JSON) -> Value?
    ) async -> Outcome<Value> {
        let timeout = configuration.changeTimeout
        return await caller.send(
            .change(method, path, body: body, key: key, timeout: timeout), what: what, read: read)
    }

    func read<Value: Sendable>(
        _ path: String, query: String = "", timeout: Duration? = nil, what: String, read: (JSON) -> Value?
    ) async -> Outcome<Value> {
        await caller.send(
            .read(path, query: query, timeout: timeout ?? configuration.readTimeout), what: what, read: read)
    }
}

extension PayrailsClient: PaymentProvider {
    public func checkCredentials() async -> Outcome<Void> {
        let deadline = caller.clock.now() + configuration.tokenTimeout
        return await caller.tokens.freshToken(until: deadline).map { _ in () }
    }
}
