import Basics

/// Decides what the facts about a charge's executions mean for the charge. Pure: the store runs it inside the transaction
/// that learned the facts, and makes its effects true in the same one.
///
/// 1. An attempt succeeded when its execution holds the customer's money, for the attempt's amount. One success counts,
///    the first that is learned of; every other is taken back (invariant M2).
/// 2. A failure counts when the workflow has had its time to try another provider. One whose result leaves open whether
///    money moved is unknown (invariant M7), until the provider's payment record says what became of it.
/// 3. Where the customer would have to act, nobody is there: the execution is cancelled, the shop is told, and a success
///    that comes all the same is taken back, since the shop may be asking the customer already.
/// 4. A success after a failure that was told still pays, as long as no other attempt has.
/// 5. An attempt that was never authorized, and that nobody goes on with, is over and burns nothing; a success that comes
///    all the same is taken back.
public struct ChargeSettlement: Sendable {
    /// What must be made true besides the new rows of the charge and its attempts.
    public enum Effect: Hashable, Sendable {
        /// Take the execution back at the provider.
        case cancel(ExecutionID, CancelReason)
        /// The amount of a success isn't known; read the execution.
        case read(ExecutionID)
        /// Something was authorized for another amount than the attempt's, and a person must look.
        case held(ExecutionID)
        case event(EventType)
    }

    /// What follows a failed attempt.
    public enum AfterFailure: Hashable, Sendable {
        /// It is tried again.
        case retry(at: Timestamp)
        /// The charge has failed.
        case final
    }

    /// How the charge goes on after an attempt that was never authorized, and that nobody goes on with.
    public enum Abandonment: Hashable, Sendable {
        /// The charge is skipped.
        case skip(reason: String)
        /// Another attempt is to come.
        case again(at: Timestamp)

        /// The attempt's.
        public var reason: String { if case .skip(let reason) = self { reason } else { Self.notSent } }
        /// The provider never got what would have charged.
        public static let notSent = "not-sent"
    }

    public struct Rules: Sendable {
        /// How long after a failure the workflow may still try another provider (`LOCKSTEP_FAILURE_SETTLE_SECONDS`).
        public var failureSettle: Duration
        public var declines: DeclinePolicy

        public init(failureSettle: Duration = .seconds(60), declines: DeclinePolicy = .standard) {
            self.failureSettle = failureSettle
            self.declines = declines
        }
    }

    public private(set) var charge: Charge
    public private(set) var effects: [Effect] = []
    /// When time alone would change the decision: a failure that settles.
    public private(set) var dueAt: Timestamp?
    private let before: Charge
    private let executions: [ExecutionID: CheckoutExecution]
    private let inDoubt: Set<Int>
    private let refused: [Int: String]
    private let abandoned: [Int: Abandonment]
    private let rules: Rules
    private let now: Timestamp

    /// - Parameters:
    ///   - inDoubt: numbers of the attempts of which a call has an unknown outcome.
    ///   - refused: why the provider refused a call of an attempt for good, by the attempt's number.
    ///   - abandoned: attempts that nobody goes on with, by number; nothing where facts tell of an authorization.
    ///   - afterFailure: asked once for an attempt that failed, if nothing paid before.
    public init(
        of charge: Charge, executions: [CheckoutExecution], inDoubt: Set<Int> = [], refused: [Int: String] = [:],
        abandoned: [Int: Abandonment] = [:], rules: Rules, now: Timestamp,
        afterFailure: (ChargeAttempt) -> AfterFailure = { _ in .final }
    ) {
        self.charge = charge
        before = charge
        self.executions = Dictionary(executions.map { ($0.id, $0) }) { first, _ in first }
        self.inDoubt = inDoubt
        self.refused = refused
        self.abandoned = abandoned
        self.rules = rules
        self.now = now
        for index in charge.attempts.indices { judge(index) }
        keepOneSuccess()
        takeBackTheRest()
        settleState(afterFailure)
    }

    private func execution(of attempt: ChargeAttempt) -> CheckoutExecution? {
        attempt.execution.flatMap { executions[$0] }
    }

    // MARK: attempts

    /// What the facts say about one attempt by itself.
    private mutating func judge(_ index: Int) {
        let attempt = charge.attempts[index]
        // Told, or decided for good: what comes of it is taken back.
        guard attempt.outcome != .needsCustomer, attempt.outcome != .cancelled else { return }
        let picture = execution(of: attempt)?.picture ?? ExecutionPicture()
        switch picture.state {
        case .authorized, .partiallyCaptured, .captured, .partiallyRefunded: judgePaid(index, picture)
        case .refunded: set(index, .succeeded)
        case .cancelled where attempt.outcome == .succeeded: break
        case .cancelled: close(index, .failed, "cancelled")
        case .failed: judgeFailed(index, picture)
        case .needsCustomer where picture.actionRequired != nil: close(index, .needsCustomer, picture.actionRequired)
        case .needsCustomer, .processing: keepOpen(index, .processing)
        case .created where abandoned[attempt.number] != nil: abandon(index)
        case .created where refused[attempt.number] != nil: close(index, .failed, refused[attempt.number])
        case .created: keepOpen(index, inDoubt.contains(attempt.number) ? .unknown : .processing)
        case .unknown: keepOpen(index, .unknown, picture.failureReason ?? "status-unknown")
        }
    }

    private mutating func judgePaid(_ index: Int, _ picture: ExecutionPicture) {
        let attempt = charge.attempts[index]
        // Nobody asked for it: a person must look.
        if let authorized = picture.authorized, authorized != attempt.amount, let id = attempt.execution {
            effects.append(.held(id))
        }
        if picture.paidAmount == attempt.amount || attempt.outcome == .succeeded {
            set(index, .succeeded)
        } else if picture.authorized == nil {
            if let id = attempt.execution { effects.append(.read(id)) }
            keepOpen(index, .unknown, "amount-unknown")
        } else {
            keepOpen(index, .unknown, "amount-mismatch")
        }
    }

    private mutating func judgeFailed(_ index: Int, _ picture: ExecutionPicture) {
        let reason = picture.failureReason
        if picture.recordOfFailure == .held { return set(index, .succeeded) }
        let meaning = rules.declines.meaning(of: reason)
        if meaning == .unknown, picture.recordOfFailure != .over { return keepOpen(index, .unknown, reason) }
        let settledAt = (picture.failedAt ?? now) + rules.failureSettle
        guard now >= settledAt else {
            dueAt = dueAt.map { min($0, settledAt) } ?? settledAt
            return keepOpen(index, .processing)
        }
        close(index, meaning == .customerNeeded ? .needsCustomer : .failed, reason)
    }

    private mutating func set(_ index: Int, _ outcome: ChargeAttempt.Outcome, _ reason: String? = nil) {
        charge.attempts[index].outcome = outcome
        charge.attempts[index].reason = reason
    }

    /// What was closed is opened again by a success only.
    private mutating func keepOpen(_ index: Int, _ outcome: ChargeAttempt.Outcome, _ reason: String? = nil) {
        if charge.attempts[index].outcome.isOpen { set(index, outcome, reason) }
    }

    private mutating func close(_ index: Int, _ outcome: ChargeAttempt.Outcome, _ reason: String?) {
        if charge.attempts[index].outcome.isOpen { set(index, outcome, reason) }
    }

    /// Its first sending may still be on its way, so its execution is cancelled although nobody has authorized it.
    private mutating func abandon(_ index: Int) {
        let attempt = charge.attempts[index]
        guard attempt.outcome.isOpen else { return }
        close(index, .cancelled, abandoned[attempt.number]?.reason)
        if let execution = execution(of: attempt), execution.cancelReason == nil {
            effects.append(.cancel(execution.id, .attemptOver))
        }
    }

    // MARK: the charge

    private var succeeded: Int? {
        let known = before.attempts.filter { $0.outcome == .succeeded }.map(\.number)
        let all = charge.attempts.filter { $0.outcome == .succeeded }.map(\.number)
        return all.first(where: known.contains) ?? all.min()
    }

    /// The other attempts are over, whatever they come to.
    private mutating func keepOneSuccess() {
        guard let kept = succeeded else { return }
        for index in charge.attempts.indices where charge.attempts[index].number != kept {
            if charge.attempts[index].outcome.isOpen { set(index, .cancelled, "duplicate") }
        }
    }

    private mutating func takeBackTheRest() {
        for attempt in charge.attempts where attempt.outcome == .needsCustomer || attempt.outcome == .cancelled {
            guard let execution = execution(of: attempt) else { continue }
            // A cancel of what nobody had authorized yet may have been refused; now there is something to take back.
            if execution.state.holdsMoney, execution.cancelReason == nil || execution.cancelReason == .attemptOver {
                effects.append(.cancel(execution.id, .duplicate))
            } else if execution.state.isInFlight, execution.cancelReason == nil {
                effects.append(.cancel(execution.id, .attemptOver))
            }
        }
    }

    private mutating func settleState(_ afterFailure: (ChargeAttempt) -> AfterFailure) {
        if succeeded != nil { return move(to: .succeeded, .chargeSucceeded) }
        if let open = charge.attempts.last(where: \.outcome.isOpen) {
            charge.state = open.outcome == .unknown ? .unknown : .processing
            charge.reason = open.outcome == .unknown ? open.reason : nil
            charge.nextAttemptAt = nil
            return
        }
        let wereOpen = Set(before.attempts.filter(\.outcome.isOpen).map(\.number))
        let given = charge.attempts.last { $0.outcome == .cancelled && wereOpen.contains($0.number) }
        if let end = given.flatMap({ abandoned[$0.number] }) { return settle(as: end) }
        guard let last = charge.attempts.last(where: { $0.outcome != .cancelled && wereOpen.contains($0.number) })
        else { return }
        switch last.outcome {
        case .needsCustomer: move(to: .needsCustomer, .chargeNeedsCustomer, last.reason)
        case .failed:
            switch last.reason == "cancelled" ? AfterFailure.final : afterFailure(last) {
            case .retry(let at):
                charge.state = .scheduled
                charge.reason = last.reason
                charge.nextAttemptAt = at
            case .final: move(to: .failed, .chargeFailed, last.reason)
            }
        case .processing, .unknown, .succeeded, .cancelled: break
        }
    }

    private mutating func settle(as end: Abandonment) {
        switch end {
        case .skip(let reason): move(to: .skipped, .chargeSkipped, reason)
        case .again(let at):
            charge.state = .scheduled
            charge.reason = nil
            charge.nextAttemptAt = at
        }
    }

    private mutating func move(to state: Charge.State, _ event: EventType, _ reason: String? = nil) {
        charge.nextAttemptAt = nil
        charge.reason = reason
        guard charge.state != state else { return }
        charge.state = state
        effects.append(.event(event))
    }
}
