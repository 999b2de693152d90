import Basics
import Foundation
import Lockstep

/// What was decided about subscriptions and the charges of their periods, collected so that all of it is written at
/// once, in as many statements for many as for one. Pure but for the ids of what is planned.
struct SubscriptionChanges {
    struct NewCharge {
        var charge: Charge
        /// The subscription's, as it is now.
        let meta: JSON?
    }

    /// An attempt with the call that makes its execution.
    struct NewAttempt {
        let charge: Charge
        let attempt: ChargeAttempt
        let operation: PaymentOperation
        /// Who sends it; holds its lease.
        let owner: UUID
    }

    struct SubscriptionRow {
        let subscription: Subscription
        let dueAt: Timestamp?
    }

    struct End {
        let subscription: SubscriptionID
        let index: Int
        let day: CivilDate
    }

    let now: Timestamp
    let policy: PaymentStore.Policy
    let identifiers: IdentifierSource
    private(set) var newCharges: [NewCharge] = []
    private(set) var charges: [Charge] = []
    private(set) var attempts: [NewAttempt] = []
    private(set) var subscriptions: [SubscriptionRow] = []
    private(set) var ends: [End] = []
    private(set) var events: [SettlementChanges.Event] = []

    init(now: Timestamp, policy: PaymentStore.Policy, identifiers: IdentifierSource) {
        self.now = now
        self.policy = policy
        self.identifiers = identifiers
    }

    // MARK: charges

    /// A charge of a period that had none. Two for one period are refused by the database (invariant M2).
    func newCharge(
        for period: BillingPeriod, of subscription: Subscription, skipped reason: SkipReason? = nil,
        nextAttemptAt: Timestamp? = nil
    ) -> Charge {
        Charge(
            id: ChargeID(identifiers.next()), subscription: subscription.id, period: period,
            merchantReference: subscription.merchantReference, holderReference: subscription.holderReference,
            instrument: subscription.instrument, workflowCode: subscription.workflowCode,
            amount: subscription.amount, expiryPolicy: subscription.expiryPolicy,
            state: reason == nil ? .scheduled : .skipped, reason: reason?.rawValue, nextAttemptAt: nextAttemptAt,
            createdAt: now)
    }

    /// The charge is written down; where it is skipped, that is told.
    mutating func insert(_ charge: Charge, of subscription: Subscription) {
        newCharges.append(NewCharge(charge: charge, meta: subscription.meta))
        if charge.state == .skipped { tell(.chargeSkipped, about: charge) }
    }

    /// What a run or the shop decided about an open charge. Ends whatever claim there was.
    mutating func put(_ charge: Charge) {
        if let index = charges.firstIndex(where: { $0.id == charge.id }) {
            charges[index] = charge
        } else {
            charges.append(charge)
        }
    }

    /// An open charge isn't attempted any more, or waits.
    mutating func skip(_ charge: Charge, _ reason: SkipReason) {
        let wasSkipped = charge.state == .skipped
        var skipped = charge
        skipped.state = .skipped
        skipped.reason = reason.rawValue
        skipped.nextAttemptAt = nil
        put(skipped)
        if !wasSkipped { tell(.chargeSkipped, about: skipped) }
    }

    /// The next attempt of a charge that has none open, with the call that makes its execution: both are on disk before
    /// anything is sent (invariant M12). The charge itself is still to be written, as it comes back.
    ///
    /// - Parameter moment: when it counts as made; later attempts are planned from it.
    mutating func begin(
        _ charge: inout Charge, meta: JSON?, with instrument: InstrumentSnapshot, at moment: Timestamp, owner: UUID
    ) -> PlannedExecution {
        let number = (charge.attempts.last?.number ?? 0) + 1
        let attempt = ChargeAttempt(
            number: number, merchantReference: charge.reference(ofAttempt: number, by: policy.references),
            instrument: instrument.id, paymentMethod: instrument.paymentMethod, amount: charge.amount,
            begunAt: moment)
        let operation = PaymentOperation(
            id: OperationID(identifiers.next()), kind: .createExecution, owner: .charge(charge.id), execution: nil,
            key: IdempotencyKey(identifiers.next()), state: .sent, amount: charge.amount, attempts: 1,
            createdAt: now, sentAt: now)
        charge.state = .processing
        charge.reason = nil
        charge.nextAttemptAt = nil
        charge.attempts.append(attempt)
        attempts.append(NewAttempt(charge: charge, attempt: attempt, operation: operation, owner: owner))
        return PlannedExecution(operation, charge, attempt, meta: meta)
    }

    // MARK: subscriptions

    /// Performs the effects and takes the row over. The subscription's row and its open charges are locked.
    ///
    /// - Returns: the charges that remain open.
    @discardableResult
    mutating func finish(
        _ subscription: Subscription, _ effects: [Subscription.Effect], open: [Charge]
    ) -> [Charge] {
        let left = perform(effects, of: subscription, open: open)
        put(subscription, dueAt: nextLook(at: subscription, open: left))
        return left
    }

    mutating func put(_ subscription: Subscription, dueAt: Timestamp?) {
        let row = SubscriptionRow(subscription: subscription, dueAt: subscription.status.runs ? dueAt : nil)
        if let index = subscriptions.firstIndex(where: { $0.subscription.id == subscription.id }) {
            subscriptions[index] = row
        } else {
            subscriptions.append(row)
        }
    }

    /// When a run has to look at it next.
    private func nextLook(at subscription: Subscription, open: [Charge]) -> Timestamp? {
        let plan = RenewalPlan(
            for: subscription, open: open.compactMap(\.standing), instrument: nil, rules: policy.renewal, now: now)
        return plan.steps.contains(.finish) ? now : plan.nextAt
    }

    /// Makes the effects of a subscription's change true.
    ///
    /// - Parameter open: its open charges, locked; those that remain open come back.
    mutating func perform(
        _ effects: [Subscription.Effect], of subscription: Subscription, open: [Charge]
    ) -> [Charge] {
        var open = open
        for effect in effects {
            switch effect {
            case .tell(let type):
                events.append(
                    SettlementChanges.Event(
                        type: type, about: .other(subscription.id.uuid), execution: nil,
                        data: ["subscription": subscription.json]))
            case .stopPlanned(let reason):
                for charge in open where charge.isPlanned { skip(charge, reason) }
                open.removeAll(where: \.isPlanned)
            case .skip(let periods, let reason):
                let calendar = subscription.calendar(hour: policy.renewal.hour)
                for index in periods {
                    insert(newCharge(for: calendar.period(index), of: subscription, skipped: reason), of: subscription)
                }
            case .retryWaiting:
                for index in open.indices where open[index].state == .skipped {
                    guard let period = open[index].period,
                        now < policy.renewal.dunning.windowEnd(dueDay: period.start, zone: subscription.timezone)
                    else { continue }
                    open[index].state = .scheduled
                    open[index].reason = nil
                    open[index].nextAttemptAt = now
                    open[index].instrument = subscription.instrument
                    put(open[index])
                }
            case .changeOpenAmounts:
                for index in open.indices where open[index].isPlanned {
                    open[index].amount = subscription.amount
                    put(open[index])
                }
            case .moveLastEnd(let index):
                ends.append(
                    End(
                        subscription: subscription.id, index: index,
                        day: subscription.calendar(hour: 0).start(of: index + 1)))
            }
        }
        return open
    }

    mutating func tell(_ type: EventType, about charge: Charge) {
        events.append(
            SettlementChanges.Event(
                type: type, about: .other(charge.subscription?.uuid ?? charge.id.uuid),
                execution: charge.attempts.last?.execution, data: ["charge": charge.json]))
    }
}

extension Charge {
    /// Between attempts, before the first one, or waiting for an instrument: nothing of it is in flight.
    fileprivate var isPlanned: Bool { state == .scheduled || state == .skipped }
}
