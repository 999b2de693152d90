import Basics
import Foundation
import Lockstep
import Postgres
import Store
import TestKit
import Testing

/// Books with one subscription whose first period is due, and what a run, the provider and the shop do about it.
struct RenewalBench {
    let books: BooksBench
    let store: PaymentStore
    let card = InstrumentID(UUID())
    let id: SubscriptionID

    /// 9.90 EUR each month from the day that the clock shows, in Berlin, where it is nine in the morning.
    init(_ rules: RenewalPlan.Rules = RenewalPlan.Rules()) async throws {
        books = try await BooksBench()
        var policy = PaymentStore.Policy()
        policy.renewal = rules
        policy.charges.failureSettle = .zero
        store = PaymentStore(pool: books.pool, clock: books.hand.clock, identifiers: .system(), policy: policy)
        let berlin = try #require(TimeZone(identifier: "Europe/Berlin"))
        let opening = try await store.openSubscription(
            NewSubscription(
                merchantReference: freshWord("member"), holderReference: "cust_77", instrument: card,
                workflowCode: "payment-acceptance", amount: try Money(value: "9.90", currencyCode: "EUR"),
                interval: try BillingInterval("P1M"), startsOn: CivilDate(of: books.hand.now, in: berlin),
                timezone: berlin, endsOn: nil, maxCharges: nil, expiryPolicy: .block, meta: ["tier": "gold"],
                request: PaymentStore.RequestIdentity(credential: UUID(), key: "k")))
        guard case .opened(let subscription) = opening else { throw CancellationError() }
        id = subscription.id
    }

    func stop() async { await books.stop() }
    func wait(_ duration: Duration) { books.wait(duration) }

    var subscription: Subscription {
        get async throws { try #require(try await store.readSubscription(id)) }
    }
    /// Of the newest period.
    var charge: Charge {
        get async throws { try #require(try await store.listCharges(of: id, afterPeriod: nil, limit: 1)?.first) }
    }
    /// How often something was told.
    func told(_ type: String) async throws -> Int {
        try await books.value("SELECT count(*) FROM events WHERE type = \(type)")
    }

    func snapshot(hasNetworkToken: Bool? = false) -> InstrumentSnapshot {
        InstrumentSnapshot(
            id: card, holderReference: "cust_77", paymentMethod: "card", status: "enabled", isDefault: true,
            displayName: nil, network: "visa", suffix: "4242", expiryMonth: 12, expiryYear: 2034,
            hasNetworkToken: hasNetworkToken, futureUsage: nil)
    }

    /// A run: the attempt that it writes down, if it makes one.
    func renew(showing instrument: InstrumentSnapshot? = nil) async throws -> PlannedExecution? {
        let run = RenewalRun(id: UUID(), asOf: store.now)
        let shown = instrument ?? snapshot()
        let claimed = try await store.claimRenewals(run, after: nil, limit: 10).claimed
        let steps = await store.applyRenewals(claimed.map { ($0, .found(shown)) }, of: run, owner: UUID())
        return try steps.first?.get().attempt
    }

    /// The provider makes an attempt's execution.
    func create(_ planned: PlannedExecution) async throws -> ChargeStanding {
        let snapshot = ExecutionSnapshot(
            reference: ExecutionReference(id: ExecutionID(UUID()), workflowCode: planned.charge.workflowCode),
            merchantReference: planned.attempt.merchantReference, holderReference: "cust_77", workspaceID: nil,
            amount: planned.attempt.amount, createdAt: nil, facts: [])
        return try await take(.created(planned, snapshot, owner: UUID()))
    }

    /// A run makes an attempt, which is ready to be authorized.
    func attempt(showing instrument: InstrumentSnapshot? = nil) async throws -> PlannedAuthorization {
        let planned = try #require(try await renew(showing: instrument))
        return try #require(try await create(planned).authorization)
    }

    @discardableResult
    func take(_ step: ChargeStep) async throws -> ChargeStanding { try await store.take([step])[0].get() }

    @discardableResult
    func answer(_ planned: PlannedAuthorization, _ answer: AttemptAnswer) async throws -> ChargeStanding {
        try await take(.answered(planned.operation, of: planned.charge.id, number: planned.attempt.number, answer))
    }

    /// The authorization whose sending a worker takes up again.
    func claimAuthorization() async throws -> PaymentOperation {
        let claimed = try await store.claimOperations(limit: 10, owner: UUID())
        return try #require(claimed.map(\.operation).first { $0.kind == .authorize })
    }

    func resume(_ operation: PaymentOperation, of planned: PlannedAuthorization) async throws -> ChargeStanding {
        try await take(.resumed(operation, of: planned.charge.id, number: planned.attempt.number))
    }

    // MARK: what the provider tells

    func decline(_ planned: PlannedAuthorization, _ reason: String) async throws {
        try await tell(
            planned, Fact(kind: .status, code: "authorizeFailed", reason: reason, at: store.now, source: .read))
    }

    func succeed(_ planned: PlannedAuthorization) async throws {
        try await tell(
            planned,
            Fact(
                kind: .action, action: "authorize", actionID: "late", phase: .completed, success: true,
                amount: planned.attempt.amount, at: store.now, source: .notification))
    }

    /// It was cancelled before it was authorized: in the portal, or by the shop.
    func cancel(_ planned: PlannedAuthorization) async throws {
        try await tell(
            planned,
            Fact(
                kind: .action, action: "authorize", actionID: "a", phase: .requested, amount: planned.attempt.amount,
                at: store.now, source: .answer),
            Fact(
                kind: .action, action: "cancel", actionID: "c", phase: .completed, success: true,
                amount: planned.attempt.amount, at: store.now + .seconds(1), source: .notification))
    }

    private func tell(_ planned: PlannedAuthorization, _ facts: Fact...) async throws {
        try await store.learn(facts, about: planned.execution.id)
    }

    // MARK: what the shop does

    func step(_ step: PaymentStore.SubscriptionStep) async throws { _ = try await store.stepSubscription(id, step) }

    /// Attempts each day, as many as that.
    static func schedule(limit: Int, networkCap: Int = 15) throws -> DunningSchedule {
        let table = """
            {"attempts": [{"day": 1, "hour": 0}, {"day": 2, "hour": 0}, {"day": 3, "hour": 0}], "limit": \(limit),
             "windowDays": 10, "configurationRetryHours": 1,
             "networkCaps": {"default": {"attempts": \(networkCap), "days": 30}}}
            """
        return try DunningSchedule(table: Data(table.utf8))
    }
}
