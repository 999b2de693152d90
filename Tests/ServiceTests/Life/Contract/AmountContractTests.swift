import Basics
import PayrailsSandbox
import TestKit
import Testing

@Suite("Changing the amount, as the contract says")
struct AmountContractTests {
    private static let shared = Task { try await ServiceHarness.shared() }
    private let lockstep: ServiceHarness
    init() async throws { lockstep = try await Self.shared.value }

    /// The amount here, at Payrails, and its version.
    private func amounts(_ order: Order) async throws -> (here: String?, there: String?, version: Int64?) {
        let checkout = try await lockstep.checkout(order)
        return (
            checkout["amount"]?["value"]?.string,
            lockstep.sandbox.execution(order.execution)?["amount"]?["value"]?.string,
            checkout["amountVersion"]?.integer
        )
    }

    @Test("the version that the change is for is needed, and must be the current one")
    func preconditions() async throws {
        let order = try await lockstep.order()
        let shop = try lockstep.shop
        let body: JSON = ["amount": lockstep.money("60.00")]
        #expect(try await shop.put("\(order.path)/amount", body).outcome == "428 if-match-missing")
        let stale = try await shop.put("\(order.path)/amount", body, version: 2)
        #expect(stale.outcome == "412 stale")
        #expect(stale.headers["ETag"] == "\"1\"")
        for strange in ["1", "*", "W/\"1\"", "\"one\"", "\"1\", \"2\"", "\"-1\"", "\"99999999999999999999\""] {
            let reply = try await shop.put("\(order.path)/amount", body, headers: ["If-Match": strange])
            #expect([412, 422, 428, 400].contains(reply.status), "\(strange): \(reply.text)")
        }
        #expect(try await amounts(order) == ("49.99", "49.99", 1))
        let changed = try await shop.put("\(order.path)/amount", body, version: 1)
        #expect(changed.status == 200)
        #expect(changed.headers["ETag"] == "\"2\"")
        #expect(try await amounts(order) == ("60.00", "60.00", 2))
    }

    @Test(
        "M9: an amount that isn't money is 422 and changes nothing",
        arguments: [
            "0", "0.00", "1.999", "57.490", "-1", "1e2", "01.00", "1,00", " 1.00", "", "10000000000000000.00", ".5",
            "1.",
        ])
    func notMoney(_ value: String) async throws {
        let order = try await lockstep.order()
        let reply = try await lockstep.shop.put(
            "\(order.path)/amount", ["amount": lockstep.money(value)], version: 1)
        #expect(reply.outcome == "422 invalid")
        #expect(reply.json["errors"]?[0]?["pointer"] == "/amount/value")
        #expect(try await amounts(order) == ("49.99", "49.99", 1))
    }

    @Test("a client may do what its policy says, to the cent, and nothing else")
    func policy() async throws {
        let bounded: [String: JSON] = ["amountPolicy": ["clientMayUpdate": true, "min": "10", "max": "60.00"]]
        let order = try await lockstep.order("49.99", bounded)
        let app = try lockstep.app(order)
        var version: Int64 = 1
        for (value, currency, isAllowed) in [
            ("9.99", "EUR", false), ("10.00", "EUR", true), ("60.01", "EUR", false), ("60.00", "EUR", true),
            ("50.00", "USD", false),
        ] {
            let body: JSON = ["amount": lockstep.money(value, currency)]
            let reply = try await app.put("\(order.path)/amount", body, version: version)
            #expect(reply.outcome == (isAllowed ? "200" : "403 amount-outside-policy"), "\(value) \(currency)")
            if isAllowed { version += 1 }
            let alias = try await app.post(
                "/v1/executions/\(order.execution)/update", lockstep.money(value, currency))
            #expect(alias.outcome == (isAllowed ? "200" : "403 amount-outside-policy"), "\(value) \(currency)")
        }
        #expect(try await amounts(order) == ("60.00", "60.00", version))
        // The shop isn't bound by it, and only the shop may change the currency.
        let yen = try await lockstep.shop.put(
            "\(order.path)/amount", ["amount": lockstep.money("7000", "JPY")], version: version)
        #expect(yen.status == 200)
        #expect(try await amounts(order).there == "7000")
        let none = try await lockstep.order()
        let refused = try await lockstep.app(none).put(
            "\(none.path)/amount", ["amount": lockstep.money("49.98")], version: 1)
        #expect(refused.outcome == "403 amount-outside-policy")
    }

    @Test("the same amount with another basket changes only the basket, and Payrails isn't asked")
    func basketOnly() async throws {
        let order = try await lockstep.order("49.99", ["basketVersion": "b1"])
        let before = lockstep.sandbox.calls(to: .lookup).count { $0.path.contains(order.execution) }
        let reply = try await lockstep.shop.put(
            "\(order.path)/amount", ["amount": lockstep.money("49.99"), "basketVersion": "b2"], version: 1)
        #expect(reply.status == 200)
        #expect(reply.json["amountVersion"]?.integer == 1)
        #expect(lockstep.sandbox.calls(to: .lookup).count { $0.path.contains(order.execution) } == before)
        #expect(try await lockstep.checkout(order)["basketVersion"] == "b2")
        #expect(try await lockstep.gate(order.execution, ["basketVersion": "b1"]) == "basket-changed")
        #expect(try await lockstep.gate(order.execution, ["basketVersion": "b2"]) == "proceed")
        #expect(try await lockstep.events(order, atLeast: 1) == ["checkout.created"])
    }

    @Test("a basket's version is any text: it is kept and compared as it is")
    func anyBasketVersion() async throws {
        // Times and counters of many digits are versions, too.
        for version in [
            "", "a\nb\t\u{1}", "\u{202E}\u{2028}", "\u{7F}", "1733018400000", "1733018400000000000", "20261201015600",
            String(repeating: "ü", count: 127),
        ] {
            let order = try await lockstep.order("49.99", ["basketVersion": .string(version)])
            #expect(try await lockstep.checkout(order)["basketVersion"] == .string(version))
            let other: JSON = .string(version + "x")
            #expect(try await lockstep.gate(order.execution, ["basketVersion": other]) == "basket-changed")
            #expect(try await lockstep.gate(order.execution, ["basketVersion": .string(version)]) == "proceed")
        }
        let order = try await lockstep.order()
        for wrong in ["\0", String(repeating: "x", count: 129)] {
            let reply = try await lockstep.shop.put(
                "\(order.path)/amount", ["amount": lockstep.money("49.99"), "basketVersion": .string(wrong)], version: 1
            )
            #expect(reply.outcome == "422 invalid" && reply.json["errors"]?[0]?["pointer"] == "/basketVersion")
        }
        let reply = try await lockstep.shop.put(
            "\(order.path)/amount", ["amount": lockstep.money("49.99"), "basketVersion": "a\r\nb"], version: 1)
        #expect(reply.status == 200)
        #expect(try await lockstep.checkout(order)["basketVersion"] == "a\r\nb")
    }

    @Test("L5: the amount stands still while a payment starts or runs, and after it")
    func standsStill() async throws {
        let order = try await lockstep.order("49.99", ServiceHarness.mayUpdate)
        let body: JSON = ["amount": lockstep.money("60.00")]
        #expect(try await lockstep.gate(order.execution) == "proceed")
        for caller in [try lockstep.shop, try lockstep.app(order)] {
            let leased = try await caller.put("\(order.path)/amount", body, version: 1)
            #expect(leased.outcome == "409 payment-in-progress")
        }
        try lockstep.pay(order.execution, .threeDS)
        #expect(try await lockstep.becomes("needsCustomer", execution: order.execution))
        #expect(
            try await lockstep.shop.put("\(order.path)/amount", body, version: 1).outcome
                == "409 payment-in-progress")
        _ = lockstep.sandbox.answerChallenge(order.execution, .success)
        #expect(try await lockstep.becomes("paid", order))
        #expect(try await lockstep.shop.put("\(order.path)/amount", body, version: 1).outcome == "409 already-paid")
        #expect(lockstep.money(of: order) == .init(authorizations: 1, held: 4999))
    }

    @Test("a payment that began without the gate's knowledge keeps the amount too")
    func paidWithoutAsking() async throws {
        // The notifications are lost, so only Payrails knows that a payment runs.
        let order = try await lockstep.order()
        lockstep.sandbox.add(SandboxNotificationFault(.lost, executionID: order.execution, times: nil))
        try lockstep.pay(order.execution, .threeDS)
        let reply = try await lockstep.shop.put(
            "\(order.path)/amount", ["amount": lockstep.money("60.00")], version: 1)
        #expect(reply.outcome == "409 payment-in-progress")
        let now = try await amounts(order)
        #expect(now.here == "49.99" && now.there == "49.99")
    }

    @Test("L5: of many who change the same version at once one wins, and here and there agree")
    func concurrent() async throws {
        let order = try await lockstep.order()
        let shop = try lockstep.shop
        let replies = try await atOnce(12) { number in
            try await shop.put(
                "\(order.path)/amount",
                ["amount": ["value": .string("5\(number % 10).0\(number / 10)"), "currency": "EUR"]],
                version: 1)
        }
        #expect(replies.filter { $0.status == 200 }.count == 1)
        for reply in replies where reply.status != 200 {
            #expect(["412 stale", "409 amount-moving"].contains(reply.outcome), "\(reply.text)")
            if reply.status == 409 { #expect(reply.headers["Retry-After"] != nil) }
        }
        let (here, there, version) = try await amounts(order)
        #expect(here == there)
        #expect(here == replies.first { $0.status == 200 }?.json["amount"]?["value"]?.string)
        #expect(version == 2)
    }

    @Test("the guide's shape takes turns: each is confirmed or told to come again, and here and there agree")
    func aliasConcurrent() async throws {
        let order = try await lockstep.order("49.99", ServiceHarness.mayUpdate)
        let app = try lockstep.app(order)
        let replies = try await atOnce(8) { number in
            try await app.post(
                "/v1/executions/\(order.execution)/update", ["value": .string("6\(number).00"), "currency": "EUR"])
        }
        let moved = replies.filter { $0.status == 200 }
        #expect(!moved.isEmpty)
        #expect(replies.allSatisfy { $0.status == 200 || $0.outcome == "409 amount-moving" })
        let (here, there, version) = try await amounts(order)
        #expect(here == there)
        #expect(version == Int64(1 + moved.count))
        #expect(Set(moved.compactMap { $0.json["amountVersion"]?.integer }).count == moved.count)
    }

    @Test("zero and three decimals are kept exactly", arguments: [("500", "JPY", "501"), ("1.25", "KWD", "1.255")])
    func decimals(_ value: String, _ currency: String, _ next: String) async throws {
        let order = try await lockstep.order(value, currency: currency)
        #expect(order.answer.json["amount"] == lockstep.money(currency == "KWD" ? "1.250" : "500", currency))
        let reply = try await lockstep.shop.put(
            "\(order.path)/amount", ["amount": lockstep.money(next, currency)], version: 1)
        #expect(reply.json["amount"] == lockstep.money(next, currency))
        try lockstep.pay(order.execution)
        #expect(try await lockstep.becomes("paid", order))
        #expect(lockstep.money(of: order, currency: currency).held == (currency == "KWD" ? 1255 : 501))
    }
}
