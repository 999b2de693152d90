/// Why the shop asks for something, in its own words, and how that is kept apart from why Lockstep asks for it.
///
/// One text holds both. Lockstep's own cancels have a word of ``CancelReason`` there, by which they are known again. What
/// the shop says of a cancel stands behind ``CancelReason/requested``, so that a shop which says "duplicate" is not taken
/// for Lockstep itself.
extension PaymentOperation {
    /// What is written down where the shop gives this reason.
    public static func intentReason(_ kind: Kind, ofShop reason: String?) -> String? {
        kind == .cancel ? reason.map { shopReasonPrefix + $0 } : reason
    }

    /// The shop's reason, as it is passed on; nil where it gave none, and where Lockstep itself decided.
    public var shopReason: String? {
        guard kind == .cancel else { return kind.isLifecycle ? intentReason : nil }
        // Byte by byte: what follows may begin with a mark that joins the blank before it. A cancel from before reasons
        // were passed on has no prefix; under its key it is sent as it was.
        guard let intentReason, intentReason.utf8.starts(with: Self.shopReasonPrefix.utf8) else { return nil }
        return String(decoding: intentReason.utf8.dropFirst(Self.shopReasonPrefix.utf8.count), as: UTF8.self)
    }

    /// What stands before the shop's reason for a cancel.
    public static let shopReasonPrefix = "\(CancelReason.requested.rawValue): "
}

extension PaymentOperation {
    /// Why a change of the amount is unknown, or failed, that the provider took on while a payment of the execution ran.
    public static let heldByPayment = "a payment is under way"

    /// Why an operation is unknown whose key was replaced, since a look had shown that nothing happened under the one
    /// before. Nothing was sent under the new one.
    public static let rekeyed = "nothing was seen under the key before"

    /// Nothing was sent yet under its key, and another look comes first.
    public var isRekeyed: Bool { state == .unknown && reason == Self.rekeyed }

    /// It waits for nothing but the end of a payment.
    public var isHeldByPayment: Bool { state == .unknown && reason == Self.heldByPayment }
}
