import Basics

/// One thing that is known about an execution: what, when at the provider, and from where it was learned.
///
/// Facts are the only input of the execution's state (invariant M6). The same fact learned twice, from wherever, has
/// the same ``identity`` and is one row.
public struct Fact: Hashable, Sendable {
    public enum Kind: String, Hashable, Sendable, CaseIterable {
        /// An entry of the execution's `status[]`.
        case status
        /// The result of an action (authorize, capture, cancel, refund, confirm), or that one was asked for or waits.
        case action
        /// A payment record's figures at a moment.
        case payment
        /// A dispute's status.
        case dispute
    }

    public enum Source: String, Hashable, Sendable { case notification, read, answer, report }

    /// Where an action stands, for facts of kind ``Kind/action``.
    public enum Phase: String, Hashable, Sendable { case requested, pending, completed }

    public let kind: Kind
    /// Status: the code (`authorizeSuccessful`). Payment: the payment's status. Dispute: the dispute's status.
    public let code: String?
    /// `authorize`, `capture`, `cancel`, `refund`, `confirm`, or what else the provider names.
    public let action: String?
    public let actionID: String?
    public let phase: Phase?
    /// Only for a completed action.
    public let success: Bool?
    /// Action: the amount of its payment composition. Status of a read: the execution's amount at that reading.
    public let amount: Money?
    /// Payment records only: the totals at that moment.
    public let captured: Money?
    public let refunded: Money?
    /// The provider's result, e.g. `InsufficientBalance`, as ``DeclinePolicy/reason(_:detail:)`` keeps it.
    public let reason: String?
    /// Whatever a customer has to do: `3ds`, `confirm`, `redirect`.
    public let actionRequired: String?
    public let paymentID: String?
    public let paymentMethodCode: String?
    public let instrumentID: String?
    public let disputeID: String?
    /// When it happened, by the provider's clock.
    public let at: Timestamp
    /// False where nobody told when it happened, and ``at`` is when it was heard.
    public let isDated: Bool
    public let source: Source

    public init(
        kind: Kind, code: String? = nil, action: String? = nil, actionID: String? = nil, phase: Phase? = nil,
        success: Bool? = nil, amount: Money? = nil, captured: Money? = nil, refunded: Money? = nil,
        reason: String? = nil, actionRequired: String? = nil, paymentID: String? = nil,
        paymentMethodCode: String? = nil, instrumentID: String? = nil, disputeID: String? = nil, at: Timestamp,
        isDated: Bool = true, source: Source
    ) {
        self.kind = kind
        self.code = code
        self.action = action
        self.actionID = actionID
        self.phase = phase
        self.success = success
        self.amount = amount
        self.captured = captured
        self.refunded = refunded
        self.reason = reason
        self.actionRequired = actionRequired
        self.paymentID = paymentID
        self.paymentMethodCode = paymentMethodCode
        self.instrumentID = instrumentID
        self.disputeID = disputeID
        self.at = at
        self.isDated = isDated
        self.source = source
    }

    /// What makes two facts the same one: everything but where it was learned, and whether its time was told.
    public var identity: String {
        // One report of a result has its detail, and another doesn't: it is one result.
        let reason = kind == .dispute ? reason : reason.map(DeclinePolicy.result(of:))
        let parts: [String?] = [
            kind.rawValue, code, action, actionID, phase?.rawValue, success.map(String.init), amount?.description,
            captured?.description, refunded?.description, reason, actionRequired, paymentID, paymentMethodCode,
            instrumentID, disputeID, at.rfc3339,
        ]
        return parts.map { $0.map { "\($0.utf8.count):\($0)" } ?? "-" }.joined(separator: "|")
    }
}
