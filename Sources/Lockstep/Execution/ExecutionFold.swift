import Basics

/// The rules by which facts become the state of an execution (reference 2.6 and 2.7). Pure, total, and blind to the
/// order in which the facts were learned (invariant M6).
///
/// Authorizing (``AuthorizationFold``):
/// 1. Time is the provider's, to the nanosecond. A notification tells of a status that was stamped before it was sent,
///    so its place in time is the latest status of its kind at or before it, where one is known. Of one action that is one
///    after the result before, or else one that nothing else was told of: a notification without a time may come late.
/// 2. Of the results of authorizing, the last one counts: success, failure, or a later reversal. But the failure of
///    another action than the one that succeeded takes nothing back, and a failed confirmation neither. Nor does one
///    that nobody can tell whose it is, where a status tells of the success: a reversal has a status too, to be read.
/// 3. After a failure, `authorizePending` alone means nothing (it can be stamped late); only a new request reopens.
/// 4. A code without a known meaning makes the state unknown while nothing has succeeded. It is never a success. The
///    same for a completed action that doesn't say how it ended.
/// 5. A failure behind which a charge can hide, of any of the providers that were tried, makes it unknown too, until the
///    payment records say what became of the money.
///
/// Capturing, refunding, cancelling (``ActionLedger``):
/// 6. They are counted by action, never added up by deliveries. What only a status tells of is put down to the actions
///    that were asked for and have no result yet, unless a newer payment record says more. Of one action the last
///    result counts, so that one can be undone.
/// 7. Totals of payment records only grow, so the largest one counts; what the actions add up to and what the records
///    say are both the least that is true, so the larger one counts.
/// 8. A capture implies an authorization, a refund implies a capture, and so do undone ones. A capture whose amount nobody
///    told is a whole one (partial ones are only made with an amount); a refund whose amount nobody told may be any part.
/// 9. A cancel takes back everything that was authorized before it, and nothing that is authorized after it.
/// 10. An amount in another currency than the authorization's says nothing. A dispute changes no state.
extension ExecutionPicture {
    public init(of facts: some Collection<Fact>) {
        self.init()
        let ordered = Self.inOrder(facts)
        let statuses = ordered.filter { $0.kind == .status }
        let acts = ordered.filter { $0.kind == .action }
        newestStatusAt = statuses.last?.at
        paymentIDs = Set(ordered.compactMap(\.paymentID)).sorted()
        paymentMethodCode = ordered.last { $0.paymentMethodCode != nil }?.paymentMethodCode
        instrumentID = ordered.last { $0.instrumentID != nil }?.instrumentID
        actionRequired = ordered.last { $0.actionRequired != nil }?.actionRequired

        let authorization = AuthorizationFold(statuses: statuses, actions: acts)
        let captures = ActionLedger(of: "capture", statuses: statuses, actions: acts)
        let refunds = ActionLedger(of: "refund", statuses: statuses, actions: acts)
        let cancels = ActionLedger(of: "cancel", statuses: statuses, actions: acts)
        actions = Self.otherResults(in: acts)
        for ledger in [captures, refunds, cancels] { actions.merge(ledger.results) { _, result in result } }

        state = authorization.state
        failureReason = authorization.failure?.reason
        failedAt = authorization.failure?.at
        foldDoubt(authorization, ordered)
        foldAmounts(Amounts(ordered, authorization, captures: captures, refunds: refunds))
        foldCancel(cancels, authorization)
    }

    /// Each fact once, by its time, and at the same time by its identity, so that there is only one order.
    private static func inOrder(_ facts: some Collection<Fact>) -> [Fact] {
        let byTime = facts.sorted { $0.at < $1.at }
        var ordered: [Fact] = []
        ordered.reserveCapacity(byTime.count)
        var rest = byTime[...]
        while let first = rest.first {
            let atOnce = rest.prefix { $0.at == first.at }
            rest = rest.dropFirst(atOnce.count)
            // The identity is a long text, and most facts have a moment of their own.
            guard atOnce.count > 1 else {
                ordered.append(first)
                continue
            }
            let byIdentity = Dictionary(atOnce.map { ($0.identity, $0) }, uniquingKeysWith: { first, _ in first })
            ordered += byIdentity.sorted { $0.key < $1.key }.map(\.value)
        }
        return ordered
    }

    /// The results of authorizations, confirmations and whatever else has an id.
    private static func otherResults(in actions: [Fact]) -> [String: ActionResult] {
        var results: [String: ActionResult] = [:]
        for fact in actions where !ActionLedger.kinds.contains(fact.action ?? "") {
            guard let id = fact.actionID, let action = fact.action else { continue }
            var result = results[id] ?? ActionResult(action: action, success: nil, amount: nil, reason: nil)
            if fact.phase == .completed, let success = fact.success {
                result.success = success
                result.reason = fact.reason
                result.amount = fact.amount ?? result.amount
            } else {
                result.amount = result.amount ?? fact.amount
            }
            results[id] = result
        }
        return results
    }

    private mutating func foldDoubt(_ authorization: AuthorizationFold, _ ordered: [Fact]) {
        guard let failedAt else { return }
        recordOfFailure = FailureRecord(
            ordered.lazy.filter { $0.kind == .payment && $0.at >= failedAt }
                .compactMap { fact in fact.code.map { (fact.paymentID, $0) } })
        guard state == .failed, authorization.mayHideCharge else { return }
        switch recordOfFailure {
        case .open: (state, hidesCharge) = (.unknown, true)
        case .held: state = .authorized
        case .over: break
        }
    }

    private mutating func foldCancel(_ cancels: ActionLedger, _ authorization: AuthorizationFold) {
        // An undone cancel brings back what was paid; what nobody had paid stays cancelled.
        let wasPaid = state.holdsMoney || state == .refunded
        guard let cancelledAt = cancels.lastSuccessAt ?? (wasPaid ? nil : cancels.undoneAt) else { return }
        guard authorization.succeededAt.map({ $0 <= cancelledAt.uncut }) ?? true else { return }
        state = .cancelled
        hidesCharge = false
        refunded = captured
    }

    private mutating func foldAmounts(_ amounts: Amounts) {
        guard state == .authorized || amounts.wasCaptured || amounts.wasRefunded || amounts.impliesHold(failedAt) else {
            return
        }
        authorized = amounts.authorized
        failureReason = nil
        failedAt = nil
        hidesCharge = false
        refunded = amounts.wasRefunded ? amounts.refunded : nil
        if amounts.wasCaptured {
            captured = amounts.captured ?? authorized
        } else if amounts.wasRefunded {
            captured = refunded
        }
        toldCaptured = amounts.wasCaptured ? amounts.captured : captured
        if amounts.wasRefunded {
            // What was captured is only known to be the refunded part when nobody told of the capture.
            let whole = amounts.wasCaptured ? captured : authorized
            let isWhole = refunded.flatMap { refunded in whole.map(refunded.covers) } ?? false
            state = isWhole ? .refunded : .partiallyRefunded
        } else if amounts.wasCaptured {
            let isPart = captured.flatMap { captured in authorized.map { !captured.covers($0) } } ?? false
            state = isPart ? .partiallyCaptured : .captured
        } else {
            state = .authorized
        }
    }
}

/// What the facts add up to. An amount that isn't known is nil.
private struct Amounts {
    private(set) var authorized: Money?
    private(set) var captured: Money?
    private(set) var refunded: Money?
    let wasCaptured: Bool
    let wasRefunded: Bool
    private let undoneCaptureAt: Timestamp?

    init(_ ordered: [Fact], _ authorization: AuthorizationFold, captures: ActionLedger, refunds: ActionLedger) {
        let payments = ordered.filter { $0.kind == .payment }
        let authorized = Self.authorized(
            in: ordered, payments: payments, since: authorization.succeededAt ?? captures.lastSuccessAt)
        let currency =
            authorized?.currency ?? (captures.amounts + refunds.amounts).first?.amount.currency
            ?? payments.lazy.compactMap { $0.captured ?? $0.refunded }.first?.currency
        func total(_ ledger: ActionLedger, _ recorded: KeyPath<Fact, Money?>) -> Money? {
            let records = payments.filter { $0[keyPath: recorded]?.currency == currency }
            let byPayment = Dictionary(grouping: records, by: { $0.paymentID ?? "" }).values.compactMap { records in
                records.compactMap { $0[keyPath: recorded] }.max { $0.minor < $1.minor }
            }
            let told = ledger.amounts.filter { told in
                // A record that is newer knows better than a guess.
                let isOutdated = told.guessedAt.flatMap { at in records.last.map { at <= $0.at } } ?? false
                return told.amount.currency == currency && !isOutdated
            }
            let totals = [Money.sum(told.map(\.amount)), Money.sum(byPayment)].compactMap(\.self)
            return totals.max { $0.minor < $1.minor }.flatMap { $0.isZero ? nil : $0 }
        }
        self.authorized = authorized
        captured = total(captures, \.captured)
        refunded = total(refunds, \.refunded)
        let wasRefunded = refunded != nil || refunds.lastSuccessAt != nil
        self.wasRefunded = wasRefunded
        // A refund that was undone tells of a capture of which nobody else has told.
        let isCaptureImplied = !wasRefunded && refunds.undoneAt != nil && captures.undoneAt == nil
        wasCaptured = captured != nil || captures.lastSuccessAt != nil || isCaptureImplied
        undoneCaptureAt = captures.undoneAt
        // More can't have been refunded than was captured.
        if let told = captured, let refunded, refunded.minor > told.minor { captured = refunded }
    }

    /// Whether there was an authorization because a capture had worked, although it was undone; unless the authorization
    /// failed after that.
    func impliesHold(_ failedAt: Timestamp?) -> Bool {
        guard let undoneCaptureAt else { return false }
        return failedAt.map { $0 < undoneCaptureAt } ?? true
    }

    private static func authorized(in ordered: [Fact], payments: [Fact], since success: Timestamp?) -> Money? {
        // A payment record of a provider that failed has an amount too.
        let unsuccessful: Set<String> = ["Created", "Pending", "Unknown", "Failed", "Expired"]
        let successful = payments.filter { !unsuccessful.contains($0.code ?? "") }
        // The execution's own amount can still move before it is paid; what a status showed then says nothing, nor does
        // one of before that has a later time than a notification whose time was cut off, or is wrong.
        let statuses = ordered.filter { fact in
            fact.kind == .status && fact.amount != nil && success.map { fact.at >= $0 } ?? false
                && fact.code.map { $0 != "created" && !$0.hasSuffix("Requested") && !$0.hasSuffix("Pending") } ?? false
        }
        let hasAmount = { (fact: Fact) in fact.amount?.isZero == false }
        return ordered.last { $0.action == "authorize" && $0.success == true && hasAmount($0) }?.amount
            ?? successful.last(where: hasAmount)?.amount ?? payments.last(where: hasAmount)?.amount
            ?? statuses.last?.amount
    }
}

extension Money {
    /// Nil for none, and for a sum of several currencies or beyond the largest amount: such a total is not known.
    static func sum(_ amounts: [Money]) -> Money? {
        guard let first = amounts.first, amounts.allSatisfy({ $0.currency == first.currency }) else { return nil }
        var minor: Int64 = 0
        for amount in amounts {
            minor += amount.minor
            guard minor <= maximumMinor else { return nil }
        }
        return Money(minor: minor, currency: first.currency)
    }

    /// Whether this is at least as much.
    fileprivate func covers(_ other: Money) -> Bool { currency == other.currency && minor >= other.minor }
}

extension Timestamp {
    /// Senders cut times off: `10:00:04Z` may stand for any moment of that second, `.123Z` for any of that millisecond.
    /// This is the last one.
    var uncut: Timestamp {
        for unit: Int32 in [1_000_000_000, 1_000_000, 1_000] where nanoseconds % unit == 0 {
            return Timestamp(seconds: seconds, nanoseconds: nanoseconds + unit - 1)
        }
        return self
    }
}
