import Basics
import Foundation
import Lockstep
import Postgres

extension Transaction {
    static let operationColumns = """
        id, kind, checkout_id, charge_id, instrument_id, execution_id, workflow_code, idempotency_key, state, \
        amount_minor, currency, final_capture, intent_reason, action_id, reason, attempts, created_at, sent_at
        """

    /// Writes an intent down before anything is sent (invariant M12).
    ///
    /// - Parameters:
    ///   - owner: who sends it now; nil leaves it to a worker at once.
    ///   - ordinal: the number of the session that a `createSession` makes.
    func insertOperation(
        _ operation: PaymentOperation, workflowCode: String, owner: UUID?, ordinal: Int? = nil,
        basketVersion: String? = nil, request: PaymentStore.RequestIdentity? = nil
    ) async throws {
        let leaseUntil = owner == nil ? nil : now + policy.lease
        _ = try await query(
            """
            INSERT INTO operations (id, kind, checkout_id, charge_id, instrument_id, execution_id, workflow_code, idempotency_key, state,
                amount_minor, currency, final_capture, intent_reason, requested_by, request_key, basket_version, ordinal, created_at, sent_at,
                attempts, lease_owner, lease_until, due_at)
            VALUES (\(operation.id.uuid), \(operation.kind.rawValue), \(operation.checkout?.uuid),
                \(operation.charge?.uuid), \(operation.instrument?.uuid), \(operation.execution?.id.uuid), \(workflowCode), \(operation.key.uuid),
                \(owner == nil ? "prepared" : "sent"), \(operation.amount?.minor),
                \(operation.amount?.currency.code), \(operation.isFinalCapture), \(operation.intentReason),
                \(request?.credential), \(request?.key), \(basketVersion), \(ordinal), \(now.stored), \(owner == nil ? nil : now.stored),
                \(owner == nil ? 0 : 1), \(owner), \(leaseUntil?.stored), \((leaseUntil ?? now).stored))
            """)
    }

    func lockOperation(_ id: OperationID) async throws -> PaymentOperation? {
        try await query("SELECT \(unescaped: Self.operationColumns) FROM operations WHERE id = \(id.uuid) FOR UPDATE")
            .first.map(Self.operation(from:))
    }

    func readOperation(_ id: OperationID) async throws -> PaymentOperation? {
        try await query("SELECT \(unescaped: Self.operationColumns) FROM operations WHERE id = \(id.uuid)")
            .first.map(Self.operation(from:))
    }

    /// What a request of the shop's began.
    func readOperation(of request: PaymentStore.RequestIdentity) async throws -> PaymentOperation? {
        try await query(
            """
            SELECT \(unescaped: Self.operationColumns) FROM operations
            WHERE requested_by = \(request.credential) AND request_key = \(request.key)
            """
        ).first.map(Self.operation(from:))
    }

    /// The operations of a checkout or a charge that aren't final, oldest first.
    func readOpenOperations(of owner: ExecutionOwner) async throws -> [PaymentOperation] {
        try await query(
            """
            SELECT \(unescaped: Self.operationColumns) FROM operations
            WHERE \(unescaped: owner.column) = \(owner.uuid) AND finished_at IS NULL ORDER BY created_at, id
            """
        ).map(Self.operation(from:))
    }

    /// The operations of these that aren't final, and those that succeeded: what facts must be held against.
    func readOperationsThatMatter(of owners: [ExecutionOwner]) async throws -> [PaymentOperation] {
        var operations: [PaymentOperation] = []
        for (column, ids) in [("checkout_id", owners.checkouts.map(\.uuid)), ("charge_id", owners.charges.map(\.uuid))]
        where !ids.isEmpty {
            operations += try await query(
                """
                SELECT \(unescaped: Self.operationColumns) FROM operations
                WHERE \(unescaped: column) = ANY(\(ids)) AND state <> 'failed' ORDER BY created_at, id
                """
            ).map(Self.operation(from:))
        }
        return operations
    }

    /// Writes what became of an operation, and when it is looked at next. Its lease ends.
    func writeOperation(_ operation: PaymentOperation, dueAt: Timestamp?) async throws {
        let finishedAt = operation.state.isFinal ? now.stored : nil
        _ = try await query(
            """
            UPDATE operations SET state = \(operation.state.rawValue), idempotency_key = \(operation.key.uuid),
                action_id = \(operation.actionID), reason = \(operation.reason), attempts = \(operation.attempts),
                execution_id = \(operation.execution?.id.uuid), sent_at = \(operation.sentAt?.stored),
                finished_at = \(finishedAt), lease_owner = NULL, lease_until = NULL,
                due_at = \(operation.state.isFinal ? nil : dueAt?.stored)
            WHERE id = \(operation.id.uuid)
            """)
    }

    static func operation(from row: PostgresRow) throws -> PaymentOperation {
        let (
            id, kind, checkout, charge, instrument, execution, workflowCode, key, state, minor, code, isFinal,
            intentReason, actionID,
            reason, attempts, createdAt, sentAt
        ) = try row.decode(
            (
                UUID, String, UUID?, UUID?, UUID?, UUID?, String, UUID, String, Int64?, String?, Bool?, String?,
                String?, String?, Int,
                PostgresTimestamp, PostgresTimestamp?
            ).self)
        return PaymentOperation(
            id: OperationID(id), kind: try legal(kind, "operations"),
            owner: checkout.map { ExecutionOwner.checkout(CheckoutID($0)) } ?? charge.map { .charge(ChargeID($0)) },
            execution: execution.map { ExecutionReference(id: ExecutionID($0), workflowCode: workflowCode) },
            key: IdempotencyKey(key), instrument: instrument.map { InstrumentID($0) },
            state: try legal(state, "operations"),
            amount: try .optional(minor: minor, code: code, table: "operations"), isFinalCapture: isFinal,
            intentReason: intentReason, actionID: actionID, reason: reason, attempts: attempts,
            createdAt: createdAt.timestamp, sentAt: sentAt?.timestamp)
    }

    /// When an operation is looked at again after `attempts` tries without an answer.
    func nextLook(after attempts: Int) -> Timestamp {
        now + policy.healing.unknown.delay(before: max(0, attempts - 1), jitter: .random(in: 0...255))
    }
}

extension ExecutionOwner {
    /// Where its id stands in `executions` and `operations`.
    var column: String {
        switch self {
        case .checkout: "checkout_id"
        case .charge: "charge_id"
        }
    }

    var uuid: UUID {
        switch self {
        case .checkout(let id): id.uuid
        case .charge(let id): id.uuid
        }
    }
}
