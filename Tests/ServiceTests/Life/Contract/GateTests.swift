import Basics
import PayrailsSandbox
import TestKit
import Testing

@testable import Service

@Suite("The gate before a payment")
struct GateTests {
    private static let shared = Task {
        try await ServiceHarness.shared(["LOCKSTEP_FAILURE_SETTLE_SECONDS": "0"])
    }
    private let lockstep: ServiceHarness
    init() async throws { lockstep = try await Self.shared.value }

    @Test("every reason against a payment is given for what it is")
    func reasons() async throws {
        let basket: [String: JSON] = ["basketVersion": "b1", "allowedPaymentMethods": ["card", "payPal"]]
        let order = try await lockstep.order("49.99", basket)
        let id = order.execution
        #expect(try await lockstep.gate(ContractCall.Target.nobody.execution) == "unknown-execution")
        #expect(try await lockstep.gate(id, ["amount": lockstep.money("50.00")]) == "amount-mismatch")
        #expect(try await lockstep.gate(id, ["amount": lockstep.money("49.99", "USD")]) == "amount-mismatch")
        #expect(try await lockstep.gate(id, ["basketVersion": "b0"]) == "basket-changed")
        #expect(try await lockstep.gate(id, ["paymentMethodCode": "googlePay"]) == "method-not-allowed")
        // In the order of the contract's list, whatever else is wrong.
        let everything: [String: JSON] = [
            "amount": lockstep.money("50.00"), "basketVersion": "b0", "paymentMethodCode": "googlePay",
        ]
        #expect(try await lockstep.gate(id, everything) == "amount-mismatch")
        let right: [String: JSON] = [
            "amount": lockstep.money("49.99"), "basketVersion": "b1", "action": "authorize",
            "paymentMethodCode": "payPal",
        ]
        #expect(try await lockstep.gate(id, right) == "proceed")
        #expect(try await lockstep.gate(id, right, as: order.token) == "proceed")

        let cancelled = try await lockstep.order()
        #expect(try await lockstep.shop.post("\(cancelled.path)/cancel").status == 200)
        #expect(try await lockstep.gate(cancelled.execution) == "checkout-cancelled")
        let paid = try await lockstep.paidOrder()
        #expect(try await lockstep.gate(paid.execution, everything) == "already-paid")
    }

    @Test("an execution that another one replaced, or that failed, can't be paid")
    func superseded() async throws {
        let order = try await lockstep.order()
        let next = try #require(try await lockstep.session(order).json["executionId"]?.string)
        #expect(next != order.execution)
        #expect(try await lockstep.gate(order.execution) == "superseded-execution")
        #expect(try await lockstep.gate(next) == "proceed")
        try lockstep.pay(next, .decline(result: "InsufficientBalance"))
        #expect(try await lockstep.becomes("failed", order))
        #expect(try await lockstep.gate(next) == "superseded-execution")
    }

    @Test("what the gate said yes to stands still while it may be paid, the basket's version too")
    func leasedBasket() async throws {
        let order = try await lockstep.order("49.99", ["basketVersion": "b1"])
        #expect(try await lockstep.gate(order.execution, ["basketVersion": "b1"]) == "proceed")
        func put(_ version: String) async throws -> String {
            let change: JSON = ["amount": lockstep.money("49.99"), "basketVersion": .string(version)]
            return try await lockstep.shop.put("\(order.path)/amount", change, version: 1).outcome
        }
        #expect(try await put("b2") == "409 payment-in-progress")
        #expect(try await put("b1") == "200")
        #expect(try await lockstep.gate(order.execution, ["basketVersion": "b1"]) == "proceed")
    }

    @Test("a lease holds for the one that got it: asked again it may proceed, and another has to wait")
    func lease() async throws {
        let lockstep = try await ServiceHarness.start(parts: nil)
        let clock = ClockBox()
        try await lockstep.startService(.all, clock: clock.clock)
        let order = try await lockstep.order()
        #expect(try await lockstep.gate(order.execution) == "proceed")
        #expect(try await lockstep.gate(order.execution) == "proceed")
        let body: JSON = ["amount": lockstep.money("60.00")]
        clock.advance(by: .seconds(100))
        let leased = try await lockstep.shop.put("\(order.path)/amount", body, version: 1)
        #expect(leased.outcome == "409 payment-in-progress")
        // Nobody pays, so the lease ends by itself.
        clock.advance(by: .seconds(21))
        #expect(try await lockstep.shop.put("\(order.path)/amount", body, version: 1).status == 200)
        // While the customer is at the bank, a second start is refused once the lease is over.
        #expect(try await lockstep.gate(order.execution) == "proceed")
        try lockstep.pay(order.execution, .threeDS)
        #expect(try await lockstep.becomes("needsCustomer", execution: order.execution))
        #expect(try await lockstep.gate(order.execution) == "proceed")
        clock.advance(by: .seconds(121))
        #expect(try await lockstep.gate(order.execution) == "payment-in-progress")
        await lockstep.stop()
    }

    @Test(
        "a request that isn't well formed is refused as one",
        arguments: [
            ("{}", "422 invalid"), ("[]", "422 invalid"), ("{", "400 not-json"), ("", "400 not-json"),
            (#"{"executionId": "1", "paymentMethodCode": "card"}"#, "422 invalid"),
            (#"{"executionId": 7, "paymentMethodCode": "card"}"#, "422 invalid"),
            (#"{"executionId": "018f3c1e-0000-7000-8000-000000000000"}"#, "422 invalid"),
        ])
    func malformed(_ body: String, _ outcome: String) async throws {
        let reply = try await lockstep.shop.call(
            "POST", "/v1/pre-payment", body: .init(body.utf8), headers: ["Content-Type": "application/json"])
        #expect(reply.outcome == outcome)
    }

    @Test("with the database gone it refuses within its budget, without a word about why; with it back it proceeds")
    func databaseGone() async throws {
        let cluster = try await PostgresCluster.startOwn()
        let lockstep = try await ServiceHarness.start(["LOCKSTEP_PREPAYMENT_BUDGET_MS": "800"], cluster: cluster)
        let order = try await lockstep.order()
        try await cluster.stop(mode: .immediate)
        let body: JSON = ["executionId": .string(order.execution), "paymentMethodCode": "card"]
        for token in [lockstep.key, order.token] {
            let began = ContinuousClock.now
            let reply = try await lockstep.shop.with(token: token).post("/v1/pre-payment", body)
            #expect(ContinuousClock.now - began < .seconds(3))
            #expect(reply.status == 200)
            #expect(reply.json["decision"] == "refuse")
            #expect(reply.json["valid"] == false)
            #expect(reply.json["reason"] == "internal")
            #expect(reply.json["executionId"]?.string == order.execution)
        }
        // What is malformed, or has no token, is known without the books.
        #expect(try await lockstep.shop.post("/v1/pre-payment", [:]).outcome == "422 invalid")
        #expect(try await lockstep.stranger.post("/v1/pre-payment", body).outcome == "401 unauthorized")
        // Everybody else is told to come again, and a notification isn't acknowledged.
        #expect(try await lockstep.shop.get(order.path).outcome == "503 unavailable")
        #expect(try await lockstep.stranger.get("/readyz").status == 503)
        #expect(try await lockstep.stranger.get("/healthz").status == 200)
        try await cluster.start()
        #expect(
            try await waitUntil {
                try await lockstep.shop.post("/v1/pre-payment", body).json["decision"] == "proceed"
            })
        #expect(try await waitUntil { try await lockstep.stranger.get("/readyz").status == 200 })
        await lockstep.stop()
        try await cluster.stop()
    }
}
