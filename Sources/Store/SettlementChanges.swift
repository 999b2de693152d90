import Basics
import Foundation
import Lockstep

/// What settlements of any number of checkouts decided, collected so that all of it is written at once.
struct SettlementChanges {
    struct CheckoutRow {
        let checkout: Checkout
        let dueAt: Timestamp?
    }

    struct ExecutionRow {
        let execution: CheckoutExecution
        let checkAt: Timestamp?
        /// The facts say something else than before, so patience begins anew.
        let hasChanged: Bool
    }

    struct Event {
        let type: EventType
        let checkout: CheckoutID
        let execution: ExecutionID?
        let data: JSON
    }

    let now: Timestamp
    let policy: PaymentStore.Policy
    let identifiers: IdentifierSource
    private(set) var checkouts: [CheckoutRow] = []
    private(set) var executions: [ExecutionRow] = []
    private(set) var finished: [PaymentOperation] = []
    private(set) var cancels: [PaymentOperation] = []
    private(set) var amounts: [(execution: ExecutionID, amount: Money)] = []
    var events: [Event] = []
    var opened: [(checkout: CheckoutID, discrepancy: Discrepancy)] = []
    var resolved: [Discrepancy] = []

    init(now: Timestamp, policy: PaymentStore.Policy, identifiers: IdentifierSource) {
        self.now = now
        self.policy = policy
        self.identifiers = identifiers
    }

    /// Decides one checkout. Pure but for the ids of what is planned.
    ///
    /// - Parameters:
    ///   - operations: those of the checkout that aren't final, and the cancels that aren't failed.
    ///   - announcing: events of the caller's own change, told before those that follow from it.
    mutating func settle(
        _ checkout: Checkout, _ known: CheckoutHoldings, announcing: [EventType]
    ) -> SettledCheckout {
        var stored = known.executions
        var open = known.operations
        var failures: [PaymentOperation] = []
        var actions = known.actions
        for index in open.indices {
            guard let execution = stored.first(where: { $0.execution.id == open[index].execution?.id }),
                let settled = open[index].settled(
                    by: execution.execution.picture, others: actions.without(open[index]))
            else { continue }
            // What explains this one explains no other.
            actions.account(for: settled)
            open[index] = settled
            finished.append(settled)
            if settled.state == .failed { failures.append(settled) }
        }
        open.removeAll(where: \.state.isFinal)
        let cancelling = Set(open.filter { $0.kind == .cancel }.compactMap { $0.execution?.id })
        // The shop's cancel failed, or was undone, so the execution is as it was before: a success of it pays, or is
        // taken back.
        let cancelled = known.cancelled.subtracting(
            failures.filter { $0.kind == .cancel }.compactMap { $0.execution?.id })
        for index in stored.indices where stored[index].execution.cancelReason == .requested {
            let execution = stored[index].execution
            let isCancelled = cancelled.contains(execution.id)
            let isUndone = isCancelled && execution.state.holdsMoney && !cancelling.contains(execution.id)
            if !isCancelled || isUndone { stored[index].execution.cancelReason = nil }
        }

        let move = open.first { $0.kind == .moveAmount }
        let settlement = Settlement(
            of: checkout, executions: stored.map(\.execution), pendingMove: move?.amount, rules: policy.settlement,
            now: now)
        var readNow: Set<ExecutionID> = []
        var held: Set<ExecutionID> = []
        for effect in settlement.effects {
            switch effect {
            case .cancel(let id, let reason):
                // At most one is ever open. One that is on its way may have come too early and fail; then this is
                // decided again, so the reason stays what it was.
                guard let index = stored.firstIndex(where: { $0.execution.id == id }), !cancelling.contains(id) else {
                    continue
                }
                stored[index].execution.cancelReason = reason
                planCancel(of: stored[index].execution, checkout: checkout.id)
            case .cancelled(let id):
                guard let index = stored.firstIndex(where: { $0.execution.id == id }) else { continue }
                stored[index].execution.cancelReported = true
            case .read(let id): readNow.insert(id)
            case .amountMoved(let applied): finishMove(move, applied: applied, settlement.checkout)
            case .held(let id): held.insert(id)
            case .event: break
            }
        }
        checkouts.append(CheckoutRow(checkout: settlement.checkout, dueAt: settlement.dueAt))
        let settled = SettledCheckout(checkout: settlement.checkout, executions: stored.map(\.execution))
        for type in announcing { tell(type, about: settled) }
        for effect in settlement.effects { if case .event(let type) = effect { tell(type, about: settled) } }
        for execution in stored { take(execution, of: settled.checkout, readNow: readNow) }
        judge(settled, stored, open + cancels.filter { $0.checkout == checkout.id }, held: held, known.discrepancies)
        for operation in failures {
            events.append(
                Event(
                    type: .operationFailed, checkout: checkout.id, execution: operation.execution?.id,
                    data: ["operation": operation.json]))
        }
        return settled
    }

    private mutating func tell(_ type: EventType, about settled: SettledCheckout) {
        events.append(
            Event(
                type: type, checkout: settled.checkout.id, execution: settled.checkout.currentExecution,
                data: ["checkout": settled.json]))
    }

    private mutating func planCancel(of execution: CheckoutExecution, checkout: CheckoutID) {
        cancels.append(
            PaymentOperation(
                id: OperationID(identifiers.next()), kind: .cancel, checkout: checkout, execution: execution.reference,
                key: IdempotencyKey(identifiers.next()), intentReason: execution.cancelReason?.rawValue,
                createdAt: now))
    }

    private mutating func finishMove(_ move: PaymentOperation?, applied: Bool, _ checkout: Checkout) {
        guard var move else { return }
        move.state = applied ? .succeeded : .failed
        move.reason = applied ? nil : "the payment was authorized for the amount before"
        finished.append(move)
        if applied, let id = checkout.currentExecution { amounts.append((id, checkout.amount)) }
    }

    /// The execution's row, where it differs from what is stored, and the events about the difference.
    private mutating func take(_ stored: StoredExecution, of checkout: Checkout, readNow: Set<ExecutionID>) {
        let execution = stored.execution
        let picture = execution.picture
        let hasChanged = stored.hasChanged
        var checkAt = stored.checkAt
        if readNow.contains(execution.id) {
            checkAt = now
        } else if hasChanged || (checkAt == nil && stored.checks == 0) {
            checkAt = policy.healing.next(
                for: picture.state, checks: 0, changedAt: now, hasLease: checkout.lease?.execution == execution.id,
                now: now, jitter: .random(in: 0...255))
            if picture.lacksFigures || stored.facts.map(\.fact).needFigures {
                checkAt = now + policy.healing.pending.delay(before: 0, jitter: .random(in: 0...255))
            }
        }
        let isSame =
            !hasChanged && checkAt == stored.checkAt && execution.cancelReason == stored.storedCancelReason
            && execution.cancelReported == stored.storedCancelReported
        guard !isSame else { return }
        executions.append(ExecutionRow(execution: execution, checkAt: checkAt, hasChanged: hasChanged))
        var types: [EventType] = []
        if (picture.captured?.minor ?? 0) > (stored.storedCapturedMinor ?? 0) { types.append(.executionCaptured) }
        if picture.state == .cancelled, stored.storedState != .cancelled { types.append(.executionCancelled) }
        if (picture.refunded?.minor ?? 0) > (stored.storedRefundedMinor ?? 0), picture.state != .cancelled {
            types.append(.executionRefunded)
        }
        for type in types {
            events.append(
                Event(
                    type: type, checkout: checkout.id, execution: execution.id,
                    data: ["execution": execution.json(checkout: checkout.id, facts: stored.facts)]))
        }
    }
}

/// What a checkout holds besides its own row.
struct CheckoutHoldings {
    var executions: [StoredExecution] = []
    /// Those that aren't final, oldest first.
    var operations: [PaymentOperation] = []
    /// Open discrepancies, and those that a person has dealt with.
    var discrepancies: [Discrepancy] = []
    /// Executions with a cancel that hasn't failed.
    var cancelled: Set<ExecutionID> = []
    /// What the checkout's operations already account for, where one of them has an unknown outcome.
    var actions = AccountedActions()
}
