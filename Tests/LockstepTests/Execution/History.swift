import Basics

@testable import Lockstep

/// What really happened to an execution, made up as the reference describes it (2.5 to 2.7, 5.2), and everything that
/// can be known of it. The end is kept beside it, by plain bookkeeping that knows nothing of the fold.
struct History {
    /// Entries of `status[]`, with the execution's amount as a read shows it.
    private(set) var statuses: [Fact] = []
    /// What notifications tell, all of them.
    private(set) var notifications: [Fact] = []
    /// What the answers to our own calls tell.
    private(set) var answers: [Fact] = []
    /// Payment records, one reading after each change.
    private(set) var records: [Fact] = []

    private(set) var end = Standing()
    /// Where it would stand if nobody had sent codes without a meaning; only reads show those.
    private(set) var endAsTold = Standing()
    /// Whether reads alone can say the end: an undone result and a refused second attempt look alike in `status[]`.
    private(set) var isReadable = true
    /// Whether every capture and refund that worked was asked for by us.
    private(set) var isOurs = true
    private(set) var wasEverAuthorized = false
    /// Whether the authorization was told, and not only the capture that came with it.
    private(set) var isAuthorizationTold = false
    private(set) var log: [String] = []

    let amount: Int64
    private let currency: String
    private let hasIDs: Bool
    private var clock = Sample.at(0)
    private var generator: Seeded
    private var lastID = 0
    private var paymentID = "pay_1"

    /// Where the money stands.
    struct Standing: Equatable {
        /// Before any success, and after it was reversed.
        var unpaid = ExecutionState.created
        var authorized: Int64 = 0
        var captured: Int64 = 0
        var refunded: Int64 = 0
        var isCancelled = false

        var state: ExecutionState {
            if isCancelled { return .cancelled }
            guard authorized > 0 else { return unpaid }
            if refunded > 0 { return refunded == captured ? .refunded : .partiallyRefunded }
            if captured > 0 { return captured == authorized ? .captured : .partiallyCaptured }
            return .authorized
        }
    }

    init(seed: UInt64) {
        var generator = Seeded(seed: seed)
        amount = .random(in: 100...99_999, using: &generator)
        currency = ["EUR", "JPY", "KWD"].randomElement(using: &generator) ?? "EUR"
        hasIDs = Int.random(in: 0..<100, using: &generator) < 80
        self.generator = generator
        stamp("created")
        // The answer that created it showed another amount, which was moved before anybody paid.
        if chance(40) { answers.append(created(amount: amount + 1)) }
        if chance(5) { return }
        if chance(10) { strangeCode() }
        attempt()
        if end.authorized > 0 { live() }
        if chance(10) { strangeCode() }
    }

    // MARK: authorizing

    private mutating func attempt() {
        for round in 0...2 {
            let id = newID()
            request("authorize", id, state: .processing)
            if chance(30) { waitForCustomer(id) }
            if chance(8) { strangeCode() }
            switch roll() {
            case ..<8: return
            case ..<14: return cancelWhilePending(id)
            case ..<60: return succeed(id, after: nil)
            case ..<75:
                // Another provider, in the same action or in one of its own, without a new request.
                let failure = fail(id)
                return succeed(chance(50) ? id : newID(), after: failure)
            default:
                fail(id)
                if chance(30) { pendingAfterFailure(id) }
                if round == 2 || chance(50) { return }
                pass(1500)
            }
        }
    }

    private mutating func waitForCustomer(_ id: String?) {
        stamp("authorizePending")
        tell("authorize", id, .pending)
        open(.needsCustomer)
        guard chance(40) else { return }
        stamp("confirmRequested")
        tell("confirm", newID(), .requested)
        open(.processing)
        stamp("confirmSuccessful")
        tell("confirm", newID(), .completed, success: true)
    }

    private mutating func pendingAfterFailure(_ id: String?) {
        stamp("authorizePending", log: "late pending")
        if chance(50) { tell("authorize", id, .pending) }
    }

    @discardableResult
    private mutating func fail(_ id: String?) -> Timestamp {
        stamp("authorizeFailed", reason: "GenericRejection")
        // Its notification can be made after the next provider has succeeded.
        tell("authorize", id, .completed, success: false)
        open(.failed)
        return clock
    }

    private mutating func succeed(_ id: String?, after failure: Timestamp?) {
        if chance(20) { stamp("authorizePending") }
        // Results of one action are told in their order; without ids nothing else tells them apart.
        if failure != nil { pass(hasIDs && notifications.last?.actionID != id ? 20 : 1000) }
        stamp("authorizeSuccessful")
        setAside()
        wasEverAuthorized = true
        if chance(25) {
            // Instant capture: one notification, when it is captured.
            stamp("captureSuccessful")
            takeAll()
            tell("capture", id, .completed, success: true, minor: amount)
            isOurs = false
        } else {
            tell("authorize", id, .completed, success: true, minor: amount)
            isAuthorizationTold = true
            if chance(20) { stamp("captureScheduled") }
        }
        record()
        pass(1500)
        if hasIDs, chance(8), isAuthorizationTold { return reverse(id) }
        if hasIDs, chance(8) { refuseSecondAttempt() }
    }

    private mutating func reverse(_ id: String?) {
        stamp("authorizeFailed", log: "reversal")
        tell("authorize", id, .completed, success: false)
        change { $0 = Standing(unpaid: .failed) }
        pass(1500)
        guard chance(30) else { return }
        let again = newID()
        request("authorize", again, state: .processing)
        stamp("authorizeSuccessful")
        tell("authorize", again, .completed, success: true, minor: amount)
        setAside()
        pass(1500)
    }

    /// The customer tapped twice; the second authorize isn't allowed any more. It can have a status of its own.
    private mutating func refuseSecondAttempt() {
        let id = newID()
        if isAuthorizationTold, chance(50) {
            stamp("authorizeFailed", log: "second attempt")
            isReadable = false
        }
        tell("authorize", id, .completed, success: false)
        pass(1500)
    }

    private mutating func cancelWhilePending(_ id: String?) {
        pass(1500)
        let cancel = newID()
        request("cancel", cancel)
        stamp("cancelSuccessful")
        tell("cancel", cancel, .completed, success: true)
        change { $0.isCancelled = true }
        pass(1500)
        guard chance(30) else { return }
        stamp("authorizeSuccessful", log: "after the cancel")
        tell("authorize", id, .completed, success: true, minor: amount)
        isAuthorizationTold = true
        wasEverAuthorized = true
        setAside(Standing())
        record()
        pass(1500)
    }

    // MARK: after the authorization

    private mutating func live() {
        for _ in 0..<Int.random(in: 0...5, using: &generator) where !end.isCancelled {
            pass(1500)
            switch roll() {
            case ..<50: capture()
            case ..<80: refund()
            case ..<90: cancel()
            default: dispute()
            }
        }
    }

    private mutating func capture() {
        let left = end.authorized - end.captured
        guard left > 0, end.refunded == 0 else { return }
        move("capture", minor: part(of: left)) { $0.captured += $1 }
    }

    private mutating func refund() {
        let left = end.captured - end.refunded
        guard left > 0 else { return }
        move("refund", minor: part(of: left)) { $0.refunded += $1 }
    }

    private mutating func move(
        _ action: String, minor: Int64, _ apply: (inout Standing, Int64) -> Void
    ) {
        let id = newID()
        let isOurs = chance(70)
        if isOurs { request(action, id, minor: minor) } else { stamp("\(action)Requested") }
        if chance(15) {
            stamp("\(action)Failed")
            tell(action, id, .completed, success: false)
            if !isOurs { isReadable = isReadable && hasIDs }
            return
        }
        stamp("\(action)Successful")
        tell(action, id, .completed, success: true, minor: minor)
        let before = end
        change { apply(&$0, minor) }
        if !isOurs { self.isOurs = false }
        record()
        guard hasIDs else { return }
        pass(1500)
        if chance(10) { tell(action, id, .completed, success: true, minor: minor) }
        if chance(6) {
            stamp("\(action)Failed", log: "\(action) undone")
            tell(action, id, .completed, success: false)
            change { $0 = before }
            isReadable = false
        }
    }

    private mutating func cancel() {
        guard end.refunded < max(1, end.captured) else { return }
        let id = newID()
        if chance(70) { request("cancel", id) } else { stamp("cancelRequested") }
        if chance(15) {
            stamp("cancelFailed")
            return tell("cancel", id, .completed, success: false)
        }
        stamp("cancelSuccessful")
        tell("cancel", id, .completed, success: true)
        let before = end
        change {
            $0.isCancelled = true
            $0.refunded = $0.captured
        }
        pass(1500)
        if chance(20) {
            stamp("cancelFailed", log: "second cancel")
            tell("cancel", newID(), .completed, success: false)
        } else if hasIDs, chance(8) {
            stamp("cancelFailed", log: "cancel undone")
            tell("cancel", id, .completed, success: false)
            change { $0 = before }
            isReadable = false
        }
    }

    private mutating func dispute() {
        let at = clock + .milliseconds(50)
        notifications.append(
            Fact(
                kind: .dispute, code: "DisputeOpened", action: "dispute", actionID: newID(), amount: money(amount),
                disputeID: "d_1", at: at, source: .notification))
    }

    private mutating func strangeCode() {
        let codes = ["orderReviewed", "authorized", "AuthorizeSuccessful", "paymentSuccessful", "captured", "refunded"]
        stamp(codes.randomElement(using: &generator) ?? "x")
        // Only a read shows it, so what was told stays as it was.
        if end.authorized == 0, !end.isCancelled { end.unpaid = .unknown }
    }

    // MARK: what becomes known

    private mutating func stamp(_ code: String, reason: String? = nil, log note: String? = nil) {
        clock = clock + .nanoseconds(Int64.random(in: 1_000...400_000_000, using: &generator))
        log.append("\(clock.rfc3339) \(code)\(note.map { " (\($0))" } ?? "")")
        statuses.append(
            Fact(kind: .status, code: code, amount: money(amount), reason: reason, at: clock, source: .read))
    }

    private func created(amount: Int64) -> Fact {
        Fact(kind: .status, code: "created", amount: money(amount), at: clock, source: .answer)
    }

    private mutating func request(_ action: String, _ id: String?, minor: Int64? = nil, state: ExecutionState? = nil) {
        let at = clock + .microseconds(1)
        stamp("\(action)Requested")
        let fact = Fact(
            kind: .action, action: action, actionID: id, phase: .requested, amount: minor.map(money), at: at,
            source: .answer)
        if action == "authorize" { tell(action, id, .requested) } else { answers.append(fact) }
        if let state { open(state) }
    }

    /// A notification is made a bit after the status, and its time can be cut to microseconds.
    private mutating func tell(
        _ action: String, _ id: String?, _ phase: Fact.Phase, success: Bool? = nil, minor: Int64? = nil
    ) {
        var delay = Int64.random(in: 1_000...900_000, using: &generator)
        // What is sent about one action, or about nobody knows which, is sent in its order.
        let isCrossing = hasIDs && phase == .completed && success == false
        if !isCrossing { delay = min(delay, 15_000) }
        var at = clock + .microseconds(delay)
        if let last = notifications.last(where: { $0.action == action && ($0.actionID == id || !hasIDs) }),
            at <= last.at
        {
            at = last.at + .microseconds(1)
        }
        at = Timestamp(microseconds: at.microseconds)
        notifications.append(
            Fact(
                kind: .action, action: action, actionID: id, phase: phase, success: success,
                amount: minor.map(money), reason: success == false ? "GenericRejection" : nil, paymentID: paymentID,
                at: at, source: .notification))
        log.append("    \(at.rfc3339) \(action) \(id ?? "-") \(phase) \(success.map(String.init) ?? "") \(minor ?? 0)")
    }

    private mutating func record() {
        records.append(
            Fact(
                kind: .payment, code: end.captured > 0 ? "Captured" : "Authorized", amount: money(amount),
                captured: money(end.captured), refunded: money(end.refunded), paymentID: paymentID,
                at: clock + .microseconds(10), source: .read))
    }

    private mutating func open(_ state: ExecutionState) { change { if $0.authorized == 0 { $0.unpaid = state } } }

    private mutating func setAside(_ standing: Standing? = nil) {
        let amount = amount
        change {
            if let standing { $0 = standing }
            $0.authorized = amount
        }
    }

    private mutating func takeAll() {
        let amount = amount
        change { $0.captured = amount }
    }

    private mutating func change(_ apply: (inout Standing) -> Void) {
        apply(&end)
        apply(&endAsTold)
    }

    // MARK: dice

    private mutating func roll() -> Int { Int.random(in: 0..<100, using: &generator) }
    private mutating func chance(_ percent: Int) -> Bool { roll() < percent }
    private mutating func pass(_ milliseconds: Int64) { clock = clock + .milliseconds(milliseconds) }
    private mutating func part(of left: Int64) -> Int64 {
        chance(50) ? left : .random(in: 1...left, using: &generator)
    }
    private mutating func newID() -> String? {
        lastID += 1
        // Ids in no order.
        return hasIDs ? "\(Int.random(in: 0..<1_000_000, using: &generator))-\(lastID)" : nil
    }
    private func money(_ minor: Int64) -> Money { Sample.money(minor, currency) }
}
