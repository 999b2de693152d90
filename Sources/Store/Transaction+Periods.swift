import Basics
import Foundation
import Lockstep
import Postgres

/// The charges of a subscription's periods.
extension Transaction {
    /// Writes a period's charge down.
    ///
    /// - Parameters:
    ///   - reason: skipped for it; nil: scheduled.
    ///   - claim: who makes the first attempt now.
    /// - Throws: a unique violation where the period has a charge already (invariant M2).
    func insertCharge(
        for period: BillingPeriod, of subscription: Subscription, skipped reason: SkipReason? = nil,
        nextAttemptAt: Timestamp? = nil, claim: UUID? = nil
    ) async throws -> Charge {
        let id = ChargeID(identifiers.next())
        let until = claim.map { _ in (now + policy.lease).stored }
        _ = try await query(
            """
            INSERT INTO charges (id, subscription_id, period_index, period_start, period_end, merchant_reference,
                holder_reference, instrument_id, workflow_code, amount_minor, currency, expiry_policy, meta, state,
                reason, next_attempt_at, lease_owner, lease_until, created_at)
            SELECT \(id.uuid), id, \(period.index), DATE '1970-01-01' + \(period.start.daysSince1970)::integer,
                DATE '1970-01-01' + \(period.end.daysSince1970)::integer, merchant_reference, holder_reference,
                \(subscription.instrument.uuid), workflow_code, \(subscription.amount.minor),
                \(subscription.amount.currency.code), \(subscription.expiryPolicy.rawValue), meta,
                \(reason == nil ? "scheduled" : "skipped"), \(reason?.rawValue), \(nextAttemptAt?.stored), \(claim),
                \(until), \(now.stored)
            FROM subscriptions WHERE id = \(subscription.id.uuid)
            """)
        guard let charge = try await readCharge(id) else {
            throw CorruptRow(table: "charges", detail: "a charge that was just written is gone")
        }
        if reason != nil { try await tell(.chargeSkipped, about: charge) }
        return charge
    }

    /// An open charge isn't attempted any more, or waits.
    func skip(_ charge: Charge, _ reason: SkipReason) async throws {
        let wasSkipped = charge.state == .skipped
        var skipped = charge
        skipped.state = .skipped
        skipped.reason = reason.rawValue
        skipped.nextAttemptAt = nil
        try await write(skipped)
        if !wasSkipped { try await tell(.chargeSkipped, about: skipped) }
    }

    /// Writes what a run or the shop decided about an open charge; ends whatever claim there was.
    ///
    /// - Parameter claim: who makes the next attempt now.
    func write(_ charge: Charge, claim: UUID? = nil) async throws {
        let until = claim.map { _ in (now + policy.lease).stored }
        _ = try await query(
            """
            UPDATE charges SET state = \(charge.state.rawValue), reason = \(charge.reason),
                next_attempt_at = \(charge.nextAttemptAt?.stored), instrument_id = \(charge.instrument.uuid),
                amount_minor = \(charge.amount.minor), expiry_policy = \(charge.expiryPolicy.rawValue),
                lease_owner = \(claim), lease_until = \(until)
            WHERE id = \(charge.id.uuid)
            """)
    }

    func tell(_ type: EventType, about charge: Charge) async throws {
        try await insertEvent(
            type, subject: charge.subscription?.uuid ?? charge.id.uuid, execution: charge.attempts.last?.execution,
            data: ["charge": charge.json])
    }

    /// Makes the effects of a subscription's change true. The subscription's row is locked.
    ///
    /// - Parameter open: its open charges, locked; those that remain open come back.
    func perform(
        _ effects: [Subscription.Effect], of subscription: Subscription, open: [Charge]
    ) async throws -> [Charge] {
        var open = open
        for effect in effects {
            switch effect {
            case .tell(let type):
                try await insertEvent(
                    type, subject: subscription.id.uuid, data: ["subscription": subscription.json])
            case .stopPlanned(let reason):
                for charge in open where charge.state == .scheduled || charge.state == .skipped {
                    try await skip(charge, reason)
                }
                open.removeAll { $0.state == .scheduled || $0.state == .skipped }
            case .skip(let periods, let reason):
                let calendar = subscription.calendar(hour: policy.renewal.hour)
                for index in periods {
                    _ = try await insertCharge(for: calendar.period(index), of: subscription, skipped: reason)
                }
            case .retryWaiting:
                for index in open.indices where open[index].state == .skipped {
                    guard let period = open[index].period,
                        now < policy.renewal.dunning.windowEnd(dueDay: period.start, zone: subscription.timezone)
                    else { continue }
                    open[index].state = .scheduled
                    open[index].reason = nil
                    open[index].nextAttemptAt = now
                    open[index].instrument = subscription.instrument
                    try await write(open[index])
                }
            case .changeOpenAmounts:
                for index in open.indices where open[index].state == .scheduled || open[index].state == .skipped {
                    open[index].amount = subscription.amount
                    try await write(open[index])
                }
            case .moveLastEnd(let index):
                let end = subscription.calendar(hour: 0).start(of: index + 1).daysSince1970
                _ = try await query(
                    """
                    UPDATE charges SET period_end = DATE '1970-01-01' + \(end)::integer
                    WHERE subscription_id = \(subscription.id.uuid) AND period_index = \(index)
                    """)
            }
        }
        return open
    }
}
