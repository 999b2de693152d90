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

    /// Executions of attempts that aren't over, by their ids, behind the one named.
    public func listOpenAttempts(after: ExecutionID?, limit: Int) async throws -> [ExecutionReference] {
        try await pool.query(
            """
            SELECT attempts.execution_id, charges.workflow_code FROM charge_attempts AS attempts
            JOIN charges ON charges.id = attempts.charge_id
            WHERE attempts.outcome IN ('processing','unknown') AND attempts.execution_id IS NOT NULL
                AND charges.subscription_id IS NOT NULL
                AND (\(after?.uuid)::uuid IS NULL OR attempts.execution_id > \(after?.uuid))
            ORDER BY attempts.execution_id LIMIT \(limit)
            """
        ).map { row in
            let (id, workflow) = try row.decode((UUID, String).self)
            return ExecutionReference(id: ExecutionID(id), workflowCode: workflow)
        }
    }

    /// Charges of subscriptions whose outcome nobody knows.
    public func countUnknownCharges() async throws -> Int {
        try await pool.query(
            "SELECT count(*) AS unknown FROM charges WHERE state = 'unknown' AND subscription_id IS NOT NULL"
        ).first?.decode("unknown", as: Int.self) ?? 0
    }

    /// Tells `instrument.expiring` of cards that a running subscription charges and whose last day comes within the notice
    /// (`LOCKSTEP_EXPIRY_NOTICE_DAYS`), once for each card and expiry.
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
                WHERE expiry_year * 12 + expiry_month BETWEEN \(from) AND \(to) AND status = 'enabled'
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

extension PaymentStore {
    /// A run by this store's own clock.
    public func newRun() -> RenewalRun { RenewalRun(id: identifiers.next(), asOf: clock.now()) }
}
