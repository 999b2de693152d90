import Basics
import Foundation
import Lockstep
import Postgres

/// A checkout as it stands after a settlement.
public struct SettledCheckout: Sendable {
    public let checkout: Checkout
    public let executions: [CheckoutExecution]

    public var json: JSON { checkout.json(executions: executions) }
}

extension Transaction {
    /// Makes true what the facts mean: the one place where a checkout's status, its executions' states, the results of
    /// its operations and the events about them are written. The caller holds the checkout's lock.
    ///
    /// - Parameter announcing: events of the caller's own change.
    @discardableResult
    func settle(_ checkout: Checkout, announcing: [EventType] = []) async throws -> SettledCheckout {
        let holdings = try await readHoldings(of: [checkout.id])
        var changes = SettlementChanges(now: now, policy: policy, identifiers: identifiers)
        let settled = changes.settle(checkout, holdings[checkout.id] ?? CheckoutHoldings(), announcing: announcing)
        try await write(changes)
        return settled
    }

    /// The same for many at once, in as many statements as for one.
    func settle(_ checkouts: [Checkout]) async throws {
        guard !checkouts.isEmpty else { return }
        let holdings = try await readHoldings(of: checkouts.map(\.id))
        var changes = SettlementChanges(now: now, policy: policy, identifiers: identifiers)
        for checkout in checkouts {
            _ = changes.settle(checkout, holdings[checkout.id] ?? CheckoutHoldings(), announcing: [])
        }
        try await write(changes)
    }

    func readHoldings(of checkouts: [CheckoutID]) async throws -> [CheckoutID: CheckoutHoldings] {
        var holdings: [CheckoutID: CheckoutHoldings] = [:]
        for (id, executions) in try await readExecutions(of: checkouts) {
            holdings[id, default: CheckoutHoldings()].executions = executions
        }
        let results = try await pipeline([Self.operationsQuery(checkouts), Self.discrepanciesQuery(checkouts)])
        for operation in try results[0].map(Self.operation(from:)) {
            guard let id = operation.checkout else { continue }
            if !operation.state.isFinal { holdings[id, default: CheckoutHoldings()].operations.append(operation) }
            guard operation.state != .failed, let execution = operation.execution?.id else { continue }
            if operation.kind == .cancel { holdings[id, default: CheckoutHoldings()].cancelled.insert(execution) }
            holdings[id, default: CheckoutHoldings()].actions.account(for: operation)
        }
        for row in results[1] {
            let (id, discrepancy) = try Self.discrepancy(from: row)
            if let id { holdings[id, default: CheckoutHoldings()].discrepancies.append(discrepancy) }
        }
        return holdings
    }

    /// Writes all that was decided: one statement for each kind of row, all in one round trip.
    private func write(_ changes: SettlementChanges) async throws {
        var queries: [PostgresQuery] = []
        if let query = update(changes.checkouts) { queries.append(query) }
        if let query = update(changes.executions) { queries.append(query) }
        for (execution, amount) in changes.amounts {
            queries.append(
                """
                UPDATE executions SET amount_minor = \(amount.minor), currency = \(amount.currency.code),
                    init_version = NULL, init_data = NULL
                WHERE id = \(execution.uuid)
                """)
        }
        for operation in changes.finished {
            queries.append(
                """
                UPDATE operations SET state = \(operation.state.rawValue), action_id = \(operation.actionID),
                    reason = \(operation.reason), finished_at = \(now.stored), lease_owner = NULL, lease_until = NULL,
                    due_at = NULL
                WHERE id = \(operation.id.uuid)
                """)
        }
        for operation in changes.cancels {
            guard let execution = operation.execution else { continue }
            queries.append(
                """
                INSERT INTO operations (id, kind, checkout_id, execution_id, workflow_code, idempotency_key, state,
                    intent_reason, created_at, due_at)
                VALUES (\(operation.id.uuid), 'cancel', \(operation.checkout?.uuid), \(execution.id.uuid),
                    \(execution.workflowCode), \(operation.key.uuid), 'prepared', \(operation.intentReason),
                    \(now.stored), \(now.stored))
                """)
        }
        queries += write(opened: changes.opened, resolved: changes.resolved)
        if let query = insert(changes.events) { queries.append(query) }
        guard !queries.isEmpty else { return }
        _ = try await pipeline(queries)
    }

    private func update(_ rows: [SettlementChanges.CheckoutRow]) -> PostgresQuery? {
        guard !rows.isEmpty else { return nil }
        let checkouts = rows.map(\.checkout)
        return """
            UPDATE checkouts SET status = new.status, amount_minor = new.amount_minor, currency = new.currency,
                amount_version = new.amount_version, amount_state = new.amount_state,
                basket_version = new.basket_version, current_execution_id = new.current_execution_id,
                kept_execution_id = new.kept_execution_id, lease_execution_id = new.lease_execution_id,
                lease_until = new.lease_until, due_at = new.due_at
            FROM unnest(\(checkouts.map(\.id.uuid)), \(checkouts.map(\.status.rawValue)),
                \(checkouts.map(\.amount.minor)), \(checkouts.map(\.amount.currency.code)),
                \(checkouts.map(\.amountVersion)), \(checkouts.map(\.amountState.rawValue)),
                \(checkouts.map(\.basketVersion)), \(checkouts.map { $0.currentExecution?.uuid }),
                \(checkouts.map { $0.keptExecution?.uuid }), \(checkouts.map { $0.lease?.execution.uuid }),
                \(checkouts.map { $0.lease?.until.stored }), \(rows.map { $0.dueAt?.stored }))
                AS new(id, status, amount_minor, currency, amount_version, amount_state, basket_version,
                    current_execution_id, kept_execution_id, lease_execution_id, lease_until, due_at)
            WHERE checkouts.id = new.id
            """
    }

    private func update(_ rows: [SettlementChanges.ExecutionRow]) -> PostgresQuery? {
        guard !rows.isEmpty else { return nil }
        let executions = rows.map(\.execution)
        return """
            UPDATE executions SET state = new.state, authorized_minor = new.authorized,
                captured_minor = new.captured, refunded_minor = new.refunded, cancel_reason = new.cancel_reason,
                cancel_reported = new.cancel_reported, check_at = new.check_at,
                checks = CASE WHEN new.has_changed THEN 0 ELSE checks END,
                changed_at = CASE WHEN new.has_changed THEN \(now.stored) ELSE changed_at END
            FROM unnest(\(executions.map(\.id.uuid)), \(executions.map(\.state.rawValue)),
                \(executions.map { $0.picture.authorized?.minor }), \(executions.map { $0.picture.captured?.minor }),
                \(executions.map { $0.picture.refunded?.minor }), \(executions.map { $0.cancelReason?.rawValue }),
                \(executions.map(\.cancelReported)), \(rows.map { $0.checkAt?.stored }), \(rows.map(\.hasChanged)))
                AS new(id, state, authorized, captured, refunded, cancel_reason, cancel_reported, check_at, has_changed)
            WHERE executions.id = new.id
            """
    }

    private func insert(_ events: [SettlementChanges.Event]) -> PostgresQuery? {
        guard !events.isEmpty else { return nil }
        return """
            INSERT INTO events (id, type, scope, checkout_id, execution_id, data, time)
            SELECT new.id, new.type, new.scope, new.checkout_id, new.execution_id, new.data::jsonb, \(now.stored)
            FROM unnest(\(events.map { _ in identifiers.next() }), \(events.map(\.type.rawValue)),
                \(events.map(\.type.scope.rawValue)), \(events.map(\.checkout.uuid)),
                \(events.map { $0.execution?.uuid }), \(events.map(\.data.text)))
                WITH ORDINALITY AS new(id, type, scope, checkout_id, execution_id, data, place)
            ORDER BY new.place
            """
    }
}
