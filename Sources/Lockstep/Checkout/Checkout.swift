import Basics

/// One order's way to being paid: its confirmed amount, its executions, and what became of it.
public struct Checkout: Hashable, Sendable {
    public enum Status: String, Hashable, Sendable, CaseIterable {
        case open, processing, paid, failed, expired, cancelled, refunded
    }

    /// Whether the books and the provider agree on the amount (invariant M5).
    public enum AmountState: String, Hashable, Sendable { case inStep, moving, unknown }

    public let id: CheckoutID
    public let merchantReference: String
    public let holderReference: String
    public let workflowCode: String
    public var status: Status
    /// The confirmed amount: what the shop wants, the provider knows, and the app was told.
    public var amount: Money
    /// 1 at first, one more with each confirmed change.
    public var amountVersion: Int64
    public var amountState: AmountState
    public var basketVersion: String?
    public var amountPolicy: AmountPolicy
    /// Nil: all that the provider offers.
    public var allowedPaymentMethods: [String]?
    public var currentExecution: ExecutionID?
    /// The execution that paid the order; at most one, for ever (invariant M1).
    public var keptExecution: ExecutionID?
    public var lease: GateLease?
    public let createdAt: Timestamp
    public let expiresAt: Timestamp

    public init(
        id: CheckoutID, merchantReference: String, holderReference: String, workflowCode: String, status: Status,
        amount: Money, amountVersion: Int64, amountState: AmountState, basketVersion: String?,
        amountPolicy: AmountPolicy, allowedPaymentMethods: [String]?, currentExecution: ExecutionID?,
        keptExecution: ExecutionID?, lease: GateLease?, createdAt: Timestamp, expiresAt: Timestamp
    ) {
        self.id = id
        self.merchantReference = merchantReference
        self.holderReference = holderReference
        self.workflowCode = workflowCode
        self.status = status
        self.amount = amount
        self.amountVersion = amountVersion
        self.amountState = amountState
        self.basketVersion = basketVersion
        self.amountPolicy = amountPolicy
        self.allowedPaymentMethods = allowedPaymentMethods
        self.currentExecution = currentExecution
        self.keptExecution = keptExecution
        self.lease = lease
        self.createdAt = createdAt
        self.expiresAt = expiresAt
    }

    /// Whether the order has been paid, whatever happened to the money afterwards.
    public var wasPaid: Bool { keptExecution != nil }
}

/// What a client token may do to the amount. A merchant key isn't bound by it.
public struct AmountPolicy: Hashable, Sendable {
    public let clientMayUpdate: Bool
    /// Inclusive bounds, of the currency that they were given in; nil: none.
    public let minimum: Money?
    public let maximum: Money?

    public init(clientMayUpdate: Bool, minimum: Money? = nil, maximum: Money? = nil) {
        self.clientMayUpdate = clientMayUpdate
        self.minimum = minimum
        self.maximum = maximum
    }

    public static let merchantOnly = AmountPolicy(clientMayUpdate: false)

    /// Whether a client token may move the amount from `current` to `amount`.
    public func allows(_ amount: Money, from current: Money) -> Bool {
        guard clientMayUpdate, amount.currency == current.currency else { return false }
        if let minimum, minimum.currency != amount.currency || amount.minor < minimum.minor { return false }
        if let maximum, maximum.currency != amount.currency || amount.minor > maximum.minor { return false }
        return true
    }
}

/// A `proceed` of the gate: the basket stands still while a payment starts.
public struct GateLease: Hashable, Sendable {
    public let execution: ExecutionID
    public let until: Timestamp

    public init(execution: ExecutionID, until: Timestamp) {
        self.execution = execution
        self.until = until
    }
}

/// An execution as its checkout, or its charge, sees it.
public struct CheckoutExecution: Hashable, Sendable {
    public let reference: ExecutionReference
    /// 1 for the first of the order; for a charge, the number of the attempt.
    public let ordinal: Int
    public let merchantReference: String
    /// The amount that the provider confirmed for it.
    public var amount: Money
    public var picture: ExecutionPicture
    /// A cancel was decided: why.
    public var cancelReason: CancelReason?
    /// The cancel was reported to the shop, once it was known to have worked.
    public var cancelReported: Bool
    public let createdAt: Timestamp

    public var id: ExecutionID { reference.id }
    public var state: ExecutionState { picture.state }

    /// It holds money, and nobody knows how much: until a reading tells, it may be what pays the order. A captured amount
    /// may be a part, and says nothing yet.
    public var mayHavePaid: Bool { state.holdsMoney && picture.authorized == nil && cancelReason == nil }

    public init(
        reference: ExecutionReference, ordinal: Int, merchantReference: String, amount: Money,
        picture: ExecutionPicture, cancelReason: CancelReason? = nil, cancelReported: Bool = false,
        createdAt: Timestamp
    ) {
        self.reference = reference
        self.ordinal = ordinal
        self.merchantReference = merchantReference
        self.amount = amount
        self.picture = picture
        self.cancelReason = cancelReason
        self.cancelReported = cancelReported
        self.createdAt = createdAt
    }
}

/// Why Lockstep itself takes an execution back.
public enum CancelReason: String, Hashable, Sendable {
    /// Another execution already paid the order, or the shop gave the order up.
    case duplicate
    /// It succeeded for another amount than the confirmed one.
    case mismatch
    /// The shop cancelled the checkout before anybody paid.
    case checkoutCancelled
    /// An attempt of a charge is over that may still succeed: the customer was asked for, or another attempt paid.
    case attemptOver
    /// The shop asked for this execution to be cancelled.
    case requested
}
