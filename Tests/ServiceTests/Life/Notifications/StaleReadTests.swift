import Basics
import Lockstep
import PayrailsSandbox
import TestKit
import Testing

@testable import Service

/// Notifications are lost and healing comes in an hour, so that only whoever looks can find out.
@Suite("Payrails is asked when somebody reads what nobody told of for a while")
struct StaleReadTests {
    private static func start(after seconds: Int = 10) async throws -> (ServiceHarness, ClockBox) {
        let box = ClockBox()
        let lockstep = try await ServiceHarness.start(
            [
                "LOCKSTEP_HEAL_PENDING": "1h", "LOCKSTEP_HEAL_UNKNOWN": "1h", "LOCKSTEP_STALE_SECONDS": "\(seconds)",
            ], parts: nil)
        try await lockstep.startService(.all, clock: box.clock)
        lockstep.sandbox.add(SandboxNotificationFault(.lost, times: nil))
        return (lockstep, box)
    }

    private func asked(_ lockstep: ServiceHarness, _ order: Order) -> Int {
        lockstep.sandbox.calls(to: .getExecution).filter { $0.path.contains(order.execution) }.count
    }

    /// Paid at Payrails, and let through by the gate here; nobody told.
    private func paid(_ lockstep: ServiceHarness) async throws -> Order {
        let order = try await lockstep.order()
        #expect(try await lockstep.gate(order.execution) == "proceed")
        try lockstep.pay(order.execution)
        try #require(
            await waitUntil { lockstep.sandbox.statusCodes(order.execution).contains("authorizeSuccessful") })
        return order
    }

    @Test("the app that comes back from paying learns it with its first look, and many looks are one question")
    func checkout() async throws {
        let (lockstep, box) = try await Self.start()
        let order = try await paid(lockstep)
        #expect(try await lockstep.app(order).get(order.path).json["status"] == "open")
        #expect(asked(lockstep, order) == 0, "it may still come by itself")
        box.advance(by: .seconds(10))
        let statuses = try await atOnce(20) { _ in
            try await lockstep.app(order).get(order.path).json["status"]?.string
        }
        #expect(statuses.contains("paid"))
        #expect(try await lockstep.status(order) == "paid")
        #expect(asked(lockstep, order) == 1)
        #expect(try await lockstep.events(order, atLeast: 2) == ["checkout.created", "checkout.paid"])
        // What is known for good is never asked about again.
        box.advance(by: .seconds(60))
        #expect(try await lockstep.status(order) == "paid")
        #expect(asked(lockstep, order) == 1)
        await lockstep.stop()
    }

    @Test("so does the shop: by its reference, and by the execution")
    func shop() async throws {
        let (lockstep, box) = try await Self.start()
        let orders = [try await paid(lockstep), try await paid(lockstep)]
        box.advance(by: .seconds(10))
        let found = try await lockstep.shop.get("/v1/checkouts?merchantReference=\(orders[0].reference)").json
        #expect(found["items"]?[0]?["status"] == "paid")
        // An execution that was only created is nobody's news, so the first look begins with its order.
        #expect(try await lockstep.status(orders[1]) == "paid")
        let waits = try await lockstep.order()
        try lockstep.pay(waits.execution, .threeDS)
        #expect(await waitUntil { lockstep.sandbox.execution(waits.execution)?["actionRequired"] != nil })
        #expect(try await lockstep.gate(waits.execution) == "proceed")
        box.advance(by: .seconds(10))
        #expect(try await lockstep.status(waits) == "processing")
        _ = lockstep.sandbox.answerChallenge(waits.execution, .success)
        try #require(
            await waitUntil { lockstep.sandbox.statusCodes(waits.execution).contains("authorizeSuccessful") })
        #expect(try await lockstep.execution(waits.execution)["state"] == "needsCustomer", "asked just now")
        box.advance(by: .seconds(10))
        #expect(try await lockstep.execution(waits.execution)["state"] == "authorized")
        #expect(asked(lockstep, waits) == 2)
        await lockstep.stop()
    }

    @Test("and of a charge")
    func charge() async throws {
        let (lockstep, box) = try await Self.start()
        let charge = try await lockstep.charge(try lockstep.card())
        #expect(
            await waitUntil {
                lockstep.executions(of: charge).contains {
                    lockstep.sandbox.statusCodes($0).contains("authorizeSuccessful")
                }
            })
        box.advance(by: .seconds(10))
        #expect(try await lockstep.charge(charge.id)["state"] == "succeeded")
        await lockstep.stop()
    }

    @Test("nobody is asked about an order that nobody began to pay, nor where the setting says never")
    func nothingToHear() async throws {
        let (lockstep, box) = try await Self.start()
        let untouched = try await lockstep.order()
        box.advance(by: .seconds(60))
        #expect(try await lockstep.status(untouched) == "open")
        #expect(asked(lockstep, untouched) == 0)
        await lockstep.stop()
        let (never, other) = try await Self.start(after: 0)
        let order = try await paid(never)
        other.advance(by: .seconds(60))
        #expect(try await never.status(order) == "open")
        #expect(asked(never, order) == 0)
        await never.stop()
    }

    @Test("a Payrails that is slow or gone holds nobody up: what is known is shown, and what comes late is learned")
    func slow() async throws {
        let (lockstep, box) = try await Self.start()
        let order = try await paid(lockstep)
        lockstep.sandbox.add(SandboxFault(.delay(milliseconds: 4000), on: .getExecution))
        box.advance(by: .seconds(10))
        let begun = ContinuousClock.now
        let reply = try await lockstep.shop.get(order.path)
        #expect(reply.status == 200 && reply.json["status"] == "open")
        #expect(ContinuousClock.now - begun >= StaleReads.budget, "it was waited for, and not for ever")
        // Too soon to be asked again, so it is the late answer that is seen.
        #expect(try await lockstep.becomes("paid", order))
        #expect(asked(lockstep, order) == 1)

        let other = try await paid(lockstep)
        for _ in 0..<10 { lockstep.sandbox.add(SandboxFault(.closeBefore, on: .getExecution)) }
        box.advance(by: .seconds(10))
        let answer = try await lockstep.shop.get(other.path)
        #expect(answer.status == 200 && answer.json["status"] == "open")
        await lockstep.stop()
    }
}
