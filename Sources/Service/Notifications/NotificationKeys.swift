import Payrails
import Synchronization

/// The keys that notifications are verified with, by endpoint; they can be replaced while the service runs (S8).
public final class NotificationKeys: Sendable {
    private let keys: Mutex<[String: [WebhookKey]]>

    public init(_ keys: [String: [WebhookKey]]) { self.keys = Mutex(keys) }

    /// Empty for an endpoint that isn't set up.
    func of(_ endpoint: String) -> [WebhookKey] { keys.withLock { $0[endpoint] ?? [] } }

    /// Those that are set up.
    var endpoints: Set<String> { keys.withLock { Set($0.keys) } }

    func replace(with new: [String: [WebhookKey]]) { keys.withLock { $0 = new } }
}
