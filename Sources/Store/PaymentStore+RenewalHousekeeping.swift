import Basics
import Foundation
import Lockstep
import Postgres

/// What a renewal run does besides charging.
extension PaymentStore {
    /// Operations of charges that nobody works on, and that wait for their next look, are due at once.
    public func hastenChargeOperations() async throws {
        let now = clock.now().stored
        _ = try await pool.query(
            """
            UPDATE operations SET due_at = \(now)
            WHERE charge_id IS NOT NULL AND finished_at IS NULL AND due_at > \(now)
                AND kind IN ('createExecution','authorize') AND state IN ('sent','unknown','prepared')
                AND (lease_until IS NULL OR lease_until <= \(now))
            """)
    }

    /// Takes executions of attempts that aren't over, to be asked about, those first that nobody has looked into for the
    /// longest time. What another run has, or has looked into since `began`, is left alone.
    ///
    /// They are the run's until it gives them back, or its lease on their charges ends: nobody else claims the charge of
    /// a period.
    ///
    /// - Parameter began: when the run began to look.
    public func claimLookUps(
        _ run: RenewalRun, since began: Timestamp, limit: Int
    ) async throws -> [ExecutionReference] {
        try await pool.query(
            """
            UPDATE charges SET lease_owner = \(run.id), lease_until = \((clock.now() + policy.lease).stored)
            FROM (SELECT attempts.charge_id AS claimed_id, attempts.execution_id AS claimed_execution_id
                FROM charge_attempts AS attempts JOIN charges ON charges.id = attempts.charge_id
                WHERE attempts.outcome IN ('processing','unknown') AND attempts.execution_id IS NOT NULL
                    AND charges.subscription_id IS NOT NULL
                    AND (charges.lease_until IS NULL OR charges.lease_until <= \(began.stored))
                ORDER BY coalesce(charges.lease_until, charges.created_at), attempts.execution_id
                LIMIT \(limit) FOR UPDATE OF charges SKIP LOCKED) AS open
            WHERE id = claimed_id
            RETURNING claimed_execution_id, workflow_code
            """
        ).map { row in
            let (id, workflow) = try row.decode((UUID, String).self)
            return ExecutionReference(id: ExecutionID(id), workflowCode: workflow)
        }
    }

    /// They were looked into. A run that began before leaves them alone, one that begins after may look again.
    public func releaseLookUps(_ run: RenewalRun, _ executions: [ExecutionID]) async throws {
        guard !executions.isEmpty else { return }
        // A moment later than now, since a run may have begun at this very moment.
        let now = (clock.now() + .microseconds(1)).stored
        // One that is being settled right now keeps its lease, so that nobody waits here.
        _ = try await pool.query(
            """
            UPDATE charges SET lease_until = \(now)
            WHERE id IN (SELECT charges.id FROM charge_attempts AS attempts
                JOIN charges ON charges.id = attempts.charge_id
                WHERE attempts.execution_id = ANY(\(executions.map(\.uuid))) AND charges.lease_owner = \(run.id)
                FOR UPDATE OF charges SKIP LOCKED)
            """)
    }

    /// A run could not read the instrument of what it took: it is due again by a patience that grows with the time since
    /// when it is due, and so behind what else is.
    public func postponeRenewal(_ renewal: ClaimedRenewal, of run: RenewalRun) async throws {
        // A run of a far day mustn't move what is due today to that day.
        let now = min(run.asOf, clock.now())
        let pause = policy.healing.unknown.delay(afterWaiting: now - renewal.dueSince)
        _ = try await pool.query(
            """
            UPDATE subscriptions SET due_at = \((max(now, renewal.dueAt) + pause).stored), lease_until = NULL
            WHERE id = \(renewal.subscription.id.uuid) AND lease_owner = \(run.id)
                AND due_at = \(renewal.dueAt.stored)
            """)
    }

    /// Charges of subscriptions whose outcome nobody knows.
    public func countUnknownCharges() async throws -> Int {
        try await pool.query(
            "SELECT count(*) AS unknown FROM charges WHERE state = 'unknown' AND subscription_id IS NOT NULL"
        ).first?.decode("unknown", as: Int.self) ?? 0
    }

    /// Tells `instrument.expiring` of cards that a running subscription charges and whose last day comes within the notice
    /// (`LOCKSTEP_EXPIRY_NOTICE_DAYS`), once for each card and expiry. A disabled card isn't charged, and what has no expiry
    /// (PayPal) has none here, whatever stands in its data.
    ///
    /// - Returns: how many were told.
    public func tellExpiringInstruments(asOf: Timestamp, limit: Int) async throws -> Int {
        let today = CivilDate(of: asOf, in: policy.expiryZone)
        // The newest month whose last day is within the notice.
        let next = CivilDate(of: asOf + policy.expiryNotice, in: policy.expiryZone).adding(days: 1)
        let (from, to) = (today.year * 12 + today.month, next.year * 12 + next.month - 1)
        return try await transact { transaction in
            let ids = try await transaction.query(
                """
                SELECT id FROM instruments
                WHERE expiry_year * 12 + expiry_month BETWEEN \(from) AND \(to)
                    AND status NOT IN ('disabled','deleted') AND lower(payment_method) <> 'paypal'
                    AND (told_expiry_month, told_expiry_year) IS DISTINCT FROM (expiry_month, expiry_year)
                    AND EXISTS (SELECT FROM subscriptions WHERE instrument_id = instruments.id
                        AND status IN ('active','pastDue','needsInstrument'))
                ORDER BY id LIMIT \(limit) FOR UPDATE SKIP LOCKED
                """
            ).map { InstrumentID(try $0.decode("id", as: UUID.self)) }
            for id in ids {
                guard let known = try await transaction.readInstrument(id) else { continue }
                _ = try await transaction.query(
                    """
                    UPDATE instruments SET told_expiry_month = expiry_month, told_expiry_year = expiry_year
                    WHERE id = \(id.uuid)
                    """)
                try await transaction.insertEvent(
                    .instrumentExpiring, subject: id.uuid,
                    data: [
                        "instrument": known.snapshot.json(
                            holder: known.holderReference, at: asOf, in: policy.expiryZone)
                    ])
            }
            return ids.count
        }
    }
}

extension Patience {
    /// The delay before a question whose number nobody keeps: as if it had been asked again and again for so long.
    fileprivate func delay(afterWaiting waited: Duration) -> Duration {
        var (number, asked) = (0, Duration.zero)
        while number < steps.count - 1 {
            asked += steps[number]
            guard asked <= waited else { break }
            number += 1
        }
        return delay(before: number, jitter: .random(in: 0...255))
    }
}

/// How renewals stand, over all processes. Every count stops at ``limit``, so that looking costs little however much there
/// is.
public struct RenewalStanding: Sendable, Equatable {
    public static let limit = 20_000

    /// Subscriptions that a run would take now. Those that wait for another instrument are left out.
    public var due = 0
    /// Those of them that are due since longer than `LOCKSTEP_OVERDUE_AFTER`.
    public var overdue = 0
    public var oldestDueAt: Timestamp?
    /// Subscriptions that no run could read.
    public var setAside = 0
    /// Charges of periods that aren't over, by state.
    public var open: [Charge.State: Int] = [:]
    /// Charges that are over and that began within the last 24 hours, by state.
    public var recent: [Charge.State: Int] = [:]

    public init() {}
}

extension PaymentStore {
    public func renewalStanding() async throws -> RenewalStanding {
        let now = clock.now()
        let limit = RenewalStanding.limit
        let rows = try await pool.withConnection { connection in
            try await connection.pipeline([
                """
                SELECT count(*) AS due,
                    count(*) FILTER (WHERE due_at <= \((now - policy.discrepancies.overdueAfter).stored)) AS overdue,
                    min(due_at) AS oldest
                FROM (SELECT due_at FROM subscriptions
                    WHERE due_at <= \(now.stored) AND set_aside IS NULL AND status <> 'needsInstrument'
                    ORDER BY due_at LIMIT \(limit)) AS waiting
                """,
                """
                SELECT count(*) AS aside
                FROM (SELECT FROM subscriptions WHERE set_aside IS NOT NULL LIMIT \(limit)) AS aside
                """,
                """
                SELECT state, count(*) AS charges FROM (SELECT state FROM charges
                    WHERE subscription_id IS NOT NULL AND state IN ('scheduled','processing','unknown')
                    LIMIT \(limit)) AS open
                GROUP BY state
                """,
                """
                SELECT state, count(*) AS charges FROM (SELECT state FROM charges
                    WHERE personal_data_removed_at IS NULL AND state IN ('succeeded','failed','needsCustomer','skipped')
                        AND created_at > \((now - .seconds(86_400)).stored)
                    ORDER BY created_at DESC LIMIT \(limit)) AS recent
                GROUP BY state
                """,
            ])
        }
        var standing = RenewalStanding()
        if let (due, overdue, oldest) = try rows[0].first?.decode((Int, Int, PostgresTimestamp?).self) {
            (standing.due, standing.overdue, standing.oldestDueAt) = (due, overdue, oldest?.timestamp)
        }
        standing.setAside = try rows[1].first?.decode(Int.self) ?? 0
        standing.open = try Self.counts(from: rows[2])
        standing.recent = try Self.counts(from: rows[3])
        return standing
    }

    private static func counts(from rows: PostgresRows) throws -> [Charge.State: Int] {
        var counts: [Charge.State: Int] = [:]
        for row in rows {
            let (state, count) = try row.decode((String, Int).self)
            counts[try legal(state, "charges")] = count
        }
        return counts
    }

    /// A run by this store's own clock.
    public func newRun() -> RenewalRun { RenewalRun(id: identifiers.next(), asOf: clock.now()) }
}
