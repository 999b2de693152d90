import Basics
import Foundation
import PayrailsSandbox
import TestKit
import Testing

@Suite("Sessions: many for one order, and one payment")
struct SessionLifeTests {
    private static let shared = Task {
        try await ServiceHarness.shared(["LOCKSTEP_FAILURE_SETTLE_SECONDS": "0"])
    }
    private let lockstep: ServiceHarness
    init() async throws { lockstep = try await Self.shared.value }

    /// A new session's execution.
    private func next(_ order: Order) async throws -> String {
        let reply = try await lockstep.session(order)
        try #require(reply.status == 200, "\(reply.text)")
        return try #require(reply.json["executionId"]?.string)
    }

    @Test("a fresh init is handed out again, an expired one never")
    func freshness() async throws {
        let order = try await lockstep.order()
        let fresh = try await lockstep.session(order, expired: false)
        #expect(fresh.status == 200)
        #expect(fresh.json["init"] == order.answer.json["init"])
        #expect(fresh.json["executionId"]?.string == order.execution)
        #expect(fresh.json["amount"] == lockstep.money("49.99"))
        #expect(fresh.json["amountVersion"]?.integer == 1)
        #expect(fresh.json["status"] == "open")
        let second = try await next(order)
        let third = try await next(order)
        #expect(Set([order.execution, second, third]).count == 3)
        #expect(lockstep.sandbox.executionIDs(merchantReference: "\(order.reference)~2") == [second])
        #expect(lockstep.sandbox.executionIDs(merchantReference: "\(order.reference)~3") == [third])
        let executions = try #require(try await lockstep.checkout(order)["executions"]?.array)
        #expect(executions.map { $0["current"]?.bool } == [false, false, true])
        #expect(try await lockstep.session(order, expired: false).json["executionId"]?.string == third)
    }

    @Test("after the amount moved a session's init starts from the confirmed amount")
    func initFollowsAmount() async throws {
        let order = try await lockstep.order()
        let changed = try await lockstep.shop.put(
            "\(order.path)/amount", ["amount": lockstep.money("60.00")], version: 1)
        #expect(changed.status == 200)
        #expect(try await lockstep.checkout(order)["init"] == nil)
        let session = try await lockstep.session(order, expired: false)
        let data = try #require(session.json["init"]?["data"]?.string.flatMap { Data(base64Encoded: $0) })
        #expect(try JSON(parsing: data)["amount"] == lockstep.money("60.00"))
        #expect(session.json["amount"] == lockstep.money("60.00"))
        try lockstep.pay(try #require(session.json["executionId"]?.string))
        #expect(try await lockstep.becomes("paid", order))
        #expect(lockstep.money(of: order) == .init(authorizations: 1, held: 6000))
    }

    @Test("two sessions that both pay: one is kept, the other taken back, and both are told once")
    func duplicate() async throws {
        let order = try await lockstep.order()
        let second = try await next(order)
        try lockstep.pay(order.execution)
        try lockstep.pay(second)
        #expect(try await lockstep.becomes("paid", order))
        #expect(try await lockstep.tells("checkout.duplicate_cancelled", order))
        #expect(lockstep.money(of: order) == .init(authorizations: 2, held: 4999, voided: 4999))
        let tally = try await lockstep.tally(order)
        #expect(tally["checkout.paid"] == 1)
        #expect(tally["checkout.duplicate_cancelled"] == 1)
        #expect(tally["checkout.cancelled"] == nil)
        #expect(tally["operation.failed"] == nil)
        #expect(try await lockstep.status(order) == "paid")
    }

    @Test("W8: five sessions that all pay at once leave one payment")
    func many() async throws {
        let order = try await lockstep.order()
        var executions = [order.execution]
        for _ in 0..<4 { executions.append(try await next(order)) }
        for execution in executions { try lockstep.pay(execution) }
        #expect(try await lockstep.tells("checkout.duplicate_cancelled", order, times: 4))
        #expect(lockstep.money(of: order) == .init(authorizations: 5, held: 4999, voided: 4 * 4999))
        #expect(try await lockstep.tally(order)["checkout.paid"] == 1)
    }

    @Test(
        "a success for the amount before is no payment of the order: it is taken back and told, and the order goes on")
    func mismatch() async throws {
        let order = try await lockstep.order()
        let second = try await next(order)
        let moved = try await lockstep.shop.put(
            "\(order.path)/amount", ["amount": lockstep.money("60.00")], version: 1)
        #expect(moved.status == 200)
        try lockstep.pay(order.execution)
        #expect(try await lockstep.tells("checkout.mismatch_cancelled", order))
        #expect(lockstep.money(of: order) == .init(authorizations: 1, voided: 4999))
        #expect(try await lockstep.tally(order)["checkout.paid"] == nil)
        #expect(try await lockstep.gate(second) == "proceed")
        try lockstep.pay(second)
        #expect(try await lockstep.becomes("paid", order))
        #expect(lockstep.money(of: order) == .init(authorizations: 2, held: 6000, voided: 4999))
    }

    @Test("a success for another amount is held for a person where the setting says so")
    func held() async throws {
        let lockstep = try await ServiceHarness.start(["LOCKSTEP_MISMATCH": "hold"])
        let order = try await lockstep.order()
        _ = try await lockstep.session(order)
        _ = try await lockstep.shop.put("\(order.path)/amount", ["amount": lockstep.money("60.00")], version: 1)
        try lockstep.pay(order.execution)
        #expect(try await lockstep.becomes("authorized", execution: order.execution))
        #expect(await lockstep.sandbox.becomesQuiet())
        #expect(lockstep.money(of: order) == .init(authorizations: 1, held: 4999))
        #expect(lockstep.sandbox.calls(to: .cancel).isEmpty)
        #expect(try await lockstep.status(order) == "open")
        await lockstep.stop()
    }

    @Test("a customer who left at the bank gets a new session, and coming back late doesn't pay twice")
    func abandoned() async throws {
        let order = try await lockstep.order()
        #expect(try await lockstep.gate(order.execution) == "proceed")
        try lockstep.pay(order.execution, .threeDS)
        #expect(try await lockstep.becomes("processing", order))
        let second = try await next(order)
        #expect(try await lockstep.gate(second) == "proceed")
        try lockstep.pay(second)
        #expect(try await lockstep.becomes("paid", order))
        _ = lockstep.sandbox.answerChallenge(order.execution, .success)
        #expect(try await lockstep.tells("checkout.duplicate_cancelled", order))
        #expect(lockstep.money(of: order) == .init(authorizations: 2, held: 4999, voided: 4999))
    }

    @Test("a decline fails the order once it has settled; a new session can still pay it")
    func decline() async throws {
        let order = try await lockstep.order()
        try lockstep.pay(order.execution, .decline(result: "InsufficientBalance"))
        #expect(try await lockstep.becomes("failed", order))
        let second = try await next(order)
        #expect(try await lockstep.status(order) == "open")
        try lockstep.pay(second)
        #expect(try await lockstep.becomes("paid", order))
        let events = try await lockstep.events(order, atLeast: 3)
        #expect(events == ["checkout.created", "checkout.failed", "checkout.paid"])
        #expect(lockstep.money(of: order) == .init(authorizations: 1, held: 4999))
    }

    @Test("while the workflow may still try another provider a decline isn't a failure, and a success then pays")
    func cascade() async throws {
        let lockstep = try await ServiceHarness.start(["LOCKSTEP_FAILURE_SETTLE_SECONDS": "600"])
        let order = try await lockstep.order()
        try lockstep.pay(order.execution, .decline(result: "GenericRejection"))
        #expect(try await lockstep.becomes("failed", execution: order.execution))
        #expect(try await lockstep.status(order) == "processing")
        #expect(lockstep.sandbox.updateResult(order.execution, success: true).isAccepted)
        #expect(try await lockstep.becomes("paid", order))
        #expect(try await lockstep.events(order, atLeast: 2) == ["checkout.created", "checkout.paid"])
        await lockstep.stop()
    }

    @Test("a cascade ends paid, whatever it looked like on the way")
    func cascaded() async throws {
        let order = try await lockstep.order()
        try lockstep.pay(order.execution, .cascade(result: "GenericRejection"))
        #expect(try await lockstep.becomes("paid", order))
        #expect(try await lockstep.tally(order)["checkout.paid"] == 1)
        #expect(lockstep.money(of: order) == .init(authorizations: 1, held: 4999))
    }

    @Test("what is paid, given up or unknown gets no session")
    func noSession() async throws {
        let paid = try await lockstep.paidOrder()
        #expect(try await lockstep.session(paid).outcome == "409 already-paid")
        let cancelled = try await lockstep.order()
        #expect(try await lockstep.shop.post("\(cancelled.path)/cancel").status == 200)
        #expect(try await lockstep.session(cancelled).outcome == "409 checkout-cancelled")
    }

    @Test("where Payrails can't be asked what became of the old session there is no new one")
    func cannotAsk() async throws {
        let order = try await lockstep.order()
        lockstep.sandbox.add(
            SandboxFault(.errorBefore(status: 503), on: .getExecution, times: nil, containing: order.execution))
        let reply = try await lockstep.session(order)
        #expect(reply.outcome == "503 session-unconfirmed")
        #expect(reply.headers["Retry-After"] != nil)
        #expect(lockstep.sandbox.executionIDs(merchantReference: "\(order.reference)~2").isEmpty)
    }

    @Test(
        "M7: after a ProviderTimeout nobody may pay again until Payrails says what became of the money",
        arguments: [true, false])
    func providerTimeout(_ charged: Bool) async throws {
        let order = try await lockstep.order()
        #expect(try await lockstep.gate(order.execution) == "proceed")
        try lockstep.pay(order.execution, .timeout(charged: charged))
        #expect(try await lockstep.becomes("unknown", execution: order.execution))
        #expect(try await lockstep.execution(order.execution)["amounts"]?["authorized"] == nil, "it isn't known")
        #expect(try await lockstep.status(order) == "processing")
        #expect(try await lockstep.gate(order.execution) == "payment-in-progress")
        #expect(try await lockstep.session(order).outcome == "503 session-unconfirmed")
        #expect(lockstep.sandbox.executionIDs(merchantReference: "\(order.reference)~2").isEmpty)
        // It is asked about again and again.
        let reads = lockstep.sandbox.calls(to: .listPayments).count
        #expect(await waitUntil { lockstep.sandbox.calls(to: .listPayments).count > reads + 2 })
        #expect(try await lockstep.status(order) == "processing")
        #expect(lockstep.sandbox.updateResult(order.execution, success: charged).isAccepted)
        #expect(try await lockstep.becomes(charged ? "paid" : "failed", order))
        if charged {
            #expect(try await lockstep.session(order).outcome == "409 already-paid")
            #expect(lockstep.money(of: order) == .init(authorizations: 1, held: 4999))
        } else {
            #expect(try await lockstep.gate(try await next(order)) == "proceed")
            #expect(lockstep.money(of: order) == .init())
        }
    }

    @Test("asking for a session finds out that the order was paid, though no notification came")
    func paidUnnoticed() async throws {
        let order = try await lockstep.order()
        lockstep.sandbox.add(SandboxNotificationFault(.lost, executionID: order.execution, times: nil))
        try lockstep.pay(order.execution)
        #expect(await lockstep.sandbox.becomesQuiet())
        #expect(try await lockstep.session(order).outcome == "409 already-paid")
        #expect(lockstep.sandbox.executionIDs(merchantReference: "\(order.reference)~2").isEmpty)
    }

    @Test("a refused session leaves the order as it was; its number isn't given again, in case it is there after all")
    func refusedSession() async throws {
        let order = try await lockstep.order()
        lockstep.sandbox.add(
            SandboxFault(.errorBefore(status: 403), on: .clientInit, containing: "\(order.reference)~2"))
        #expect(try await lockstep.session(order).outcome == "502 creation-refused")
        #expect(try await lockstep.checkout(order)["executionId"]?.string == order.execution)
        let second = try await next(order)
        #expect(lockstep.sandbox.executionIDs(merchantReference: "\(order.reference)~3") == [second])
    }

    @Test("many who ask for a new session at once get one new execution")
    func sessionsAtOnce() async throws {
        let order = try await lockstep.order()
        let replies = try await atOnce(8) { _ in try await lockstep.session(order, expired: false) }
        #expect(replies.allSatisfy { $0.json["executionId"]?.string == order.execution })
        let renewed = try await atOnce(8) { _ in try await lockstep.session(order) }
        #expect(renewed.allSatisfy { $0.status == 200 || $0.outcome == "503 session-unconfirmed" })
        let current = try #require(try await lockstep.checkout(order)["executionId"]?.string)
        try lockstep.pay(current)
        #expect(try await lockstep.becomes("paid", order))
    }
}
