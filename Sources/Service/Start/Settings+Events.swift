import Basics
import HTTPClient
import Lockstep
import Store

extension Settings.Events {
    /// A client of its own, which shows no certificate: what is Payrails' doesn't go to the shop. Nil without an address.
    func client() throws(HTTPClientError) -> HTTPClient? {
        guard url != nil else { return nil }
        var configuration = HTTPClientConfiguration()
        configuration.authorityFile = authorityFile
        configuration.allowsPlainHTTP = allowsPlainHTTP
        configuration.maximumConnections = concurrency
        configuration.maximumConnectionsPerHost = concurrency
        configuration.userAgent = "lockstep/\(LockstepVersion.current)"
        return try HTTPClient(configuration)
    }
}

extension Settings {
    /// What sends events to the shop; nil without an address.
    func pusher(
        client: HTTPClient, store: PaymentStore, metrics: DeliveryMetrics, clock: WallClock, log: Log
    ) -> EventPusher? {
        guard let url = events.url else { return nil }
        let sender = EventSender(
            client: client, url: url.exact, signature: WebhookSignature(secrets: events.secrets),
            timeout: events.timeout, clock: clock)
        // Beside the attempt itself there must be time to write down what came of it.
        let lease = max(work.lease, events.timeout + .seconds(10))
        return EventPusher(
            store: store, sender: sender, schedule: DeliverySchedule(events.retries), lease: lease,
            concurrency: events.concurrency, poll: work.poll, metrics: metrics, log: log)
    }
}
