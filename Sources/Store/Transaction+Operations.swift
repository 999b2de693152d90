import Basics
import Foundation
import Lockstep
import Postgres

extension Transaction {
    static let operationColumns = """
        id, kind, checkout_id, charge_id, instrument_id, execution_id, workflow_code, idempotency_key, state, \
        amount_minor, currency, final_capture, basket_version, intent_reason, action_id, reason, attempts, created_at, \
        sent_at
        """

    /// Writes an intent down before anything is sent (invariant M12).
    ///
    /// - Parameters:
    ///   - owner: who sends it now; nil leaves it to a worker at once.
    ///   - ordinal: the number of the session that a `createSession` makes.
    func insertOperation(
        _ operation: PaymentOperation, workflowCode: String, owner: UUID?, ordinal: Int? = nil,
        request: PaymentStore.RequestIdentity? = nil
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
                \(request?.credential), \(request?.key), \(operation.basketVersion), \(ordinal), \(now.stored), \(owner == nil ? nil : now.stored),
                \(owner == nil ? 0 : 1), \(owner), \(leaseUntil?.stored), \((leaseUntil ?? now).stored))
            """)
    }

    /// An operation that is sent by whoever writes it down.
    struct SentOperation {
        let operation: PaymentOperation
        let workflowCode: String
        let ordinal: Int
        let owner: UUID
    }

    /// Many of those, of charges.
    func insertSent(_ rows: [SentOperation]) -> PostgresQuery? {
        guard !rows.isEmpty else { return nil }
        let operations = rows.map(\.operation)
        let until = (now + policy.lease).stored
        return """
            INSERT INTO operations (id, kind, charge_id, execution_id, workflow_code, idempotency_key, state,
                amount_minor, currency, ordinal, created_at, sent_at, attempts, lease_owner, lease_until, due_at)
            SELECT new.id, new.kind, new.charge_id, new.execution_id, new.workflow_code, new.idempotency_key, 'sent',
                new.amount_minor, new.currency, new.ordinal, \(now.stored), \(now.stored), 1, new.owner, \(until),
                \(until)
            FROM unnest(\(operations.map(\.id.uuid)), \(operations.map(\.kind.rawValue)),
                \(operations.map { $0.charge?.uuid }), \(operations.map { $0.execution?.id.uuid }),
                \(rows.map(\.workflowCode)), \(operations.map(\.key.uuid)), \(operations.map { $0.amount?.minor }),
                \(operations.map { $0.amount?.currency.code }), \(rows.map(\.ordinal)), \(rows.map(\.owner)))
                AS new(id, kind, charge_id, execution_id, workflow_code, idempotency_key, amount_minor, currency,
                    ordinal, owner)
            """
    }

    static func lockQuery(_ ids: [OperationID]) -> PostgresQuery {
        """
        SELECT \(unescaped: operationColumns) FROM operations
        WHERE id = ANY(\(ids.map(\.uuid))) ORDER BY id FOR UPDATE
        """
    }

    /// What became of many, and when each is looked at next. Their leases end.
    func updateQuery(_ rows: [(operation: PaymentOperation, dueAt: Timestamp?)]) -> PostgresQuery? {
        guard !rows.isEmpty else { return nil }
        let operations = rows.map(\.operation)
        return """
            UPDATE operations SET state = new.state, idempotency_key = new.idempotency_key,
                action_id = new.action_id, reason = new.reason, attempts = new.attempts,
                execution_id = new.execution_id, sent_at = new.sent_at, finished_at = new.finished_at,
                lease_owner = NULL, lease_until = NULL, due_at = new.due_at
            FROM unnest(\(operations.map(\.id.uuid)), \(operations.map(\.state.rawValue)),
                \(operations.map(\.key.uuid)), \(operations.map(\.actionID)), \(operations.map(\.reason)),
                \(operations.map(\.attempts)), \(operations.map { $0.execution?.id.uuid }),
                \(operations.map { $0.sentAt?.stored }), \(operations.map { $0.state.isFinal ? now.stored : nil }),
                \(rows.map { $0.operation.state.isFinal ? nil : $0.dueAt?.stored }))
                AS new(id, state, idempotency_key, action_id, reason, attempts, execution_id, sent_at, finished_at,
                    due_at)
            WHERE operations.id = new.id
            """
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
    ///
    /// - Parameter column: which of the two the owners are in: `checkout_id` or `charge_id`.
    static func operationsQuery(_ column: String, _ owners: [UUID]) -> PostgresQuery {
        """
        SELECT \(unescaped: operationColumns) FROM operations
        WHERE \(unescaped: column) = ANY(\(owners)) AND state <> 'failed' ORDER BY created_at, id
        """
    }

    func readOperationsThatMatter(of owner: ExecutionOwner) async throws -> [PaymentOperation] {
        try await query(Self.operationsQuery(owner.column, [owner.uuid])).map(Self.operation(from:))
    }

    /// Writes what became of an operation, and when it is looked at next. Its lease ends.
    func writeOperation(_ operation: PaymentOperation, dueAt: Timestamp?) async throws {
        if let query = updateQuery([(operation, dueAt)]) { _ = try await self.query(query) }
    }

    static func operation(from row: PostgresRow) throws -> PaymentOperation {
        let (
            id, kind, checkout, charge, instrument, execution, workflowCode, key, state, minor, code, isFinal,
            basketVersion, intentReason, actionID,
            reason, attempts, createdAt, sentAt
        ) = try row.decode(
            (
                UUID, String, UUID?, UUID?, UUID?, UUID?, String, UUID, String, Int64?, String?, Bool?, String?,
                String?, String?, String?, Int,
                PostgresTimestamp, PostgresTimestamp?
            ).self)
        return PaymentOperation(
            id: OperationID(id), kind: try legal(kind, "operations"),
            owner: checkout.map { ExecutionOwner.checkout(CheckoutID($0)) } ?? charge.map { .charge(ChargeID($0)) },
            execution: execution.map { ExecutionReference(id: ExecutionID($0), workflowCode: workflowCode) },
            key: IdempotencyKey(key), instrument: instrument.map { InstrumentID($0) },
            state: try legal(state, "operations"),
            amount: try .optional(minor: minor, code: code, table: "operations"), isFinalCapture: isFinal,
            basketVersion: basketVersion, intentReason: intentReason, actionID: actionID, reason: reason,
            attempts: attempts,
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
