import Basics
import Lockstep
import Store
import Synchronization

/// What is counted about the events on their way to the shop. The backlog is the whole database's, as it was when this
/// process last looked.
final class DeliveryMetrics: Sendable {
    private struct Seen {
        var backlog = DeliveryBacklog()
        var at: ContinuousClock.Instant?
    }
    private let attempts: CounterFamily
    private let seconds: HistogramFamily
    private let seen: Seenable

    /// The gauges' callbacks hold this one, not the whole.
    private final class Seenable: Sendable { let state = Mutex(Seen()) }

    init(_ metrics: Metrics, clock: WallClock) {
        attempts = metrics.counter(
            "lockstep_event_attempts_total", help: "Attempts to send an event to the shop, by what they came to.",
            labels: ["outcome"])
        seconds = metrics.histogram("lockstep_event_attempt_seconds", help: "How long the shop takes to answer.")
        let seen = Seenable()
        self.seen = seen
        metrics.gauge("lockstep_event_deliveries", help: "Events on their way to the shop.", labels: ["state"]) {
            let backlog = seen.state.withLock(\.backlog)
            return [
                (labels: ["pending"], value: Double(backlog.pending)), (labels: ["dead"], value: Double(backlog.dead)),
            ]
        }
        metrics.gauge(
            "lockstep_event_oldest_pending_age_seconds",
            help: "Seconds since the first event that the shop hasn't taken was queued; 0 when there is none."
        ) {
            let age = seen.state.withLock(\.backlog).oldestQueuedAt.map { clock.now() - $0 }
            return [(labels: [], value: Double(max(0, age?.components.seconds ?? 0)))]
        }
    }

    func count(_ answer: DeliveryAnswer, took duration: Duration) {
        seconds.observe(duration)
        switch answer {
        case .accepted: attempts.add(1, "accepted")
        case .refused(let status, _): attempts.add(1, status == 410 ? "gone" : "\(status / 100)xx")
        case .unanswered(let failure): attempts.add(1, failure.rawValue)
        }
    }

    /// Whether the backlog should be looked at again. Counting takes longer the more there is, so it isn't done often.
    func isStale(after age: Duration = .seconds(5)) -> Bool {
        seen.state.withLock { $0.at.map { $0 + age <= .now } ?? true }
    }

    func show(_ backlog: DeliveryBacklog) {
        seen.state.withLock { $0 = Seen(backlog: backlog, at: .now) }
    }
}
