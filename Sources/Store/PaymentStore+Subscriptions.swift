import Basics
import Foundation
import Lockstep
import Postgres

/// A subscription that a shop asks for.
public struct NewSubscription: Sendable {
    public let merchantReference: String
    public let holderReference: String
    public let instrument: InstrumentID
    public let workflowCode: String
    public let amount: Money
    public let interval: BillingInterval
    public let startsOn: CivilDate
    public let timezone: TimeZone
    public let endsOn: CivilDate?
    public let maxCharges: Int?
    public let expiryPolicy: ExpiryPolicy
    public let meta: JSON?
    public let request: PaymentStore.RequestIdentity

    public init(
        merchantReference: String, holderReference: String, instrument: InstrumentID, workflowCode: String,
        amount: Money, interval: BillingInterval, startsOn: CivilDate, timezone: TimeZone, endsOn: CivilDate?,
        maxCharges: Int?, expiryPolicy: ExpiryPolicy, meta: JSON?, request: PaymentStore.RequestIdentity
    ) {
        self.merchantReference = merchantReference
        self.holderReference = holderReference
        self.instrument = instrument
        self.workflowCode = workflowCode
        self.amount = amount
        self.interval = interval
        self.startsOn = startsOn
        self.timezone = timezone
        self.endsOn = endsOn
        self.maxCharges = maxCharges
        self.expiryPolicy = expiryPolicy
        self.meta = meta
        self.request = request
    }
}

extension PaymentStore {
    public enum SubscriptionOpening: Sendable {
        case opened(Subscription)
        /// The same request was here before.
        case known(Subscription)
        /// An order, a charge or another subscription has the reference.
        case referenceTaken
    }

    /// What a request for a subscription has begun already; nil where it is the first of its reference.
    public func findSubscription(
        _ reference: String, by request: RequestIdentity
    ) async throws -> SubscriptionOpening? {
        try await transact { try await $0.opening(subscription: reference, by: request) }
    }

    /// Takes the reference and writes the subscription down. Nothing is charged before a run finds its first period due.
    public func openSubscription(_ new: NewSubscription) async throws -> SubscriptionOpening {
        try await transact { transaction in
            try await transaction.lockReference(new.merchantReference)
            if let opening = try await transaction.opening(subscription: new.merchantReference, by: new.request) {
                return opening
            }
            let subscription = Subscription(
                id: SubscriptionID(identifiers.next()), merchantReference: new.merchantReference,
                holderReference: new.holderReference, instrument: new.instrument, workflowCode: new.workflowCode,
                amount: new.amount, interval: new.interval, startsOn: new.startsOn, timezone: new.timezone,
                endsOn: new.endsOn, maxCharges: new.maxCharges, expiryPolicy: new.expiryPolicy, meta: new.meta,
                createdAt: transaction.now)
            let dueAt = subscription.calendar(hour: policy.renewal.hour).dueAt(1)
            _ = try await transaction.query(
                """
                INSERT INTO subscriptions (id, merchant_reference, holder_reference, instrument_id, workflow_code,
                    amount_minor, currency, every, starts_on, anchor_index, timezone, ends_on, max_charges,
                    expiry_policy, meta, status, next_index, due_at, created_by, creation_key, created_at)
                VALUES (\(subscription.id.uuid), \(new.merchantReference), \(new.holderReference),
                    \(new.instrument.uuid), \(new.workflowCode), \(new.amount.minor), \(new.amount.currency.code),
                    \(new.interval.description), DATE '1970-01-01' + \(new.startsOn.daysSince1970)::integer, 1,
                    \(new.timezone.identifier), DATE '1970-01-01' + \(new.endsOn?.daysSince1970)::integer,
                    \(new.maxCharges), \(new.expiryPolicy.rawValue), \(new.meta.map { PostgresJSON($0.text) }),
                    'active', 1, \(dueAt.stored), \(new.request.credential), \(new.request.key),
                    \(transaction.now.stored))
                """)
            return .opened(subscription)
        }
    }

    public func readSubscription(_ id: SubscriptionID) async throws -> Subscription? {
        try await transact { try await $0.readSubscription(id) }
    }

    /// A holder's subscriptions, newest first, behind the one named.
    public func listSubscriptions(
        holderReference: String, after: SubscriptionID?, limit: Int
    ) async throws -> [Subscription] {
        try await pool.query(
            """
            SELECT \(unescaped: Transaction.subscriptionColumns) FROM subscriptions
            WHERE holder_reference = \(holderReference) AND (\(after?.uuid)::uuid IS NULL OR id < \(after?.uuid))
            ORDER BY id DESC LIMIT \(limit)
            """
        ).map(Transaction.subscription(from:))
    }

    /// Subscriptions that run, by their ids, behind the one named: for a forecast.
    public func listRunningSubscriptions(after: SubscriptionID?, limit: Int) async throws -> [Subscription] {
        try await pool.query(
            """
            SELECT \(unescaped: Transaction.subscriptionColumns) FROM subscriptions
            WHERE status IN ('active','pastDue','needsInstrument') AND set_aside IS NULL
                AND (\(after?.uuid)::uuid IS NULL OR id > \(after?.uuid))
            ORDER BY id LIMIT \(limit)
            """
        ).map(Transaction.subscription(from:))
    }

    /// A subscription's charges, newest period first, behind the period named. Nil where there is no such subscription.
    public func listCharges(
        of id: SubscriptionID, afterPeriod: Int?, limit: Int
    ) async throws -> [Charge]? {
        try await transact { transaction in
            guard try await transaction.readSubscription(id) != nil else { return nil }
            let ids = try await transaction.query(
                """
                SELECT id FROM charges WHERE subscription_id = \(id.uuid) AND period_index < \(afterPeriod ?? Int(Int32.max))
                ORDER BY period_index DESC LIMIT \(limit)
                """
            ).map { ChargeID(try $0.decode("id", as: UUID.self)) }
            return try await transaction.readCharges(ids).sorted { ($0.period?.index ?? 0) > ($1.period?.index ?? 0) }
        }
    }

    // MARK: what the shop changes

    public enum SubscriptionChangeResult: Sendable {
        case changed(Subscription)
        case notFound
        case refused(Subscription.Refusal)
    }

    public func changeSubscription(
        _ id: SubscriptionID, _ change: Subscription.Change
    ) async throws -> SubscriptionChangeResult {
        try await transact { transaction in
            guard var subscription = try await transaction.lockSubscription(id) else { return .notFound }
            let open = try await transaction.lockOpenCharges(of: id)
            let lastStart = try await transaction.readLastStart(of: id)
            let effects: [Subscription.Effect]
            do throws(Subscription.Refusal) {
                effects = try subscription.apply(
                    change, today: CivilDate(of: transaction.now, in: subscription.timezone), lastStart: lastStart,
                    othersOpen: open.contains(where: \.isUnpaid))
            } catch {
                return .refused(error)
            }
            var changes = transaction.subscriptionChanges
            changes.finish(subscription, effects, open: open)
            try await transaction.write(changes)
            return .changed(subscription)
        }
    }

    /// Pause, resume or cancel; what is planned stops in the same transaction.
    public func stepSubscription(
        _ id: SubscriptionID, _ step: SubscriptionStep
    ) async throws -> SubscriptionChangeResult {
        try await transact { transaction in
            guard var subscription = try await transaction.lockSubscription(id) else { return .notFound }
            let event: Subscription.Event
            switch step {
            case .pause:
                if subscription.status.isFinal { return .refused(.over) }
                event = .pause
            case .resume:
                if subscription.status.isFinal { return .refused(.over) }
                var newest = subscription.calendar(hour: policy.renewal.hour).newestDue(at: transaction.now)
                while newest >= subscription.nextIndex, !subscription.has(period: newest) { newest -= 1 }
                event = .resume(skippingTo: max(subscription.nextIndex, newest + 1))
            case .cancel:
                if subscription.status == .ended { return .refused(.over) }
                event = .cancel
            }
            let before = subscription
            let effects = subscription.apply(event)
            // Said twice, the same answer, and nothing written.
            guard subscription != before else { return .changed(subscription) }
            let open = try await transaction.lockOpenCharges(of: id)
            var changes = transaction.subscriptionChanges
            changes.finish(subscription, effects, open: open)
            try await transaction.write(changes)
            return .changed(subscription)
        }
    }

    public enum SubscriptionStep: Sendable { case pause, resume, cancel }
}

extension Charge {
    /// Its period is due and not paid.
    var isUnpaid: Bool { standing.map { $0.standing != .inFlight } ?? false }
}

extension Transaction {
    fileprivate func opening(
        subscription reference: String, by request: PaymentStore.RequestIdentity
    ) async throws -> PaymentStore.SubscriptionOpening? {
        guard try await isTaken(reference) else { return nil }
        let known = try await query(
            """
            SELECT \(unescaped: Self.subscriptionColumns) FROM subscriptions
            WHERE merchant_reference = \(reference) AND created_by = \(request.credential)
                AND creation_key = \(request.key) AND created_at >= \((now - policy.requestKeyLife).stored)
            """
        ).first.map(Self.subscription(from:))
        return known.map { .known($0) } ?? .referenceTaken
    }
}
