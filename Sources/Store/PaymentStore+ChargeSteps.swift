import Basics
import Foundation
import Lockstep
import Postgres

/// Something that was learned about an attempt of a charge, by whoever drives it.
public enum ChargeStep: Sendable {
    /// The provider made the attempt's execution: it becomes known with whatever was told about it before, and its
    /// authorization is written down, for `owner` to send.
    case created(PlannedExecution, ExecutionSnapshot, owner: UUID)
    /// One of its calls is about to be sent after a while: it is, unless the attempt is over by now, or its subscription
    /// doesn't run. Then nothing more is sent, and the charge is skipped.
    case resumed(PaymentOperation, of: ChargeID, number: Int)
    /// What became of sending one of its calls, unless facts decided it in the meantime.
    case answered(PaymentOperation, of: ChargeID, number: Int, AttemptAnswer)
    /// The provider was asked about its execution.
    case read(ExecutionSnapshot)
}

/// What became of sending a call of an attempt.
public enum AttemptAnswer: Sendable {
    case acknowledged(Acknowledgement)
    /// It certainly didn't happen and won't; in the provider's words.
    case refused(reason: String)
    case unknown(Doubt)
    /// Nothing was sent, or the provider wants to be asked later: the intent stays, under its key.
    case later(seconds: Int?)
    /// The provider keeps a 5xx under the key, and a look showed that nothing happened: sent again under a new one.
    case wornOut
    /// Nothing was authorized, and nobody goes on with it.
    case abandoned(ChargeSettlement.Abandonment)
}

/// Where a charge stands after a step.
public struct ChargeStanding: Sendable {
    /// Nil where the execution isn't of a charge that is known here.
    public var charge: Charge?
    /// What is to be sent now; nil when the attempt is over, or somebody else goes on with it.
    public var authorization: PlannedAuthorization?
    /// Whether the call of a ``ChargeStep/resumed(_:of:number:)`` is to be sent now.
    public var goesOn = false
    /// The reference whose payments must be read too, since only their figures tell what became of the money.
    public var paymentsToRead: String?
}

extension PaymentStore {
    /// Takes steps of many attempts in one transaction, in as many statements as for one; where one of them is bad, each
    /// in its own.
    ///
    /// - Returns: what became of each, in the same order.
    public func take(_ steps: [ChargeStep]) async -> [Result<ChargeStanding, any Error>] {
        await together(steps) { try await $0.take($1) }
    }
}

extension Transaction {
    fileprivate func take(_ steps: [ChargeStep]) async throws -> [ChargeStanding] {
        let (checkouts, locked, owners) = try await lock(steps)
        var taken = TakenSteps(locked, in: self)
        for step in steps {
            switch step {
            case .created(let planned, let snapshot, _): try taken.create(planned, snapshot)
            case .resumed(let operation, let charge, let number):
                try taken.resume(operation, of: charge, number: number)
            case .answered(let operation, let charge, let number, let answer):
                try taken.answer(operation, of: charge, number: number, answer)
            case .read(let snapshot): taken.facts += snapshot.facts.map { (snapshot.reference.id, $0) }
            }
        }
        let decision = try await decide(
            checkouts, taken.locked, refused: taken.refused, abandoned: taken.abandoned,
            justRead: Set(steps.compactMap(\.read)), after: taken.writes)
        let settled = Dictionary(decision.charges.map { ($0.after.id, $0.after) }) { first, _ in first }
        var sent: [SentOperation] = []
        let standings = steps.map { step in
            standing(after: step, settled, owners, taken, decision.changes, sending: &sent)
        }
        try await write(decision, and: [insertSent(sent)].compactMap { $0 })
        return standings
    }

    /// Locks what the steps are about, in the order of all locks.
    private func lock(
        _ steps: [ChargeStep]
    ) async throws -> ([Checkout], LockedCharges, owners: [ExecutionID: ExecutionOwner]) {
        let executions = Set(steps.compactMap(\.execution))
        let read = Set(steps.compactMap(\.read))
        var owners: [ExecutionID: ExecutionOwner] = [:]
        if !executions.isEmpty {
            let rows = try await pipeline([Self.lockQuery(executions), Self.ownersQuery(read)])
            owners = try Self.owners(from: rows[1])
        }
        // A reading is of a charge's execution, but what is learned of another's must be settled, too.
        let checkouts = try await lockCheckouts(owners.values.checkouts)
        let charges = Set(steps.compactMap(\.charge)).union(owners.values.charges)
        let locked = try await lockChargesAndMore(Array(charges), operations: steps.compactMap(\.operation))
        return (checkouts, locked, owners)
    }

    private func standing(
        after step: ChargeStep, _ settled: [ChargeID: Charge], _ owners: [ExecutionID: ExecutionOwner],
        _ taken: TakenSteps, _ changes: SettlementChanges, sending: inout [SentOperation]
    ) -> ChargeStanding {
        switch step {
        case .created(let planned, let snapshot, let owner):
            var standing = ChargeStanding(charge: settled[planned.charge.id])
            guard let charge = standing.charge, taken.created.contains(planned.operation.id),
                let attempt = charge.attempts.first(where: { $0.number == planned.attempt.number }),
                attempt.outcome.isUndecided
            else { return standing }
            let authorize = PaymentOperation(
                id: OperationID(identifiers.next()), kind: .authorize, owner: .charge(charge.id),
                execution: snapshot.reference, key: IdempotencyKey(identifiers.next()), state: .sent,
                amount: attempt.amount, attempts: 1, createdAt: now, sentAt: now)
            standing.authorization = PlannedAuthorization(authorize, of: charge)
            if standing.authorization != nil {
                sending.append(
                    SentOperation(
                        operation: authorize, workflowCode: charge.workflowCode, ordinal: attempt.number,
                        owner: owner))
            }
            return standing
        case .resumed(let operation, let charge, _):
            return ChargeStanding(charge: settled[charge], goesOn: taken.resumed.contains(operation.id))
        case .answered(_, let charge, _, _): return ChargeStanding(charge: settled[charge])
        case .read(let snapshot):
            let id = snapshot.reference.id
            return ChargeStanding(
                charge: owners[id]?.charge.flatMap { settled[$0] }, paymentsToRead: changes.lackingFigures[id])
        }
    }
}

/// What steps change before anything is settled. Each sees what the ones before it did.
private struct TakenSteps {
    private let transaction: Transaction
    private(set) var locked: Transaction.LockedCharges
    var facts: [(execution: ExecutionID, fact: Fact)] = []
    private(set) var refused: [ChargeID: [Int: String]] = [:]
    private(set) var abandoned: [ChargeID: [Int: ChargeSettlement.Abandonment]] = [:]
    /// Operations that are sent again.
    private(set) var resumed: Set<OperationID> = []
    /// Operations that made their executions in these steps.
    private(set) var created: Set<OperationID> = []
    private var executions: [Transaction.NewExecution] = []
    private var changed: [OperationID: Timestamp?] = [:]
    private var attached: [(charge: ChargeID, number: Int, execution: ExecutionID)] = []

    init(_ locked: Transaction.LockedCharges, in transaction: Transaction) {
        self.locked = locked
        self.transaction = transaction
    }

    mutating func create(_ planned: PlannedExecution, _ snapshot: ExecutionSnapshot) throws {
        let execution = snapshot.reference
        guard let charge = locked.charges.firstIndex(where: { $0.id == planned.charge.id }),
            var operation = locked.operations[planned.operation.id]
        else { throw CorruptRow(table: "operations", detail: "a planned execution is gone") }
        guard !operation.state.isFinal else { return }
        executions.append(
            Transaction.NewExecution(
                reference: execution, owner: .charge(planned.charge.id), ordinal: planned.attempt.number,
                merchantReference: planned.attempt.merchantReference, amount: planned.attempt.amount,
                checkAt: transaction.policy.healing.next(
                    for: .created, checks: 0, changedAt: transaction.now, hasLease: false, now: transaction.now,
                    jitter: .random(in: 0...255))))
        facts += snapshot.facts.map { (execution.id, $0) }
        operation.state = .succeeded
        operation.execution = execution
        operation.reason = nil
        write(operation, dueAt: nil)
        attached.append((planned.charge.id, planned.attempt.number, execution.id))
        for index in locked.charges[charge].attempts.indices
        where locked.charges[charge].attempts[index].number == planned.attempt.number {
            locked.charges[charge].attempts[index].execution = execution.id
        }
        created.insert(operation.id)
        if let reason = stopReason(of: locked.charges[charge]) {
            abandoned[planned.charge.id, default: [:]][planned.attempt.number] = .skip(reason: reason.rawValue)
        }
    }

    /// Nothing is authorized any more for a subscription that doesn't run.
    private func stopReason(of charge: Charge) -> SkipReason? {
        charge.subscription.flatMap { locked.subscriptions[$0]?.stopReason }
    }

    mutating func resume(_ operation: PaymentOperation, of id: ChargeID, number: Int) throws {
        guard let charge = locked.charges.first(where: { $0.id == id }), var known = locked.operations[operation.id]
        else { throw CorruptRow(table: "operations", detail: "a claimed operation is gone") }
        // Whoever took it since goes on with it.
        guard !known.state.isFinal, !known.wasTaken(since: operation) else { return }
        let isUndecided = charge.attempts.first { $0.number == number }?.outcome.isUndecided ?? false
        let reason = isUndecided ? stopReason(of: charge)?.rawValue : PaymentStore.attemptOver
        guard let reason else {
            resumed.insert(operation.id)
            return
        }
        if isUndecided { abandoned[id, default: [:]][number] = .skip(reason: reason) }
        known.state = .failed
        known.reason = reason
        write(known, dueAt: nil)
    }

    mutating func answer(
        _ operation: PaymentOperation, of charge: ChargeID, number: Int, _ answer: AttemptAnswer
    ) throws {
        guard let owner = locked.charges.first(where: { $0.id == charge }), var known = locked.operations[operation.id]
        else {
            throw CorruptRow(table: "operations", detail: "a claimed operation is gone")
        }
        guard !known.state.isFinal else { return }
        // Two may have sent it, when the first one took longer than its lease; what the provider took on stands.
        if case .acknowledged = answer {} else if known.key != operation.key { return }
        var dueAt = transaction.nextLook(after: known.attempts)
        switch answer {
        case .acknowledged(let acknowledgement):
            known.state = .succeeded
            known.actionID = acknowledgement.actionID
            known.reason = nil
            if let execution = known.execution {
                let fact = Fact(
                    kind: .action, action: known.kind.rawValue, actionID: acknowledgement.actionID,
                    phase: .requested, amount: known.amount, at: acknowledgement.executedAt ?? transaction.now,
                    source: .answer)
                facts.append((execution.id, fact))
            }
        case .refused(let reason):
            known.state = .failed
            known.reason = reason
            refused[charge, default: [:]][number] = reason
        case .unknown(let doubt):
            known.state = .unknown
            known.reason = doubt.kind.rawValue
        case .later(let seconds):
            // What was sent before may still have happened.
            let isUnsent = known.attempts <= 1 || known.reason == PlannedAuthorization.neverSent
            known.state = isUnsent ? .prepared : .unknown
            known.reason = isUnsent ? PlannedAuthorization.neverSent : known.reason
            // The key's time begins when it is sent for the first time.
            if isUnsent { known.sentAt = nil }
            dueAt = max(dueAt, transaction.now + .seconds(seconds ?? 0))
        case .wornOut:
            known.renewKey(IdempotencyKey(transaction.identifiers.next()))
            dueAt = transaction.lookBeforeSending(known)
        case .abandoned(let wanted):
            let stopped = stopReason(of: owner).map { ChargeSettlement.Abandonment.skip(reason: $0.rawValue) }
            let end = stopped ?? wanted
            known.state = .failed
            known.reason = end.reason
            abandoned[charge, default: [:]][number] = end
        }
        write(known, dueAt: dueAt)
    }

    private mutating func write(_ operation: PaymentOperation, dueAt: Timestamp?) {
        locked.operations[operation.id] = operation
        changed[operation.id] = .some(dueAt)
    }

    /// One statement for each kind of row.
    var writes: [PostgresQuery] {
        var queries = transaction.insertQueries(executions)
        if !facts.isEmpty { queries.append(transaction.insertQuery(facts)) }
        let operations = changed.compactMap { id, dueAt in
            locked.operations[id].map { (operation: $0, dueAt: dueAt) }
        }
        if let query = transaction.updateQuery(operations) { queries.append(query) }
        guard !attached.isEmpty else { return queries }
        return queries + [
            """
            UPDATE charge_attempts AS attempts SET execution_id = new.execution_id
            FROM unnest(\(attached.map(\.charge.uuid)), \(attached.map(\.number)), \(attached.map(\.execution.uuid)))
                AS new(charge_id, number, execution_id)
            WHERE attempts.charge_id = new.charge_id AND attempts.number = new.number
            """,
            """
            UPDATE charges SET postponements = 0
            WHERE id = ANY(\(attached.map(\.charge.uuid))) AND postponements > 0
            """,
        ]
    }
}

extension ChargeStep {
    /// Whose facts must be held still.
    fileprivate var execution: ExecutionID? {
        switch self {
        case .created(_, let snapshot, _), .read(let snapshot): snapshot.reference.id
        case .resumed(let operation, _, _), .answered(let operation, _, _, _): operation.execution?.id
        }
    }

    fileprivate var read: ExecutionID? { if case .read(let snapshot) = self { snapshot.reference.id } else { nil } }

    fileprivate var charge: ChargeID? {
        switch self {
        case .created(let planned, _, _): planned.charge.id
        case .resumed(_, let charge, _), .answered(_, let charge, _, _): charge
        case .read: nil
        }
    }

    fileprivate var operation: OperationID? {
        switch self {
        case .created(let planned, _, _): planned.operation.id
        case .resumed(let operation, _, _), .answered(let operation, _, _, _): operation.id
        case .read: nil
        }
    }
}

extension ChargeAttempt.Outcome {
    /// Nothing tells yet what becomes of it.
    var isUndecided: Bool { self == .processing || self == .unknown }
}
