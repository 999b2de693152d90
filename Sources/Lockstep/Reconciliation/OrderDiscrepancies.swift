import Basics

/// What of an order, a checkout's or a charge's, a person must look at, by its executions and operations alone.
///
/// Pure: it is asked in every transaction that changes one of them, so that a discrepancy opens and is resolved together
/// with its cause.
public struct OrderDiscrepancies: Sendable {
    /// How long things may take before a person must look.
    public struct Rules: Hashable, Sendable {
        /// `LOCKSTEP_UNRESOLVED_AFTER`
        public var unresolvedAfter: Duration
        /// `LOCKSTEP_OVERDUE_AFTER`
        public var overdueAfter: Duration
        /// `LOCKSTEP_LEASE_SECONDS`: so long the one who sends something may still be at it.
        public var lease: Duration

        public init(
            unresolvedAfter: Duration = .seconds(3600), overdueAfter: Duration = .seconds(86_400),
            lease: Duration = .seconds(30)
        ) {
            self.unresolvedAfter = unresolvedAfter
            self.overdueAfter = overdueAfter
            self.lease = lease
        }

        /// How long an operation may be as it is. One whose first sending may still run isn't unknown yet, however little
        /// time what is unknown has.
        func patience(with operation: PaymentOperation) -> Duration {
            switch operation.state {
            case .acknowledged: overdueAfter
            case .sent where operation.attempts <= 1: lostAfter
            case .prepared, .sent, .unknown, .succeeded, .failed: unresolvedAfter
            }
        }

        /// After how long the outcome of what is being sent for the first time is unknown.
        public var lostAfter: Duration { max(unresolvedAfter, lease) }
    }

    /// What the executions and operations are for.
    public struct Order: Sendable {
        let reference: String
        let amount: Money
        let status: String

        public init(_ checkout: Checkout) {
            reference = checkout.merchantReference
            amount = checkout.amount
            status = checkout.status.rawValue
        }

        public init(_ charge: Charge) {
            reference = charge.merchantReference
            amount = charge.amount
            status = charge.state.rawValue
        }
    }

    /// An execution, and since when it is as it is.
    public struct Subject: Sendable {
        public let execution: CheckoutExecution
        public let changedAt: Timestamp
        /// Something succeeded for another amount and is kept for a person (`LOCKSTEP_MISMATCH=hold`).
        public let isHeld: Bool

        public init(_ execution: CheckoutExecution, changedAt: Timestamp, isHeld: Bool) {
            self.execution = execution
            self.changedAt = changedAt
            self.isHeld = isHeld
        }
    }

    /// What is so now: what was opened for any of it stays open.
    public private(set) var causes: [DiscrepancyCause] = []
    /// Those of them that nothing is being done about: they are opened.
    public private(set) var unattended: Set<DiscrepancyCause.Key> = []

    private let order: Order
    private let operations: [PaymentOperation]
    private let rules: Rules
    private let now: Timestamp

    /// - Parameter operations: those that aren't final.
    public init(
        of order: Order, executions: [Subject], operations: [PaymentOperation], rules: Rules, now: Timestamp
    ) {
        self.order = order
        self.operations = operations
        self.rules = rules
        self.now = now
        for subject in executions {
            judgeMoney(of: subject)
            judgeAge(of: subject)
        }
        for operation in operations { judge(operation, among: executions.map(\.execution)) }
    }

    /// Money of the customer's that no order needs, and that wasn't given back.
    private mutating func judgeMoney(of subject: Subject) {
        let execution = subject.execution
        guard execution.state.holdsMoney else { return }
        let kind: Discrepancy.Class
        switch execution.cancelReason {
        case nil:
            // Held for a person; or so much later nobody could find out how much it is.
            let isUnread = execution.mayHavePaid && now >= subject.changedAt + rules.unresolvedAfter
            guard subject.isHeld || isUnread else { return }
            kind = .amountMismatch
        case .mismatch?: kind = .amountMismatch
        case .duplicate?, .checkoutCancelled?, .attemptOver?: kind = .duplicatePayment
        // The shop's own wish; where its cancel fails, it is told so.
        case .requested?: return
        }
        let isBeingCancelled = operations.contains { $0.kind == .cancel && $0.execution?.id == execution.id }
        note(
            DiscrepancyCause(
                kind: kind, subject: execution.id.uuid, merchantReference: order.reference,
                execution: execution.id, paymentID: execution.onlyPaymentID, amount: execution.picture.paidAmount,
                here: kind == .amountMismatch
                    ? "the confirmed amount is \(order.amount)" : "the order is \(order.status)",
                there: [execution.state.rawValue, execution.picture.paidAmount?.description].compactMap(\.self)
                    .joined(separator: " ")),
            isAttended: isBeingCancelled)
    }

    private mutating func judgeAge(of subject: Subject) {
        let execution = subject.execution
        guard execution.state.isInFlight, now >= subject.changedAt + rules.overdueAfter else { return }
        note(
            DiscrepancyCause(
                kind: .overdueFinalState, subject: execution.id.uuid,
                merchantReference: order.reference, execution: execution.id,
                paymentID: execution.onlyPaymentID, amount: execution.amount, here: execution.state.rawValue))
    }

    private mutating func judge(_ operation: PaymentOperation, among executions: [CheckoutExecution]) {
        let execution = executions.first { $0.id == operation.execution?.id }
        let isTaken = operation.state == .acknowledged
        let since = isTaken ? operation.sentAt ?? operation.createdAt : operation.createdAt
        guard !operation.state.isFinal, now >= since + rules.patience(with: operation) else { return }
        note(
            DiscrepancyCause(
                kind: isTaken ? .overdueFinalState : .unresolvedOperation, subject: operation.id.uuid,
                merchantReference: order.reference,
                execution: operation.execution?.id, paymentID: execution?.onlyPaymentID, amount: operation.amount,
                here: operation.standing))
    }

    private mutating func note(_ cause: DiscrepancyCause, isAttended: Bool = false) {
        causes.append(cause)
        if !isAttended { unattended.insert(cause.key) }
    }
}

extension DiscrepancyCause {
    /// Of a change or a deletion of an instrument, which belongs to no order: nobody could find out what became of it.
    public init(unresolved operation: PaymentOperation) {
        self.init(
            kind: .unresolvedOperation, subject: operation.id.uuid,
            here: [operation.standing, operation.instrument.map { "instrument \($0)" }].compactMap(\.self)
                .joined(separator: ", "))
    }
}

extension PaymentOperation {
    /// For a person: what it is, how it stands, and why.
    fileprivate var standing: String {
        [kind.rawValue, state.name, reason].compactMap(\.self).joined(separator: ", ")
    }
}

extension CheckoutExecution {
    fileprivate var onlyPaymentID: String? { picture.paymentIDs.count == 1 ? picture.paymentIDs.first : nil }
}
