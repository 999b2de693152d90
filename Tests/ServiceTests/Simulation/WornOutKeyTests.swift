import Basics
import Foundation
import Lockstep
import PayrailsSandbox
import TestKit
import Testing

/// What the simulation found, one by one: above all answers that Payrails keeps under a key and gives for ever.
@Suite struct WornOutKeyTests {
    @Test("a capture whose 5xx is stored, without effect, is sent under another key and happens once")
    func storedWithoutEffect() async throws {
        let harness = try await ServiceHarness.start()
        let order = try await harness.paidOrder("49.99")
        harness.sandbox.add(
            SandboxFault(.errorBefore(status: 500, stored: true), on: .capture, containing: order.execution))
        let operation = try await capture(order, "20.00", harness)
        #expect(try await harness.becomes("succeeded", operation: operation))
        #expect(harness.sandbox.ledgerTotals(order.reference)?.capturedMinor == 2000)
        #expect(Set(harness.sandbox.calls(to: .capture).map(\.key)).count == 2)
        await harness.stop()
    }

    @Test("an effect that comes after its 5xx came back twice is found by the look before the next sending")
    func effectAfterTheError() async throws {
        // Nothing else looks in between, and nobody tells.
        let harness = try await ServiceHarness.start([
            "LOCKSTEP_HEAL_UNKNOWN": "50ms,100ms,3s,3s", "LOCKSTEP_HEAL_PENDING": "1h",
        ])
        let order = try await harness.paidOrder("49.99")
        harness.sandbox.add(SandboxNotificationFault(.lost, action: "capture", times: nil))
        harness.sandbox.add(
            SandboxFault(.lateEffect(status: 500, milliseconds: 1000), on: .capture, containing: order.execution))
        let operation = try await capture(order, "20.00", harness)
        #expect(try await harness.becomes("succeeded", operation: operation))
        #expect(harness.sandbox.ledgerTotals(order.reference)?.capturedMinor == 2000)
        let calls = harness.sandbox.calls(to: .capture)
        #expect(calls.count == 2 && Set(calls.map(\.key)).count == 1, "\(calls.map(\.key))")
        await harness.stop()
    }

    @Test("a capture whose 5xx hides its effect, and whose notifications are lost, is told by the payment's figures")
    func storedWithEffect() async throws {
        let harness = try await ServiceHarness.start()
        let order = try await harness.paidOrder("49.99")
        harness.sandbox.add(SandboxFault(.errorAfter(status: 500), on: .capture, containing: order.execution))
        harness.sandbox.add(SandboxNotificationFault(.lost, action: "capture", times: nil))
        let operation = try await capture(order, "20.00", harness)
        #expect(try await harness.becomes("succeeded", operation: operation))
        #expect(try await harness.becomes("partiallyCaptured", execution: order.execution))
        #expect(harness.sandbox.ledgerTotals(order.reference)?.capturedMinor == 2000)
        #expect(Set(harness.sandbox.calls(to: .capture).map(\.key)).count == 1)
        await harness.stop()
    }

    @Test("a page of something in between, after a capture whose answer was lost, is no refusal")
    func pageAfterDoubt() async throws {
        let harness = try await ServiceHarness.start()
        let order = try await harness.paidOrder("49.99")
        harness.sandbox.add(SandboxFault(.closeAfter, on: .capture, containing: order.execution))
        harness.sandbox.add(SandboxFault(.html(status: 403), on: .capture, containing: order.execution))
        harness.sandbox.add(SandboxNotificationFault(.lost, action: "capture", times: nil))
        let operation = try await capture(order, "20.00", harness)
        // libcurl sends a keyed request again when its connection ended; the page answers the second sending only.
        #expect(try await harness.becomes("succeeded", operation: operation))
        #expect(harness.sandbox.ledgerTotals(order.reference)?.capturedMinor == 2000)
        await harness.stop()
    }

    @Test("a page of something in between, or our credentials, don't end the cancel of what nobody owes")
    func pageBeforeCancel() async throws {
        let harness = try await ServiceHarness.start()
        let order = try await harness.order("49.99")
        let second = try await harness.session(order)
        try #require(second.status == 200, "\(second.text)")
        let change: JSON = ["amount": harness.money("60.00")]
        #expect(try await harness.shop.put("\(order.path)/amount", change, version: 1).outcome == "200")
        harness.sandbox.add(SandboxFault(.html(status: 403), on: .cancel, containing: order.execution))
        // The first is answered with a fresh token.
        harness.sandbox.add(SandboxFault(.expiredToken, on: .cancel, times: 2, containing: order.execution))
        try harness.pay(order.execution)
        #expect(try await harness.tells("checkout.mismatch_cancelled", order))
        #expect(harness.sandbox.ledgerTotals(order.reference)?.voidedMinor == 4999)
        #expect(harness.sandbox.calls(to: .cancel).count >= 4)
        #expect(Set(harness.sandbox.calls(to: .cancel).map(\.key)).count == 1)
        await harness.stop()
    }

    @Test("a refund that is told, after one that only the payment's figures told of, comes on top of it")
    func toldAfterFigures() async throws {
        let harness = try await ServiceHarness.start()
        let order = try await harness.paidOrder("49.99")
        let captured = try await capture(order, "20.00", harness)
        #expect(try await harness.becomes("succeeded", operation: captured))
        // In the portal, so that nothing of ours is pending and looks.
        func refund(_ value: String) throws {
            let amount = try Money(value: value, currencyCode: "EUR")
            try #require(harness.sandbox.actInPortal(order.execution, .refund, amount: amount).isAccepted)
        }
        let id = UUID(uuidString: order.execution)
        func refunded() async throws -> JSON? {
            try await harness.execution(order.execution)["amounts"]?["refunded"]
        }
        harness.sandbox.add(SandboxNotificationFault(.lost, times: nil))
        try refund("1.50")
        #expect(await harness.sandbox.becomesQuiet(within: .seconds(20)))
        // Somebody looks, as healing does.
        _ = try await harness.books.query("UPDATE executions SET check_at = now() WHERE id = \(id)")
        #expect(try await waitUntil { try await refunded() == harness.money("1.50") })
        harness.sandbox.clearFaults()
        try refund("1.90")
        #expect(try await waitUntil { try await refunded() == harness.money("3.40") })
        await harness.stop()
    }

    @Test("what may have been taken on isn't sent again once its key may be forgotten: it would be a second one")
    func forgottenKey() async throws {
        // Payrails keeps a key longer than it is taken to, and not as long as its capture takes.
        let harness = try await ServiceHarness.start(["PAYRAILS_IDEMPOTENCY_RETENTION": "10ms"]) {
            $0.idempotencyRetention = .seconds(1)
            $0.actionDelay = .seconds(3)
        }
        let order = try await harness.order("49.99")
        try harness.pay(order.execution)
        #expect(try await harness.becomes("paid", order))
        harness.sandbox.add(SandboxFault(.errorAfter(status: 500), on: .capture, containing: order.execution))
        let operation = try await capture(order, "20.00", harness)
        #expect(try await harness.becomes("succeeded", operation: operation))
        #expect(harness.sandbox.calls(to: .capture).count == 1)
        #expect(harness.sandbox.ledgerTotals(order.reference)?.capturedMinor == 2000)
        await harness.stop()
    }

    @Test("what never arrived is sent once more under a key of its own, when the old one may be forgotten")
    func forgottenKeyOfNothing() async throws {
        let harness = try await ServiceHarness.start(["PAYRAILS_IDEMPOTENCY_RETENTION": "10ms"])
        let order = try await harness.paidOrder("49.99")
        harness.sandbox.add(SandboxFault(.errorBefore(status: 503), on: .capture, containing: order.execution))
        let operation = try await capture(order, "20.00", harness)
        #expect(try await harness.becomes("succeeded", operation: operation))
        #expect(Set(harness.sandbox.calls(to: .capture).map(\.key)).count == 2)
        #expect(harness.sandbox.ledgerTotals(order.reference)?.capturedMinor == 2000)
        await harness.stop()
    }

    private func capture(_ order: Order, _ value: String, _ harness: ServiceHarness) async throws -> String {
        let answer = try await harness.shop.post(
            "/v1/executions/\(order.execution)/capture", ["amount": harness.money(value)], key: freshWord("capture"))
        try #require(answer.status == 202, "\(answer.text)")
        return try #require(answer.json["id"]?.string)
    }
}
