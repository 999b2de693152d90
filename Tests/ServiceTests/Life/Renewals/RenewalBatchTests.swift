import Basics
import Foundation
import Lockstep
import PayrailsSandbox
import Postgres
import Store
import TestKit
import Testing

@testable import Service

@Suite("Many renewals in one transaction")
struct RenewalBatchTests {
    @Test("R9: one whose period can't be written down stops none of those that share its transaction")
    func poisoned() async throws {
        let lockstep = try await ServiceHarness.start()
        var subscriptions: [AskedSubscription] = []
        for _ in 0..<12 { subscriptions.append(try await lockstep.subscription(try lockstep.card())) }
        // Its first period has a charge already, though its row says that it has none.
        let poisoned = subscriptions[5]
        let id = try #require(SubscriptionID(poisoned.id))
        _ = try await lockstep.store.pool.query(
            """
            INSERT INTO charges (id, subscription_id, period_index, period_start, period_end, merchant_reference,
                holder_reference, instrument_id, workflow_code, amount_minor, currency, expiry_policy, state,
                created_at)
            SELECT gen_random_uuid(), id, 1, '2027-01-31', '2027-02-28', merchant_reference, holder_reference,
                instrument_id, workflow_code, amount_minor, currency, expiry_policy, 'succeeded', now()
            FROM subscriptions WHERE id = \(id.uuid)
            """)
        let summary = try await lockstep.renew("2027-01-31T06:00:00Z")
        #expect(summary.failed == 1 && summary.isUnfinished)
        for subscription in subscriptions {
            #expect(try await lockstep.come(to: ["succeeded"], subscription))
            let isPoisoned = subscription.id == poisoned.id
            #expect(lockstep.successes(subscription.reference) == (isPoisoned ? [:] : [1: 1]))
        }
        await lockstep.stop()
    }

    @Test("R9: a step about what isn't there fails alone, and those beside it are taken")
    func step() async throws {
        let lockstep = try await ServiceHarness.start(parts: .api)
        let subscription = try await lockstep.subscription(try lockstep.card())
        // The attempt is begun, and its maker dies before anything is sent.
        let store = lockstep.store
        let run = RenewalRun(id: UUID(), asOf: try #require(Timestamp(rfc3339: "2027-01-31T06:00:00Z")))
        let claimed = try await store.claimRenewals(run, after: nil, limit: 10).claimed
        let card = try lockstep.snapshot(of: subscription.card)
        let begun = await store.applyRenewals(claimed.map { ($0, .found(card)) }, of: run, owner: UUID())
        let planned = try #require(try begun.first?.get().attempt)
        let strange = PaymentOperation(
            id: OperationID(UUID()), kind: .createExecution, owner: .charge(ChargeID(UUID())), execution: nil,
            key: IdempotencyKey(UUID()), createdAt: .systemNow)
        let results = await store.take([
            .answered(strange, of: ChargeID(UUID()), number: 1, .refused(reason: "x")),
            .answered(planned.operation, of: planned.charge.id, number: 1, .refused(reason: "InsufficientBalance")),
        ])
        #expect(throws: CorruptRow.self) { try results[0].get() }
        let charge = try #require(try results[1].get().charge)
        #expect(charge.state == .scheduled && charge.attempts.map(\.outcome) == [.failed])
        await lockstep.stop()
    }

    @Test("what wasn't sent is withdrawn, and due again although the period had begun")
    func withdrawn() async throws {
        let lockstep = try await ServiceHarness.start()
        let subscription = try await lockstep.subscription(try lockstep.card())
        lockstep.sandbox.add(SandboxFault(.rateLimited(retryAfterSeconds: nil), on: .createExecution, times: nil))
        let summary = try await lockstep.renew("2027-01-31T06:00:00Z")
        #expect(summary.untried == 1)
        #expect(try await lockstep.fates(subscription) == ["scheduled"])
        lockstep.sandbox.clearFaults()
        try await lockstep.renew("2027-01-31T07:00:00Z")
        #expect(try await lockstep.come(to: ["succeeded"], subscription))
        #expect(lockstep.executions(subscription, period: 1, attempt: 1).count == 1)
        #expect(try await lockstep.charges(subscription).first?["attempts"]?.array?.count == 1)
        await lockstep.stop()
    }

    @Test("subscriptions that share a card, with several periods to catch up, come through the same transactions")
    func sharedCard() async throws {
        let lockstep = try await ServiceHarness.start()
        let card = try lockstep.card()
        var subscriptions: [AskedSubscription] = []
        for _ in 0..<8 { subscriptions.append(try await lockstep.subscription(card)) }
        for count in 1...3 {
            try await lockstep.renew("2027-03-31T06:00:00Z")
            for subscription in subscriptions {
                #expect(try await lockstep.come(to: Array(repeating: "succeeded", count: count), subscription))
            }
        }
        for subscription in subscriptions {
            #expect(lockstep.successes(subscription.reference) == [1: 1, 2: 1, 3: 1])
        }
        await lockstep.stop()
    }

    @Test("/metrics tells what is due, since when, and what became of the charges, whoever made them")
    func metrics() async throws {
        let lockstep = try await ServiceHarness.start(["LOCKSTEP_POLL_MS": "20"])
        let subscription = try await lockstep.subscription(try lockstep.card(), ServiceHarness.monthOld)
        func shows(_ series: String, _ isRight: @escaping @Sendable (Double) -> Bool) async throws -> Bool {
            let shop = try lockstep.shop
            return try await waitUntil(.seconds(30)) { try await shop.metric(series).map(isRight) ?? false }
        }
        #expect(try await shows("lockstep_renewals_due") { $0 == 1 })
        #expect(try await shows("lockstep_renewals_overdue") { $0 == 1 })
        #expect(try await shows("lockstep_renewals_oldest_due_age_seconds") { $0 > 86_400 })
        try await lockstep.renew(Timestamp.systemNow.rfc3339)
        #expect(try await lockstep.come(to: ["succeeded"], subscription))
        #expect(try await shows("lockstep_renewals_due") { $0 == 0 })
        #expect(try await shows(#"lockstep_charges_recent{state="succeeded"}"#) { $0 == 1 })
        #expect(try await shows(#"lockstep_charges_open{state="unknown"}"#) { $0 == 0 })
        await lockstep.stop()
    }
}

extension ServiceHarness {
    /// The card as Payrails shows it.
    fileprivate func snapshot(of card: SavedCard) throws -> InstrumentSnapshot {
        InstrumentSnapshot(
            id: try #require(InstrumentID(card.id)), holderReference: card.holder, paymentMethod: "card",
            status: "enabled", isDefault: false, displayName: nil, network: "visa", suffix: "4242", expiryMonth: 12,
            expiryYear: 2034, hasNetworkToken: false, futureUsage: nil)
    }
}
