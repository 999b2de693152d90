import Basics
import Synchronization

/// What is counted about notifications.
public struct NotificationMetrics: Sendable {
    let refused: CounterFamily
    let accepted: CounterFamily
    let applied: CounterFamily
    private let lastVerified: LastMoment

    public init(_ metrics: Metrics, clock: WallClock) {
        refused = metrics.counter(
            "lockstep_notifications_refused_total", help: "Notifications with a bad signature, by endpoint.",
            labels: ["endpoint"])
        accepted = metrics.counter(
            "lockstep_notifications_verified_total",
            help: "Verified notifications, by endpoint and by the key that matched.",
            labels: ["endpoint", "key"])
        applied = metrics.counter(
            "lockstep_notifications_applied_total", help: "Notifications by what became of them.", labels: ["state"])
        let moment = LastMoment()
        lastVerified = moment
        metrics.gauge(
            "lockstep_notification_last_verified_age_seconds",
            help: "Seconds since the last verified notification; -1 when none has come since the start."
        ) {
            [(labels: [], value: moment.time.map { Double((clock.now() - $0).components.seconds) } ?? -1)]
        }
    }

    func verified(endpoint: String, key: String, at time: Timestamp) {
        accepted.add(1, endpoint, key)
        lastVerified.time = time
    }
}

private final class LastMoment: Sendable {
    private let state = Mutex<Timestamp?>(nil)
    var time: Timestamp? {
        get { state.withLock { $0 } }
        set { state.withLock { $0 = newValue } }
    }
}
