import Basics
import Foundation
import Lockstep
import Postgres

extension PaymentStore {
    /// Adds what a reading or an answer says about an execution, and makes true what follows from it.
    /// Facts about an execution that isn't known yet are kept for it.
    public func learn(_ facts: [Fact], about execution: ExecutionID) async throws {
        try await transact { transaction in _ = try await transaction.learn(facts, about: execution) }
    }

    /// Adds what a reading shows, and plans the next one.
    ///
    /// - Parameter askedAt: before the provider was asked. Where a reading became due since, it stays so.
    /// - Returns: the reference whose payments must be read too, since only their figures tell how much was moved.
    @discardableResult
    public func learnReading(_ snapshot: ExecutionSnapshot, askedAt: Timestamp) async throws -> String? {
        try await transact { transaction in
            let id = snapshot.reference.id
            _ = try await transaction.learn(snapshot.facts, about: id)
            return try await transaction.planCheck(of: id, askedAt: askedAt, shown: snapshot.amount)
        }
    }

    /// A reading failed: the next one is due by growing patience.
    public func postponeReading(of execution: ExecutionID) async throws {
        try await transact { transaction in _ = try await transaction.planCheck(of: execution, hasFailed: true) }
    }

    /// Executions that should be asked about now, the ones due longest first. Each is postponed by the claim itself,
    /// so that a worker that dies loses nothing.
    public func claimReadings(limit: Int) async throws -> [ExecutionReference] {
        try await transact { transaction in
            try await transaction.query(
                """
                UPDATE executions SET check_at = \((transaction.now + policy.lease).stored)
                WHERE id IN (SELECT id FROM executions WHERE check_at <= \(transaction.now.stored)
                    ORDER BY check_at LIMIT \(limit) FOR UPDATE SKIP LOCKED)
                RETURNING id, workflow_code
                """
            ).map { row in
                let (id, code) = try row.decode((UUID, String).self)
                return ExecutionReference(id: ExecutionID(id), workflowCode: code)
            }
        }
    }

    /// Checkouts and charges for which time alone changes something: expiry, a failure that settles. How many were
    /// settled.
    public func settleDue(limit: Int) async throws -> Int {
        let checkouts = try await pool.query(
            "SELECT id FROM checkouts WHERE due_at <= \(clock.now().stored) ORDER BY due_at LIMIT \(limit)"
        ).map { CheckoutID(try $0.decode("id", as: UUID.self)) }
        var settled = 0
        var failure: (any Error)?
        do {
            settled = try await each(of: checkouts) { transaction, id in
                guard let checkout = try await transaction.lockCheckout(id) else { return false }
                try await transaction.settle(checkout)
                return true
            }
        } catch {
            failure = error
        }
        settled += try await settleDueCharges(limit: limit)
        if let failure { throw failure }
        return settled
    }

    /// The same for charges alone, in one transaction; where one is bad, each in its own.
    public func settleDueCharges(limit: Int) async throws -> Int {
        let charges = try await pool.query(
            "SELECT id FROM charges WHERE settle_at <= \(clock.now().stored) ORDER BY settle_at LIMIT \(limit)"
        ).map { ChargeID(try $0.decode("id", as: UUID.self)) }
        let results = await together(charges) { transaction, ids in
            let locked = try await transaction.lockChargesAndMore(ids)
            try await transaction.write(try await transaction.decide([], locked))
            return ids.map { _ in true }
        }
        // One that can't be settled stops no other; the caller hears of it once the others are.
        for result in results { _ = try result.get() }
        return charges.count
    }

    /// Each in a transaction of its own. One that fails stops no other; the caller hears of it once the others are done.
    ///
    /// - Parameter body: whether there was something to do.
    func each<Item: Sendable>(
        of items: [Item], _ body: @Sendable (Transaction, Item) async throws -> Bool
    ) async throws -> Int {
        var count = 0
        var failure: (any Error)?
        for item in items {
            do {
                if try await transact({ try await body($0, item) }) { count += 1 }
            } catch {
                failure = failure ?? error
            }
        }
        if let failure { throw failure }
        return count
    }
}

extension Transaction {
    /// Whether the execution is known here.
    func learn(_ facts: [Fact], about execution: ExecutionID) async throws -> Bool {
        guard !facts.isEmpty else { return try await owner(of: execution) != nil }
        let (new, owners) = try await lockAndInsertFacts(facts.map { (execution, $0) })
        guard let owner = owners[execution] else { return false }
        if !new.isEmpty, let locked = try await lock(owner) { try await settle(locked) }
        return true
    }

    /// The reference of the execution where its payments must be read.
    ///
    /// - Parameters:
    ///   - shown: the amount that the reading shows.
    ///   - hasFailed: then there is a next one in any case: what it was for is still to be known.
    fileprivate func planCheck(
        of execution: ExecutionID, askedAt: Timestamp? = nil, shown: Money? = nil, hasFailed: Bool = false
    ) async throws -> String? {
        guard let owner = try await owner(of: execution), let locked = try await lock(owner),
            let stored = try await readExecutions(of: owner).first(where: { $0.execution.id == execution })
        else { return nil }
        let isInDoubt = locked.isInDoubt(about: execution)
        let needsFigures = stored.needsFigures(isInDoubt: isInDoubt)
        var next = policy.nextReading(
            of: isInDoubt ? .unknown : stored.execution.state, needsFigures: needsFigures || hasFailed,
            checks: stored.checks + 1, changedAt: stored.changedAt, hasLease: locked.hasLease(on: execution), now: now)
        if let askedAt, let due = stored.checkAt, due >= askedAt, due <= now { next = due }
        // Moved by somebody else, in the portal or past us: the books say so, and nobody pays by it until its amount is moved
        // back or another session is made.
        if let askedAt, let shown, owner.checkout != nil, stored.execution.state == .created,
            shown != stored.execution.amount, try await !wasMoved(execution, since: askedAt - Self.clockSkew)
        {
            try await writeExecutionAmount(shown, of: execution)
        }
        // Asked again and again, and still nobody knows how much it holds: a person must look.
        if stored.execution.mayHavePaid, now >= stored.changedAt + policy.discrepancies.unresolvedAfter {
            try await settle(locked)
        }
        _ = try await query(
            "UPDATE executions SET check_at = \(next?.stored), checks = checks + 1 WHERE id = \(execution.uuid)")
        return needsFigures ? stored.execution.merchantReference : nil
    }
}

extension Transaction {
    /// By how much the clocks of two machines may differ.
    private static let clockSkew = Duration.seconds(60)

    /// Whether a change of its amount runs, or has ended since: then what a reading showed may be what was before it.
    private func wasMoved(_ execution: ExecutionID, since moment: Timestamp) async throws -> Bool {
        try await !query(
            """
            SELECT 1 AS one FROM operations WHERE execution_id = \(execution.uuid) AND kind = 'moveAmount'
                AND (finished_at IS NULL OR finished_at >= \(moment.stored)) LIMIT 1
            """
        ).isEmpty
    }
}

extension [Fact] {
    /// Whether something was cancelled, captured or refunded of which nobody told how much.
    var needFigures: Bool {
        hasUnreadCancel || hasUnreadAmount
    }

    /// What a cancel took back, if there was anything, only a reading tells where nobody told of the authorization; and a
    /// reading from before the cancel may have been too early for it.
    private var hasUnreadCancel: Bool {
        contains { $0.kind == .action && $0.action == "cancel" && $0.success == true }
            && !contains { $0.kind == .status && $0.code == "cancelSuccessful" }
            && !contains { $0.kind == .action && $0.action == "authorize" && $0.success == true }
    }

    /// Statuses tell of more captures or refunds than results with amounts do, or a result came without one, and no payment
    /// record that was read since says how much.
    private var hasUnreadAmount: Bool {
        ["capture", "refund"].contains { action in
            let stamped = Set(filter { $0.code == "\(action)Successful" && $0.kind == .status }.map(\.at))
            let successes = filter { $0.kind == .action && $0.action == action && $0.success == true }
            func ids(_ facts: [Fact]) -> Set<String> { Set(facts.map { $0.actionID ?? $0.identity }) }
            let told = ids(successes.filter { $0.amount != nil })
            let isSilent = !ids(successes).isSubset(of: told)
            guard stamped.count > told.count || isSilent else { return false }
            guard let newest = stamped.max() else { return true }
            return !contains { $0.kind == .payment && $0.captured != nil && $0.at >= newest }
        }
    }
}
