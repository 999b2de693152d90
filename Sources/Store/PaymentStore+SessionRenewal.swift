import Basics
import Foundation
import Lockstep
import Postgres

extension PaymentStore {
    public enum SessionAnswer: Sendable {
        /// The app's payload is still good.
        case ready(ReadySession)
        /// Ask the provider what became of this one, then come back and say so.
        case askFirst(ExecutionReference)
        /// Written down; create the session now.
        case planned(PlannedSession)
        case busy
        case notFound
        case refused(SessionRefusal)
    }

    public enum SessionRefusal: Sendable { case alreadyPaid, cancelled, expired, amountMoving, amountUnconfirmed }

    /// What to hand to an app that asks for a session: the same init while it is fresh and untouched, a new execution
    /// at the confirmed amount otherwise.
    ///
    /// - Parameters:
    ///   - isExpired: the SDK reported the session as expired, so a new one is made in any case.
    ///   - asked: the executions about which the provider was asked just now.
    public func renewSession(
        of id: CheckoutID, isExpired: Bool, asked: Set<ExecutionID>, owner: UUID
    ) async throws -> SessionAnswer {
        try await transact { transaction in
            guard var checkout = try await transaction.lockCheckout(id) else { return .notFound }
            if let refusal = transaction.sessionRefusal(checkout) { return .refused(refusal) }
            let executions = try await transaction.readExecutions(of: id)
            let operations = try await transaction.readOpenOperations(of: .checkout(id))
            if operations.contains(where: { $0.kind == .createSession }) {
                return try await transaction.resumeSession(of: checkout, owner: owner).map(SessionAnswer.planned)
                    ?? .busy
            }
            // A change that only waits for a payment to end: whoever asks for a session may have given that payment up.
            let held = operations.first { $0.kind == .moveAmount && $0.isHeldByPayment }
            switch checkout.amountState {
            case .unknown where held != nil: break
            case .inStep: break
            case .moving: return .refused(.amountMoving)
            case .unknown: return .refused(.amountUnconfirmed)
            }
            // One that may have paid, whichever it is, is looked into: nobody is asked to pay again before that is known.
            if let paid = executions.first(where: \.execution.mayHavePaid) {
                return asked.contains(paid.execution.id) ? .busy : .askFirst(paid.execution.reference)
            }
            if let current = executions.first(where: { $0.execution.id == checkout.currentExecution }) {
                let isUsable =
                    current.execution.state == .created && current.execution.amount == checkout.amount
                    && transaction.now < current.execution.createdAt + policy.initFresh
                if !isExpired, isUsable, let payload = try await transaction.readPayload(of: current.execution.id) {
                    let settled = SettledCheckout(checkout: checkout, executions: executions.map(\.execution))
                    return .ready(ReadySession(settled: settled, payload: payload, execution: current.execution.id))
                }
                guard asked.contains(current.execution.id) else { return .askFirst(current.execution.reference) }
                // It may hold the customer's money, and the provider itself doesn't know.
                guard !current.execution.picture.hidesCharge else { return .busy }
                if let held {
                    guard current.execution.state.isInFlight else {
                        // The payment has ended: at the next look the change is settled, and that is now.
                        if let free = try await transaction.lockOperation(held.id), free.isHeldByPayment {
                            try await transaction.writeOperation(free, dueAt: transaction.now)
                        }
                        return .refused(.amountUnconfirmed)
                    }
                    checkout = try await transaction.giveUp(held, of: checkout)
                    // Without the change, an older session's success may be what pays.
                    if let refusal = transaction.sessionRefusal(checkout) { return .refused(refusal) }
                }
                // Facts show that no attempt runs on it, so it doesn't hold the basket any longer.
                if current.execution.state != .processing, checkout.lease != nil {
                    checkout.lease = nil
                    try await transaction.settle(checkout)
                }
            }
            return .planned(try await transaction.planSession(of: checkout, owner: owner))
        }
    }

    /// Nobody knows whether the provider created the session. A worker, or the same request, goes on with it.
    public func doubtSession(_ planned: PlannedSession, _ doubt: Doubt) async throws {
        try await transact { transaction in
            guard var operation = try await transaction.lockOperation(planned.operation.id), !operation.state.isFinal,
                !operation.wasTaken(since: planned.operation)
            else { return }
            operation.state = .unknown
            operation.reason = doubt.kind.rawValue
            try await transaction.writeOperation(operation, dueAt: transaction.nextLook(after: operation.attempts))
        }
    }

    /// The provider keeps a 5xx under the session's key and a look showed that nothing was created: a new key.
    public func rekeySession(_ planned: PlannedSession, owner: UUID) async throws -> PlannedSession? {
        try await transact { transaction in
            guard let checkout = try await transaction.lockCheckout(planned.checkout.id),
                var operation = try await transaction.lockOperation(planned.operation.id), !operation.state.isFinal,
                !operation.wasTaken(since: planned.operation)
            else { return nil }
            operation.key = IdempotencyKey(identifiers.next())
            operation.state = .unknown
            try await transaction.writeOperation(operation, dueAt: transaction.now)
            return try await transaction.resumeSession(of: checkout, owner: owner)
        }
    }

    /// The provider has the execution, but its payload is lost (a stored 5xx hides it): it becomes known as superseded,
    /// so that a payment of it would be seen, and another session is planned in its place.
    public func adoptExecution(
        _ snapshot: ExecutionSnapshot, insteadOf planned: PlannedSession, owner: UUID
    ) async throws -> PlannedSession? {
        try await transact { transaction in
            try await transaction.lockFacts(of: snapshot.reference.id)
            guard let checkout = try await transaction.lockCheckout(planned.checkout.id),
                var operation = try await transaction.lockOperation(planned.operation.id), !operation.state.isFinal,
                !operation.wasTaken(since: planned.operation)
            else { return nil }
            let ordinal = try await transaction.ordinal(of: operation.id)
            try await transaction.insertExecution(
                snapshot.reference, owner: .checkout(checkout.id), ordinal: ordinal,
                merchantReference: planned.request.merchantReference,
                amount: snapshot.amount ?? planned.request.amount, payload: nil)
            _ = try await transaction.insertFacts(snapshot.facts, of: snapshot.reference.id)
            operation.state = .succeeded
            operation.execution = snapshot.reference
            try await transaction.writeOperation(operation, dueAt: nil)
            try await transaction.settle(checkout)
            guard let settled = try await transaction.lockCheckout(checkout.id),
                transaction.sessionRefusal(settled) == nil
            else { return nil }
            return try await transaction.planSession(of: settled, owner: owner)
        }
    }
}

extension Transaction {
    /// Ends a change of the amount whose execution is about to be superseded: the next one is made at the confirmed amount,
    /// and what this one has no longer matters.
    fileprivate func giveUp(_ move: PaymentOperation, of checkout: Checkout) async throws -> Checkout {
        guard var operation = try await lockOperation(move.id), let execution = operation.execution?.id,
            let amount = operation.amount
        else { throw CorruptRow(table: "operations", detail: "a change without an execution or an amount") }
        operation.state = .failed
        operation.reason = PaymentOperation.heldByPayment
        try await writeOperation(operation, dueAt: nil)
        // It was seen there.
        try await writeExecutionAmount(amount, of: execution)
        try await insertEvent(
            .operationFailed, checkout: checkout.id, execution: execution, data: ["operation": operation.json])
        var checkout = checkout
        checkout.amountState = .inStep
        return try await settle(checkout).checkout
    }

    /// Why the order can't get another session, whoever asks.
    func sessionRefusal(_ checkout: Checkout) -> PaymentStore.SessionRefusal? {
        if checkout.status == .cancelled { return .cancelled }
        if checkout.wasPaid { return .alreadyPaid }
        if checkout.status == .expired || now >= checkout.expiresAt { return .expired }
        return nil
    }
}
