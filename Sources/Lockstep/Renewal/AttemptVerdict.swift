import Basics
import Foundation

/// What an attempt's outcome means for its charge and its subscription. Decided where the outcome is learned, whatever
/// it was learned from, so that the next attempt is planned by the transition itself.
public enum AttemptVerdict: Hashable, Sendable {
    case paid
    /// Another attempt at that time. `counts`: whether this one is one of those that the schedule allows.
    case again(at: Timestamp, counts: Bool)
    /// No attempt is left.
    case givenUp
    /// Not again with this instrument.
    case declinedForGood
    /// Only the customer can go on; the execution is cancelled.
    case customerNeeded
    /// Nobody knows yet (invariant M7).
    case undecided

    /// How an attempt ended, as far as it is known.
    public enum Outcome: Hashable, Sendable {
        case succeeded
        /// The provider's result, e.g. `InsufficientBalance`.
        case declined(reason: String?)
        /// The provider waits for a customer who isn't there: a challenge, a redirect.
        case needsCustomer
        /// The provider refused the request as such, so nothing was charged: our own set-up.
        case refused
        /// It failed for reasons that the table doesn't know, and the payment's record shows that nothing was charged.
        case nothingCharged
        case unknown
    }
}

extension RenewalPlan.Rules {
    /// - Parameters:
    ///   - dueDay: the period's first day.
    ///   - attempts: those of the period that count, this one included.
    ///   - attemptedAt: when this one was made, by the clock of the run that made it.
    public func verdict(
        on outcome: AttemptVerdict.Outcome, dueDay: CivilDate, attempts: Int, attemptedAt: Timestamp, zone: TimeZone
    ) -> AttemptVerdict {
        switch outcome {
        case .succeeded: return .paid
        case .needsCustomer: return .customerNeeded
        case .unknown: return .undecided
        case .refused: return afterConfiguration(dueDay: dueDay, attemptedAt: attemptedAt, zone: zone)
        case .nothingCharged:
            return afterSoftDecline(dueDay: dueDay, attempts: attempts, attemptedAt: attemptedAt, zone: zone)
        case .declined(let reason):
            switch declines.meaning(of: reason) {
            case .soft:
                return afterSoftDecline(dueDay: dueDay, attempts: attempts, attemptedAt: attemptedAt, zone: zone)
            case .hard: return .declinedForGood
            case .customerNeeded: return .customerNeeded
            case .configuration: return afterConfiguration(dueDay: dueDay, attemptedAt: attemptedAt, zone: zone)
            case .unknown: return .undecided
            }
        }
    }

    private func afterSoftDecline(
        dueDay: CivilDate, attempts: Int, attemptedAt: Timestamp, zone: TimeZone
    ) -> AttemptVerdict {
        let next = dunning.next(dueDay: dueDay, attempts: attempts, last: attemptedAt, zone: zone)
        return next.map { .again(at: $0, counts: true) } ?? .givenUp
    }

    /// Tried again until the window closes, and counted for nothing.
    private func afterConfiguration(dueDay: CivilDate, attemptedAt: Timestamp, zone: TimeZone) -> AttemptVerdict {
        let next = attemptedAt + .seconds(Int64(dunning.configurationRetryHours) * 3600)
        return next < dunning.windowEnd(dueDay: dueDay, zone: zone) ? .again(at: next, counts: false) : .givenUp
    }
}
