import Basics

/// The pre-payment check (invariant M5): may this execution be paid now? Doubt is a refusal.
public enum Gate {
    /// Why not, in the order in which they are tested.
    public enum Reason: String, Hashable, Sendable, CaseIterable {
        case unknownExecution = "unknown-execution"
        case alreadyPaid = "already-paid"
        case supersededExecution = "superseded-execution"
        case checkoutCancelled = "checkout-cancelled"
        case checkoutExpired = "checkout-expired"
        case paymentInProgress = "payment-in-progress"
        case amountNotInStep = "amount-not-in-step"
        case amountMismatch = "amount-mismatch"
        case basketChanged = "basket-changed"
        case methodNotAllowed = "method-not-allowed"
        case validatorRefused = "validator-refused"
        case validatorUnavailable = "validator-unavailable"
        case `internal`

        /// A sentence that a customer can read.
        public var message: String {
            switch self {
            case .unknownExecution: "We could not find this payment. Please start the checkout again."
            case .alreadyPaid: "This order has already been paid."
            case .supersededExecution: "This payment page is out of date. Please reload the checkout."
            case .checkoutCancelled: "This order has been cancelled."
            case .checkoutExpired: "This checkout has expired. Please start again."
            case .paymentInProgress: "A payment for this order is already in progress. Please wait a moment."
            case .amountNotInStep: "The total is being updated. Please try again in a moment."
            case .amountMismatch: "The total has changed. Please review your order and try again."
            case .basketChanged: "Your basket has changed. Please review your order and try again."
            case .methodNotAllowed: "This payment method is not available for this order."
            case .validatorRefused: "This order cannot be paid right now. Please review your order."
            case .validatorUnavailable, .internal: "We could not check your order right now. Please try again."
            }
        }
    }

    /// What the app asks.
    public struct Question: Hashable, Sendable {
        public let execution: ExecutionID
        public let paymentMethodCode: String
        public let amount: Money?
        public let basketVersion: String?

        public init(execution: ExecutionID, paymentMethodCode: String, amount: Money?, basketVersion: String?) {
            self.execution = execution
            self.paymentMethodCode = paymentMethodCode
            self.amount = amount
            self.basketVersion = basketVersion
        }
    }

    /// Nil: proceed, as far as the books know. The merchant's own check comes after.
    public static func refusal(
        of question: Question, checkout: Checkout, execution: CheckoutExecution, now: Timestamp
    ) -> Reason? {
        if checkout.wasPaid { return .alreadyPaid }
        if checkout.currentExecution != execution.id { return .supersededExecution }
        if checkout.status == .cancelled { return .checkoutCancelled }
        if checkout.status == .expired || now >= checkout.expiresAt { return .checkoutExpired }
        // An execution is single use: after a failure or a cancel only a new session can be paid.
        if [.failed, .cancelled, .refunded].contains(execution.state) { return .supersededExecution }
        let lease = checkout.lease.flatMap { now < $0.until ? $0 : nil }
        if let lease, lease.execution != execution.id { return .paymentInProgress }
        if lease == nil ? execution.state != .created : execution.state.holdsMoney { return .paymentInProgress }
        if checkout.amountState != .inStep || execution.amount != checkout.amount { return .amountNotInStep }
        if let amount = question.amount, amount != checkout.amount { return .amountMismatch }
        if let basket = question.basketVersion, basket != checkout.basketVersion { return .basketChanged }
        if let allowed = checkout.allowedPaymentMethods, !allowed.contains(question.paymentMethodCode) {
            return .methodNotAllowed
        }
        return nil
    }
}
