import Basics
import Foundation
import Lockstep
import PayrailsSandbox
import Store
import TestKit
import Testing

@testable import Service

@Suite("What a process left behind right after writing it down, another one finishes (Q3)")
struct LeftBehindTests {
    private static let shared = Task { try await ServiceHarness.shared() }
    private let lockstep: ServiceHarness
    init() async throws { lockstep = try await Self.shared.value }

    /// The books as a process sees them that dies at once: its leases are over when they begin.
    private var dying: PaymentStore {
        PaymentStore(
            pool: lockstep.books, clock: .system, identifiers: .system(),
            policy: PaymentStore.Policy(lease: .milliseconds(1)))
    }

    @Test("a creation that was written down and not sent")
    func creation() async throws {
        let reference = freshWord("left")
        let new = NewCheckout(
            merchantReference: reference, holderReference: "cust_77", workflowCode: "payment-acceptance",
            amount: try Money(value: "49.99", currencyCode: "EUR"), basketVersion: nil, amountPolicy: .merchantOnly,
            allowedPaymentMethods: nil, meta: nil, lifetime: .seconds(3600), credential: UUID(), idempotencyKey: "k")
        guard case .planned = try await dying.openCheckout(new, owner: UUID()) else {
            return #expect(Bool(false), "not planned")
        }
        #expect(
            try await waitUntil {
                try await lockstep.shop.get("/v1/checkouts?merchantReference=\(reference)").json["items"]?[0]?[
                    "executionId"] != nil
            })
        #expect(lockstep.sandbox.executionIDs(merchantReference: reference).count == 1)
    }

    @Test("a change of the amount that was written down and not sent")
    func move() async throws {
        let order = try await lockstep.order()
        let id = try #require(CheckoutID(order.checkout))
        let start = try await dying.beginMove(
            of: id, to: try Money(value: "60.00", currencyCode: "EUR"), basketVersion: "b2", version: 1, execution: nil,
            by: .merchant, owner: UUID())
        guard case .planned = start else { return #expect(Bool(false), "not planned") }
        #expect(try await waitUntil { try await lockstep.checkout(order)["amountVersion"]?.integer == 2 })
        let checkout = try await lockstep.checkout(order)
        #expect(checkout["amount"] == lockstep.money("60.00"))
        #expect(checkout["amountState"] == "inStep")
        #expect(checkout["basketVersion"] == "b2")
        #expect(lockstep.sandbox.execution(order.execution)?["amount"] == lockstep.money("60.00"))
    }

    @Test("a capture, a refund and a cancel that were written down and not sent")
    func lifecycle() async throws {
        let order = try await lockstep.paidOrder("50.00")
        let id = try #require(ExecutionID(order.execution))
        for (kind, state) in [(PaymentOperation.Kind.capture, "captured"), (.refund, "refunded")] {
            let start = try await dying.beginLifecycle(
                kind, of: id, amount: nil, isFinal: nil, reason: nil, request: nil, owner: UUID())
            guard case .begun = start else { return #expect(Bool(false), "not begun") }
            #expect(try await lockstep.becomes(state, execution: order.execution))
        }
        #expect(lockstep.money(of: order) == .init(authorizations: 1, refunded: 5000))
        let other = try await lockstep.paidOrder("50.00")
        _ = try await dying.beginLifecycle(
            .cancel, of: try #require(ExecutionID(other.execution)), amount: nil, isFinal: nil, reason: nil,
            request: nil, owner: UUID())
        #expect(try await lockstep.becomes("cancelled", other))
        #expect(lockstep.money(of: other) == .init(authorizations: 1, voided: 5000))
    }

    @Test("notifications that were acknowledged and not applied")
    func notifications() async throws {
        // One process only takes them in; it stops, and another one that only works applies them.
        let lockstep = try await ServiceHarness.start(parts: .api)
        let order = try await lockstep.order()
        try lockstep.pay(order.execution)
        #expect(await lockstep.sandbox.becomesQuiet())
        #expect(try await lockstep.status(order) == "open")
        await lockstep.stopServices()
        try await lockstep.startService(.workers)
        let store = lockstep.store
        let id = try #require(CheckoutID(order.checkout))
        #expect(try await waitUntil { try await store.readCheckout(id)?.checkout.status == .paid })
        await lockstep.stop()
    }
}
