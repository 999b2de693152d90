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
    @discardableResult
    func settle(_ checkout: Checkout) async throws -> SettledCheckout {
        var stored = try await readExecutions(of: checkout.id)
        var operations = try await readOpenOperations(of: checkout.id)
        let failures = try await settleOperations(&operations, executions: stored.map(\.execution))

        let move = operations.first { $0.kind == .moveAmount }
        let settlement = Settlement(
            of: checkout, executions: stored.map(\.execution), pendingMove: move?.amount, rules: policy.settlement,
            now: now)
        for effect in settlement.effects {
            try await perform(effect, on: settlement.checkout, executions: &stored, move: move)
        }
        try await writeCheckout(settlement.checkout, dueAt: settlement.dueAt)

        let settled = SettledCheckout(checkout: settlement.checkout, executions: stored.map(\.execution))
        for effect in settlement.effects {
            if case .event(let type) = effect { try await insertEvent(type, about: settled) }
        }
        for execution in stored { try await writeExecution(execution, of: settled.checkout) }
        for operation in failures {
            try await insertEvent(
                .operationFailed, checkout: checkout.id, execution: operation.execution?.id,
                data: ["operation": operation.json])
        }
        return settled
    }

    /// The operations that the facts decide; the failed ones are returned to be told.
    private func settleOperations(
        _ operations: inout [PaymentOperation], executions: [CheckoutExecution]
    ) async throws -> [PaymentOperation] {
        var failures: [PaymentOperation] = []
        for index in operations.indices {
            guard let execution = executions.first(where: { $0.id == operations[index].execution?.id }),
                let result = operations[index].result(in: execution.picture)
            else { continue }
            operations[index].state = result.state
            operations[index].reason = result.reason
            try await writeOperation(operations[index], dueAt: nil)
            if result.state == .failed { failures.append(operations[index]) }
        }
        operations.removeAll(where: \.state.isFinal)
        return failures
    }

    private func perform(
        _ effect: Settlement.Effect, on checkout: Checkout, executions: inout [StoredExecution],
        move: PaymentOperation?
    ) async throws {
        switch effect {
        case .cancel(let id, let reason):
            guard let index = executions.firstIndex(where: { $0.execution.id == id }) else { return }
            executions[index].execution.cancelReason = reason
            try await planCancel(of: executions[index].execution, checkout: checkout.id, reason: reason)
        case .cancelled(let id):
            guard let index = executions.firstIndex(where: { $0.execution.id == id }) else { return }
            executions[index].execution.cancelReported = true
        case .read(let id):
            _ = try await query("UPDATE executions SET check_at = \(now.stored) WHERE id = \(id.uuid)")
        case .amountMoved(let applied):
            guard var move else { return }
            move.state = applied ? .succeeded : .failed
            move.reason = applied ? nil : "the payment was authorized for the amount before"
            try await writeOperation(move, dueAt: nil)
            if applied, let id = checkout.currentExecution {
                try await writeExecutionAmount(checkout.amount, of: id)
            }
        case .held, .event: break
        }
    }

    /// Writes the cancel of an execution down for a worker; at most one is ever open for an execution.
    func planCancel(of execution: CheckoutExecution, checkout: CheckoutID, reason: CancelReason) async throws {
        _ = try await query(
            "UPDATE executions SET cancel_reason = \(reason.rawValue) WHERE id = \(execution.id.uuid)")
        let exists = try await query(
            """
            SELECT 1 AS one FROM operations
            WHERE execution_id = \(execution.id.uuid) AND kind = 'cancel' AND state <> 'failed'
            """)
        guard exists.isEmpty else { return }
        let operation = PaymentOperation(
            id: OperationID(identifiers.next()), kind: .cancel, checkout: checkout, execution: execution.reference,
            key: IdempotencyKey(identifiers.next()), intentReason: reason.rawValue, createdAt: now)
        try await insertOperation(operation, workflowCode: execution.reference.workflowCode, owner: nil)
    }

    /// Writes what the facts say about an execution, and tells what changed.
    private func writeExecution(_ stored: StoredExecution, of checkout: Checkout) async throws {
        let execution = stored.execution
        let picture = execution.picture
        let captured = picture.captured?.minor
        let refunded = picture.refunded?.minor
        let hasChanged =
            stored.storedState != picture.state || stored.storedAuthorizedMinor != picture.authorized?.minor
            || stored.storedCapturedMinor != captured || stored.storedRefundedMinor != refunded
        let hasLease = checkout.lease?.execution == execution.id
        var checkAt = stored.checkAt
        if hasChanged || (checkAt == nil && stored.checks == 0) {
            checkAt = policy.healing.next(
                for: picture.state, checks: 0, changedAt: now, hasLease: hasLease, now: now,
                jitter: .random(in: 0...255))
        }
        _ = try await query(
            """
            UPDATE executions SET state = \(picture.state.rawValue), authorized_minor = \(picture.authorized?.minor),
                captured_minor = \(captured), refunded_minor = \(refunded),
                cancel_reported = \(execution.cancelReported), check_at = \(checkAt?.stored),
                checks = CASE WHEN \(hasChanged) THEN 0 ELSE checks END,
                changed_at = CASE WHEN \(hasChanged) THEN \(now.stored) ELSE changed_at END
            WHERE id = \(execution.id.uuid)
            """)
        guard hasChanged else { return }
        var types: [EventType] = []
        if (captured ?? 0) > (stored.storedCapturedMinor ?? 0) { types.append(.executionCaptured) }
        if picture.state == .cancelled, stored.storedState != .cancelled { types.append(.executionCancelled) }
        if (refunded ?? 0) > (stored.storedRefundedMinor ?? 0), picture.state != .cancelled {
            types.append(.executionRefunded)
        }
        for type in types {
            try await insertEvent(
                type, checkout: checkout.id, execution: execution.id,
                data: ["execution": execution.json(checkout: checkout.id, facts: stored.facts)])
        }
    }
}
