import Basics
import Foundation
import Lockstep
import Postgres

/// What a settled charge is to its subscription, decided where the outcome is learned, whatever it was learned from: so
/// the next attempt is planned by the transition itself.
extension Transaction {
    /// The subscriptions of these charges, locked: before the charges themselves are.
    func lockSubscriptions(of charges: [ChargeID]) async throws -> [SubscriptionID: Subscription] {
        let rows = try await query(
            """
            SELECT \(unescaped: Self.subscriptionColumns) FROM subscriptions
            WHERE id IN (SELECT subscription_id FROM charges WHERE id = ANY(\(charges.map(\.uuid))))
            ORDER BY id FOR UPDATE
            """)
        let subscriptions = try rows.map(Self.subscription(from:))
        return Dictionary(subscriptions.map { ($0.id, $0) }) { first, _ in first }
    }

    /// What follows an attempt that failed, by charge. An unscheduled charge has one attempt: its reference is its own.
    func readAfterFailure(
        of charges: [Charge]
    ) async throws -> @Sendable (Charge, ChargeAttempt) -> ChargeSettlement.AfterFailure {
        guard charges.contains(where: { $0.subscription != nil }) else { return { _, _ in .final } }
        let subscriptions = try await lockSubscriptions(of: charges.map(\.id))
        let rules = policy.renewal
        return { charge, attempt in
            guard let period = charge.period, let id = charge.subscription, let subscription = subscriptions[id],
                subscription.status.runs
            else { return .final }
            let verdict = rules.verdict(
                on: rules.outcome(of: attempt), dueDay: period.start, attempts: rules.countedAttempts(of: charge),
                attemptedAt: attempt.begunAt, zone: subscription.timezone)
            if case .again(let at, _) = verdict { return .retry(at: at) }
            return .final
        }
    }

    /// Tells the subscriptions of what became of their charges.
    func settleSubscriptions(_ changes: [(before: Charge, after: Charge)]) async throws {
        for (before, after) in changes where after.subscription != nil && before.state != after.state {
            guard let id = after.subscription, var subscription = try await lockSubscription(id) else { continue }
            let open = try await readOpenCharges(of: id)
            var effects: [Subscription.Effect] = []
            let othersOpen = open.contains { $0.id != after.id && $0.isUnpaid }
            if let event = policy.renewal.event(of: after, of: subscription, othersOpen: othersOpen) {
                effects += subscription.apply(
                    try await withAppearance(event, of: after, subscription.holderReference))
            }
            if subscription.status.runs, open.isEmpty, !subscription.has(period: subscription.nextIndex) {
                effects += subscription.apply(.finished)
            }
            _ = try await finish(subscription, effects, open: open)
        }
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
    /// An attempt that is over, in the verdict's words.
    func outcome(of attempt: ChargeAttempt) -> AttemptVerdict.Outcome {
        switch attempt.outcome {
        case .succeeded: return .succeeded
        case .needsCustomer: return .needsCustomer
        case .processing, .unknown: return .unknown
        case .failed, .cancelled: break
        }
        guard let reason = attempt.reason else { return .declined(reason: nil) }
        if declines.meaning(of: reason) != .unknown { return .declined(reason: reason) }
        // The provider's codes (`request.param.invalid`) and our own words are about the request, not about the card.
        let isAboutRequest = reason.contains(".") || ["refused", "rejected", "conflict", "notFound"].contains(reason)
        return isAboutRequest ? .refused : .nothingCharged
    }

    /// Attempts that were declined, those that count for nothing left out.
    func countedAttempts(of charge: Charge) -> Int {
        charge.attempts.filter { attempt in
            guard !attempt.outcome.isOpen else { return false }
            switch outcome(of: attempt) {
            case .declined(let reason): return declines.meaning(of: reason) != .configuration
            case .refused: return false
            case .succeeded, .needsCustomer, .unknown, .nothingCharged: return true
            }
        }.count
    }

    /// What a charge's new state is to its subscription.
    func event(of charge: Charge, of subscription: Subscription, othersOpen: Bool) -> Subscription.Event? {
        switch charge.state {
        case .succeeded: return .paid(othersOpen: othersOpen)
        case .needsCustomer: return .customerNeeded
        case .scheduled:
            // Between attempts: the last one was declined, unless it was our own set-up, or nothing was sent.
            guard let last = charge.attempts.last, last.outcome == .failed else { return nil }
            switch outcome(of: last) {
            case .declined(let reason): return declines.meaning(of: reason) == .configuration ? nil : .declinedForNow
            case .nothingCharged: return .declinedForNow
            case .succeeded, .needsCustomer, .refused, .unknown: return nil
            }
        case .failed:
            let last = charge.attempts.last { $0.outcome == .failed }
            if let last, declines.meaning(of: last.reason) == .hard {
                return .declinedForGood(DeclinedInstrument(instrument: last.instrument, appearance: ""))
            }
            return .givenUp(cancels: cancelsAfterDunning)
        case .processing, .unknown, .skipped: return nil
        }
    }
}
