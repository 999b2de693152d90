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
            guard let (subject, executions) = try await transaction.readGateSubject(question.execution),
                checkout == nil || checkout == subject.id
            else { return .refused(.unknownExecution) }
            if let reason = question.refusal(by: subject, executions, now: transaction.now) { return .refused(reason) }
            return subject.isLeased(to: question.execution, at: transaction.now)
                ? .leased(subject) : .passable(subject)
        }
    }

    /// A question to which the answer so far is yes.
    public struct GateOpening: Sendable {
        public let question: Gate.Question
        /// The execution's, as ``examineGate(_:within:deadline:)`` found it.
        public let checkout: CheckoutID
        /// What the merchant's own check said yes to, where it was asked.
        public let approved: Gate.Basket?
        /// After which nobody waits for the answer any more.
        public let deadline: ContinuousClock.Instant

        public init(
            question: Gate.Question, checkout: CheckoutID, approved: Gate.Basket?, deadline: ContinuousClock.Instant
        ) {
            self.question = question
            self.checkout = checkout
            self.approved = approved
            self.deadline = deadline
        }
    }

    public enum GateVerdict: Sendable {
        /// The lease is taken.
        case proceed
        case refused(Gate.Reason)
        /// Somebody else holds the checkout: whoever wants to know must wait for them.
        case busy
    }

    /// Answers questions for good, and takes the basket's lease on each `proceed`. Looks at everything again, with the
    /// checkout's lock: since it was looked at, all of it may have changed.
    ///
    /// All of them share a transaction, and so its round trips and its commit.
    ///
    /// - Parameter waits: whether to wait for those who hold one of the checkouts; many together shouldn't.
    /// - Returns: as many as there are openings, in their order.
    public func openGates(_ openings: [GateOpening], waits: Bool) async -> [Result<GateVerdict, any Error>] {
        // By the latest deadline: one that has little time left must not take the others'.
        await together(openings, deadline: openings.map(\.deadline).max()) { transaction, openings in
            let subjects = try await transaction.lockGateSubjects(openings.map(\.checkout), waits: waits)
            var checkouts = subjects.checkouts
            var leases: [CheckoutID: ExecutionID] = [:]
            let verdicts = openings.map { opening in
                // Whoever asked has been refused meanwhile, and a lease would only keep the basket from them.
                guard opening.deadline > .now else { return GateVerdict.refused(.internal) }
                guard let checkout = checkouts[opening.checkout] else {
                    return waits ? .refused(.unknownExecution) : .busy
                }
                let executions = subjects.executions[.checkout(checkout.id)] ?? []
                let refusal = opening.question.refusal(
                    by: checkout, executions, approved: opening.approved, now: transaction.now)
                if let refusal { return .refused(refusal) }
                let execution = opening.question.execution
                if !checkout.isLeased(to: execution, at: transaction.now) {
                    checkouts[checkout.id]?.lease = transaction.newLease(to: execution)
                    leases[checkout.id] = execution
                }
                return .proceed
            }
            try await transaction.lease(leases)
            return verdicts
        }
    }
}

extension Checkout {
    fileprivate func isLeased(to execution: ExecutionID, at now: Timestamp) -> Bool {
        lease.map { $0.execution == execution && now < $0.until } ?? false
    }
}

extension Gate.Question {
    fileprivate func refusal(
        by checkout: Checkout, _ executions: [StoredExecution], approved: Gate.Basket? = nil, now: Timestamp
    ) -> Gate.Reason? {
        guard let asked = executions.first(where: { $0.execution.id == execution })?.execution else {
            return .unknownExecution
        }
        let others = executions.lazy.map(\.execution).filter { $0.id != execution }
        return Gate.refusal(
            of: self, checkout: checkout, execution: asked, others: Array(others), approved: approved, now: now)
    }
}

extension Transaction {
    /// The checkout of an execution with all its executions and their facts, in one round trip.
    fileprivate func readGateSubject(_ execution: ExecutionID) async throws -> (Checkout, [StoredExecution])? {
        let results = try await pipeline([
            Self.checkoutQuery(of: execution), Self.executionsQuery(beside: execution),
            Self.factsQuery(beside: execution),
        ])
        guard let checkout = try results[0].first.map(Self.checkout(from:)) else { return nil }
        var executions: [ExecutionOwner: [StoredExecution]] = [:]
        try Self.collect(results[1], facts: results[2], into: &executions)
        return (checkout, executions[.checkout(checkout.id)] ?? [])
    }

    /// The checkouts, locked, each with its executions and their facts, in one round trip. Each statement sees what was
    /// committed before it began, so that the facts are those of after the lock.
    ///
    /// - Parameter waits: else those that somebody holds are left out.
    fileprivate func lockGateSubjects(
        _ checkouts: [CheckoutID], waits: Bool
    ) async throws -> (checkouts: [CheckoutID: Checkout], executions: [ExecutionOwner: [StoredExecution]]) {
        let ids = Array(Set(checkouts.map(\.uuid)))
        let results = try await pipeline([
            Self.lockQuery(ids, waits: waits), Self.executionsQuery("checkout_id", ids),
            Self.factsQuery("checkout_id", ids),
        ])
        var executions: [ExecutionOwner: [StoredExecution]] = [:]
        try Self.collect(results[1], facts: results[2], into: &executions)
        let locked = try results[0].map(Self.checkout(from:))
        return (Dictionary(locked.map { ($0.id, $0) }, uniquingKeysWith: { first, _ in first }), executions)
    }

    fileprivate func newLease(to execution: ExecutionID) -> GateLease {
        GateLease(execution: execution, until: now + policy.gateLease)
    }

    /// Takes baskets' leases. Nothing else follows from it: no fact is new, and at its expiry a checkout is looked at in
    /// any case.
    fileprivate func lease(_ leases: [CheckoutID: ExecutionID]) async throws {
        guard !leases.isEmpty else { return }
        let (checkouts, executions) = (leases.map(\.key.uuid), leases.map(\.value.uuid))
        // A payment is about to start: if nothing is heard of it soon, ask.
        let look = now + policy.healing.pending.delay(before: 0, jitter: 0)
        _ = try await pipeline([
            """
            UPDATE checkouts SET lease_execution_id = lease.execution, lease_until = \((now + policy.gateLease).stored)
            FROM unnest(\(checkouts), \(executions)) AS lease(checkout, execution) WHERE id = lease.checkout
            """,
            "UPDATE executions SET check_at = \(look.stored), checks = 0 WHERE id = ANY(\(executions))",
        ])
    }
}
