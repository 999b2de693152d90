/// What a checkout's operations already account for, so that nothing is taken for two of them.
public struct AccountedActions: Hashable, Sendable {
    /// The provider's ids of the actions that belong to an operation.
    public var actionIDs: Set<String> = []
    /// Minor units captured and refunded by operations that succeeded or may have, by execution.
    public var captured: [ExecutionID: Int64] = [:]
    public var refunded: [ExecutionID: Int64] = [:]
    /// The part of it that certainly happened, by whatever it was found out.
    public var capturedForCertain: [ExecutionID: Int64] = [:]
    public var refundedForCertain: [ExecutionID: Int64] = [:]

    public init() {}

    /// What the others account for.
    public func without(_ operation: PaymentOperation) -> AccountedActions {
        var others = self
        if let id = operation.actionID { others.actionIDs.remove(id) }
        guard let execution = operation.execution?.id, let amount = operation.amount else { return others }
        switch operation.kind {
        case .capture: others.captured[execution, default: amount.minor] -= amount.minor
        case .refund: others.refunded[execution, default: amount.minor] -= amount.minor
        case .cancel, .createSession, .moveAmount, .createExecution, .authorize, .tokenization, .changeInstrument,
            .deleteInstrument:
            break
        }
        return others
    }
}

extension PaymentOperation {
    /// The operation as the facts decide it; nil when they say nothing yet.
    ///
    /// A cancel by the state first: what is cancelled is what was wanted, also where another cancel did it and this one
    /// was refused. Else by the provider's action id where it is known. Where the answer was lost or named none, a capture or refund by
    /// an action of its kind and amount that belongs to no other operation, or by a total that only it can explain.
    public func settled(by picture: ExecutionPicture, others: AccountedActions) -> PaymentOperation? {
        guard !state.isFinal, kind.isLifecycle || kind == .authorize else { return nil }
        var settled = self
        if kind == .authorize {
            // It was asked for, whatever came of it; a status that nobody knows doesn't prove even that.
            guard picture.state != .created, picture.state != .unknown else { return nil }
            settled.finish(success: true, reason: nil)
            return settled
        }
        if kind == .cancel, picture.state == .cancelled {
            settled.finish(success: true, reason: nil)
            return settled
        }
        if let actionID, let result = picture.actions[actionID] {
            guard let success = result.success else { return nil }
            settled.finish(success: success, reason: result.reason)
            return settled
        }
        // Acknowledged without the action's id it has none to come.
        guard kind != .cancel, state == .unknown || state == .acknowledged, actionID == nil else { return nil }
        let unclaimed = picture.actions.filter { id, result in
            result.action == kind.rawValue && result.success == true && !others.actionIDs.contains(id)
                && (result.amount == nil || result.amount == amount)
        }
        // An action without an owner may be what another operation was told by the total before its id was known.
        let isLeft = others.leaves(amount, of: picture, for: self)
        if isLeft, let (id, _) = unclaimed.min(by: { $0.key < $1.key }) {
            settled.actionID = id
            settled.finish(success: true, reason: nil)
            return settled
        }
        guard let execution, let amount else { return nil }
        let (total, accounted) =
            kind == .capture
            ? (picture.toldCaptured, others.captured[execution.id] ?? 0)
            : (picture.refunded, others.refunded[execution.id] ?? 0)
        guard let total, total.currency == amount.currency, total.minor >= accounted + amount.minor else { return nil }
        settled.finish(success: true, reason: nil)
        return settled
    }

    private mutating func finish(success: Bool, reason: String?) {
        state = success ? .succeeded : .failed
        self.reason = success ? nil : reason
    }
}

extension AccountedActions {
    /// Whether the totals hold so much more than what certainly belongs to others; so too where no total is known.
    fileprivate func leaves(_ amount: Money?, of picture: ExecutionPicture, for operation: PaymentOperation) -> Bool {
        guard let execution = operation.execution?.id, let amount else { return true }
        let (total, certain) =
            operation.kind == .capture
            ? (picture.toldCaptured, capturedForCertain[execution] ?? 0)
            : (picture.refunded, refundedForCertain[execution] ?? 0)
        guard let total, total.currency == amount.currency else { return true }
        return total.minor >= certain + amount.minor
    }

    /// Takes note of an operation that hasn't failed.
    public mutating func account(for operation: PaymentOperation) {
        if let id = operation.actionID { actionIDs.insert(id) }
        guard let execution = operation.execution?.id, let amount = operation.amount else { return }
        switch operation.kind {
        case .capture:
            captured[execution, default: 0] += amount.minor
            if operation.state == .succeeded { capturedForCertain[execution, default: 0] += amount.minor }
        case .refund:
            refunded[execution, default: 0] += amount.minor
            if operation.state == .succeeded { refundedForCertain[execution, default: 0] += amount.minor }
        case .cancel, .createSession, .moveAmount, .createExecution, .authorize, .tokenization, .changeInstrument,
            .deleteInstrument:
            break
        }
    }
}
