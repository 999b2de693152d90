/// Where one execution stands. Computed from facts (see ``ExecutionPicture``), never set by hand.
public enum ExecutionState: String, Hashable, Sendable, CaseIterable {
    /// Nobody has tried to pay.
    case created
    /// An authorization runs.
    case processing
    /// Waits for the customer: 3-D Secure, a redirect, a confirmation.
    case needsCustomer
    case authorized
    case partiallyCaptured
    case captured
    case partiallyRefunded
    case refunded
    case cancelled
    /// The latest attempt failed; the workflow may still try another provider, so a success can follow.
    case failed
    /// Something was reported that has no known meaning (invariant M7).
    case unknown

    /// Whether the customer's money is held or taken.
    public var holdsMoney: Bool {
        switch self {
        case .authorized, .partiallyCaptured, .captured, .partiallyRefunded: true
        case .created, .processing, .needsCustomer, .refunded, .cancelled, .failed, .unknown: false
        }
    }

    /// Whether money was taken, whatever came after.
    var wasCaptured: Bool {
        switch self {
        case .partiallyCaptured, .captured, .partiallyRefunded, .refunded: true
        case .created, .processing, .needsCustomer, .authorized, .cancelled, .failed, .unknown: false
        }
    }

    /// Whether an attempt to pay runs, so that a result is still to come.
    public var isInFlight: Bool {
        switch self {
        case .processing, .needsCustomer, .unknown: true
        case .created, .authorized, .partiallyCaptured, .captured, .partiallyRefunded, .refunded, .cancelled, .failed:
            false
        }
    }

    /// Which states may follow this one as facts come in, in the order in which they happened. Steps may be skipped.
    ///
    /// The provider can take back the result of any action (`executionActionUpdated`), and can authorize after a cancel
    /// that came too early; so no state that held money is the last one for certain.
    public var successors: Set<ExecutionState> {
        let paid: Set<ExecutionState> = [
            .authorized, .partiallyCaptured, .captured, .partiallyRefunded, .refunded, .cancelled,
        ]
        let next =
            switch self {
            case .created, .processing, .needsCustomer, .unknown, .failed:
                paid.union([.processing, .needsCustomer, .failed, .unknown])
            case .authorized: paid.union([.failed])
            case .partiallyCaptured, .captured, .partiallyRefunded, .refunded, .cancelled: paid
            }
        return next.subtracting([self])
    }

    /// Whether the step to `next` takes back what had happened: possible, and rare.
    public func takesBack(goingTo next: ExecutionState) -> Bool {
        let order: [ExecutionState] = [
            .failed, .authorized, .partiallyCaptured, .captured, .partiallyRefunded, .refunded, .cancelled,
        ]
        guard self != .failed, let here = order.firstIndex(of: self), let there = order.firstIndex(of: next) else {
            return false
        }
        return there < here
    }
}
