import Basics
import PayrailsSandbox
import TestKit
import Testing

@Suite("Creating, when Payrails' answer is a refusal, an error or nothing")
struct CreationTests {
    /// Nobody goes on with anything but the caller.
    private static let alone = Task { try await ServiceHarness.shared(quick, parts: .api) }
    private static let withWorkers = Task { try await ServiceHarness.shared(quick) }
    private static let quick = ["PAYRAILS_CALL_TIMEOUT_MS": "1500"]

    /// A way in which nobody can know what became of the creation.
    struct Doubt: Sendable, CustomTestStringConvertible {
        let kind: SandboxFault.Kind
        var testDescription: String { "\(kind)" }

        /// A connection that breaks right after it was kept: then the client sends once more by itself, since it sends
        /// a key, and may get its answer.
        var mayBeResent: Bool { kind == .closeBefore || kind == .closeAfter }

        func fault(about reference: String) -> SandboxFault {
            SandboxFault(kind, on: .clientInit, times: mayBeResent ? 2 : 1, containing: reference)
        }

        static let all = [
            SandboxFault.Kind.closeBefore, .closeAfter, .halfBody, .html(status: 200), .html(status: 200, effect: true),
            .delayAfter(milliseconds: 2000), .errorBefore(status: 408), .errorBefore(status: 409),
        ].map(Doubt.init)
    }

    @Test("a refusal is 502 and frees the order's reference", arguments: [400, 403])
    func refused(_ status: Int) async throws {
        let lockstep = try await Self.alone.value
        let reference = freshWord("order")
        lockstep.sandbox.add(SandboxFault(.errorBefore(status: status), on: .clientInit, containing: reference))
        let body = lockstep.newCheckout(reference)
        let refused = try await lockstep.shop.insist("/v1/checkouts", body, key: "first-\(reference)")
        #expect(refused.outcome == "502 creation-refused")
        #expect(
            try await lockstep.shop.get("/v1/checkouts?merchantReference=\(reference)").json == ["items": []])
        // An answer of 5xx isn't kept, so the same request may try again; another may have the reference too.
        let again = try await lockstep.shop.insist("/v1/checkouts", body, key: "first-\(reference)")
        let order = try lockstep.order(reference, again)
        #expect(lockstep.sandbox.executionIDs(merchantReference: reference) == [order.execution])
        #expect(try await lockstep.events(order, atLeast: 1) == ["checkout.created"])
    }

    @Test("a workflow that Payrails doesn't know is a refusal, and so is one behind many others")
    func unknownWorkflow() async throws {
        let lockstep = try await Self.alone.value
        let reference = freshWord("order")
        let body = lockstep.newCheckout(reference, "49.99", currency: "EUR", ["workflowCode": "nobodys"])
        let refused = try await lockstep.shop.insist("/v1/checkouts", body, key: freshWord("key"))
        #expect(refused.outcome == "502 creation-refused")
        let right = try await lockstep.shop.insist(
            "/v1/checkouts", lockstep.newCheckout(reference), key: freshWord("key"))
        #expect(right.status == 201)
    }

    @Test("what nobody knows is 503; meanwhile the reference is taken; the same request goes on", arguments: Doubt.all)
    func goesOn(_ doubt: Doubt) async throws {
        let lockstep = try await Self.alone.value
        let reference = freshWord("order")
        let body = lockstep.newCheckout(reference)
        lockstep.sandbox.add(doubt.fault(about: reference))
        let first = try await lockstep.shop.post("/v1/checkouts", body, key: "mine-\(reference)")
        if first.status == 503 || !doubt.mayBeResent {
            #expect(first.outcome == "503 checkout-unconfirmed")
            #expect(first.headers["Retry-After"] != nil)
        }
        let other = try await lockstep.shop.post("/v1/checkouts", body, key: "other-\(reference)")
        #expect(other.outcome == "409 checkout-exists")
        let answer = try await lockstep.shop.insist("/v1/checkouts", body, key: "mine-\(reference)")
        let order = try lockstep.order(reference, answer)
        #expect(other.json["checkoutId"]?.string == order.checkout)
        lockstep.expectOneToPay(order)
        #expect(Set(lockstep.sandbox.calls(to: .clientInit).filter { $0.isAbout(reference) }.map(\.key)).count == 1)
        #expect(try await lockstep.gate(order.execution, as: order.token) == "proceed")
    }

    @Test("W10: what nobody knows is found out by a worker, and the order can be paid", arguments: Doubt.all)
    func healed(_ doubt: Doubt) async throws {
        let lockstep = try await Self.withWorkers.value
        let reference = freshWord("order")
        let body = lockstep.newCheckout(reference)
        lockstep.sandbox.add(doubt.fault(about: reference))
        _ = try await lockstep.shop.post("/v1/checkouts", body, key: "mine-\(reference)")
        let isThere = try await waitUntil {
            try await lockstep.shop.get("/v1/checkouts?merchantReference=\(reference)").json["items"]?[0]?[
                "executionId"] != nil
        }
        #expect(isThere)
        let order = try lockstep.order(
            reference, try await lockstep.shop.insist("/v1/checkouts", body, key: "mine-\(reference)"))
        lockstep.expectOneToPay(order)
        try lockstep.pay(order.execution)
        #expect(try await lockstep.becomes("paid", order))
        let events = try await lockstep.events(order, atLeast: 2)
        #expect(events == ["checkout.created", "checkout.paid"])
    }

    @Test("a session goes on with the creation")
    func sessionGoesOn() async throws {
        let lockstep = try await Self.alone.value
        let reference = freshWord("order")
        let body = lockstep.newCheckout(reference)
        lockstep.sandbox.add(SandboxFault(.halfBody, on: .clientInit, containing: reference))
        #expect(try await lockstep.shop.post("/v1/checkouts", body, key: "mine-\(reference)").status == 503)
        let other = try await lockstep.shop.post("/v1/checkouts", body, key: "other-\(reference)")
        let id = try #require(other.json["checkoutId"]?.string)
        let session = try await lockstep.shop.post("/v1/checkouts/\(id)/session", [:])
        #expect(session.status == 200)
        let order = try lockstep.order(
            reference, try await lockstep.shop.insist("/v1/checkouts", body, key: "mine-\(reference)"))
        #expect(session.json["executionId"]?.string == order.execution)
        #expect(session.json["init"] == order.answer.json["init"])
        lockstep.expectOneToPay(order)
    }

    @Test("nothing begins on a checkout whose creation was refused in the end, whoever learned its id meanwhile")
    func refusedInTheEnd() async throws {
        let lockstep = try await Self.alone.value
        let reference = freshWord("order")
        let body = lockstep.newCheckout(reference, "49.99", currency: "EUR", ["workflowCode": "nobodys"])
        lockstep.sandbox.add(SandboxFault(.html(status: 200), on: .clientInit, containing: reference))
        #expect(try await lockstep.shop.post("/v1/checkouts", body, key: "mine-\(reference)").status == 503)
        let other = try await lockstep.shop.post("/v1/checkouts", body, key: "other-\(reference)")
        let id = try #require(other.json["checkoutId"]?.string)
        #expect(
            try await lockstep.shop.post("/v1/checkouts", body, key: "mine-\(reference)").outcome
                == "502 creation-refused")
        #expect(try await lockstep.shop.get("/v1/checkouts/\(id)").outcome == "404 not-found")
        for call in ["session", "cancel"] {
            #expect(try await lockstep.shop.post("/v1/checkouts/\(id)/\(call)").outcome == "404 not-found")
        }
        let change = try await lockstep.shop.put(
            "/v1/checkouts/\(id)/amount", ["amount": lockstep.money("60.00")], version: 1)
        #expect(change.outcome == "404 not-found")
        let right = try await lockstep.shop.insist(
            "/v1/checkouts", lockstep.newCheckout(reference), key: freshWord("key"))
        #expect(right.status == 201)
        #expect(lockstep.sandbox.executionIDs(merchantReference: reference).count == 1)
    }

    @Test("an answer that stays away for ever doesn't keep an order from being paid")
    func goneForEver() async throws {
        let lockstep = try await Self.withWorkers.value
        let reference = freshWord("order")
        lockstep.sandbox.add(
            SandboxFault(.errorAfter(status: 408), on: .clientInit, containing: "\"\(reference)\""))
        let body = lockstep.newCheckout(reference)
        #expect(try await lockstep.shop.post("/v1/checkouts", body, key: "mine-\(reference)").status == 503)
        var answer: JSONCaller.Reply?
        _ = try await waitUntil {
            answer = try await lockstep.shop.post("/v1/checkouts", body, key: "mine-\(reference)")
            return answer?.status == 201
        }
        let order = try lockstep.order(reference, try #require(answer))
        try lockstep.pay(order.execution)
        #expect(try await lockstep.becomes("paid", order))
        #expect(lockstep.money(of: order) == .init(authorizations: 1, held: 4999))
    }

    @Test("an effect behind a stored error is found, kept as superseded, and another session takes its place")
    func storedAfter() async throws {
        let lockstep = try await Self.withWorkers.value
        let reference = freshWord("order")
        lockstep.sandbox.add(SandboxFault(.errorAfter(status: 500), on: .clientInit, containing: "\"\(reference)\""))
        let answer = try await lockstep.shop.insist(
            "/v1/checkouts", lockstep.newCheckout(reference), key: freshWord("key"))
        let order = try lockstep.order(reference, answer)
        let lost = lockstep.sandbox.executionIDs(merchantReference: reference)
        #expect(lost.count == 1)
        #expect(lockstep.sandbox.executionIDs(merchantReference: "\(reference)~2") == [order.execution])
        let executions = try #require(answer.json["executions"]?.array)
        #expect(executions.map { $0["current"]?.bool } == [false, true])
        #expect(executions[0]["id"]?.string == lost.first)
        #expect(try await lockstep.gate(try #require(lost.first)) == "superseded-execution")
        try lockstep.pay(order.execution)
        #expect(try await lockstep.becomes("paid", order))
        let events = try await lockstep.events(order, atLeast: 2)
        #expect(events == ["checkout.created", "checkout.paid"])
    }

    @Test("a stored error without an effect costs the key, not the order")
    func storedBefore() async throws {
        let lockstep = try await Self.alone.value
        let reference = freshWord("order")
        lockstep.sandbox.add(
            SandboxFault(.errorBefore(status: 500, stored: true), on: .clientInit, containing: reference))
        let order = try lockstep.order(
            reference,
            try await lockstep.shop.post("/v1/checkouts", lockstep.newCheckout(reference), key: freshWord("key")))
        #expect(lockstep.sandbox.executionIDs(merchantReference: reference) == [order.execution])
        #expect(Set(lockstep.sandbox.calls(to: .clientInit).filter { $0.isAbout(reference) }.map(\.key)).count == 2)
    }

    @Test("while Payrails keeps failing the answer is 503, and afterwards there is one execution")
    func outage() async throws {
        let lockstep = try await ServiceHarness.start(Self.quick, parts: .api)
        let reference = freshWord("order")
        let body = lockstep.newCheckout(reference)
        lockstep.sandbox.add(SandboxFault(.errorBefore(status: 503), times: nil))
        for _ in 0..<3 {
            let reply = try await lockstep.shop.post("/v1/checkouts", body, key: "mine")
            #expect(reply.outcome == "503 checkout-unconfirmed")
        }
        lockstep.sandbox.clearFaults()
        let order = try lockstep.order(reference, try await lockstep.shop.insist("/v1/checkouts", body, key: "mine"))
        #expect(lockstep.sandbox.executionIDs(merchantReference: reference) == [order.execution])
        await lockstep.stop()
    }

    @Test("a token that Payrails forgot is replaced without anybody noticing")
    func forgottenToken() async throws {
        let lockstep = try await ServiceHarness.start(Self.quick, parts: .api)
        let reference = freshWord("order")
        lockstep.sandbox.add(SandboxFault(.expiredToken, on: .clientInit, containing: reference))
        let reply = try await lockstep.shop.insist(
            "/v1/checkouts", lockstep.newCheckout(reference), key: freshWord("key"))
        #expect(reply.status == 201)
        #expect(lockstep.sandbox.executionIDs(merchantReference: reference).count == 1)
        #expect(lockstep.sandbox.calls(to: .token).count == 2)
        await lockstep.stop()
    }
}

extension ServiceHarness {
    /// One execution was created for the order, and it is the one to pay. On a machine that is too busy to answer twice
    /// in a row it may be kept as superseded, with another in its place.
    fileprivate func expectOneToPay(_ order: Order) {
        let first = sandbox.executionIDs(merchantReference: order.reference)
        let second = sandbox.executionIDs(merchantReference: "\(order.reference)~2")
        #expect(first.count == 1 && second.count <= 1)
        #expect((first + second).last == order.execution)
    }
}

extension SandboxCall {
    /// Whether the call's body names this reference.
    func isAbout(_ reference: String) -> Bool { body?["merchantReference"]?.string == reference }
}
