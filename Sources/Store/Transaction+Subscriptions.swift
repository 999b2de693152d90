import Basics
import Foundation
import Lockstep
import Postgres

extension Transaction {
    static let subscriptionColumns = """
        id, merchant_reference, holder_reference, instrument_id, workflow_code, amount_minor, currency, every, \
        starts_on - DATE '1970-01-01' AS start_day, anchor_index, timezone, ends_on - DATE '1970-01-01' AS end_day, \
        max_charges, expiry_policy, meta::text AS meta_text, status, next_index, declined_instrument_id, \
        declined_appearance, created_at, due_at
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

    /// The charges of a subscription that something is still to come of, by their periods, locked.
    func lockOpenCharges(of id: SubscriptionID) async throws -> [Charge] {
        try await lockOpenCharges(of: [id])[id] ?? []
    }

    /// The same for many, whose rows are locked.
    func lockOpenCharges(of ids: [SubscriptionID]) async throws -> [SubscriptionID: [Charge]] {
        guard !ids.isEmpty else { return [:] }
        let rows = try await pipeline([
            Self.openChargesQuery(of: ids.map(\.uuid)), Self.attemptsQuery(ofOpenChargesOf: ids.map(\.uuid)),
        ])
        return try Self.bySubscription(Self.charges(from: rows[0], attempts: rows[1]))
    }

    static func bySubscription(_ charges: [Charge]) -> [SubscriptionID: [Charge]] {
        var all: [SubscriptionID: [Charge]] = [:]
        for charge in charges.sorted(by: { ($0.period?.index ?? 0) < ($1.period?.index ?? 0) }) {
            guard let id = charge.subscription else { continue }
            all[id, default: []].append(charge)
        }
        return all
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

    static func subscription(from row: PostgresRow) throws -> Subscription {
        let (
            id, reference, holder, instrument, workflowCode, minor, code, every, startDay, anchorIndex, zone, endDay,
            maxCharges, policy, meta, status, nextIndex, declined, appearance, createdAt, _
        ) = try row.decode(
            (
                UUID, String, String, UUID, String, Int64, String, String, Int, Int, String, Int?, Int?, String,
                String?, String, Int, UUID?, String?, PostgresTimestamp, PostgresTimestamp?
            ).self)
        guard let timezone = TimeZone(identifier: zone), let interval = try? BillingInterval(every) else {
            throw CorruptRow(table: "subscriptions", detail: "\(zone) or \(every) isn't known here")
        }
        return Subscription(
            id: SubscriptionID(id), merchantReference: reference, holderReference: holder,
            instrument: InstrumentID(instrument), workflowCode: workflowCode,
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
