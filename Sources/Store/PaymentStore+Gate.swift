import Basics
import Foundation
import Lockstep
import Postgres

extension PaymentStore {
    /// What the books say about a question, before anybody else is asked.
    public enum GateFinding: Sendable {
        case refused(Gate.Reason)
        /// Nothing is against it.
        case passable(Checkout)
        /// Nothing is against it, and the lease that an earlier `proceed` took is still there.
        case leased(Checkout)
    }

    /// Looks at a question without taking anything: one round trip, no lock, no wait for anyone who holds one. It takes
    /// the same steps for an execution of somebody else's and for one that isn't there.
    ///
    /// - Parameters:
    ///   - checkout: the only checkout that the caller may ask about (a client token); nil for a merchant key.
    ///   - deadline: after which nobody waits for the answer any more.
    public func examineGate(
        _ question: Gate.Question, within checkout: CheckoutID?, deadline: ContinuousClock.Instant
    ) async throws -> GateFinding {
        try await look(deadline: deadline) { transaction in
            guard let (subject, execution) = try await transaction.readGateSubject(question.execution),
                checkout == nil || checkout == subject.id
            else { return .refused(.unknownExecution) }
            if let reason = Gate.refusal(of: question, checkout: subject, execution: execution, now: transaction.now) {
                return .refused(reason)
            }
            return subject.isLeased(to: execution.id, at: transaction.now) ? .leased(subject) : .passable(subject)
        }
    }

    /// Answers a question for good, and takes the basket's lease on a `proceed`. Looks at everything again, with the
    /// checkout's lock: since it was looked at, all of it may have changed.
    ///
    /// - Parameters:
    ///   - checkout: the execution's, as ``examineGate(_:within:deadline:)`` found it.
    ///   - approved: what the merchant's own check said yes to, where it was asked.
    /// - Returns: nil to proceed, or the reason against it.
    public func openGate(
        _ question: Gate.Question, of checkout: CheckoutID, approved: Gate.Basket?,
        deadline: ContinuousClock.Instant
    ) async throws -> Gate.Reason? {
        try await transact(deadline: deadline) { transaction in
            guard let (subject, execution) = try await transaction.lockGateSubject(question.execution, of: checkout)
            else { return .unknownExecution }
            let refusal = Gate.refusal(
                of: question, checkout: subject, execution: execution, approved: approved, now: transaction.now)
            if let refusal { return refusal }
            if !subject.isLeased(to: execution.id, at: transaction.now) {
                try await transaction.lease(subject.id, to: execution.id)
            }
            return nil
        }
    }
}

extension Checkout {
    fileprivate func isLeased(to execution: ExecutionID, at now: Timestamp) -> Bool {
        lease.map { $0.execution == execution && now < $0.until } ?? false
    }
}

extension Transaction {
    /// An execution with its facts and its checkout, in one round trip.
    fileprivate func readGateSubject(_ execution: ExecutionID) async throws -> (Checkout, CheckoutExecution)? {
        try await gateSubject(execution, Self.checkoutQuery(of: execution))
    }

    /// The same with the checkout locked. Each statement sees what was committed before it began, so that the facts are
    /// those of after the lock.
    fileprivate func lockGateSubject(
        _ execution: ExecutionID, of checkout: CheckoutID
    ) async throws -> (Checkout, CheckoutExecution)? {
        try await gateSubject(execution, Self.lockQuery(checkout))
    }

    private func gateSubject(
        _ execution: ExecutionID, _ checkoutQuery: PostgresQuery
    ) async throws -> (Checkout, CheckoutExecution)? {
        let results = try await connection.pipeline([
            checkoutQuery, Self.executionQuery(execution), Self.factsQuery(of: execution),
        ])
        guard let checkout = try results[0].first.map(Self.checkout(from:)), let row = results[1].first,
            let (owner, stored) = try Self.execution(from: row, facts: try Self.facts(from: results[2])),
            owner == .checkout(checkout.id)
        else { return nil }
        return (checkout, stored.execution)
    }

    /// Takes the basket's lease. Nothing else follows from it: no fact is new, and at its expiry the checkout is looked
    /// at in any case.
    fileprivate func lease(_ checkout: CheckoutID, to execution: ExecutionID) async throws {
        // A payment is about to start: if nothing is heard of it soon, ask.
        let look = now + policy.healing.pending.delay(before: 0, jitter: 0)
        _ = try await connection.pipeline([
            """
            UPDATE checkouts SET lease_execution_id = \(execution.uuid), lease_until = \((now + policy.gateLease).stored)
            WHERE id = \(checkout.uuid)
            """,
            "UPDATE executions SET check_at = \(look.stored) WHERE id = \(execution.uuid)",
        ])
    }
}
