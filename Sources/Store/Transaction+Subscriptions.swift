import Basics
import Foundation
import Lockstep
import Postgres

extension Transaction {
    static let subscriptionColumns = """
        id, merchant_reference, holder_reference, instrument_id, amount_minor, currency, every, \
        starts_on - DATE '1970-01-01' AS start_day, anchor_index, timezone, ends_on - DATE '1970-01-01' AS end_day, \
        max_charges, expiry_policy, meta::text AS meta_text, status, next_index, declined_instrument_id, \
        declined_appearance, created_at
        """

    /// The subscription, its row locked until the transaction ends. Before its charges.
    func lockSubscription(_ id: SubscriptionID) async throws -> Subscription? {
        try await query(
            "SELECT \(unescaped: Self.subscriptionColumns) FROM subscriptions WHERE id = \(id.uuid) FOR UPDATE"
        ).first.map(Self.subscription(from:))
    }

    func readSubscription(_ id: SubscriptionID) async throws -> Subscription? {
        try await query("SELECT \(unescaped: Self.subscriptionColumns) FROM subscriptions WHERE id = \(id.uuid)")
            .first.map(Self.subscription(from:))
    }

    /// Writes what can change. Its lease ends, whoever had it.
    func writeSubscription(_ subscription: Subscription, dueAt: Timestamp?) async throws {
        _ = try await query(
            """
            UPDATE subscriptions SET instrument_id = \(subscription.instrument.uuid),
                amount_minor = \(subscription.amount.minor),
                starts_on = DATE '1970-01-01' + \(subscription.startsOn.daysSince1970)::integer,
                anchor_index = \(subscription.anchorIndex),
                ends_on = DATE '1970-01-01' + \(subscription.endsOn?.daysSince1970)::integer,
                max_charges = \(subscription.maxCharges), expiry_policy = \(subscription.expiryPolicy.rawValue),
                meta = \(subscription.meta.map { PostgresJSON($0.text) }), status = \(subscription.status.rawValue),
                next_index = \(subscription.nextIndex),
                declined_instrument_id = \(subscription.declined?.instrument.uuid),
                declined_appearance = \(subscription.declined?.appearance),
                due_at = \(subscription.status.runs ? dueAt?.stored : nil), lease_until = NULL
            WHERE id = \(subscription.id.uuid)
            """)
    }

    /// The charges of a subscription that something is still to come of, by their periods.
    func readOpenCharges(of id: SubscriptionID) async throws -> [Charge] {
        let ids = try await query(
            """
            SELECT id FROM charges WHERE subscription_id = \(id.uuid)
                AND (state IN ('scheduled','processing','unknown')
                    OR (state = 'skipped' AND reason LIKE 'instrument-%'))
            """
        ).map { ChargeID(try $0.decode("id", as: UUID.self)) }
        return try await lockCharges(ids).sorted { ($0.period?.index ?? 0) < ($1.period?.index ?? 0) }
    }

    /// The first day of the newest period that has a charge.
    func readLastStart(of id: SubscriptionID) async throws -> CivilDate? {
        try await query(
            """
            SELECT period_start - DATE '1970-01-01' AS start_day FROM charges
            WHERE subscription_id = \(id.uuid) ORDER BY period_index DESC LIMIT 1
            """
        ).first.map { CivilDate(daysSince1970: try $0.decode("start_day", as: Int.self)) }
    }

    /// When a run has to look at it next.
    func nextLook(at subscription: Subscription, open: [Charge]) -> Timestamp? {
        let plan = RenewalPlan(
            for: subscription, open: open.compactMap(\.standing), instrument: nil, rules: policy.renewal, now: now)
        return plan.steps.contains(.finish) ? now : plan.nextAt
    }

    static func subscription(from row: PostgresRow) throws -> Subscription {
        let (
            id, reference, holder, instrument, minor, code, every, startDay, anchorIndex, zone, endDay, maxCharges,
            policy, meta, status, nextIndex, declined, appearance, createdAt
        ) = try row.decode(
            (
                UUID, String, String, UUID, Int64, String, String, Int, Int, String, Int?, Int?, String, String?,
                String, Int, UUID?, String?, PostgresTimestamp
            ).self)
        guard let timezone = TimeZone(identifier: zone), let interval = try? BillingInterval(every) else {
            throw CorruptRow(table: "subscriptions", detail: "\(zone) or \(every) isn't known here")
        }
        return Subscription(
            id: SubscriptionID(id), merchantReference: reference, holderReference: holder,
            instrument: InstrumentID(instrument),
            amount: try Money(minor: minor, code: code, table: "subscriptions"), interval: interval,
            startsOn: CivilDate(daysSince1970: startDay), anchorIndex: anchorIndex, timezone: timezone,
            endsOn: endDay.map { CivilDate(daysSince1970: $0) }, maxCharges: maxCharges,
            expiryPolicy: try legal(policy, "subscriptions"), status: try legal(status, "subscriptions"),
            nextIndex: nextIndex,
            declined: declined.flatMap { id in
                appearance.map { DeclinedInstrument(instrument: InstrumentID(id), appearance: $0) }
            },
            meta: try meta.map { try JSON(parsing: Data($0.utf8)) }, createdAt: createdAt.timestamp)
    }
}

extension Charge {
    /// As a renewal's plan sees it; nil for one that is over, and for an unscheduled one.
    var standing: RenewalPlan.OpenCharge? {
        guard let period else { return nil }
        let standing: RenewalPlan.OpenCharge.Standing
        switch state {
        case .scheduled: standing = .scheduled(at: nextAttemptAt ?? createdAt)
        case .processing, .unknown: standing = .inFlight
        case .skipped:
            guard let reason = reason.flatMap(SkipReason.init(rawValue:)), reason.waitsForInstrument else { return nil }
            standing = .waiting
        case .succeeded, .failed, .needsCustomer: return nil
        }
        return RenewalPlan.OpenCharge(index: period.index, start: period.start, standing: standing)
    }
}
