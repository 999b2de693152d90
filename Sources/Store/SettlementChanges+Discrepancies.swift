import Basics
import Foundation
import Lockstep

extension SettlementChanges {
    /// Opens what a person must look at from now on, and resolves what is no longer so.
    ///
    /// - Parameters:
    ///   - operations: its operations that aren't final; what was planned just now is added to them.
    ///   - known: its open discrepancies, and those that a person has dealt with; they aren't opened again.
    mutating func judge(
        _ order: OrderDiscrepancies.Order, of owner: ExecutionOwner, about subject: EventSubject,
        _ stored: [StoredExecution], _ operations: [PaymentOperation], held: Set<ExecutionID> = [],
        _ known: [Discrepancy]
    ) {
        let subjects = stored.map { stored in
            OrderDiscrepancies.Subject(
                stored.execution, changedAt: stored.hasChanged ? now : stored.changedAt,
                isHeld: held.contains(stored.execution.id))
        }
        let judged = OrderDiscrepancies(
            of: order, executions: subjects, operations: operations + cancels.filter { $0.owner == owner },
            rules: policy.discrepancies, now: now)
        let matter = Set(known.map(\.cause.key))
        for cause in judged.causes where judged.unattended.contains(cause.key) && !matter.contains(cause.key) {
            open(cause, of: owner, about: subject)
        }
        let causes = Set(judged.causes.map(\.key))
        for discrepancy in known where discrepancy.state == .open && !causes.contains(discrepancy.cause.key) {
            // Others are opened and resolved by comparing with the provider.
            guard Discrepancy.Class.ofOrders.contains(discrepancy.cause.kind) else { continue }
            resolve(discrepancy, about: subject)
        }
    }

    /// - Parameter owner: nil for what belongs to no order.
    mutating func open(_ cause: DiscrepancyCause, of owner: ExecutionOwner?, about subject: EventSubject) {
        let discrepancy = Discrepancy.open(DiscrepancyID(identifiers.next()), cause, at: now)
        opened.append((owner, discrepancy))
        tell(.discrepancyOpened, discrepancy, about: subject)
    }

    mutating func resolve(_ discrepancy: Discrepancy, about subject: EventSubject) {
        var discrepancy = discrepancy
        discrepancy.resolve(at: now)
        resolved.append(discrepancy)
        tell(.discrepancyResolved, discrepancy, about: subject)
    }

    private mutating func tell(_ type: EventType, _ discrepancy: Discrepancy, about subject: EventSubject) {
        events.append(
            Event(
                type: type, about: subject, execution: discrepancy.cause.execution,
                data: ["discrepancy": discrepancy.json]))
    }
}

extension Discrepancy.Class {
    /// Those that an order's own facts open and resolve.
    static let ofOrders: Set<Self> = [.amountMismatch, .duplicatePayment, .unresolvedOperation, .overdueFinalState]
}
