import Basics
import Foundation
import PayrailsSandbox
import TestKit
import Testing

@Suite("A checkout's whole life")
struct WholeLifeTests {
    @Test("an order is created, changed, checked, paid, captured in part and refunded, and the books follow the money")
    func wholeLife() async throws {
        let lockstep = try await ServiceHarness.start()
        let shop = try lockstep.shop
        let order = try await lockstep.order("49.99", ServiceHarness.mayUpdate)
        let app = try lockstep.app(order)

        // Created: the app gets what the stand-in made, untouched.
        let created = order.answer
        #expect(created.headers["Location"] == order.path)
        #expect(created.headers["ETag"] == "\"1\"")
        #expect(created.json["status"] == "open")
        #expect(created.json["amount"] == lockstep.money("49.99"))
        #expect(lockstep.sandbox.executionIDs(merchantReference: order.reference) == [order.execution])
        let initData = try #require(created.json["init"]?["data"]?.string.flatMap { Data(base64Encoded: $0) })
        #expect(try JSON(parsing: initData)["execution"]?["id"]?.string == order.execution)

        // Read by both, without a client token.
        for caller in [shop, app] {
            let read = try await caller.get(order.path)
            #expect(read.status == 200)
            #expect(read.json["clientToken"] == nil)
            #expect(read.json["init"] == created.json["init"])
        }
        let found = try await shop.get("/v1/checkouts?merchantReference=\(order.reference)")
        #expect(found.json["items"]?[0]?["id"]?.string == order.checkout)

        // Changed: by the contract's call, then by the guide's.
        let changed = try await app.put("\(order.path)/amount", ["amount": lockstep.money("52.89")], version: 1)
        #expect(changed.status == 200)
        #expect(changed.json["amountVersion"]?.integer == 2)
        #expect(changed.json["amountState"] == "inStep")
        #expect(lockstep.sandbox.execution(order.execution)?["amount"] == lockstep.money("52.89"))
        let updated = try await app.post("/v1/executions/\(order.execution)/update", lockstep.money("55"))
        #expect(updated.status == 200)
        #expect(updated.json["amount"] == lockstep.money("55.00"))
        #expect(lockstep.sandbox.execution(order.execution)?["amount"] == lockstep.money("55.00"))
        #expect(try await lockstep.checkout(order)["amountVersion"]?.integer == 3)

        // Checked and paid.
        #expect(try await lockstep.gate(order.execution, as: order.token) == "proceed")
        try lockstep.pay(order.execution)
        #expect(try await lockstep.becomes("paid", order))
        #expect(lockstep.money(of: order) == .init(authorizations: 1, held: 5500))
        #expect(try await lockstep.execution(order.execution)["amounts"]?["authorized"] == lockstep.money("55.00"))
        #expect(try await lockstep.gate(order.execution) == "already-paid")

        // Captured in part: the rest stays held.
        let capture = try await shop.post(
            "/v1/executions/\(order.execution)/capture", ["amount": lockstep.money("30.00"), "final": false],
            key: "capture")
        #expect(capture.status == 202)
        let captureID = try #require(capture.json["id"]?.string)
        #expect(try await lockstep.becomes("succeeded", operation: captureID))
        #expect(lockstep.money(of: order) == .init(authorizations: 1, held: 2500, net: 3000))
        #expect(try await lockstep.becomes("partiallyCaptured", execution: order.execution))

        // Refunded: a part of what was captured, then the rest of it.
        let refund = try await shop.post(
            "/v1/executions/\(order.execution)/refund",
            ["amount": lockstep.money("10"), "reason": "BetterPrice"], key: "refund")
        #expect(refund.status == 202)
        #expect(try await lockstep.becomes("succeeded", operation: try #require(refund.json["id"]?.string)))
        #expect(lockstep.money(of: order) == .init(authorizations: 1, held: 2500, net: 2000, refunded: 1000))
        #expect(
            try await lockstep.execution(order.execution)["amounts"] == [
                "authorized": lockstep.money("55.00"), "captured": lockstep.money("30.00"),
                "refunded": lockstep.money("10.00"),
            ])
        #expect(try await lockstep.status(order) == "paid")

        // Told: each once, in order.
        #expect(
            try await lockstep.events(order, atLeast: 6) == [
                "checkout.created", "checkout.amount_changed", "checkout.amount_changed", "checkout.paid",
                "execution.captured", "execution.refunded",
            ])
        #expect(lockstep.log.errors == [])
        await lockstep.stop()
    }
}
