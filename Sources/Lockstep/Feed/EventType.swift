/// What the shop is told. The first part names the object in `data`; with it goes the scope that may see it.
public enum EventType: String, Hashable, Sendable, CaseIterable {
    case checkoutCreated = "checkout.created"
    case checkoutAmountChanged = "checkout.amount_changed"
    case checkoutPaid = "checkout.paid"
    case checkoutFailed = "checkout.failed"
    case checkoutExpired = "checkout.expired"
    case checkoutCancelled = "checkout.cancelled"
    case checkoutRefunded = "checkout.refunded"
    case checkoutDuplicateCancelled = "checkout.duplicate_cancelled"
    case checkoutMismatchCancelled = "checkout.mismatch_cancelled"
    case executionCaptured = "execution.captured"
    case executionCancelled = "execution.cancelled"
    case executionRefunded = "execution.refunded"
    case operationFailed = "operation.failed"
    case disputeChanged = "dispute.changed"
    case discrepancyOpened = "discrepancy.opened"
    case discrepancyResolved = "discrepancy.resolved"

    /// `checkout`, `execution`, …
    public var subject: String { String(rawValue.prefix { $0 != "." }) }

    public var scope: Scope {
        switch subject {
        case "checkout": .checkouts
        case "subscription": .subscriptions
        case "instrument": .instruments
        case "discrepancy": .ops
        default: .payments
        }
    }
}

/// What a merchant key may reach (invariant M10).
public enum Scope: String, Hashable, Sendable, CaseIterable, Comparable {
    case checkouts, payments, subscriptions, instruments, ops

    public static func < (left: Scope, right: Scope) -> Bool { left.rawValue < right.rawValue }
}
