import Foundation
import Lockstep

/// A checkout or a charge whose row this transaction has locked: what owns an execution, ready to be settled.
enum LockedOwner {
    case checkout(Checkout)
    case charge(Charge)

    /// Whose events are told one after the other, where it isn't a checkout.
    var subject: UUID? {
        switch self {
        case .checkout: nil
        case .charge(let charge): charge.subscription?.uuid ?? charge.id.uuid
        }
    }

    /// Whether the gate's `proceed` holds the basket for this execution: a payment has probably begun.
    func hasLease(on execution: ExecutionID) -> Bool {
        if case .checkout(let checkout) = self { checkout.lease?.execution == execution } else { false }
    }

    /// Whether nobody knows if the execution holds money, whatever its state says.
    func isInDoubt(about execution: ExecutionID) -> Bool {
        guard case .charge(let charge) = self else { return false }
        return charge.attempts.contains { $0.execution == execution && $0.outcome == .unknown }
    }
}

extension Transaction {
    /// Locks what owns an execution until the transaction ends; nil where there is none any more.
    func lock(_ owner: ExecutionOwner) async throws -> LockedOwner? {
        switch owner {
        case .checkout(let id): try await lockCheckout(id).map { .checkout($0) }
        case .charge(let id): try await lockCharge(id).map { .charge($0) }
        }
    }
}
