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
    /// The status that the shop was told of, by the dispute's id.
    let storedDisputes: [String: String]
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
    private static let columns = """
        checkout_id, charge_id, id, ordinal, workflow_code, merchant_reference, state, amount_minor, currency, \
        cancel_reason, cancel_reported, created_at, authorized_minor, captured_minor, refunded_minor, checks, check_at, \
        changed_at, told_disputes::text
        """

    /// The executions of a checkout with all their facts, by ordinal. The checkout's lock protects them.
    func readExecutions(of checkout: CheckoutID) async throws -> [StoredExecution] {
        try await readExecutions(of: .checkout(checkout))
    }

    /// The same for whatever they are for.
    func readExecutions(of owner: ExecutionOwner) async throws -> [StoredExecution] {
        try await readExecutions(of: [owner])[owner] ?? []
    }

    /// The same for many, in one round trip.
    func readExecutions(of owners: [ExecutionOwner]) async throws -> [ExecutionOwner: [StoredExecution]] {
        var executions: [ExecutionOwner: [StoredExecution]] = [:]
        let kinds = owners.byColumn
        let results = try await pipeline(
            kinds.flatMap { [Self.executionsQuery($0.column, $0.ids), Self.factsQuery($0.column, $0.ids)] })
        for index in kinds.indices {
            try Self.collect(results[2 * index], facts: results[2 * index + 1], into: &executions)
        }
        return executions
    }

    /// - Parameter column: `checkout_id` or `charge_id`.
    static func executionsQuery(_ column: String, _ owners: [UUID]) -> PostgresQuery {
        """
        SELECT \(unescaped: columns) FROM executions
        WHERE \(unescaped: column) = ANY(\(owners)) ORDER BY \(unescaped: column), ordinal
        """
    }

    /// All executions of the checkout that one of them belongs to.
    static func executionsQuery(beside execution: ExecutionID) -> PostgresQuery {
        """
        SELECT \(unescaped: columns) FROM executions
        WHERE checkout_id = (SELECT checkout_id FROM executions WHERE id = \(execution.uuid)) ORDER BY ordinal
        """
    }

    /// What ``executionsQuery(_:_:)`` and ``factsQuery(_:_:)`` found, by owner.
    static func collect(
        _ rows: PostgresRows, facts: PostgresRows, into executions: inout [ExecutionOwner: [StoredExecution]]
    ) throws {
        let facts = try Self.facts(from: facts)
        for row in rows {
            guard let (owner, execution) = try execution(from: row, facts: facts) else { continue }
            executions[owner, default: []].append(execution)
        }
    }

    static func execution(
        from row: PostgresRow, facts all: [ExecutionID: [LearnedFact]]
    ) throws -> (ExecutionOwner, StoredExecution)? {
        let (
            checkout, charge, id, ordinal, workflowCode, reference, state, minor, code, cancelReason, cancelReported,
            createdAt,
            authorized, captured, refunded, checks, checkAt, changedAt, disputes
        ) = try row.decode(
            (
                UUID?, UUID?, UUID, Int, String, String, String, Int64, String, String?, Bool, PostgresTimestamp,
                Int64?, Int64?, Int64?, Int, PostgresTimestamp?, PostgresTimestamp, String?
            ).self)
        guard let owner = ExecutionOwner(checkout: checkout, charge: charge) else { return nil }
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
            storedRefundedMinor: refunded, storedDisputes: try disputes.map(Self.disputes(from:)) ?? [:],
            checks: checks, checkAt: checkAt?.timestamp,
            changedAt: changedAt.timestamp, facts: facts)
        return (owner, execution)
    }

    private static func disputes(from text: String) throws -> [String: String] {
        guard let members = try? JSON(parsing: Data(text.utf8)).object else {
            throw CorruptRow(table: "executions", detail: "told_disputes is no object")
        }
        return members.compactMapValues { $0.string }
    }

    /// What an execution is for; nil for one that isn't ours, or isn't known yet.
    func owner(of execution: ExecutionID) async throws -> ExecutionOwner? {
        try await owners(of: [execution])[execution]
    }

    /// The checkout that an execution belongs to; nil also for one of a charge.
    func checkout(of execution: ExecutionID) async throws -> CheckoutID? {
        if case .checkout(let id) = try await owner(of: execution) { id } else { nil }
    }

    /// The same for many; those that aren't known are left out.
    func owners(of executions: some Collection<ExecutionID>) async throws -> [ExecutionID: ExecutionOwner] {
        executions.isEmpty ? [:] : try Self.owners(from: try await query(Self.ownersQuery(executions)))
    }

    static func ownersQuery(_ executions: some Collection<ExecutionID>) -> PostgresQuery {
        "SELECT id, checkout_id, charge_id FROM executions WHERE id = ANY(\(executions.map(\.uuid)))"
    }

    /// What ``ownersQuery(_:)`` found.
    static func owners(from rows: PostgresRows) throws -> [ExecutionID: ExecutionOwner] {
        var owners: [ExecutionID: ExecutionOwner] = [:]
        for row in rows {
            let (id, checkout, charge) = try row.decode((UUID, UUID?, UUID?).self)
            owners[ExecutionID(id)] = ExecutionOwner(checkout: checkout, charge: charge)
        }
        return owners
    }

    /// Makes an execution known. Again for the same one: nothing.
    func insertExecution(
        _ reference: ExecutionReference, owner: ExecutionOwner, ordinal: Int, merchantReference: String, amount: Money,
        payload: InitPayload?
    ) async throws {
        let new = NewExecution(
            reference: reference, owner: owner, ordinal: ordinal, merchantReference: merchantReference, amount: amount,
            payload: payload)
        _ = try await pipeline(insertQueries([new]))
    }

    struct NewExecution {
        let reference: ExecutionReference
        let owner: ExecutionOwner
        let ordinal: Int
        let merchantReference: String
        let amount: Money
        var payload: InitPayload?
        /// When it is asked about first, where that is known already.
        var checkAt: Timestamp?
    }

    /// The same for many.
    func insertQueries(_ new: [NewExecution]) -> [PostgresQuery] {
        guard !new.isEmpty else { return [] }
        return [
            """
            INSERT INTO executions (id, checkout_id, charge_id, ordinal, workflow_code, merchant_reference, state,
                amount_minor, currency, init_version, init_data, check_at, created_at, changed_at)
            SELECT new.id, new.checkout_id, new.charge_id, new.ordinal, new.workflow_code, new.merchant_reference,
                'created', new.amount_minor, new.currency, new.init_version, new.init_data, new.check_at,
                \(now.stored), \(now.stored)
            FROM unnest(\(new.map(\.reference.id.uuid)), \(new.map { $0.owner.checkout?.uuid }),
                \(new.map { $0.owner.charge?.uuid }), \(new.map(\.ordinal)), \(new.map(\.reference.workflowCode)),
                \(new.map(\.merchantReference)), \(new.map(\.amount.minor)), \(new.map(\.amount.currency.code)),
                \(new.map { $0.payload?.version }), \(new.map { $0.payload?.data.reveal }),
                \(new.map { $0.checkAt?.stored }))
                AS new(id, checkout_id, charge_id, ordinal, workflow_code, merchant_reference, amount_minor, currency,
                    init_version, init_data, check_at)
            ON CONFLICT (id) DO NOTHING
            """,
            // What was told about it before it was known has waited for this moment.
            """
            UPDATE notification_outcomes SET state = 'applied', applied_at = \(now.stored)
            WHERE execution_id = ANY(\(new.map(\.reference.id.uuid))) AND state = 'parked'
            """,
        ]
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

extension ExecutionOwner {
    var checkout: CheckoutID? { if case .checkout(let id) = self { id } else { nil } }
    var charge: ChargeID? { if case .charge(let id) = self { id } else { nil } }

    /// From `checkout_id` and `charge_id`; nil where both are empty.
    init?(checkout: UUID?, charge: UUID?) {
        if let checkout {
            self = .checkout(CheckoutID(checkout))
        } else if let charge {
            self = .charge(ChargeID(charge))
        } else {
            return nil
        }
    }
}

extension Collection<ExecutionOwner> {
    var checkouts: [CheckoutID] { compactMap(\.checkout) }
    var charges: [ChargeID] { compactMap(\.charge) }

    /// The ids of each kind that there is, with the column that they are in.
    var byColumn: [(column: String, ids: [UUID])] {
        [("checkout_id", checkouts.map(\.uuid)), ("charge_id", charges.map(\.uuid))].filter { !$0.1.isEmpty }
            .map { (column: $0.0, ids: $0.1) }
    }
}
