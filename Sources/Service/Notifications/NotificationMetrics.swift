import Basics
import Store
import Synchronization

/// What is counted about notifications. Counters are of this process; how many wait, and when the last one came, is the
/// whole database's, as it was when this process last looked.
public struct NotificationMetrics: Sendable {
    let refused: CounterFamily
    let accepted: CounterFamily
    let applied: CounterFamily
    private let seen = Seen()

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
        let seen = seen
        metrics.gauge(
            "lockstep_notification_last_verified_age_seconds",
            help: "Seconds since the last verified notification, of any process; -1 when none has ever come."
        ) {
            [(labels: [], value: seen.state.withLock(\.lastAt).map { (clock.now() - $0).wholeSeconds } ?? -1)]
        }
        metrics.gauge(
            "lockstep_notifications",
            help: "Stored notifications that aren't applied, by state; 20000 stands for that many or more.",
            labels: ["state"]
        ) {
            seen.states.map { (labels: [$0.rawValue], value: Double(seen.standing($0)?.count ?? 0)) }
        }
        metrics.gauge(
            "lockstep_notifications_oldest_age_seconds",
            help: "Seconds since the first notification of those in a state came; 0 when there is none.",
            labels: ["state"]
        ) {
            seen.states.map { state in
                let oldest = seen.standing(state)?.oldest
                return (labels: [state.rawValue], value: oldest.map { max(0, (clock.now() - $0).wholeSeconds) } ?? 0)
            }
        }
    }

    func verified(endpoint: String, key: String, at time: Timestamp) {
        accepted.add(1, endpoint, key)
        seen.come(at: time)
    }

    /// What the database says.
    func show(_ standing: [NotificationState: NotificationStanding], lastAt: Timestamp?) {
        seen.state.withLock { $0.standing = standing }
        if let lastAt { seen.come(at: lastAt) }
    }
}

private final class Seen: Sendable {
    struct State {
        var standing: [NotificationState: NotificationStanding] = [:]
        var lastAt: Timestamp?
    }
    let state = Mutex(State())
    let states: [NotificationState] = [.received, .parked, .dead]

    func standing(_ name: NotificationState) -> NotificationStanding? { state.withLock { $0.standing[name] } }

    func come(at time: Timestamp) {
        state.withLock { state in state.lastAt = max(state.lastAt ?? time, time) }
    }
}

extension Duration {
    fileprivate var wholeSeconds: Double { Double(components.seconds) }
}
