import Basics
import Foundation
import Lockstep
import Postgres

/// What a settled charge is to its subscription, decided where the outcome is learned, whatever it was learned from: so
/// the next attempt is planned by the transition itself.
extension Transaction {
    /// The subscriptions of these charges, locked: before the charges themselves are.
    func lockSubscriptions(of charges: [ChargeID]) async throws -> [SubscriptionID: Subscription] {
        let subscriptions = try await query(Self.subscriptionsQuery(of: charges)).map(Self.subscription(from:))
        return Dictionary(subscriptions.map { ($0.id, $0) }) { first, _ in first }
    }

    /// Tells the subscriptions of what became of their charges, in as many statements for many as for one.
    ///
    /// - Parameter subscriptions: theirs, locked.
    func settleSubscriptions(
        _ changes: [(before: Charge, after: Charge)], _ subscriptions: [SubscriptionID: Subscription]
    ) async throws {
        let changed = changes.filter { $0.before.state != $0.after.state }
        let ids = Set(changed.compactMap(\.after.subscription))
        guard !ids.isEmpty else { return }
        var subscriptions = subscriptions
        var open = try await lockOpenCharges(of: ids.sorted())
        var collected = subscriptionChanges
        for (_, after) in changed {
            guard let id = after.subscription, var subscription = subscriptions[id] else { continue }
            let own = open[id] ?? []
            var effects: [Subscription.Effect] = []
            let othersOpen = own.contains { $0.id != after.id && $0.isUnpaid }
            if let event = policy.renewal.event(of: after, of: subscription, othersOpen: othersOpen) {
                effects += subscription.apply(
                    try await withAppearance(event, of: after, subscription.holderReference))
            }
            if subscription.status.runs, own.isEmpty, !subscription.has(period: subscription.nextIndex) {
                effects += subscription.apply(.finished)
            }
            open[id] = collected.finish(subscription, effects, open: own)
            subscriptions[id] = subscription
        }
        try await write(collected)
    }

    /// A hard decline remembers how the card was when it was declined, which is how it was last read.
    private func withAppearance(
        _ event: Subscription.Event, of charge: Charge, _ holder: String
    ) async throws -> Subscription.Event {
        guard case .declinedForGood(let declined) = event,
            let known = try await readInstrument(declined.instrument)
        else { return event }
        return .declinedForGood(
            DeclinedInstrument(instrument: declined.instrument, appearance: known.snapshot.appearance))
    }
}

extension RenewalPlan.Rules {
    /// What follows an attempt that failed. An unscheduled charge has one attempt: its reference is its own.
    ///
    /// - Parameter charge: its charge, whose other attempts may have been counted before.
    func afterFailure(
        _ attempt: ChargeAttempt, of charge: Charge, _ subscription: Subscription?
    ) -> ChargeSettlement.AfterFailure {
        guard let period = charge.period, let subscription, subscription.status.runs else { return .final }
        let attempts = charge.attempts.filter { $0.number != attempt.number } + [attempt]
        let verdict = verdict(
            on: outcome(of: attempt), dueDay: period.start, attempts: attempts.count(where: counts),
            attemptedAt: attempt.begunAt, zone: subscription.timezone)
        if case .again(let at, _) = verdict { return .retry(at: at) }
        return .final
    }

    /// An attempt that is over, in the verdict's words.
    func outcome(of attempt: ChargeAttempt) -> AttemptVerdict.Outcome {
        switch attempt.outcome {
        case .succeeded: .succeeded
        case .needsCustomer: .needsCustomer
        case .processing, .unknown: .unknown
        case .failed, .cancelled: failure(attempt.reason)
        }
    }

    private func failure(_ reason: String?) -> AttemptVerdict.Outcome {
        guard let reason else { return .declined(reason: nil) }
        if declines.meaning(of: reason) != .unknown { return .declined(reason: reason) }
        // The provider's codes (`request.param.invalid`) and our own words are about the request, not about the card.
        let name = DeclinePolicy.result(of: reason)
        let isAboutRequest = name.contains(".") || ["refused", "rejected", "conflict", "notFound"].contains(name)
        return isAboutRequest ? .refused : .nothingCharged
    }

    /// Whether an attempt failed by our own set-up: somebody must mend that, and the attempt counts for nothing.
    func failedByConfiguration(_ attempt: ChargeAttempt) -> Bool {
        attempt.outcome == .failed && isConfiguration(attempt.reason)
    }

    private func isConfiguration(_ reason: String?) -> Bool {
        switch failure(reason) {
        case .declined(let reason): declines.meaning(of: reason) == .configuration
        case .refused: true
        case .succeeded, .needsCustomer, .nothingCharged, .unknown: false
        }
    }

    /// Whether an attempt is one of those that the schedule allows: it was made, and is over.
    private func counts(_ attempt: ChargeAttempt) -> Bool {
        !attempt.outcome.isOpen && attempt.outcome != .cancelled && !failedByConfiguration(attempt)
    }

    /// Whether a card network counts an attempt that failed for this reason: one that it saw.
    func networkCounts(_ reason: String?) -> Bool { reason != Self.cancelled && !isConfiguration(reason) }

    /// The reason of an attempt whose execution was cancelled.
    private static let cancelled = "cancelled"

    /// What a charge's new state is to its subscription.
    func event(of charge: Charge, of subscription: Subscription, othersOpen: Bool) -> Subscription.Event? {
        switch charge.state {
        case .succeeded: return .paid(othersOpen: othersOpen)
        case .needsCustomer: return .customerNeeded
        case .scheduled:
            // Between attempts: the last one was declined, unless it was our own set-up, or nothing was sent.
            guard let last = charge.attempts.last, last.outcome == .failed else { return nil }
            return failedByConfiguration(last) ? nil : .declinedForNow
        case .failed:
            let last = charge.attempts.last { $0.outcome == .failed }
            if let last, declines.meaning(of: last.reason) == .hard {
                return .declinedForGood(DeclinedInstrument(instrument: last.instrument, appearance: ""))
            }
            // Only declines use a schedule up: not the shop's own cancel, nor our set-up.
            let isUsedUp = last.map { networkCounts($0.reason) } ?? false
            return .givenUp(cancels: cancelsAfterDunning && subscription.status.runs && isUsedUp)
        case .skipped:
            // Its instrument was found unusable when it was to be authorized, after the charge had begun.
            let reason = charge.reason.flatMap(SkipReason.init(rawValue:))
            return reason?.waitsForInstrument == true ? .instrumentUnusable : nil
        case .processing, .unknown: return nil
        }
    }
}
