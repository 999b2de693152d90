import Basics

/// What all known facts together say about one execution.
public struct ExecutionPicture: Hashable, Sendable {
    public var state: ExecutionState = .created
    /// Nil when an authorization is known but its amount isn't; then the execution must be read.
    public var authorized: Money?
    public var captured: Money?
    /// ``captured`` where somebody told how much it was. A capture of which nobody told the amount counts as a whole one,
    /// and a guess like that proves nothing about an operation of ours.
    public var toldCaptured: Money?
    public var refunded: Money?
    public var paymentMethodCode: String?
    public var instrumentID: String?
    /// In alphabetical order.
    public var paymentIDs: [String] = []
    /// The provider's result of the latest failure, e.g. `InsufficientBalance`.
    public var failureReason: String?
    /// When the latest failure happened, at the provider.
    public var failedAt: Timestamp?
    /// What the payment records say that were read when the latest failure was known.
    public var recordOfFailure: FailureRecord = .open
    /// Whether one of the failures is one behind which a charge can hide (`ProviderTimeout`), and no record settles it.
    public var hidesCharge = false
    /// What a customer would have to do, or had to: `3ds`, `confirm`, `redirect`. `authorizePending` alone means nothing.
    public var actionRequired: String?
    /// The newest status time: where a long poll starts from.
    public var newestStatusAt: Timestamp?
    /// What became of each action that the provider took on, by its id.
    public var actions: [String: ActionResult] = [:]

    public init() {}

    /// Whether money moved and nobody knows how much: then the execution and its payments must be read.
    public var lacksFigures: Bool {
        switch state {
        case .authorized: authorized == nil
        case .partiallyCaptured, .captured: authorized == nil || captured == nil
        case .partiallyRefunded, .refunded: authorized == nil || captured == nil || refunded == nil
        case .unknown: hidesCharge
        case .created, .processing, .needsCustomer, .cancelled, .failed: false
        }
    }

    /// What an order can be paid with: the authorized amount or, while only the capture is known, the captured one.
    /// That one may be a part: equal to what is wanted it is enough, less than that it says nothing yet.
    public var paidAmount: Money? { authorized ?? captured }
}

/// What payment records say about a failure (reference 2.7).
public enum FailureRecord: Hashable, Sendable {
    /// Nothing that would settle it: there is none, or one of them still says `Unknown` or `Pending`.
    case open
    /// There is the customer's money behind one of them.
    case held
    /// There is no money behind any of them.
    case over

    /// - Parameter records: each with its payment; those of before the failure left out. Of what was said of one payment
    ///   a last word counts, whatever else was said.
    init(_ records: some Sequence<(payment: String?, status: String)>) {
        let byPayment = Dictionary(grouping: records, by: { $0.payment ?? "" }).values.map { Set($0.map(\.status)) }
        if byPayment.contains(where: { !$0.isDisjoint(with: ["Authorized", "Captured", "Settled"]) }) {
            self = .held
        } else if !byPayment.isEmpty,
            byPayment.allSatisfy({ !$0.isDisjoint(with: ["Failed", "Expired", "Canceled"]) })
        {
            self = .over
        } else {
            self = .open
        }
    }
}

/// What is known of one action (capture, cancel, refund, …).
public struct ActionResult: Hashable, Sendable {
    public let action: String
    /// Nil while it runs.
    public var success: Bool?
    public var amount: Money?
    public var reason: String?

    public init(action: String, success: Bool?, amount: Money?, reason: String?) {
        self.action = action
        self.success = success
        self.amount = amount
        self.reason = reason
    }
}
