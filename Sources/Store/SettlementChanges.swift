import Basics
import Foundation
import Lockstep

/// What settlements of any number of checkouts and charges decided, collected so that all of it is written at once.
struct SettlementChanges {
    struct CheckoutRow {
        let checkout: Checkout
        let dueAt: Timestamp?
    }

    struct ChargeRow {
        let charge: Charge
        let dueAt: Timestamp?
    }

    struct AttemptRow {
        let charge: ChargeID
        let attempt: ChargeAttempt
    }

    struct ExecutionRow {
        let execution: CheckoutExecution
        let checkAt: Timestamp?
        /// How often it was asked about since it last changed.
        let checks: Int
        /// The facts say something else than before, so patience begins anew.
        let hasChanged: Bool
        let disputes: [Dispute]
    }

    struct Event {
        let type: EventType
        let about: EventSubject
        let execution: ExecutionID?
        let data: JSON
    }

    let now: Timestamp
    let policy: PaymentStore.Policy
    let identifiers: IdentifierSource
    /// Executions that the provider was asked about just now.
    let justRead: Set<ExecutionID>
    /// Those of them whose payments must be read too, since only their figures tell how much was moved, with the
    /// references of these.
    private(set) var lackingFigures: [ExecutionID: String] = [:]
    private(set) var checkouts: [CheckoutRow] = []
    var charges: [ChargeRow] = []
    var attempts: [AttemptRow] = []
    private(set) var executions: [ExecutionRow] = []
    private(set) var finished: [PaymentOperation] = []
    private(set) var cancels: [PaymentOperation] = []
    private(set) var amounts: [(execution: ExecutionID, amount: Money)] = []
    var events: [Event] = []
    var opened: [(owner: ExecutionOwner?, discrepancy: Discrepancy)] = []
    var resolved: [Discrepancy] = []

    init(
        now: Timestamp, policy: PaymentStore.Policy, identifiers: IdentifierSource, justRead: Set<ExecutionID> = []
    ) {
        self.now = now
        self.policy = policy
        self.identifiers = identifiers
        self.justRead = justRead
    }

    /// Decides one checkout. Pure but for the ids of what is planned.
    ///
    /// - Parameters:
    ///   - known: its executions and operations.
    ///   - announcing: events of the caller's own change, told before those that follow from it.
    mutating func settle(_ checkout: Checkout, _ known: Holdings, announcing: [EventType]) -> SettledCheckout {
        var stored = known.executions
        var operations = settleOperations(known, &stored)
        let move = operations.open.first { $0.kind == .moveAmount }
        let settlement = Settlement(
            of: checkout, executions: stored.map(\.execution), pendingMove: move?.amount,
            pendingBasket: move?.basketVersion, rules: policy.settlement, now: now)
        var readNow: Set<ExecutionID> = []
        var held: Set<ExecutionID> = []
        for effect in settlement.effects {
            switch effect {
            case .cancel(let id, let reason):
                cancel(id, reason, of: .checkout(checkout.id), in: &stored, unless: operations.cancelling)
            case .cancelled(let id):
                guard let index = stored.firstIndex(where: { $0.execution.id == id }) else { continue }
                stored[index].execution.cancelReported = true
            case .read(let id): readNow.insert(id)
            case .amountMoved(let applied):
                finishMove(move, applied: applied, settlement.checkout)
                operations.open.removeAll { $0.id == move?.id }
            case .held(let id): held.insert(id)
            case .event: break
            }
        }
        checkouts.append(CheckoutRow(checkout: settlement.checkout, dueAt: settlement.dueAt))
        let settled = SettledCheckout(checkout: settlement.checkout, executions: stored.map(\.execution))
        for type in announcing { tell(type, about: settled) }
        for effect in settlement.effects { if case .event(let type) = effect { tell(type, about: settled) } }
        let about = EventSubject.checkout(checkout.id)
        for execution in stored {
            let hasLease = settled.checkout.lease?.execution == execution.execution.id
            take(
                execution, of: .checkout(checkout.id), about: about, readNow: readNow.contains(execution.execution.id),
                hasLease: hasLease)
        }
        judge(
            .init(settled.checkout), of: .checkout(checkout.id), about: about, stored, operations.open, held: held,
            known.discrepancies)
        tellFailures(operations.failures, about: about)
        return settled
    }

    private mutating func tell(_ type: EventType, about settled: SettledCheckout) {
        events.append(
            Event(
                type: type, about: .checkout(settled.checkout.id), execution: settled.checkout.currentExecution,
                data: ["checkout": settled.json]))
    }

    private mutating func finishMove(_ move: PaymentOperation?, applied: Bool, _ checkout: Checkout) {
        guard var move else { return }
        let wasUnknown = move.state == .unknown
        move.state = applied ? .succeeded : .failed
        move.reason = applied ? nil : "the payment was authorized for the amount before"
        finished.append(move)
        if applied, let id = checkout.currentExecution { amounts.append((id, checkout.amount)) }
        // Who asked for it was told that nobody knows; now somebody does.
        if !applied, wasUnknown {
            events.append(
                Event(
                    type: .operationFailed, about: .checkout(checkout.id), execution: checkout.currentExecution,
                    data: ["operation": move.json]))
        }
    }
}

/// What checkouts and charges have in common.
extension SettlementChanges {
    /// What the facts decided about operations.
    struct SettledOperations {
        var open: [PaymentOperation]
        var failures: [PaymentOperation] = []
        /// Executions with a cancel that is on its way.
        var cancelling: Set<ExecutionID>
    }

    /// Finishes the operations that the facts decide.
    mutating func settleOperations(_ known: Holdings, _ stored: inout [StoredExecution]) -> SettledOperations {
        var operations = SettledOperations(open: known.operations, cancelling: [])
        var actions = known.actions
        for index in operations.open.indices {
            let operation = operations.open[index]
            guard let execution = stored.first(where: { $0.execution.id == operation.execution?.id }),
                let settled = operation.settled(by: execution.execution.picture, others: actions.without(operation))
            else { continue }
            // What explains this one explains no other.
            actions.account(for: settled)
            operations.open[index] = settled
            finished.append(settled)
            if settled.state == .failed { operations.failures.append(settled) }
        }
        operations.open.removeAll(where: \.state.isFinal)
        operations.cancelling = Set(operations.open.filter { $0.kind == .cancel }.compactMap { $0.execution?.id })
        let cancelled = known.cancelled.subtracting(
            operations.failures.filter { $0.kind == .cancel }.compactMap { $0.execution?.id })
        // The shop's cancel failed, or was undone, so the execution is as it was before: a success of it pays, or is
        // taken back.
        for index in stored.indices where stored[index].execution.cancelReason == .requested {
            let execution = stored[index].execution
            let isCancelled = cancelled.contains(execution.id)
            let isUndone =
                isCancelled && execution.state.holdsMoney && !operations.cancelling.contains(execution.id)
            if !isCancelled || isUndone { stored[index].execution.cancelReason = nil }
        }
        return operations
    }

    /// Plans a cancel. At most one is ever open. One that is on its way may have come too early and fail; then this is
    /// decided again, so the reason stays what it was.
    mutating func cancel(
        _ id: ExecutionID, _ reason: CancelReason, of owner: ExecutionOwner, in stored: inout [StoredExecution],
        unless cancelling: Set<ExecutionID>
    ) {
        guard let index = stored.firstIndex(where: { $0.execution.id == id }), !cancelling.contains(id) else { return }
        stored[index].execution.cancelReason = reason
        cancels.append(
            PaymentOperation(
                id: OperationID(identifiers.next()), kind: .cancel, owner: owner,
                execution: stored[index].execution.reference, key: IdempotencyKey(identifiers.next()),
                intentReason: reason.rawValue, createdAt: now))
    }

    mutating func tellFailures(_ failures: [PaymentOperation], about subject: EventSubject) {
        for operation in failures where operation.isTold {
            events.append(
                Event(
                    type: .operationFailed, about: subject, execution: operation.execution?.id,
                    data: ["operation": operation.json]))
        }
    }

    /// The execution's row, where it differs from what is stored, and the events about the difference.
    ///
    /// - Parameter isInDoubt: nobody knows whether it holds money, whatever its state says.
    mutating func take(
        _ stored: StoredExecution, of owner: ExecutionOwner, about subject: EventSubject, readNow: Bool,
        hasLease: Bool = false, isInDoubt: Bool = false
    ) {
        let execution = stored.execution
        let picture = execution.picture
        let hasChanged = stored.hasChanged
        var checkAt = stored.checkAt
        var checks = hasChanged ? 0 : stored.checks
        if justRead.contains(execution.id) {
            checks += 1
            let needsFigures = stored.needsFigures(isInDoubt: isInDoubt)
            if needsFigures { lackingFigures[execution.id] = execution.merchantReference }
            checkAt = policy.nextReading(
                of: isInDoubt ? .unknown : picture.state, needsFigures: needsFigures, checks: checks,
                changedAt: hasChanged ? now : stored.changedAt, hasLease: hasLease, now: now)
        } else if readNow || stored.facts.callForReading(since: now) {
            checkAt = now
        } else if hasChanged || (checkAt == nil && stored.checks == 0) {
            checkAt = policy.healing.next(
                for: isInDoubt ? .unknown : picture.state, checks: 0, changedAt: now, hasLease: hasLease, now: now,
                jitter: .random(in: 0...255))
            if picture.state != .unknown, picture.lacksFigures || stored.facts.map(\.fact).needFigures {
                checkAt = now + policy.healing.pending.delay(before: 0, jitter: .random(in: 0...255))
            }
        }
        let disputes = Dispute.standing(stored.facts.map(\.fact), of: execution.id)
        let changedDisputes = disputes.filter { stored.storedDisputes[$0.id] != $0.status }
        let isSame =
            !hasChanged && changedDisputes.isEmpty && checkAt == stored.checkAt && checks == stored.checks
            && execution.cancelReason == stored.storedCancelReason
            && execution.cancelReported == stored.storedCancelReported
        guard !isSame else { return }
        executions.append(
            ExecutionRow(
                execution: execution, checkAt: checkAt, checks: checks, hasChanged: hasChanged, disputes: disputes))
        var types: [EventType] = []
        if (picture.captured?.minor ?? 0) > (stored.storedCapturedMinor ?? 0) { types.append(.executionCaptured) }
        if picture.state == .cancelled, stored.storedState != .cancelled { types.append(.executionCancelled) }
        if (picture.refunded?.minor ?? 0) > (stored.storedRefundedMinor ?? 0), picture.state != .cancelled {
            types.append(.executionRefunded)
        }
        for type in types {
            events.append(
                Event(
                    type: type, about: subject, execution: execution.id,
                    data: ["execution": execution.json(of: owner, facts: stored.facts)]))
        }
        for dispute in changedDisputes {
            events.append(
                Event(
                    type: .disputeChanged, about: subject, execution: execution.id, data: ["dispute": dispute.json]))
        }
    }
}

extension StoredExecution {
    /// Whether payment records must tell how much was moved, or whether anything was.
    func needsFigures(isInDoubt: Bool) -> Bool {
        isInDoubt || facts.map(\.fact).needFigures || execution.picture.lacksFigures
    }
}

extension [LearnedFact] {
    /// Whether something that came just now can only be put in its place by what the provider shows.
    ///
    /// A success and a failure of an authorization are both known: which of the two counts, the statuses tell, also of one
    /// that came late or without its time. And a capture or refund is told after others were known by payment records alone:
    /// whether it is one of those, or comes on top, neither of them says.
    fileprivate func callForReading(since now: Timestamp) -> Bool {
        func isNew(_ learned: LearnedFact) -> Bool { learned.learnedAt.microseconds >= now.microseconds }
        let results = filter { $0.fact.kind == .action && $0.fact.phase == .completed }
        let isMoveTold = results.contains {
            isNew($0) && $0.fact.success == true && ["capture", "refund"].contains($0.fact.action)
        }
        if isMoveTold, contains(where: { $0.fact.kind == .payment && !isNew($0) }) { return true }
        let authorizations = results.filter { $0.fact.action == "authorize" }
        return authorizations.contains(where: isNew) && authorizations.contains { $0.fact.success == true }
            && authorizations.contains { $0.fact.success == false }
    }
}

extension PaymentStore.Policy {
    /// When an execution that was read just now is read again. Figures that nobody has yet are something to come, also
    /// where the state itself is a last one.
    ///
    /// - Parameter checks: how often it was read since it last changed, this time included.
    func nextReading(
        of state: ExecutionState, needsFigures: Bool, checks: Int, changedAt: Timestamp, hasLease: Bool, now: Timestamp
    ) -> Timestamp? {
        healing.next(
            for: state, checks: checks, changedAt: changedAt, hasLease: hasLease, now: now,
            jitter: .random(in: 0...255))
            ?? (needsFigures ? now + healing.pending.delay(before: checks, jitter: .random(in: 0...255)) : nil)
    }
}

/// Whose events are told one after the other.
enum EventSubject: Hashable {
    case checkout(CheckoutID)
    /// A charge, or the subscription that it is for.
    case other(UUID)

    var checkout: CheckoutID? { if case .checkout(let id) = self { id } else { nil } }
    var other: UUID? { if case .other(let id) = self { id } else { nil } }
}

/// What a checkout or a charge holds besides its own row.
struct Holdings {
    var executions: [StoredExecution] = []
    /// Those that aren't final, oldest first.
    var operations: [PaymentOperation] = []
    /// Open discrepancies, and those that a person has dealt with.
    var discrepancies: [Discrepancy] = []
    /// Executions with a cancel that hasn't failed.
    var cancelled: Set<ExecutionID> = []
    /// What its operations already account for, where one of them has an unknown outcome.
    var actions = AccountedActions()
}

extension PaymentOperation {
    /// Whether the shop is told that it failed: not of a cancel of what nobody had paid yet.
    public var isTold: Bool {
        guard kind.isLifecycle else { return false }
        let silent = [CancelReason.checkoutCancelled.rawValue, CancelReason.attemptOver.rawValue]
        return kind != .cancel || !silent.contains(intentReason ?? "")
    }

    /// Whether it was decided here, and not asked for by anyone.
    public var isOwnCancel: Bool {
        guard kind == .cancel, let reason = CancelReason(rawValue: intentReason ?? "") else { return false }
        return reason != .requested
    }
}
