import Basics

/// When the provider is asked about something that should have been told (invariant M4).
public struct Patience: Hashable, Sendable {
    /// The delays before the first, second, … question; the last one again and again. Never empty.
    public let steps: [Duration]

    /// Nil for no steps, and for a step that isn't positive.
    public init?(_ steps: [Duration]) {
        guard !steps.isEmpty, steps.allSatisfy({ $0 > .zero }) else { return nil }
        self.steps = steps
    }

    /// `LOCKSTEP_HEAL_PENDING`: something runs.
    public static let pending = Patience(known: [10, 30, 120, 600, 3600, 21_600])
    /// `LOCKSTEP_HEAL_UNKNOWN`: nobody knows what became of it.
    public static let unknown = Patience(known: [2, 10, 60, 300, 1800, 3600])

    private init(known seconds: [Int64]) { steps = seconds.map { .seconds($0) } }

    /// The delay before question `number` (from 0), with up to a tenth more by `jitter` (0 to 1) so that what began
    /// together doesn't ask together.
    public func delay(before number: Int, jitter: UInt8) -> Duration {
        let step = steps[min(max(0, number), steps.count - 1)]
        return step + step / 10 * Int(jitter) / 255
    }
}

/// Which patience a state deserves.
public struct HealingSchedule: Hashable, Sendable {
    public let pending: Patience
    public let unknown: Patience
    /// After how long without news an execution that nobody started to pay, or that only waits for its capture, is
    /// left alone.
    public let idleLimit: Duration

    public init(pending: Patience = .pending, unknown: Patience = .unknown, idleLimit: Duration = .seconds(86_400)) {
        self.pending = pending
        self.unknown = unknown
        self.idleLimit = idleLimit
    }

    /// When to ask next about an execution, nil when nothing is to come.
    ///
    /// - Parameters:
    ///   - checks: how often it was asked about since its state last changed.
    ///   - changedAt: when its state last changed here.
    ///   - leaseEnds: when the gate's lease ends, if it has one: a payment has probably begun.
    public func next(
        for state: ExecutionState, checks: Int, changedAt: Timestamp, hasLease: Bool, now: Timestamp, jitter: UInt8
    ) -> Timestamp? {
        switch state {
        case .processing, .needsCustomer: return now + pending.delay(before: checks, jitter: jitter)
        case .unknown: return now + unknown.delay(before: checks, jitter: jitter)
        case .created where hasLease: return now + pending.delay(before: checks, jitter: jitter)
        case .created, .failed, .authorized, .partiallyCaptured, .cancelled:
            // Nothing was announced, so the first, quick steps would ask in vain. A cancel may have come before the bank's
            // yes, which nobody may hear of.
            guard now < changedAt + idleLimit else { return nil }
            return now + pending.delay(before: checks + 2, jitter: jitter)
        case .captured, .partiallyRefunded, .refunded: return nil
        }
    }
}
