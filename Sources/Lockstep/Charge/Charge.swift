import Basics

/// A charge of a saved instrument without the customer: one for each period of a subscription, or an unscheduled one.
public struct Charge: Hashable, Sendable {
    public enum State: String, Hashable, Sendable, CaseIterable {
        /// An attempt is to come, the first one or another.
        case scheduled
        case processing
        case succeeded
        case failed
        /// An attempt may have succeeded; it is being looked into (invariant M7).
        case unknown
        /// The bank wants the customer, who isn't there.
        case needsCustomer
        /// No attempt is made, and why is in ``Charge/reason``.
        case skipped
    }

    public typealias Period = BillingPeriod

    public let id: ChargeID
    /// Nil, as the period, for an unscheduled charge.
    public let subscription: SubscriptionID?
    public let period: Period?
    /// The shop's reference: the subscription's, or the charge's own.
    public let merchantReference: String
    public let holderReference: String
    public var instrument: InstrumentID
    public let workflowCode: String
    public var amount: Money
    public var expiryPolicy: ExpiryPolicy
    public var state: State
    /// Why it failed, was skipped, or isn't known.
    public var reason: String?
    /// Not nil exactly while it is scheduled.
    public var nextAttemptAt: Timestamp?
    /// By number.
    public var attempts: [ChargeAttempt]
    public let createdAt: Timestamp

    public init(
        id: ChargeID, subscription: SubscriptionID? = nil, period: Period? = nil, merchantReference: String,
        holderReference: String, instrument: InstrumentID, workflowCode: String, amount: Money,
        expiryPolicy: ExpiryPolicy = .block, state: State = .scheduled, reason: String? = nil,
        nextAttemptAt: Timestamp?, attempts: [ChargeAttempt] = [], createdAt: Timestamp
    ) {
        self.id = id
        self.subscription = subscription
        self.period = period
        self.merchantReference = merchantReference
        self.holderReference = holderReference
        self.instrument = instrument
        self.workflowCode = workflowCode
        self.amount = amount
        self.expiryPolicy = expiryPolicy
        self.state = state
        self.reason = reason
        self.nextAttemptAt = nextAttemptAt
        self.attempts = attempts
        self.createdAt = createdAt
    }

    /// What the provider gets as the reference of an attempt.
    public func reference(ofAttempt number: Int, by references: PaymentReference) -> String {
        guard let period else { return merchantReference }
        return references.reference(of: merchantReference, period: period.index, attempt: number)
    }
}

/// One try to charge: one execution at the provider (reference 6.2).
public struct ChargeAttempt: Hashable, Sendable {
    public enum Outcome: String, Hashable, Sendable, CaseIterable {
        case processing
        /// It may have succeeded.
        case unknown
        case succeeded
        case failed
        /// The customer would have to authenticate; its execution is cancelled.
        case needsCustomer
        /// Another attempt paid first, or nobody went on with it before it was authorized; whatever comes of this one is
        /// taken back.
        case cancelled

        /// While an attempt is open there is no other: it succeeded, or still can (invariant M2).
        public var isOpen: Bool { self == .processing || self == .unknown || self == .succeeded }
    }

    /// From 1.
    public let number: Int
    /// The provider's reference of its execution.
    public let merchantReference: String
    public let instrument: InstrumentID
    /// The provider's code of the method, e.g. `card`.
    public let paymentMethod: String
    public let amount: Money
    /// Nil until the provider has made it.
    public var execution: ExecutionID?
    public var outcome: Outcome
    public var reason: String?
    public let begunAt: Timestamp

    public init(
        number: Int, merchantReference: String, instrument: InstrumentID, paymentMethod: String, amount: Money,
        execution: ExecutionID? = nil, outcome: Outcome = .processing, reason: String? = nil, begunAt: Timestamp
    ) {
        self.number = number
        self.merchantReference = merchantReference
        self.instrument = instrument
        self.paymentMethod = paymentMethod
        self.amount = amount
        self.execution = execution
        self.outcome = outcome
        self.reason = reason
        self.begunAt = begunAt
    }
}

/// What an execution is for.
public enum ExecutionOwner: Hashable, Sendable {
    case checkout(CheckoutID)
    case charge(ChargeID)
}
