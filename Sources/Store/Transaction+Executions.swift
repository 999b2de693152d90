import Basics
import Foundation
import Lockstep
import Postgres

/// An execution's row beside what its facts say now; where they differ, something is to be told.
struct StoredExecution {
    var execution: CheckoutExecution
    let storedState: ExecutionState
    let storedCancelReason: CancelReason?
    let storedCancelReported: Bool
    let storedAuthorizedMinor: Int64?
    let storedCapturedMinor: Int64?
    let storedRefundedMinor: Int64?
    let checks: Int
    let checkAt: Timestamp?
    let changedAt: Timestamp
    let facts: [LearnedFact]

    /// Whether the facts say something else than what is stored.
    var hasChanged: Bool {
        let picture = execution.picture
        return storedState != picture.state || storedAuthorizedMinor != picture.authorized?.minor
            || storedCapturedMinor != picture.captured?.minor || storedRefundedMinor != picture.refunded?.minor
    }
}

extension Transaction {
    /// The executions of a checkout with all their facts, by ordinal. The checkout's lock protects them.
    func readExecutions(of checkout: CheckoutID) async throws -> [StoredExecution] {
        try await readExecutions(of: [checkout])[checkout] ?? []
    }

    /// The same for many checkouts, in one round trip.
    func readExecutions(of checkouts: [CheckoutID]) async throws -> [CheckoutID: [StoredExecution]] {
        let results = try await pipeline([
            """
            SELECT checkout_id, id, ordinal, workflow_code, merchant_reference, state, amount_minor, currency,
                cancel_reason, cancel_reported, created_at, authorized_minor, captured_minor, refunded_minor, checks,
                check_at, changed_at
            FROM executions WHERE checkout_id = ANY(\(checkouts.map(\.uuid))) ORDER BY checkout_id, ordinal
            """,
            Self.factsQuery(checkouts),
        ])
        let facts = try Self.facts(from: results[1])
        var executions: [CheckoutID: [StoredExecution]] = [:]
        for row in results[0] {
            let (checkout, execution) = try Self.execution(from: row, facts: facts)
            executions[checkout, default: []].append(execution)
        }
        return executions
    }

    private static func execution(
        from row: PostgresRow, facts all: [ExecutionID: [LearnedFact]]
    ) throws -> (CheckoutID, StoredExecution) {
        let (
            checkout, id, ordinal, workflowCode, reference, state, minor, code, cancelReason, cancelReported, createdAt,
            authorized, captured, refunded, checks, checkAt, changedAt
        ) = try row.decode(
            (
                UUID, UUID, Int, String, String, String, Int64, String, String?, Bool, PostgresTimestamp, Int64?,
                Int64?, Int64?, Int, PostgresTimestamp?, PostgresTimestamp
            ).self)
        let reason: CancelReason? = try cancelReason.map { try legal($0, "executions") }
        let facts = all[ExecutionID(id)] ?? []
        let execution = StoredExecution(
            execution: CheckoutExecution(
                reference: ExecutionReference(id: ExecutionID(id), workflowCode: workflowCode), ordinal: ordinal,
                merchantReference: reference, amount: try Money(minor: minor, code: code, table: "executions"),
                picture: ExecutionPicture(of: facts.map(\.fact)), cancelReason: reason,
                cancelReported: cancelReported, createdAt: createdAt.timestamp),
            storedState: try legal(state, "executions"), storedCancelReason: reason,
            storedCancelReported: cancelReported, storedAuthorizedMinor: authorized, storedCapturedMinor: captured,
            storedRefundedMinor: refunded, checks: checks, checkAt: checkAt?.timestamp,
            changedAt: changedAt.timestamp, facts: facts)
        return (CheckoutID(checkout), execution)
    }

    /// Which checkout an execution belongs to; nil for one that isn't ours, or isn't known yet.
    func checkout(of execution: ExecutionID) async throws -> CheckoutID? {
        try await query("SELECT checkout_id FROM executions WHERE id = \(execution.uuid)")
            .first.map { CheckoutID(try $0.decode("checkout_id", as: UUID.self)) }
    }

    /// The same for many.
    static func checkoutsQuery(_ executions: some Collection<ExecutionID>) -> PostgresQuery {
        "SELECT id, checkout_id FROM executions WHERE id = ANY(\(executions.map(\.uuid)))"
    }

    /// What ``checkoutsQuery(_:)`` found; executions that aren't known are left out.
    static func checkouts(from rows: PostgresRows) throws -> [ExecutionID: CheckoutID] {
        var checkouts: [ExecutionID: CheckoutID] = [:]
        for row in rows {
            let (execution, checkout) = try row.decode((UUID, UUID).self)
            checkouts[ExecutionID(execution)] = CheckoutID(checkout)
        }
        return checkouts
    }

    /// Makes an execution known. Again for the same one: nothing.
    func insertExecution(
        _ reference: ExecutionReference, checkout: CheckoutID, ordinal: Int, merchantReference: String, amount: Money,
        payload: InitPayload?
    ) async throws {
        _ = try await query(
            """
            INSERT INTO executions (id, checkout_id, ordinal, workflow_code, merchant_reference, state, amount_minor,
                currency, init_version, init_data, created_at, changed_at)
            VALUES (\(reference.id.uuid), \(checkout.uuid), \(ordinal), \(reference.workflowCode),
                \(merchantReference), 'created', \(amount.minor), \(amount.currency.code), \(payload?.version),
                \(payload?.data.reveal), \(now.stored), \(now.stored))
            ON CONFLICT (id) DO NOTHING
            """)
        // What was told about it before it was known has waited for this moment.
        _ = try await query(
            """
            UPDATE notifications SET state = 'applied', applied_at = \(now.stored)
            WHERE execution_id = \(reference.id.uuid) AND state = 'parked'
            """)
    }

    /// The payload that the app was started with; nil once it has been dropped.
    func readPayload(of execution: ExecutionID) async throws -> InitPayload? {
        let row = try await query(
            "SELECT init_version, init_data FROM executions WHERE id = \(execution.uuid) AND init_data IS NOT NULL"
        ).first
        guard let (version, data) = try row?.decode((String, String).self) else { return nil }
        return InitPayload(version: version, data: Secret(data))
    }

    /// The payload goes: an app that starts from it would start with the amount before.
    func writeExecutionAmount(_ amount: Money, of execution: ExecutionID) async throws {
        _ = try await query(
            """
            UPDATE executions SET amount_minor = \(amount.minor), currency = \(amount.currency.code),
                init_version = NULL, init_data = NULL
            WHERE id = \(execution.uuid)
            """)
    }
}
