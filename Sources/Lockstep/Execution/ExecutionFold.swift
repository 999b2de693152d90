import Basics

/// The rules by which facts become the state of an execution (reference 2.6 and 2.7). Pure, total, and blind to the
/// order in which the facts were learned (invariant M6).
///
/// 1. Time is the provider's, to the nanosecond. A notification tells of a status that was stamped before it was sent,
///    so its place in time is the latest status of its kind at or before it, where one is known.
/// 2. Of the results of authorizing, the last one counts: success, failure, or a later reversal.
/// 3. After a failure, `authorizePending` alone means nothing (it can be stamped late); only a new request reopens.
/// 4. A code without a known meaning makes the state unknown while nothing has succeeded. It is never a success.
/// 5. Captures and refunds are counted by action, never added up by deliveries; a capture implies an authorization.
/// 6. A cancel takes back everything.
extension ExecutionPicture {
    public init(of facts: some Collection<Fact>) {
        self.init()
        let ordered = facts.sorted { ($0.at, $0.identity) < ($1.at, $1.identity) }
        let statuses = ordered.filter { $0.kind == .status }
        newestStatusAt = statuses.last?.at
        paymentIDs = Set(ordered.compactMap(\.paymentID)).sorted()
        paymentMethodCode = ordered.last { $0.paymentMethodCode != nil }?.paymentMethodCode
        instrumentID = ordered.last { $0.instrumentID != nil }?.instrumentID
        actions = Self.actionResults(in: ordered)

        let authorization = Authorization(statuses: statuses, actions: ordered.filter { $0.kind == .action })
        failureReason = authorization.failure?.reason
        failedAt = authorization.failure?.at
        state = authorization.state

        foldAmounts(ordered: ordered, statuses: statuses, isAuthorized: authorization.state == .authorized)
    }

    private static func actionResults(in ordered: [Fact]) -> [String: ActionResult] {
        var results: [String: ActionResult] = [:]
        for fact in ordered where fact.kind == .action {
            guard let id = fact.actionID, let action = fact.action else { continue }
            var result = results[id] ?? ActionResult(action: action, success: nil, amount: nil, reason: nil)
            if fact.phase == .completed {
                result.success = fact.success
                result.reason = fact.reason
                result.amount = fact.amount ?? result.amount
            } else if result.success == nil {
                result.amount = result.amount ?? fact.amount
            }
            results[id] = result
        }
        return results
    }

    private mutating func foldAmounts(ordered: [Fact], statuses: [Fact], isAuthorized: Bool) {
        let payments = Dictionary(grouping: ordered.filter { $0.kind == .payment }, by: { $0.paymentID ?? "" })
            .values.compactMap(\.last)
        let capturedKnown = Money.largest(
            total(of: "capture", statusCode: "captureSuccessful", statuses: statuses),
            Money.sum(payments.compactMap(\.captured)))
        let refundedKnown = Money.largest(
            total(of: "refund", statusCode: "refundSuccessful", statuses: statuses),
            Money.sum(payments.compactMap(\.refunded)))
        let wasCaptured = capturedKnown?.isZero == false || statuses.contains { $0.code == "captureSuccessful" }
        let wasRefunded = refundedKnown?.isZero == false
        guard isAuthorized || wasCaptured || wasRefunded else {
            if isCancelled(statuses) { state = .cancelled }
            return
        }
        authorized = authorizedAmount(in: ordered, payments: payments) ?? capturedKnown
        // A capture whose amount nobody told is a whole one: partial ones are only made with an amount.
        captured = wasCaptured ? capturedKnown.flatMap { $0.isZero ? nil : $0 } ?? authorized : nil
        refunded = wasRefunded ? refundedKnown : nil
        if isCancelled(statuses) {
            refunded = captured
            state = .cancelled
        } else if wasRefunded, let refunded {
            state = captured.map { refunded.minor >= $0.minor } ?? true ? .refunded : .partiallyRefunded
        } else if wasCaptured {
            let isWhole = captured.flatMap { captured in authorized.map { captured.minor >= $0.minor } } ?? true
            state = isWhole ? .captured : .partiallyCaptured
        } else {
            state = .authorized
        }
    }

    private func isCancelled(_ statuses: [Fact]) -> Bool {
        statuses.contains { $0.code == "cancelSuccessful" }
            || actions.values.contains { $0.action == "cancel" && $0.success == true }
    }

    /// The sum of the successful actions of a kind. A success that only a status tells of is put down to the actions
    /// that were asked for and have no result yet.
    private func total(of action: String, statusCode: String, statuses: [Fact]) -> Money? {
        let mine = actions.filter { $0.value.action == action }.sorted { $0.key < $1.key }.map(\.value)
        let succeeded = mine.filter { $0.success == true }
        let open = mine.filter { $0.success == nil }
        let told = Set(statuses.filter { $0.code == statusCode }.map(\.at)).count
        return Money.sum((succeeded + open.prefix(max(0, told - succeeded.count))).compactMap(\.amount))
    }

    private func authorizedAmount(in ordered: [Fact], payments: [Fact]) -> Money? {
        ordered.last { $0.action == "authorize" && $0.success == true && $0.amount != nil }?.amount
            ?? payments.last { $0.amount?.isZero == false }?.amount
            ?? ordered.last { $0.kind == .status && $0.amount != nil }?.amount
    }
}

/// The authorization's part of the fold: which of its results counts.
private struct Authorization {
    private(set) var state: ExecutionState = .created
    private(set) var failure: Fact?

    private enum Signal { case requested, pending, success, failure, running, noMeaning }

    init(statuses: [Fact], actions: [Fact]) {
        var timeline: [(at: Timestamp, signal: Signal, fact: Fact)] = []
        for status in statuses {
            guard let signal = Self.signal(ofStatus: status.code ?? "") else { continue }
            timeline.append((status.at, signal, status))
        }
        let stamped = timeline
        for action in actions {
            guard let signal = Self.signal(ofAction: action) else { continue }
            let told = stamped.last { $0.signal == signal && $0.at <= action.at }
            timeline.append((told?.at ?? action.at, signal, action))
        }
        // At the same instant a result counts for more than a request, and a success for more than a failure.
        timeline.sort {
            ($0.at, Self.rank($0.signal), $0.fact.identity) < ($1.at, Self.rank($1.signal), $1.fact.identity)
        }
        for (_, signal, fact) in timeline {
            switch signal {
            case .success: state = .authorized
            case .failure:
                state = .failed
                failure = fact
            case .requested where state != .authorized: state = .processing
            case .running where state == .created || state == .needsCustomer: state = .processing
            case .pending where state != .authorized && state != .failed: state = .needsCustomer
            case .noMeaning where state != .authorized: state = .unknown
            case .requested, .running, .pending, .noMeaning: break
            }
        }
        if state == .authorized { failure = nil }
    }

    private static func rank(_ signal: Signal) -> Int {
        switch signal {
        case .noMeaning: 0
        case .requested: 1
        case .running: 2
        case .pending: 3
        case .failure: 4
        case .success: 5
        }
    }

    /// Nil: known, and no part of the authorization. The list is the official one of reference 2.7.
    private static func signal(ofStatus code: String) -> Signal? {
        switch code {
        case "authorizeRequested": .requested
        case "authorizePending": .pending
        case "authorizeSuccessful": .success
        case "authorizeFailed", "confirmFailed": .failure
        case "confirmRequested", "confirmSuccessful": .running
        case "created", "captureSuccessful", "captureFailed", "captureRequested", "captureScheduled",
            "captureUnscheduled", "cancelSuccessful", "cancelFailed", "cancelRequested", "cancelScheduled",
            "cancelUnscheduled", "refundSuccessful", "refundFailed", "refundRequested", "fraudScoreSuccessful",
            "fraudScoreFailed", "fraudScoreRequested", "fraudScorePending", "payoutSuccessful", "payoutFailed",
            "payoutRequested", "payoutPending":
            nil
        default: .noMeaning
        }
    }

    private static func signal(ofAction fact: Fact) -> Signal? {
        switch (fact.action, fact.phase) {
        case ("authorize", .completed): fact.success == true ? .success : .failure
        case ("authorize", .requested): .requested
        case ("authorize", .pending): .pending
        case ("confirm", .completed): fact.success == true ? .running : .failure
        case ("confirm", .requested), ("confirm", .pending): .running
        default: nil
        }
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

    /// The larger of two amounts of one currency; the first when they can't be compared.
    static func largest(_ left: Money?, _ right: Money?) -> Money? {
        guard let left, let right, left.currency == right.currency else { return left ?? right }
        return left.minor >= right.minor ? left : right
    }
}
