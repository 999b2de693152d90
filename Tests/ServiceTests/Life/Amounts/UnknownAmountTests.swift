import Basics
import Lockstep
import PayrailsSandbox
import TestKit
import Testing

@Suite("A change of the amount that nobody knows about")
struct UnknownAmountTests {
    private static let quick = [
        "PAYRAILS_CALL_TIMEOUT_MS": "1500", "PAYRAILS_READ_TIMEOUT_MS": "1500",
    ]
    /// Nobody looks into it afterwards.
    private static let alone = Task { try await ServiceHarness.shared(quick, parts: .api) }
    private static let withWorkers = Task { try await ServiceHarness.shared(quick) }

    private static func add(
        _ kind: SandboxFault.Kind, _ route: SandboxRoute, to order: Order, _ lockstep: ServiceHarness
    ) {
        lockstep.sandbox.add(SandboxFault(kind, on: route, times: 3, containing: order.execution))
    }

    @Test("a refusal of Payrails' leaves the books as they were")
    func refused() async throws {
        let lockstep = try await Self.withWorkers.value
        let order = try await lockstep.order()
        lockstep.sandbox.add(
            SandboxFault(.errorBefore(status: 403), on: .lookup, containing: order.execution))
        let reply = try await lockstep.shop.put(
            "\(order.path)/amount", ["amount": lockstep.money("60.00"), "basketVersion": "b2"], version: 1)
        #expect(reply.outcome == "502 amount-refused")
        let checkout = try await lockstep.checkout(order)
        #expect(checkout["amount"] == lockstep.money("49.99"))
        #expect(checkout["amountVersion"]?.integer == 1)
        #expect(checkout["amountState"] == "inStep")
        #expect(checkout["basketVersion"] == nil)
        #expect(try await lockstep.gate(order.execution) == "proceed")
    }

    @Test("W10, L6: an error that came after the effect is looked into, and the answer is the truth")
    func effectIsSeen() async throws {
        let lockstep = try await Self.alone.value
        for kind in [SandboxFault.Kind.errorAfter(status: 500), .halfBody, .html(status: 200, effect: true)] {
            let order = try await lockstep.order()
            Self.add(kind, .lookup, to: order, lockstep)
            let reply = try await lockstep.shop.put(
                "\(order.path)/amount", ["amount": lockstep.money("60.00")], version: 1)
            #expect(reply.outcome == "200", "\(kind)")
            #expect(reply.json["amount"] == lockstep.money("60.00"))
            #expect(lockstep.sandbox.execution(order.execution)?["amount"] == lockstep.money("60.00"))
        }
    }

    @Test(
        "L6: unknown is 503 and shuts the gate, the next change and the next session, and the books keep the old amount"
    )
    func unknown() async throws {
        let lockstep = try await Self.alone.value
        let order = try await lockstep.order("49.99", ServiceHarness.mayUpdate)
        let shop = try lockstep.shop
        // The move is broken off, and the look that follows fails.
        Self.add(.html(status: 502), .lookup, to: order, lockstep)
        Self.add(.errorBefore(status: 503), .getExecution, to: order, lockstep)
        let body: JSON = ["amount": lockstep.money("60.00")]
        let reply = try await shop.put("\(order.path)/amount", body, version: 1)
        #expect(reply.outcome == "503 amount-unconfirmed")
        #expect(reply.headers["Retry-After"] != nil)
        let checkout = try await lockstep.checkout(order)
        #expect(checkout["amount"] == lockstep.money("49.99"))
        #expect(checkout["amountState"] == "unknown")
        #expect(checkout["init"] == nil, "an app that starts now would start from an amount that nobody knows")
        #expect(try await lockstep.gate(order.execution) == "amount-not-in-step")
        #expect(try await lockstep.gate(order.execution, as: order.token) == "amount-not-in-step")
        #expect(try await shop.put("\(order.path)/amount", body, version: 1).outcome == "503 amount-unconfirmed")
        #expect(
            try await lockstep.app(order).post("/v1/executions/\(order.execution)/update", lockstep.money("70"))
                .outcome == "503 amount-unconfirmed")
        #expect(try await lockstep.session(order).outcome == "503 amount-unconfirmed")
        #expect(try await lockstep.session(order, expired: false).outcome == "503 amount-unconfirmed")
    }

    @Test("a worker finds out that it happened, and tells")
    func happened() async throws {
        let lockstep = try await Self.withWorkers.value
        let order = try await lockstep.order()
        lockstep.sandbox.add(
            SandboxFault(.errorAfter(status: 500), on: .lookup, containing: order.execution))
        Self.add(.errorBefore(status: 503), .getExecution, to: order, lockstep)
        let reply = try await lockstep.shop.put(
            "\(order.path)/amount", ["amount": lockstep.money("60.00"), "basketVersion": "b2"], version: 1)
        #expect(reply.outcome == "503 amount-unconfirmed")
        #expect(try await waitUntil { try await lockstep.checkout(order)["amountState"] == "inStep" })
        let checkout = try await lockstep.checkout(order)
        #expect(checkout["amount"] == lockstep.money("60.00"))
        #expect(checkout["amountVersion"]?.integer == 2)
        #expect(checkout["basketVersion"] == "b2")
        #expect(lockstep.sandbox.execution(order.execution)?["amount"] == lockstep.money("60.00"))
        #expect(try await lockstep.events(order, atLeast: 2) == ["checkout.created", "checkout.amount_changed"])
        #expect(try await lockstep.gate(order.execution) == "proceed")
    }

    @Test("L6: a worker finds out that it didn't happen: the books stay, the gate opens")
    func didNotHappen() async throws {
        let lockstep = try await Self.withWorkers.value
        let order = try await lockstep.order()
        lockstep.sandbox.add(
            SandboxFault(.errorBefore(status: 500, stored: true), on: .lookup, containing: order.execution))
        Self.add(.errorBefore(status: 503), .getExecution, to: order, lockstep)
        let reply = try await lockstep.shop.put(
            "\(order.path)/amount", ["amount": lockstep.money("60.00")], version: 1)
        #expect(reply.outcome == "503 amount-unconfirmed")
        #expect(try await waitUntil { try await lockstep.checkout(order)["amountState"] == "inStep" })
        let checkout = try await lockstep.checkout(order)
        #expect(checkout["amount"] == lockstep.money("49.99"))
        #expect(checkout["amountVersion"]?.integer == 1)
        #expect(lockstep.sandbox.execution(order.execution)?["amount"] == lockstep.money("49.99"))
        #expect(try await lockstep.gate(order.execution) == "proceed")
        try lockstep.pay(order.execution)
        #expect(try await lockstep.becomes("paid", order))
        // Who asked was told that nobody knows; how it ended is in the feed.
        #expect(
            try await lockstep.events(order, atLeast: 3) == ["checkout.created", "operation.failed", "checkout.paid"])
    }

    @Test(
        "a single error of Payrails' to the second attempt says nothing of the first: it is sent again, and comes through"
    )
    func oneErrorIsNone() async throws {
        let lockstep = try await Self.withWorkers.value
        let order = try await lockstep.order()
        for kind in [SandboxFault.Kind.html(status: 502), .errorBefore(status: 500), .html(status: 403)] {
            lockstep.sandbox.add(SandboxFault(kind, on: .lookup, containing: order.execution))
        }
        let change: JSON = ["amount": lockstep.money("60.00")]
        #expect(
            try await lockstep.shop.put("\(order.path)/amount", change, version: 1).outcome == "503 amount-unconfirmed")
        #expect(try await waitUntil { try await lockstep.checkout(order)["amountState"] == "inStep" })
        #expect(try await lockstep.checkout(order)["amount"] == lockstep.money("60.00"))
        #expect(try await lockstep.events(order, atLeast: 2) == ["checkout.created", "checkout.amount_changed"])
    }

    @Test("L6: a yes that changed nothing is found out: nobody pays meanwhile, then the books stay and the gate opens")
    func yesWithoutEffect() async throws {
        let lockstep = try await Self.withWorkers.value
        let order = try await lockstep.order()
        lockstep.sandbox.add(SandboxFault(.amountIgnored, on: .lookup, containing: order.execution))
        let change: JSON = ["amount": lockstep.money("60.00")]
        #expect(
            try await lockstep.shop.put("\(order.path)/amount", change, version: 1).outcome == "503 amount-unconfirmed")
        #expect(try await waitUntil { try await lockstep.checkout(order)["amountState"] == "inStep" })
        let checkout = try await lockstep.checkout(order)
        #expect(checkout["amount"] == lockstep.money("49.99"))
        #expect(checkout["amountVersion"]?.integer == 1)
        #expect(lockstep.sandbox.execution(order.execution)?["amount"] == lockstep.money("49.99"))
        #expect(try await lockstep.gate(order.execution) == "proceed")
    }

    @Test("an amount that was moved in the portal isn't taken for the one before: nobody pays it until it moves again")
    func movedByOthers() async throws {
        let lockstep = try await Self.withWorkers.value
        let order = try await movedInThePortal(lockstep)
        #expect(try await lockstep.checkout(order)["amount"] == lockstep.money("49.99"))
        #expect(try await lockstep.gate(order.execution) == "amount-not-in-step")
        let change: JSON = ["amount": lockstep.money("60.00")]
        #expect(try await lockstep.shop.put("\(order.path)/amount", change, version: 1).outcome == "200")
        #expect(lockstep.sandbox.execution(order.execution)?["amount"] == lockstep.money("60.00"))
        #expect(try await lockstep.gate(order.execution) == "proceed")
    }

    @Test("what is paid of an amount that was moved in the portal is taken back and told, and a new session is paid")
    func movedByOthersAndPaid() async throws {
        let lockstep = try await Self.withWorkers.value
        let order = try await movedInThePortal(lockstep)
        try lockstep.pay(order.execution)
        #expect(try await lockstep.tells("checkout.mismatch_cancelled", order))
        let session = try await lockstep.session(order)
        try #require(session.status == 200, "\(session.text)")
        try lockstep.pay(try #require(session.json["executionId"]?.string))
        #expect(try await lockstep.becomes("paid", order))
        #expect(lockstep.money(of: order) == .init(authorizations: 2, held: 4999, voided: 5500))
    }

    /// An order of 49.99 whose amount is 55.00 at Payrails, as a change to 60.00 that Payrails refuses has found out.
    private func movedInThePortal(_ lockstep: ServiceHarness) async throws -> Order {
        let order = try await lockstep.order()
        let euro = try #require(Currency(code: "EUR"))
        let other = try Money(value: "55.00", currency: euro)
        try #require(lockstep.sandbox.moveAmount(order.execution, to: other).isAccepted)
        lockstep.sandbox.add(SandboxFault(.errorBefore(status: 403), on: .lookup, containing: order.execution))
        let change: JSON = ["amount": lockstep.money("60.00")]
        let reply = try await lockstep.shop.put("\(order.path)/amount", change, version: 1)
        #expect(reply.outcome == "502 amount-refused")
        return order
    }

    @Test("what never reached Payrails is sent again under its key, and then it happened")
    func sentAgain() async throws {
        let lockstep = try await Self.withWorkers.value
        let order = try await lockstep.order()
        lockstep.sandbox.add(SandboxFault(.html(status: 200), on: .lookup, containing: order.execution))
        Self.add(.errorBefore(status: 503), .getExecution, to: order, lockstep)
        let reply = try await lockstep.shop.put(
            "\(order.path)/amount", ["amount": lockstep.money("60.00")], version: 1)
        #expect(reply.outcome == "503 amount-unconfirmed")
        #expect(try await waitUntil { try await lockstep.checkout(order)["amountState"] == "inStep" })
        #expect(try await lockstep.checkout(order)["amount"] == lockstep.money("60.00"))
        #expect(lockstep.sandbox.execution(order.execution)?["amount"] == lockstep.money("60.00"))
        let keys = lockstep.sandbox.calls(to: .lookup).filter { $0.path.contains(order.execution) }.map(\.key)
        #expect(keys.count >= 2)
        #expect(Set(keys).count == 1)
    }

    @Test("W11: a payment decides what the amount was", arguments: [true, false])
    func paymentDecides(_ happened: Bool) async throws {
        let lockstep = try await Self.withWorkers.value
        let order = try await lockstep.order()
        lockstep.sandbox.add(
            SandboxFault(
                happened ? .errorAfter(status: 500) : .errorBefore(status: 500, stored: true), on: .lookup,
                times: nil, containing: order.execution))
        // Reading never works, so only the notification can tell.
        lockstep.sandbox.add(
            SandboxFault(.errorBefore(status: 503), on: .getExecution, times: nil, containing: order.execution))
        let reply = try await lockstep.shop.put(
            "\(order.path)/amount", ["amount": lockstep.money("60.00")], version: 1)
        #expect(reply.outcome == "503 amount-unconfirmed")
        try lockstep.pay(order.execution)
        #expect(try await lockstep.becomes("paid", order))
        let checkout = try await lockstep.checkout(order)
        #expect(checkout["amount"] == lockstep.money(happened ? "60.00" : "49.99"))
        #expect(checkout["amountState"] == "inStep")
        #expect(lockstep.money(of: order) == .init(authorizations: 1, held: happened ? 6000 : 4999))
        #expect(try await lockstep.tells("checkout.paid", order))
        #expect(try await lockstep.tally(order)["checkout.amount_changed"] == (happened ? 1 : nil))
    }

    @Test("when Payrails can't be reached at all, the amount stays and the answer says so")
    func unreachable() async throws {
        let lockstep = try await ServiceHarness.start(Self.quick, parts: .api)
        let order = try await lockstep.order()
        await lockstep.sandbox.stop()
        let reply = try await lockstep.shop.put(
            "\(order.path)/amount", ["amount": lockstep.money("60.00")], version: 1)
        #expect(reply.status == 503)
        let checkout = try await lockstep.checkout(order)
        #expect(checkout["amount"] == lockstep.money("49.99"))
        await lockstep.stop()
    }
}
