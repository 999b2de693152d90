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
    case chargeSucceeded = "charge.succeeded"
    case chargeFailed = "charge.failed"
    case chargeNeedsCustomer = "charge.needs_customer"
    case chargeSkipped = "charge.skipped"
    case instrumentExpiring = "instrument.expiring"
    case instrumentChanged = "instrument.changed"
    case disputeChanged = "dispute.changed"
    case subscriptionPastDue = "subscription.past_due"
    case subscriptionNeedsInstrument = "subscription.needs_instrument"
    case subscriptionRecovered = "subscription.recovered"
    case subscriptionCancelled = "subscription.cancelled"
    case subscriptionEnded = "subscription.ended"
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
