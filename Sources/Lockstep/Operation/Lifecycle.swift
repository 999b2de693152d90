/// What may be captured, cancelled and refunded, counting what is still in flight.
public enum Lifecycle {
    public enum Refusal: Error, Hashable, Sendable {
        case notCapturable, notCancellable, notRefundable
        case exceedsCapturable, exceedsRefundable
        case currencyMismatch
        /// A cancel of a part.
        case notTheWhole
    }

    /// - Parameters:
    ///   - amount: nil for all that is left.
    ///   - open: operations on this execution that aren't final.
    ///   - captures: its captures that worked. After a final one, the rest of the authorization was released
    ///     (section 2.6); one that is in flight is taken at its word.
    /// - Returns: the amount that will be captured.
    public static func capture(
        _ amount: Money?, of picture: ExecutionPicture, open: [PaymentOperation], captures: [PaymentOperation] = []
    ) throws(Refusal) -> Money {
        guard picture.state == .authorized || picture.state == .partiallyCaptured, let authorized = picture.authorized,
            !open.contains(where: { $0.kind == .cancel }),
            !(open + captures).contains(where: { $0.releasesTheRest(of: picture) })
        else { throw .notCapturable }
        let left = authorized.minor - (picture.captured?.minor ?? 0) - inFlight(.capture, open)
        guard left > 0 else { throw .notCapturable }
        return try taken(amount, left: left, whole: authorized, tooMuch: .exceedsCapturable)
    }

    public static func refund(
        _ amount: Money?, of picture: ExecutionPicture, open: [PaymentOperation]
    ) throws(Refusal) -> Money {
        guard [.partiallyCaptured, .captured, .partiallyRefunded].contains(picture.state),
            let captured = picture.captured, !open.contains(where: { $0.kind == .cancel })
        else { throw .notRefundable }
        let left = captured.minor - (picture.refunded?.minor ?? 0) - inFlight(.refund, open)
        guard left > 0 else { throw .notRefundable }
        return try taken(amount, left: left, whole: captured, tooMuch: .exceedsRefundable)
    }

    /// A cancel is always of the whole, and only where the customer's money is held or may yet be.
    ///
    /// - Parameters:
    ///   - amount: nil, or the whole.
    ///   - whole: what the execution is for, where nothing is known yet of an authorization.
    public static func cancel(
        _ amount: Money?, of picture: ExecutionPicture, whole: Money, open: [PaymentOperation]
    ) throws(Refusal) {
        switch picture.state {
        case .authorized, .partiallyCaptured, .captured, .partiallyRefunded, .processing, .needsCustomer, .unknown:
            break
        case .created, .refunded, .cancelled, .failed: throw .notCancellable
        }
        guard !open.contains(where: { $0.kind == .cancel }) else { throw .notCancellable }
        guard let amount else { return }
        let whole = picture.authorized ?? whole
        guard amount.currency == whole.currency else { throw .currencyMismatch }
        guard amount == whole else { throw .notTheWhole }
    }

    private static func inFlight(_ kind: PaymentOperation.Kind, _ open: [PaymentOperation]) -> Int64 {
        open.filter { $0.kind == kind && !$0.state.isFinal }.reduce(0) { $0 + ($1.amount?.minor ?? 0) }
    }

    private static func taken(
        _ amount: Money?, left: Int64, whole: Money, tooMuch: Refusal
    ) throws(Refusal) -> Money {
        guard let amount else {
            guard let rest = Money(minor: left, currency: whole.currency) else { throw tooMuch }
            return rest
        }
        guard amount.currency == whole.currency else { throw .currencyMismatch }
        guard amount.minor <= left else { throw tooMuch }
        return amount
    }
}

extension PaymentOperation {
    /// Whether nothing can be captured after it. A capture is final unless it says that it isn't; one that the provider
    /// undid released nothing.
    fileprivate func releasesTheRest(of picture: ExecutionPicture) -> Bool {
        let isUndone = actionID.flatMap { picture.actions[$0]?.success } == false
        return kind == .capture && state != .failed && isFinalCapture != false && !isUndone
    }
}
