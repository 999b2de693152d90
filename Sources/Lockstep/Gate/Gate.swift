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

    /// What the merchant's own check said yes to. Between its answer and the lease, the basket may have become another.
    public struct Basket: Hashable, Sendable {
        public let amount: Money
        public let version: String?

        public init(of checkout: Checkout) {
            amount = checkout.amount
            version = checkout.basketVersion
        }
    }

    /// Nil: proceed, as far as the books know. The merchant's own check is asked only then.
    ///
    /// - Parameters:
    ///   - others: the executions of the checkout's other sessions, which may still be what pays it.
    ///   - approved: what that check has said yes to, where it was asked.
    public static func refusal(
        of question: Question, checkout: Checkout, execution: CheckoutExecution, others: [CheckoutExecution],
        approved: Basket? = nil, now: Timestamp
    ) -> Reason? {
        // A payment that was cancelled has given the order up.
        if checkout.wasPaid, checkout.status != .cancelled { return .alreadyPaid }
        if checkout.currentExecution != execution.id { return .supersededExecution }
        if checkout.status == .cancelled { return .checkoutCancelled }
        if checkout.status == .expired || now >= checkout.expiresAt { return .checkoutExpired }
        // An execution is single use: after a failure or a cancel only a new session can be paid.
        if [.failed, .cancelled, .refunded].contains(execution.state) { return .supersededExecution }
        let lease = checkout.lease.flatMap { now < $0.until ? $0 : nil }
        if let lease, lease.execution != execution.id { return .paymentInProgress }
        let mayHavePaid = execution.state.holdsMoney || execution.picture.hidesCharge
        if lease == nil ? execution.state != .created : mayHavePaid { return .paymentInProgress }
        // Nobody knows yet how much one of the sessions before this one holds.
        if others.contains(where: \.mayHavePaid) { return .paymentInProgress }
        if checkout.amountState != .inStep || execution.amount != checkout.amount { return .amountNotInStep }
        let basket = Basket(of: checkout)
        if [question.amount, approved?.amount].contains(where: { $0 != nil && $0 != basket.amount }) {
            return .amountMismatch
        }
        if let version = question.basketVersion, version != basket.version { return .basketChanged }
        if let approved, approved.version != basket.version { return .basketChanged }
        if let allowed = checkout.allowedPaymentMethods, !allowed.contains(question.paymentMethodCode) {
            return .methodNotAllowed
        }
        return nil
    }
}
