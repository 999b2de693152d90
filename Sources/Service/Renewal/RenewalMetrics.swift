import Basics
import Lockstep
import Store
import Synchronization

/// What is shown about renewals: the whole database's, whichever process or cron job charges, as it was when this process
/// last looked.
public struct RenewalMetrics: Sendable {
    private let seen = Seen()

    private final class Seen: Sendable { let standing = Mutex(RenewalStanding()) }

    public init(_ metrics: Metrics, clock: WallClock) {
        let seen = seen
        func gauge(_ name: String, _ help: String, _ reading: @escaping @Sendable (RenewalStanding) -> Double) {
            metrics.gauge(name, help: help) { [(labels: [], value: reading(seen.standing.withLock { $0 }))] }
        }
        let limit = RenewalStanding.limit
        gauge(
            "lockstep_renewals_due", "Subscriptions that a run would take now; \(limit) stands for that many or more."
        ) { Double($0.due) }
        gauge(
            "lockstep_renewals_overdue",
            "Those that are due since longer than LOCKSTEP_OVERDUE_AFTER: nobody runs lockstep renew, or it stops early."
        ) { Double($0.overdue) }
        gauge(
            "lockstep_renewals_oldest_due_age_seconds",
            "Seconds since the first of them became due; 0 when there is none."
        ) { standing in
            max(0, standing.oldestDueAt.map { Double((clock.now() - $0).components.seconds) } ?? 0)
        }
        gauge(
            "lockstep_subscriptions_set_aside", "Subscriptions that no run could read, and that wait for a person."
        ) { Double($0.setAside) }
        metrics.gauge(
            "lockstep_charges_open",
            help: "Charges of periods that aren't over, by state; \(limit) in all stands for that many or more.",
            labels: ["state"]
        ) {
            let open = seen.standing.withLock(\.open)
            return [.scheduled, .processing, .unknown].map { (state: Charge.State) in
                (labels: [state.rawValue], value: Double(open[state] ?? 0))
            }
        }
        metrics.gauge(
            "lockstep_charges_recent",
            help: "Charges of the last 24 hours that are over, by state; \(limit) in all stands for that many or more.",
            labels: ["state"]
        ) {
            let recent = seen.standing.withLock(\.recent)
            return [.succeeded, .failed, .needsCustomer, .skipped].map { (state: Charge.State) in
                (labels: [state.rawValue], value: Double(recent[state] ?? 0))
            }
        }
    }

    func show(_ standing: RenewalStanding) { seen.standing.withLock { $0 = standing } }
}
