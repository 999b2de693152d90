import Basics
import Foundation
import Lockstep
import Postgres

/// An execution as the API shows it.
public struct ExecutionView: Sendable {
    public let execution: CheckoutExecution
    public let owner: ExecutionOwner
    public let facts: [LearnedFact]
    public let awaited: AwaitedExecution?
    public var json: JSON { execution.json(of: owner, facts: facts) }
}

/// An operation that a worker or a request holds, to be sent or looked into.
public struct ClaimedOperation: Sendable {
    public let operation: PaymentOperation
    public let owner: UUID
    /// It may have been sent before: look first.
    public var wasSent: Bool { operation.attempts > 1 }
}

extension PaymentStore {
    public func readExecution(_ id: ExecutionID) async throws -> ExecutionView? {
        try await transact { transaction in
            guard let owner = try await transaction.owner(of: id),
                let stored = try await transaction.readExecutions(of: owner).first(where: { $0.execution.id == id })
            else { return nil }
            return ExecutionView(
                execution: stored.execution, owner: owner, facts: stored.facts, awaited: stored.awaited())
        }
    }

    public func readOperation(_ id: OperationID) async throws -> PaymentOperation? {
        try await transact { try await $0.readOperation(id) }
    }

    /// Which request of the shop's asks for something: its credential and its idempotency key.
    public struct RequestIdentity: Hashable, Sendable {
        public let credential: UUID
        public let key: String

        public init(credential: UUID, key: String) {
            self.credential = credential
            self.key = key
        }
    }

    public enum LifecycleStart: Sendable {
        case begun(ClaimedOperation)
        /// The same request was here before: this is what it began.
        case known(PaymentOperation)
        case notFound
        case refused(Lifecycle.Refusal)
    }

    /// Writes down a capture, cancel or refund that the shop asked for, counting what is still in flight.
    ///
    /// - Parameter request: the request that asks. Sent again after an answer that was lost, it finds its operation and
    ///   never begins another.
    public func beginLifecycle(
        _ kind: PaymentOperation.Kind, of id: ExecutionID, amount: Money?, isFinal: Bool?, reason: String?,
        request: RequestIdentity?, owner: UUID
    ) async throws -> LifecycleStart {
        try await transact { transaction in
            guard let owning = try await transaction.owner(of: id), try await transaction.lock(owning) != nil,
                let stored = try await transaction.readExecutions(of: owning).first(where: { $0.execution.id == id })
            else { return .notFound }
            if let request, let known = try await transaction.readOperation(of: request) { return .known(known) }
            let execution = stored.execution
            let operations = try await transaction.readOperationsThatMatter(of: owning)
                .filter { $0.execution?.id == id }
            let open = operations.filter { !$0.state.isFinal }
            var taken: Money?
            do throws(Lifecycle.Refusal) {
                switch kind {
                case .capture:
                    taken = try Lifecycle.capture(
                        amount, of: execution.picture, open: open, captures: operations.filter { $0.kind == .capture })
                case .refund: taken = try Lifecycle.refund(amount, of: execution.picture, open: open)
                case .cancel:
                    try Lifecycle.cancel(amount, of: execution.picture, whole: execution.amount, open: open)
                case .createSession, .moveAmount, .createExecution, .authorize, .tokenization, .changeInstrument,
                    .deleteInstrument:
                    preconditionFailure("\(kind) is nothing that a shop asks of an execution")
                }
            } catch {
                return .refused(error)
            }
            if kind == .cancel {
                _ = try await transaction.query(
                    """
                    UPDATE executions SET cancel_reason = coalesce(cancel_reason, 'requested')
                    WHERE id = \(id.uuid)
                    """)
            }
            let operation = PaymentOperation(
                id: OperationID(identifiers.next()), kind: kind, owner: owning, execution: execution.reference,
                key: IdempotencyKey(identifiers.next()), state: .sent, amount: taken, isFinalCapture: isFinal,
                intentReason: PaymentOperation.intentReason(kind, ofShop: reason), attempts: 1,
                createdAt: transaction.now, sentAt: transaction.now)
            try await transaction.insertOperation(
                operation, workflowCode: execution.reference.workflowCode, owner: owner, request: request)
            return .begun(ClaimedOperation(operation: operation, owner: owner))
        }
    }

    /// Takes operations that nobody works on: prepared ones, ones whose sender died, unknown ones whose time came.
    public func claimOperations(limit: Int, owner: UUID) async throws -> [ClaimedOperation] {
        try await transact { transaction in
            let lease = (transaction.now + policy.lease).stored
            return try await transaction.query(
                """
                UPDATE operations SET state = CASE state WHEN 'prepared' THEN 'sent' ELSE state END,
                    lease_owner = \(owner), lease_until = \(lease), due_at = \(lease), attempts = attempts + 1,
                    sent_at = coalesce(sent_at, \(transaction.now.stored))
                WHERE id IN (SELECT id FROM operations
                    WHERE due_at <= \(transaction.now.stored)
                        AND (lease_until IS NULL OR lease_until <= \(transaction.now.stored))
                    ORDER BY due_at LIMIT \(limit) FOR UPDATE SKIP LOCKED)
                RETURNING \(unescaped: Transaction.operationColumns)
                """
            ).map { ClaimedOperation(operation: try Transaction.operation(from: $0), owner: owner) }
        }
    }

    /// What the provider answered to a capture, cancel or refund.
    public enum LifecycleAnswer: Sendable {
        case acknowledged(Acknowledgement)
        case refused(Refusal)
        case unknown(Doubt)
        /// Nothing was sent, or the provider wants to be asked later: the intent stays, under its key. Nil: with growing
        /// patience.
        case later(seconds: Int?)
    }

    /// Writes down what became of sending an operation, unless facts decided it in the meantime.
    public func recordLifecycle(_ claimed: ClaimedOperation, _ answer: LifecycleAnswer) async throws
        -> PaymentOperation
    {
        try await transact { transaction in
            guard let execution = claimed.operation.execution, let owning = claimed.operation.owner else {
                throw CorruptRow(table: "operations", detail: "a lifecycle operation without an execution")
            }
            try await transaction.lockFacts(of: execution.id)
            guard let owner = try await transaction.lock(owning),
                var operation = try await transaction.lockOperation(claimed.operation.id)
            else { throw CorruptRow(table: "operations", detail: "a claimed operation is gone") }
            guard !operation.state.isFinal else { return operation }
            // Two may have sent it, when the first one took longer than its lease. What the provider took on stands
            // against whatever the slower one heard, above all under a key that was replaced.
            if case .acknowledged = answer {
            } else if operation.state == .acknowledged || operation.wasTaken(since: claimed.operation) {
                return operation
            }
            var dueAt: Timestamp? = transaction.nextLook(after: operation.attempts)
            switch answer {
            case .acknowledged(let acknowledgement):
                if try await transaction.isTaken(acknowledgement.actionID, byOtherThan: operation) {
                    // What this one did was put down to another of its kind and amount of which nobody knew either: one of
                    // the two is still to be done.
                    operation.renewKey(IdempotencyKey(identifiers.next()))
                    dueAt = transaction.lookBeforeSending(operation)
                } else {
                    operation.state = .acknowledged
                    operation.actionID = acknowledgement.actionID
                    operation.reason = nil
                    dueAt = transaction.now + policy.healing.pending.delay(before: 1, jitter: 0)
                }
                let fact = Fact(
                    kind: .action, action: operation.kind.rawValue, actionID: acknowledgement.actionID,
                    phase: .requested, amount: operation.amount,
                    at: acknowledgement.executedAt ?? transaction.now, source: .answer)
                _ = try await transaction.insertFacts([fact], of: execution.id)
            case .refused(let refusal):
                operation.reason = refusal.code ?? refusal.kind.rawValue
                // Sent before, it may be what runs.
                operation.state = .failed
                if claimed.wasSent, try await transaction.mayRun(operation, of: owning) { operation.state = .unknown }
            case .unknown(let doubt):
                operation.state = .unknown
                operation.reason = doubt.kind.rawValue
            case .later(let seconds):
                operation.state = .prepared
                // Nothing is sent under a new key without a look right before it.
                if claimed.operation.isRekeyed { operation.renewKey(operation.key) }
                if let seconds { dueAt = transaction.now + .seconds(seconds) }
            }
            try await transaction.writeOperation(operation, dueAt: dueAt)
            if operation.state == .failed, operation.isTold {
                try await transaction.insertEvent(
                    .operationFailed, checkout: owning.checkout, subject: owner.subject, execution: execution.id,
                    data: ["operation": operation.json])
            }
            try await transaction.settle(owner)
            return try await transaction.readOperation(operation.id) ?? operation
        }
    }

    /// The provider keeps a 5xx under the operation's key, or may keep the key no longer, and the execution and its payments
    /// were read since. Where they show that nothing happened under it and nothing runs, the intent gets a new key. It is
    /// sent under that one later, if another look shows the same; until then facts may still decide it.
    public func rekeyLifecycle(_ claimed: ClaimedOperation) async throws {
        try await transact { transaction in
            guard var operation = try await transaction.lockUntouched(claimed) else { return }
            operation.renewKey(IdempotencyKey(identifiers.next()))
            try await transaction.writeOperation(operation, dueAt: transaction.lookBeforeSending(operation))
        }
    }

    /// Whether an operation with a new key may be sent: the execution and its payments were read again, and still show
    /// that nothing happened.
    public func confirmRekeyed(_ claimed: ClaimedOperation) async throws -> Bool {
        try await transact { transaction in
            guard let operation = try await transaction.lockUntouched(claimed) else { return false }
            _ = try await transaction.query(
                """
                UPDATE operations SET state = 'sent', reason = NULL, sent_at = \(transaction.now.stored)
                WHERE id = \(operation.id.uuid)
                """)
            return true
        }
    }

    /// An acknowledged operation was looked into and nothing was decided: look again by growing patience.
    public func postponeOperation(_ claimed: ClaimedOperation) async throws {
        try await transact { transaction in
            guard var operation = try await transaction.lockOperation(claimed.operation.id), !operation.state.isFinal,
                !operation.wasTaken(since: claimed.operation)
            else { return }
            if operation.state == .sent { operation.state = .unknown }
            let patience = operation.state == .unknown ? policy.healing.unknown : policy.healing.pending
            try await transaction.writeOperation(
                operation,
                dueAt: transaction.now
                    + patience.delay(before: operation.attempts, jitter: .random(in: 0...255)))
        }
    }

    /// What a claimed `createSession` or `moveAmount` needs to go on.
    public func resumePlannedSession(_ claimed: ClaimedOperation) async throws -> PlannedSession? {
        try await transact { transaction in
            guard let id = claimed.operation.checkout, let checkout = try await transaction.readCheckout(id) else {
                return nil
            }
            return try await transaction.plannedSession(claimed.operation, checkout: checkout)
        }
    }
}

extension Transaction {
    /// The claimed operation, locked, where all that is known shows that nothing came of it and that nothing runs.
    fileprivate func lockUntouched(_ claimed: ClaimedOperation) async throws -> PaymentOperation? {
        guard let owning = claimed.operation.owner, try await lock(owning) != nil,
            let operation = try await lockOperation(claimed.operation.id),
            !operation.wasTaken(since: claimed.operation),
            operation.state == .unknown, operation.actionID == nil,
            let stored = try await readExecutions(of: owning)
                .first(where: { $0.execution.id == operation.execution?.id }), !stored.runs(operation.kind)
        else { return nil }
        let accounted = try await succeededMinor(operation.kind, of: stored.execution.id)
        let picture = stored.execution.picture
        switch operation.kind {
        case .capture: return picture.captured?.minor ?? 0 == accounted ? operation : nil
        case .refund: return picture.refunded?.minor ?? 0 == accounted ? operation : nil
        default: return operation
        }
    }

    /// When it is looked for again before it is sent under a new key. An effect may come to light some time after its 5xx:
    /// not before the third step of patience, a minute by default.
    func lookBeforeSending(_ operation: PaymentOperation) -> Timestamp {
        nextLook(after: max(3, operation.attempts))
    }

    /// Whether an action of the provider's was found to be another operation's.
    fileprivate func isTaken(_ actionID: String?, byOtherThan operation: PaymentOperation) async throws -> Bool {
        guard let actionID, let execution = operation.execution?.id else { return false }
        return try await !query(
            """
            SELECT 1 AS one FROM operations WHERE execution_id = \(execution.uuid) AND action_id = \(actionID)
                AND kind = \(operation.kind.rawValue) AND state = 'succeeded' AND id <> \(operation.id.uuid)
            """
        ).isEmpty
    }

    /// Whether something of its kind is under way at the provider, by whatever operation.
    fileprivate func mayRun(_ operation: PaymentOperation, of owner: ExecutionOwner) async throws -> Bool {
        try await readExecutions(of: owner).first { $0.execution.id == operation.execution?.id }?
            .runs(operation.kind) ?? false
    }

    /// What the operations of this kind that are known to have worked moved, in minor units.
    fileprivate func succeededMinor(_ kind: PaymentOperation.Kind, of execution: ExecutionID) async throws -> Int64 {
        try await query(
            """
            SELECT coalesce(sum(amount_minor), 0)::bigint AS total FROM operations
            WHERE execution_id = \(execution.uuid) AND kind = \(kind.rawValue) AND state = 'succeeded'
            """
        ).first?.decode("total", as: Int64.self) ?? 0
    }
}

extension StoredExecution {
    /// Whether the provider has told of more beginnings than ends.
    fileprivate func runs(_ kind: PaymentOperation.Kind) -> Bool {
        let statuses = Set(facts.map(\.fact).filter { $0.kind == .status })
        func count(_ result: String) -> Int {
            Set(statuses.filter { $0.code == kind.rawValue + result }.map(\.at)).count
        }
        return count("Requested") > count("Successful") + count("Failed")
    }
}

extension PaymentOperation {
    /// The intent is to be sent under another key, after another look; until then facts may still decide it.
    mutating func renewKey(_ key: IdempotencyKey) {
        self.key = key
        state = .unknown
        reason = Self.rekeyed
        sentAt = nil
    }
}
