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

    /// Whether an attempt to pay runs, so that a result is still to come.
    public var isInFlight: Bool {
        switch self {
        case .processing, .needsCustomer, .unknown: true
        case .created, .authorized, .partiallyCaptured, .captured, .partiallyRefunded, .refunded, .cancelled, .failed:
            false
        }
    }

    /// Which states may follow this one as facts come in. Facts can be learned out of order, so steps may be skipped.
    public var successors: Set<ExecutionState> {
        let paid: Set<ExecutionState> = [
            .authorized, .partiallyCaptured, .captured, .partiallyRefunded, .refunded, .cancelled,
        ]
        switch self {
        case .created: return paid.union([.processing, .needsCustomer, .failed, .unknown])
        case .processing: return paid.union([.needsCustomer, .failed, .unknown])
        case .needsCustomer: return paid.union([.processing, .failed, .unknown])
        case .unknown: return paid.union([.processing, .needsCustomer, .failed])
        case .failed: return paid.union([.processing, .needsCustomer, .unknown])
        // An authorization can be reversed later (executionActionUpdated with success: false).
        case .authorized: return paid.subtracting([.authorized]).union([.failed])
        case .partiallyCaptured: return paid.subtracting([.authorized, .partiallyCaptured])
        case .captured: return [.partiallyRefunded, .refunded, .cancelled]
        case .partiallyRefunded: return [.refunded, .cancelled]
        case .refunded, .cancelled: return []
        }
    }
}
