import Basics
import Foundation
import Lockstep

extension SettlementChanges {
    /// Opens what a person must look at from now on, and resolves what is no longer so.
    ///
    /// - Parameters:
    ///   - operations: those of the checkout that aren't final, with what was decided just now.
    ///   - known: its open discrepancies, and those that a person has dealt with; they aren't opened again.
    mutating func judge(
        _ settled: SettledCheckout, _ stored: [StoredExecution], _ operations: [PaymentOperation],
        held: Set<ExecutionID>, _ known: [Discrepancy]
    ) {
        let subjects = stored.map { stored in
            CheckoutDiscrepancies.Subject(
                stored.execution, changedAt: stored.hasChanged ? now : stored.changedAt,
                isHeld: held.contains(stored.execution.id))
        }
        let judged = CheckoutDiscrepancies(
            of: settled.checkout, executions: subjects, operations: operations, rules: policy.discrepancies, now: now)
        let matter = Set(known.map(\.cause.key))
        for cause in judged.causes where judged.unattended.contains(cause.key) && !matter.contains(cause.key) {
            open(cause, of: settled.checkout.id)
        }
        let causes = Set(judged.causes.map(\.key))
        for discrepancy in known where discrepancy.state == .open && !causes.contains(discrepancy.cause.key) {
            // Others are opened and resolved by comparing with the provider.
            guard Discrepancy.Class.ofCheckouts.contains(discrepancy.cause.kind) else { continue }
            resolve(discrepancy, of: settled.checkout.id)
        }
    }

    private mutating func open(_ cause: DiscrepancyCause, of checkout: CheckoutID) {
        let discrepancy = Discrepancy.open(DiscrepancyID(identifiers.next()), cause, at: now)
        opened.append((checkout, discrepancy))
        tell(.discrepancyOpened, discrepancy, of: checkout)
    }

    private mutating func resolve(_ discrepancy: Discrepancy, of checkout: CheckoutID) {
        var discrepancy = discrepancy
        discrepancy.resolve(at: now)
        resolved.append(discrepancy)
        tell(.discrepancyResolved, discrepancy, of: checkout)
    }

    private mutating func tell(_ type: EventType, _ discrepancy: Discrepancy, of checkout: CheckoutID) {
        events.append(
            Event(
                type: type, checkout: checkout, execution: discrepancy.cause.execution,
                data: ["discrepancy": discrepancy.json]))
    }
}

extension Discrepancy.Class {
    /// Those that a checkout's own facts open and resolve.
    static let ofCheckouts: Set<Self> = [.amountMismatch, .duplicatePayment, .unresolvedOperation, .overdueFinalState]
}
