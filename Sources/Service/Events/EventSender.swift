import Basics
import Foundation
import HTTPClient
import Lockstep
import Store

/// Hands one event to the shop: a signed POST of exactly what the feed shows.
struct EventSender: Sendable {
    let client: HTTPClient
    let url: String
    let signature: WebhookSignature
    let timeout: Duration
    let clock: WallClock

    /// The answer's body is nobody's business; one that is longer than this counts as no answer.
    static let maximumResponseBytes = 1024 * 1024

    /// Nil when this process stops and gave the attempt up; then nobody knows whether the shop has the event.
    func send(_ event: FeedEvent) async -> DeliveryAnswer? {
        // Members are sorted, so the same event gives the same bytes at every attempt.
        let payload = event.json.bytes
        var headers = signature.headers(id: event.id.description, time: clock.now(), payload: payload)
        headers["Content-Type"] = "application/json"
        var request = HTTPClientRequest(method: "POST", url: url, headers: headers, body: payload, timeout: timeout)
        request.maximumResponseBytes = Self.maximumResponseBytes
        do {
            let response = try await client.send(request)
            guard (200...299).contains(response.status) else {
                return .refused(
                    status: response.status, retryAfter: RetryAfter.pause(response.headers, now: clock.now()))
            }
            return .accepted(status: response.status)
        } catch {
            return Self.failure(error).map(DeliveryAnswer.unanswered)
        }
    }

    private static func failure(_ error: HTTPClientError) -> DeliveryFailure? {
        switch error.code {
        case .cancelled, .shutDown: nil
        case .timedOut: .timedOut
        case .cannotResolve, .cannotConnect: .cannotConnect
        case .connectionLost: .connectionLost
        case .tls: .tls
        case .responseTooLarge, .malformedResponse: .unreadable
        case .invalidRequest, .plainHTTPRefused, .tooManyRequests, .other: .other
        }
    }
}
