import Basics
import Foundation
import Lockstep
import Postgres

extension PaymentStore {
    public func readCheckout(_ id: CheckoutID) async throws -> ReadCheckout? {
        try await transact { transaction in
            guard let checkout = try await transaction.readCheckout(id) else { return nil }
            return try await transaction.view(checkout)
        }
    }

    public func readCheckout(merchantReference: String) async throws -> ReadCheckout? {
        try await transact { transaction in
            guard let checkout = try await transaction.readCheckout(merchantReference: merchantReference) else {
                return nil
            }
            return try await transaction.view(checkout)
        }
    }

    /// The checkout that an execution belongs to.
    public func checkout(of execution: ExecutionID) async throws -> CheckoutID? {
        try await transact { try await $0.checkout(of: execution) }
    }

    public enum Cancellation: Sendable {
        case cancelled(SettledCheckout)
        case alreadyPaid
        case notFound
        /// Ask the provider about these first: a payment runs on them.
        case askFirst([ExecutionReference])
    }

    /// The shop gives the order up: nothing can be paid any more, open executions are cancelled.
    public func cancelCheckout(_ id: CheckoutID, hasAsked: Bool) async throws -> Cancellation {
        try await transact { transaction in
            guard var checkout = try await transaction.lockCheckout(id) else { return .notFound }
            let executions = try await transaction.readExecutions(of: id).map(\.execution)
            if checkout.status == .cancelled {
                return .cancelled(SettledCheckout(checkout: checkout, executions: executions))
            }
            if checkout.wasPaid { return .alreadyPaid }
            let running = executions.filter(\.state.isInFlight)
            if !hasAsked, !running.isEmpty { return .askFirst(running.map(\.reference)) }
            checkout.status = .cancelled
            checkout.lease = nil
            for execution in executions where execution.cancelReason == nil {
                if execution.state.isInFlight || execution.state == .created {
                    try await transaction.planCancel(of: execution.reference, checkout: id)
                }
            }
            return .cancelled(try await transaction.settle(checkout, announcing: [.checkoutCancelled]))
        }
    }
}

/// A checkout as it is read: with the payload where the app can still use it.
public struct ReadCheckout: Sendable {
    public let settled: SettledCheckout
    public let payload: InitPayload?
    public let awaited: [AwaitedExecution]
    public var checkout: Checkout { settled.checkout }
}

extension Transaction {
    /// Writes down that an execution of an order that was given up is cancelled; a worker sends it.
    func planCancel(of execution: ExecutionReference, checkout: CheckoutID) async throws {
        let reason = CancelReason.checkoutCancelled.rawValue
        _ = try await pipeline([
            "UPDATE executions SET cancel_reason = \(reason) WHERE id = \(execution.id.uuid)",
            """
            INSERT INTO operations (id, kind, checkout_id, execution_id, workflow_code, idempotency_key, state,
                intent_reason, created_at, due_at)
            VALUES (\(identifiers.next()), 'cancel', \(checkout.uuid), \(execution.id.uuid),
                \(execution.workflowCode), \(identifiers.next()), 'prepared', \(reason), \(now.stored),
                \(now.stored))
            ON CONFLICT (execution_id) WHERE kind = 'cancel' AND finished_at IS NULL DO NOTHING
            """,
        ])
    }

    func view(_ checkout: Checkout) async throws -> ReadCheckout {
        let stored = try await readExecutions(of: checkout.id)
        let executions = stored.map(\.execution)
        var payload: InitPayload?
        if let current = executions.first(where: { $0.id == checkout.currentExecution }), current.state == .created,
            checkout.amountState == .inStep, current.amount == checkout.amount,
            now < current.createdAt + policy.initFresh, checkout.status == .open
        {
            payload = try await readPayload(of: current.id)
        }
        return ReadCheckout(
            settled: SettledCheckout(checkout: checkout, executions: executions), payload: payload,
            awaited: stored.compactMap { stored in
                let lease = checkout.lease.flatMap { $0.execution == stored.execution.id ? $0 : nil }
                return stored.awaited(letThroughAt: lease.map { $0.until - policy.gateLease })
            })
    }
}
