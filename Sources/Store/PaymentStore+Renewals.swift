import Basics
import Foundation
import Lockstep
import Postgres

/// One pass over what is due. Its id is in every row that it took, so that it takes none twice.
public struct RenewalRun: Hashable, Sendable {
    public let id: UUID
    /// The moment that decides what is due, and whether a card is expired: now, or what `--as-of` says.
    public let asOf: Timestamp

    public init(id: UUID, asOf: Timestamp) {
        self.id = id
        self.asOf = asOf
    }
}

/// A subscription that a run took, to look at its instrument and charge it.
public struct ClaimedRenewal: Sendable {
    public let subscription: Subscription
    /// Whether its instrument has to be read.
    public let needsInstrument: Bool
    /// When a run had to look at it.
    let dueAt: Timestamp
    /// Since when something of it is due; later than that a run had to look where another one couldn't read the
    /// instrument.
    let dueSince: Timestamp
}

/// Where a run goes on: what is due first comes first, and what waits for another instrument behind all that doesn't.
/// That is looked at in every run, for weeks, and would stand before everything else.
public struct RenewalPlace: Hashable, Comparable, Sendable {
    let waits: Bool
    let dueAt: Timestamp
    let id: SubscriptionID

    public static func < (left: RenewalPlace, right: RenewalPlace) -> Bool {
        guard left.waits == right.waits else { return right.waits }
        return (left.dueAt, left.id) < (right.dueAt, right.id)
    }
}

/// What was found out about an instrument right before a charge.
public enum InstrumentReport: Sendable {
    case found(InstrumentSnapshot)
    case missing
    case anotherHolder(InstrumentSnapshot)
    case unavailable
}

/// What a run did with one subscription.
public struct RenewalStep: Sendable {
    /// What was written down and is to be sent now.
    public var attempt: PlannedExecution?
    public var skipped = 0
    /// It is due, and couldn't be tried.
    public var isHeld = false
    public var hasEnded = false
    /// Somebody else took it.
    public var isLost = false
}

extension PaymentStore {
    /// Takes the next subscriptions that are due, in the order of ``RenewalPlace``; those of other runs are left alone.
    ///
    /// A row that can't be read is set aside, so that it stops no other; its number is `broken`.
    public func claimRenewals(
        _ run: RenewalRun, after place: RenewalPlace?, limit: Int
    ) async throws -> (claimed: [ClaimedRenewal], place: RenewalPlace?, broken: Int) {
        try await transact { transaction in
            var waits = place?.waits ?? false
            var rows = try await transaction.claim(run, waits: waits, after: place, limit: limit)
            if rows.isEmpty, !waits {
                waits = true
                rows = try await transaction.claim(run, waits: waits, after: nil, limit: limit)
            }
            let places = try rows.map { try Transaction.renewalPlace(from: $0, waits: waits) }
            let (subscriptions, broken) = try Transaction.subscriptions(from: rows)
            let open = try await transaction.readOpenCharges(of: Array(subscriptions.keys))
            let claimed = places.sorted().compactMap { place in
                subscriptions[place.id].map { subscription in
                    let plan = RenewalPlan(
                        for: subscription, open: (open[place.id] ?? []).compactMap(\.standing), instrument: nil,
                        rules: policy.renewal, now: run.asOf)
                    return ClaimedRenewal(
                        subscription: subscription, needsInstrument: plan.needsInstrument, dueAt: place.dueAt,
                        dueSince: plan.nextAt ?? place.dueAt)
                }
            }
            for (id, reason) in broken { try await transaction.setAside(id.uuid, reason) }
            return (claimed, places.max(), broken.count)
        }
    }

    /// Whether something is due that the run has not taken, and no other run has. What waits for another instrument is left
    /// out.
    public func hasDueRenewals(besides run: RenewalRun) async throws -> Bool {
        try await pool.query(
            """
            SELECT EXISTS (SELECT FROM subscriptions
                WHERE due_at <= \(run.asOf.stored) AND set_aside IS NULL AND status <> 'needsInstrument'
                    AND (lease_until IS NULL OR lease_until <= \(clock.now().stored))
                    AND lease_owner IS DISTINCT FROM \(run.id)) AS has_due
            """
        ).first?.decode("has_due", as: Bool.self) ?? false
    }

    /// Decides about claimed subscriptions, each with its instrument as it was read just now (nil where it needn't be),
    /// and writes all of it down, the attempts that follow included: what comes back as one is on disk with its key, and
    /// to be sent now. All in one transaction; where one of them is bad, each in its own.
    ///
    /// - Parameter owner: who sends the attempts; holds their operations' leases.
    /// - Returns: what was done with each, in the same order.
    public func applyRenewals(
        _ claimed: [(renewal: ClaimedRenewal, report: InstrumentReport?)], of run: RenewalRun, owner: UUID
    ) async -> [Result<RenewalStep, any Error>] {
        await together(claimed) { try await $0.applyRenewals($1, of: run, owner: owner) }
    }

    /// A run could not deal with it: it is due as before.
    public func releaseRenewal(_ id: SubscriptionID) async throws {
        try await transact { try await $0.release(id) }
    }

    /// A row that makes a run fail is left out until somebody has mended it.
    public func setAsideRenewal(_ id: SubscriptionID, _ reason: String) async throws {
        try await transact { try await $0.setAside(id.uuid, reason) }
    }

    /// What a run would do, without doing it: nothing is written and nothing is read from the provider, so cards are
    /// taken as they were when they were last seen.
    public func previewRenewals(
        _ run: RenewalRun, after place: RenewalPlace?, limit: Int
    ) async throws -> (previews: [RenewalPreview], place: RenewalPlace?) {
        try await transact { transaction in
            var places = try await transaction.readDuePlaces(
                run, waits: place?.waits ?? false, after: place, limit: limit)
            if places.isEmpty, place?.waits != true {
                places = try await transaction.readDuePlaces(run, waits: true, after: nil, limit: limit)
            }
            let rows = try await transaction.query(
                """
                SELECT \(unescaped: Transaction.subscriptionColumns) FROM subscriptions
                WHERE id = ANY(\(places.map(\.id.uuid)))
                """)
            let (subscriptions, _) = try Transaction.subscriptions(from: rows)
            let open = try await transaction.readOpenCharges(of: places.map(\.id))
            let declines = try await transaction.readDeclines(
                of: subscriptions.values.map(\.instrument), asOf: run.asOf)
            var previews: [RenewalPreview] = []
            for place in places {
                guard let subscription = subscriptions[place.id] else { continue }
                let known = try await transaction.readInstrument(subscription.instrument)
                let report: InstrumentReport = known.map { .found($0.snapshot) } ?? .missing
                let own = open[place.id] ?? []
                let plan = RenewalPlan(
                    for: subscription, open: own.compactMap(\.standing),
                    instrument: report.instrument(declines: declines[subscription.instrument] ?? []),
                    rules: policy.renewal, now: run.asOf)
                let steps = plan.steps.map { step in
                    let charge = own.first { $0.period?.index == step.openIndex }
                    return (step: step, amount: charge?.amount ?? subscription.amount)
                }
                previews.append(RenewalPreview(subscription: subscription, steps: steps))
            }
            return (previews, places.last)
        }
    }
}

/// What a run would do with one subscription.
public struct RenewalPreview: Sendable {
    public let subscription: Subscription
    /// Each with the amount that it is about: a charge that is open keeps its own, whatever the subscription's is now.
    public let steps: [(step: RenewalPlan.Step, amount: Money)]
}

extension RenewalPlan.Step {
    /// The period whose charge is open, where it is about one.
    fileprivate var openIndex: Int? {
        switch self {
        case .retry(let index), .suspend(let index, _), .deferRetry(let index, _), .giveUp(let index): index
        case .skip, .postpone, .begin, .hold, .finish: nil
        }
    }
}

extension Transaction {
    /// The next ones of a run.
    ///
    /// - Parameter waits: whether those that wait for another instrument, or all others.
    fileprivate func claim(
        _ run: RenewalRun, waits: Bool, after place: RenewalPlace?, limit: Int
    ) async throws -> PostgresRows {
        try await query(
            """
            UPDATE subscriptions SET lease_owner = \(run.id), lease_until = \((now + policy.lease).stored)
            FROM (SELECT id AS claimed_id FROM subscriptions
                WHERE due_at <= \(run.asOf.stored) AND set_aside IS NULL
                    AND (status = 'needsInstrument') = \(waits)
                    AND (\(place?.dueAt.stored)::timestamptz IS NULL
                        OR (due_at, id) > (\(place?.dueAt.stored), \(place?.id.uuid)))
                    AND (lease_until IS NULL OR lease_until <= \(now.stored))
                    AND lease_owner IS DISTINCT FROM \(run.id)
                ORDER BY due_at, id LIMIT \(limit) FOR UPDATE SKIP LOCKED) AS due
            WHERE id = claimed_id
            RETURNING \(unescaped: Transaction.subscriptionColumns)
            """)
    }

    /// The same without taking them.
    fileprivate func readDuePlaces(
        _ run: RenewalRun, waits: Bool, after place: RenewalPlace?, limit: Int
    ) async throws -> [RenewalPlace] {
        try await query(
            """
            SELECT id, due_at FROM subscriptions
            WHERE due_at <= \(run.asOf.stored) AND set_aside IS NULL AND (status = 'needsInstrument') = \(waits)
                AND (\(place?.dueAt.stored)::timestamptz IS NULL
                    OR (due_at, id) > (\(place?.dueAt.stored), \(place?.id.uuid)))
            ORDER BY due_at, id LIMIT \(limit)
            """
        ).map { try Self.renewalPlace(from: $0, waits: waits) }
    }

    fileprivate static func renewalPlace(from row: PostgresRow, waits: Bool) throws -> RenewalPlace {
        RenewalPlace(
            waits: waits,
            dueAt: try row.decode("due_at", as: PostgresTimestamp.self).timestamp,
            id: SubscriptionID(try row.decode("id", as: UUID.self)))
    }

    /// Those that can be read, and what is wrong with the others.
    fileprivate static func subscriptions(
        from rows: PostgresRows
    ) throws -> (readable: [SubscriptionID: Subscription], broken: [(SubscriptionID, String)]) {
        var readable: [SubscriptionID: Subscription] = [:]
        var broken: [(SubscriptionID, String)] = []
        for row in rows {
            let id = SubscriptionID(try row.decode("id", as: UUID.self))
            do { readable[id] = try subscription(from: row) } catch { broken.append((id, "\(error)")) }
        }
        return (readable, broken)
    }

    fileprivate func release(_ id: SubscriptionID) async throws {
        _ = try await query("UPDATE subscriptions SET lease_until = NULL WHERE id = \(id.uuid)")
    }

    fileprivate func setAside(_ id: UUID, _ reason: String) async throws {
        _ = try await query(
            """
            UPDATE subscriptions SET set_aside = \(String(reason.prefix(200))), lease_until = NULL WHERE id = \(id)
            """)
    }

    /// The charges that something is still to come of, without their attempts.
    func readOpenCharges(of ids: [SubscriptionID]) async throws -> [SubscriptionID: [Charge]] {
        guard !ids.isEmpty else { return [:] }
        let rows = try await query(Self.openChargesQuery(of: ids.map(\.uuid), locks: false))
        return try Self.bySubscription(Self.charges(from: rows, attempts: nil))
    }
}
