import Basics
import Foundation
import Lockstep
import Payrails
import Store

/// The webhook's side of the service: signature, inbox, counters.
public struct NotificationIntake: Sendable {
    let inbox: Inbox
    let keys: NotificationKeys
    let metrics: NotificationMetrics
    let clock: WallClock

    public init(inbox: Inbox, keys: NotificationKeys, metrics: NotificationMetrics, clock: WallClock) {
        self.inbox = inbox
        self.keys = keys
        self.metrics = metrics
        self.clock = clock
    }

    /// The endpoint that `/webhooks/payrails` itself stands for.
    public static let defaultEndpoint = ""

    /// `POST /webhooks/payrails`, `POST /webhooks/payrails/{endpoint}`: 200 only once it is on disk.
    func receive(_ request: Request) async throws -> Answer {
        let endpoint = request.parameters["endpoint"] ?? Self.defaultEndpoint
        let keys = keys.of(endpoint)
        guard !keys.isEmpty else { throw Problem.notFound }
        let signatures = request.headers.all("X-Signature")
        guard signatures.count == 1,
            let match = PayrailsSignature.verify(body: request.rawBody, header: signatures[0], keys: keys)
        else {
            metrics.refused.add(1, endpoint)
            throw Problem(.badSignature, "X-Signature doesn't match the body under any key of this endpoint")
        }
        metrics.verified(endpoint: endpoint, key: match, at: clock.now())
        let notification = IncomingNotification(
            endpoint: endpoint, body: request.rawBody, receivedAt: clock.now())
        switch await inbox.add(notification) {
        case .stored: return .ok([:])
        case .notStored: throw Problem(.unavailable, "the notification is not stored; send it again")
        }
    }
}
