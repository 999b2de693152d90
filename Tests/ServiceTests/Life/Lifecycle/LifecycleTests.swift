import Basics
import Lockstep
import PayrailsSandbox
import TestKit
import Testing

@Suite("Capture, cancel and refund")
struct LifecycleTests {
    private static let shared = Task { try await ServiceHarness.shared(["PAYRAILS_CALL_TIMEOUT_MS": "1500"]) }
    private let lockstep: ServiceHarness
    init() async throws { lockstep = try await Self.shared.value }

    private func ask(
        _ kind: String, _ order: Order, _ value: String? = nil, _ more: [String: JSON] = [:]
    ) async throws -> JSONCaller.Reply {
        var body = more
        body["amount"] = value.map { lockstep.money($0) }
        return try await lockstep.shop.post(
            "/v1/executions/\(order.execution)/\(kind)", .object(body), key: freshWord(kind))
    }

    private func done(_ reply: JSONCaller.Reply) async throws {
        try #require(reply.status == 202, "\(reply.text)")
        let id = try #require(reply.json["id"]?.string)
        #expect(reply.headers["Location"] == "/v1/operations/\(id)")
        #expect(try await lockstep.becomes("succeeded", operation: id))
    }

    @Test("what the state doesn't allow is 409, too much is 422, and nothing reaches Payrails")
    func limits() async throws {
        let order = try await lockstep.order("50.00")
        #expect(try await ask("capture", order).outcome == "409 not-capturable")
        #expect(try await ask("refund", order).outcome == "409 not-refundable")
        #expect(try await ask("cancel", order).outcome == "409 not-cancellable")
        try lockstep.pay(order.execution)
        #expect(try await lockstep.becomes("paid", order))
        #expect(try await ask("refund", order).outcome == "409 not-refundable")
        #expect(try await ask("capture", order, "50.01").outcome == "422 amount-exceeds-capturable")
        #expect(try await ask("capture", order, "0").outcome == "422 invalid")
        let dollars = try await lockstep.shop.post(
            "/v1/executions/\(order.execution)/capture", ["amount": lockstep.money("1.00", "USD")],
            key: freshWord("key"))
        #expect(dollars.outcome == "422 invalid")
        let calls = lockstep.sandbox.calls.filter {
            $0.path.contains(order.execution) && [.capture, .cancel, .refund].contains($0.route)
        }
        #expect(calls.isEmpty)
        try await done(try await ask("capture", order, "20.00", ["final": false]))
        #expect(try await ask("capture", order, "30.01").outcome == "422 amount-exceeds-capturable")
        #expect(try await ask("refund", order, "20.01").outcome == "422 amount-exceeds-refundable")
        try await done(try await ask("capture", order, "30.00"))
        #expect(try await ask("capture", order, "0.01").outcome == "409 not-capturable")
        try await done(try await ask("refund", order, "50.00"))
        #expect(try await ask("refund", order, "0.01").outcome == "409 not-refundable")
        #expect(lockstep.money(of: order) == .init(authorizations: 1, refunded: 5000))
        #expect(try await lockstep.becomes("refunded", order))
    }

    @Test("after a final capture, and while one is in flight, nothing is left to capture")
    func finalCapture() async throws {
        for final: [String: JSON] in [[:], ["final": true]] {
            let order = try await lockstep.paidOrder("50.00")
            lockstep.sandbox.add(
                SandboxFault(.delay(milliseconds: 300), on: .capture, containing: order.execution))
            async let first = ask("capture", order, "20.00", final)
            #expect(
                await waitUntil { lockstep.sandbox.calls(to: .capture).contains { $0.path.contains(order.execution) } })
            #expect(try await ask("capture", order, "5.00").outcome == "409 not-capturable")
            try await done(try await first)
            #expect(try await ask("capture", order, "5.00").outcome == "409 not-capturable")
            #expect(try await ask("capture", order).outcome == "409 not-capturable")
            let calls = lockstep.sandbox.calls(to: .capture).filter { $0.path.contains(order.execution) }
            #expect(calls.count == 1)
            try await done(try await ask("refund", order, "20.00"))
        }
    }

    @Test("many partial captures at once never take more than was authorized")
    func racingCaptures() async throws {
        let order = try await lockstep.paidOrder("50.00")
        let replies = try await atOnce(10) { _ in try await ask("capture", order, "15.00", ["final": false]) }
        #expect(replies.filter { $0.status == 202 }.count == 3)
        for reply in replies where reply.status != 202 {
            #expect(["422 amount-exceeds-capturable", "409 not-capturable"].contains(reply.outcome))
        }
        for reply in replies where reply.status == 202 { try await done(reply) }
        #expect(lockstep.money(of: order) == .init(authorizations: 1, held: 500, net: 4500))
        let amounts = try await lockstep.execution(order.execution)["amounts"]
        #expect(amounts?["captured"] == lockstep.money("45.00"))
    }

    /// A way in which a capture's answer is lost.
    struct Doubt: Sendable, CustomTestStringConvertible {
        let kind: SandboxFault.Kind
        var testDescription: String { "\(kind)" }
        static let all = [
            SandboxFault.Kind.closeAfter, .closeBefore, .halfBody, .html(status: 200, effect: true), .html(status: 502),
            .delayAfter(milliseconds: 2000), .errorAfter(status: 500), .errorBefore(status: 408),
        ].map(Doubt.init)
    }

    @Test("W10: a capture whose answer is lost happens once, and is found out", arguments: Doubt.all)
    func lostAnswer(_ doubt: Doubt) async throws {
        let order = try await lockstep.paidOrder("50.00")
        lockstep.sandbox.add(SandboxFault(doubt.kind, on: .capture, times: 2, containing: order.execution))
        let reply = try await ask("capture", order, "20.00", ["final": false])
        #expect(reply.status == 202)
        #expect(["unknown", "pending", "succeeded"].contains(reply.json["state"]?.string ?? ""))
        #expect(try await lockstep.becomes("succeeded", operation: try #require(reply.json["id"]?.string)))
        #expect(lockstep.money(of: order) == .init(authorizations: 1, held: 3000, net: 2000))
        let amounts = try await lockstep.execution(order.execution)["amounts"]
        #expect(amounts?["captured"] == lockstep.money("20.00"))
        #expect(
            try await lockstep.events(order, atLeast: 3) == ["checkout.created", "checkout.paid", "execution.captured"])
    }

    @Test(
        "of two equal captures whose answers are lost, one that didn't happen isn't taken for the one that did",
        arguments: [0, 150])
    func twins(_ delay: Int) async throws {
        // Without a delay the first is found out by a reading, before a notification tells of the action's id.
        let lockstep = try await ServiceHarness.start(parts: .api) { $0.actionDelay = .milliseconds(delay) }
        let order = try await lockstep.order("50.00")
        try lockstep.pay(order.execution)
        #expect(await lockstep.sandbox.becomesQuiet())
        #expect(try await lockstep.session(order).outcome == "409 already-paid")
        let path = "/v1/executions/\(order.execution)/capture"
        let body: JSON = ["amount": lockstep.money("10.00"), "final": false]
        // The first happens and its answer is an error for ever; the second doesn't.
        lockstep.sandbox.add(SandboxFault(.errorAfter(status: 500), on: .capture))
        let first = try await lockstep.shop.post(path, body, key: "first")
        lockstep.sandbox.add(SandboxFault(.errorBefore(status: 500, stored: true), on: .capture))
        let second = try await lockstep.shop.post(path, body, key: "second")
        #expect(second.json["state"] == "unknown")
        #expect(await lockstep.sandbox.becomesQuiet())
        #expect(lockstep.money(of: order) == .init(authorizations: 1, held: 4000, net: 1000))
        // Now both are looked into. The second one's key is worn out, so it is sent again under another, and happens.
        try await lockstep.startService(.workers)
        for reply in [first, second] {
            let id = try #require(reply.json["id"]?.string)
            #expect(try await lockstep.becomes("succeeded", operation: id))
        }
        #expect(lockstep.money(of: order) == .init(authorizations: 1, held: 3000, net: 2000))
        let amounts = try await lockstep.execution(order.execution)["amounts"]
        #expect(amounts?["captured"] == lockstep.money("20.00"))
        await lockstep.stop()
    }

    @Test("a refusal of Payrails' fails the operation, and it is told")
    func refused() async throws {
        let order = try await lockstep.paidOrder("50.00")
        lockstep.sandbox.add(SandboxFault(.errorBefore(status: 403), on: .capture, containing: order.execution))
        let reply = try await ask("capture", order)
        #expect(reply.status == 202)
        let id = try #require(reply.json["id"]?.string)
        #expect(try await lockstep.becomes("failed", operation: id))
        #expect(try await lockstep.tells("operation.failed", order))
        #expect(lockstep.money(of: order) == .init(authorizations: 1, held: 5000))
        // Nothing is in flight any more, so it can be asked for again.
        try await done(try await ask("capture", order))
    }

    @Test("a capture that fails at the provider is told as failed and gives its amount free")
    func failedLater() async throws {
        let order = try await lockstep.paidOrder("50.00")
        lockstep.sandbox.add(
            SandboxOutcomeRule(
                .decline(result: "GenericRejection"), action: .capture, merchantReference: order.reference, times: 1))
        let reply = try await ask("capture", order, "50.00", ["final": false])
        let id = try #require(reply.json["id"]?.string)
        #expect(try await lockstep.becomes("failed", operation: id))
        #expect(try await lockstep.tells("operation.failed", order))
        #expect(try await lockstep.execution(order.execution)["state"] == "authorized")
        try await done(try await ask("capture", order, "50.00"))
        #expect(lockstep.money(of: order) == .init(authorizations: 1, net: 5000))
    }

    @Test(
        "a shop may say anything as its reason, also a word that we use for ourselves: it stays the shop's cancel",
        arguments: ["duplicate", "mismatch", "checkoutCancelled", "attemptOver", "customer asked"])
    func shopsReason(_ reason: String) async throws {
        let order = try await lockstep.paidOrder("50.00")
        // One of our own would be sent until it gets through, and some of ours fail without a word.
        lockstep.sandbox.add(SandboxFault(.html(status: 403), on: .cancel, containing: order.execution))
        let reply = try await ask("cancel", order, nil, ["reason": .string(reason)])
        #expect(reply.status == 202)
        #expect(try await lockstep.becomes("failed", operation: try #require(reply.json["id"]?.string)))
        #expect(try await lockstep.tells("operation.failed", order))
        #expect(lockstep.money(of: order) == .init(authorizations: 1, held: 5000))
        try await done(try await ask("cancel", order, "50.00", ["reason": .string(reason), "final": true]))
        #expect(try await lockstep.becomes("cancelled", order))
        #expect(try await lockstep.tally(order)["checkout.duplicate_cancelled"] == nil)
        let calls = lockstep.sandbox.calls(to: .cancel).filter { $0.path.contains(order.execution) }
        #expect(calls.map(\.body) == [["reasonDescription": .string(reason)], ["reasonDescription": .string(reason)]])
    }

    @Test("a reason is one of Payrails' words or text, and what a call can't do is told")
    func requests() async throws {
        let order = try await lockstep.paidOrder("50.00")
        for wrong: JSON in ["", 7, "a\nb", .string(String(repeating: "x", count: 1001))] {
            for kind in ["capture", "cancel", "refund"] {
                let reply = try await ask(kind, order, nil, ["reason": wrong])
                #expect(reply.outcome == "422 invalid" && reply.json["errors"]?[0]?["pointer"] == "/reason")
            }
        }
        let part = try await ask("cancel", order, "20.00")
        #expect(part.outcome == "422 invalid" && part.json["errors"]?[0]?["pointer"] == "/amount/value")
        let open = try await ask("cancel", order, nil, ["final": false])
        #expect(open.outcome == "422 invalid" && open.json["errors"]?[0]?["pointer"] == "/final")
        #expect(lockstep.sandbox.calls(to: .cancel).allSatisfy { !$0.path.contains(order.execution) })
        try await done(try await ask("capture", order, nil, ["reason": "NoReason"]))
        try await done(try await ask("refund", order, "10.00", ["reason": "came too late", "final": true]))
        try await done(try await ask("refund", order, "10.00", ["final": false]))
        let bodies = lockstep.sandbox.calls.filter { $0.path.contains(order.execution) }
            .filter { [.capture, .refund].contains($0.route) }.map(\.body)
        let ten = lockstep.money("10.00")
        #expect(bodies[0]?["reason"] == "NoReason" && bodies[0]?["reasonDescription"] == nil)
        #expect(bodies[1] == ["amount": ten, "reasonDescription": "came too late"])
        #expect(bodies[2] == ["amount": ten])
    }

    @Test("the shop's cancel of an attempt that runs may come too late: the order is then paid all the same")
    func cancelTooLate() async throws {
        let order = try await lockstep.order("50.00")
        try lockstep.pay(order.execution, .threeDS)
        #expect(try await lockstep.becomes("processing", order))
        lockstep.sandbox.add(
            SandboxFault(.errorBefore(status: 403), on: .cancel, times: nil, containing: order.execution))
        let reply = try await ask("cancel", order)
        #expect(reply.status == 202)
        #expect(try await lockstep.becomes("failed", operation: try #require(reply.json["id"]?.string)))
        _ = lockstep.sandbox.answerChallenge(order.execution, .success)
        #expect(try await lockstep.becomes("paid", order))
        #expect(lockstep.money(of: order) == .init(authorizations: 1, held: 5000))
    }

    @Test("a duplicate whose cancel was lost on the way is cancelled all the same, once")
    func lostCancel() async throws {
        let order = try await lockstep.order("50.00")
        let second = try #require(try await lockstep.session(order).json["executionId"]?.string)
        for id in [order.execution, second] {
            lockstep.sandbox.add(SandboxFault(.halfBody, on: .cancel, times: 2, containing: id))
        }
        try lockstep.pay(order.execution)
        try lockstep.pay(second)
        #expect(try await lockstep.tells("checkout.duplicate_cancelled", order))
        #expect(lockstep.money(of: order) == .init(authorizations: 2, held: 5000, voided: 5000))
    }

    @Test("an order given up while its cancel is refused at the wrong moment still gives the money back")
    func cancelOvertaken() async throws {
        // The cancel of the attempt is on its way when the attempt succeeds, and is then refused.
        let order = try await lockstep.order("50.00")
        try lockstep.pay(order.execution, .threeDS)
        #expect(try await lockstep.becomes("processing", order))
        lockstep.sandbox.add(SandboxFault(.delay(milliseconds: 250), on: .cancel, containing: order.execution))
        lockstep.sandbox.add(SandboxFault(.errorBefore(status: 403), on: .cancel, containing: order.execution))
        #expect(try await lockstep.shop.post("\(order.path)/cancel").status == 200)
        #expect(await waitUntil { lockstep.sandbox.calls(to: .cancel).contains { $0.path.contains(order.execution) } })
        _ = lockstep.sandbox.answerChallenge(order.execution, .success)
        #expect(await waitUntil { lockstep.money(of: order) == .init(authorizations: 1, voided: 5000) })
        #expect(try await lockstep.tells("checkout.duplicate_cancelled", order))
        let cancels = lockstep.sandbox.calls(to: .cancel).filter { $0.path.contains(order.execution) }
        #expect(cancels.compactMap(\.status) == [403, 202])
    }
}
