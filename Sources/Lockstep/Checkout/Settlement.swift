import Basics

/// Decides what the facts about a checkout's executions mean for the order. Pure: the store runs it inside the
/// transaction that learned the facts, and makes its effects true in the same one.
public struct Settlement: Sendable {
    /// What must be made true besides the new checkout row.
    public enum Effect: Hashable, Sendable {
        /// Take the execution back at the provider.
        case cancel(ExecutionID, CancelReason)
        /// A cancel that was decided here is known to have worked.
        case cancelled(ExecutionID)
        /// Something succeeded for another amount, and a person must look (`LOCKSTEP_MISMATCH=hold`).
        case held(ExecutionID)
        /// The amount of a success isn't known; read the execution.
        case read(ExecutionID)
        /// A running or doubtful change of the amount is settled by what was authorized.
        case amountMoved(applied: Bool)
        case event(EventType)
    }

    public struct Rules: Hashable, Sendable {
        public enum Mismatch: String, Hashable, Sendable { case cancel, hold }
        public var mismatch: Mismatch
        /// How long after a failure the workflow may still try another provider (`LOCKSTEP_FAILURE_SETTLE_SECONDS`).
        public var failureSettle: Duration

        public init(mismatch: Mismatch = .cancel, failureSettle: Duration = .seconds(60)) {
            self.mismatch = mismatch
            self.failureSettle = failureSettle
        }
    }

    public private(set) var checkout: Checkout
    public private(set) var effects: [Effect] = []
    /// When time alone would change the decision: expiry, or a failure that settles.
    public private(set) var dueAt: Timestamp?
    private let executions: [CheckoutExecution]
    private let rules: Rules
    private let now: Timestamp

    /// - Parameters:
    ///   - pendingMove: the amount of a change that runs or whose outcome is unknown.
    ///   - pendingBasket: the version of the basket that comes with it; nil: the same.
    public init(
        of checkout: Checkout, executions: [CheckoutExecution], pendingMove: Money? = nil, pendingBasket: String? = nil,
        rules: Rules, now: Timestamp
    ) {
        self.checkout = checkout
        self.executions = executions.sorted { $0.ordinal < $1.ordinal }
        self.rules = rules
        self.now = now
        settleMove(pendingMove, pendingBasket)
        keepFirstSuccess()
        takeBackTheRest()
        reportCancels()
        endLease()
        settleStatus()
    }

    /// A success for the new amount proves that the change happened, one for the old amount that it did not.
    private mutating func settleMove(_ pendingMove: Money?, _ pendingBasket: String?) {
        guard let pendingMove, checkout.amountState != .inStep,
            let success = executions.first(where: {
                $0.id == checkout.currentExecution && ($0.state.holdsMoney || $0.state == .refunded)
            }),
            let paid = success.picture.paidAmount
        else { return }
        if paid == pendingMove {
            checkout.amount = pendingMove
            checkout.amountVersion += 1
            checkout.basketVersion = pendingBasket ?? checkout.basketVersion
            checkout.amountState = .inStep
            effects += [.amountMoved(applied: true), .event(.checkoutAmountChanged)]
        } else if paid == checkout.amount {
            checkout.amountState = .inStep
            effects.append(.amountMoved(applied: false))
        }
    }

    private mutating func keepFirstSuccess() {
        guard checkout.keptExecution == nil, checkout.status != .cancelled, checkout.amountState == .inStep else {
            return
        }
        // One that was wholly refunded before anybody here had heard of it has paid all the same: whether the capture and
        // the refund are learned together or one after the other, the order is told to be paid, then refunded.
        let payer = executions.first {
            ($0.state.holdsMoney || $0.state == .refunded) && $0.cancelReason == nil
                && $0.picture.paidAmount == checkout.amount
        }
        guard let payer else { return }
        checkout.keptExecution = payer.id
        checkout.status = .paid
        effects.append(.event(.checkoutPaid))
    }

    private mutating func takeBackTheRest() {
        for execution in executions where execution.state.holdsMoney {
            // The one that paid is taken back only where it holds money again after the order was given up.
            if execution.id == checkout.keptExecution, checkout.status != .cancelled {
                // It was kept by what the execution showed as a whole; what was told since of the payment itself is exact.
                if let authorized = execution.picture.authorized, authorized != checkout.amount {
                    effects.append(.held(execution.id))
                }
                continue
            }
            // A cancel of an execution that nobody had paid yet may have been refused; now there is something to take
            // back. Any other cancel is decided once: if it fails, a person must look.
            guard execution.cancelReason == nil || execution.cancelReason == .checkoutCancelled else { continue }
            if checkout.wasPaid || checkout.status == .cancelled {
                effects.append(.cancel(execution.id, .duplicate))
            } else if execution.picture.authorized == nil {
                effects.append(.read(execution.id))
            } else if checkout.amountState == .inStep {
                effects.append(rules.mismatch == .cancel ? .cancel(execution.id, .mismatch) : .held(execution.id))
            } else {
                // A change of the amount is being looked into; what it finds decides whether this is a payment.
                effects.append(.read(execution.id))
            }
        }
    }

    private mutating func reportCancels() {
        for execution in executions where !execution.cancelReported {
            guard let reason = execution.cancelReason, execution.state == .cancelled || execution.state == .refunded
            else { continue }
            // Whether there was anything to take back is known once an authorization is; it can come to light later.
            if reason == .checkoutCancelled, execution.picture.authorized == nil { continue }
            effects.append(.cancelled(execution.id))
            switch reason {
            case .duplicate, .checkoutCancelled: effects.append(.event(.checkoutDuplicateCancelled))
            case .mismatch: effects.append(.event(.checkoutMismatchCancelled))
            case .attemptOver, .requested: break
            }
        }
    }

    private mutating func settleStatus() {
        if let kept = executions.first(where: { $0.id == checkout.keptExecution }) {
            if checkout.status == .paid { settlePaid(kept) }
            return
        }
        guard checkout.status != .cancelled else { return }
        let current = executions.first { $0.id == checkout.currentExecution }
        let isInFlight = executions.contains { $0.state.isInFlight && $0.cancelReason == nil || $0.mayHavePaid }
        let isExpired = now >= checkout.expiresAt
        if let current, current.state.isInFlight || current.mayHavePaid {
            // An order that was told to be expired stays so until it is paid, so that nothing is told twice.
            if checkout.status != .expired { checkout.status = .processing }
        } else if let current, current.state == .failed {
            if isInFlight { wait() } else { settleFailure(current) }
        } else if isExpired, !isInFlight, checkout.lease.map({ now >= $0.until }) ?? true {
            if checkout.status != .expired { move(to: .expired, .checkoutExpired) }
        } else if checkout.status != .expired {
            checkout.status = .open
        }
        if [.open, .processing].contains(checkout.status), !isExpired {
            dueAt = earliest(dueAt, checkout.expiresAt)
        } else if isExpired, let lease = checkout.lease, now < lease.until {
            dueAt = earliest(dueAt, lease.until)
        }
    }

    /// What becomes of a paid order when its money goes.
    private mutating func settlePaid(_ kept: CheckoutExecution) {
        switch kept.state {
        case .cancelled: move(to: .cancelled, .checkoutCancelled)
        case .refunded: move(to: .refunded, .checkoutRefunded)
        case .failed:
            // The authorization was reversed. Asked about, since goods may be on their way; and the workflow may still
            // authorize again.
            let settledAt = failureSettles(kept)
            if now >= settledAt {
                move(to: .cancelled, .checkoutCancelled)
            } else {
                effects.append(.read(kept.id))
                dueAt = earliest(dueAt, settledAt)
            }
        case .created, .processing, .needsCustomer, .authorized, .partiallyCaptured, .captured, .partiallyRefunded,
            .unknown:
            break
        }
    }

    private mutating func settleFailure(_ current: CheckoutExecution) {
        guard checkout.status != .failed, checkout.status != .expired else { return }
        let settledAt = failureSettles(current)
        if now >= settledAt {
            move(to: .failed, .checkoutFailed)
        } else {
            wait()
            dueAt = earliest(dueAt, settledAt)
        }
    }

    /// Something is still to come, unless the order has been told to be over.
    private mutating func wait() {
        if checkout.status != .failed, checkout.status != .expired { checkout.status = .processing }
    }

    private func failureSettles(_ execution: CheckoutExecution) -> Timestamp {
        (execution.picture.failedAt ?? now) + rules.failureSettle
    }

    private mutating func move(to status: Checkout.Status, _ event: EventType) {
        checkout.status = status
        effects.append(.event(event))
    }

    /// The lease ends when facts show that the attempt is over.
    private mutating func endLease() {
        guard let lease = checkout.lease, let execution = executions.first(where: { $0.id == lease.execution }) else {
            return
        }
        switch execution.state {
        case .created, .processing, .needsCustomer, .unknown: break
        case .authorized, .partiallyCaptured, .captured, .partiallyRefunded, .refunded, .cancelled, .failed:
            checkout.lease = nil
        }
    }

    private func earliest(_ left: Timestamp?, _ right: Timestamp) -> Timestamp { left.map { min($0, right) } ?? right }
}
