import Basics
import Foundation
import Lockstep
import PayrailsSandbox
import TestKit
import Testing

@testable import Service

@Suite("What doesn't add up is opened once, told, and resolved by facts or by a person")
struct DiscrepancyTests {
    private static let shared = Task { try await ServiceHarness.shared(["PAYRAILS_CALL_TIMEOUT_MS": "1500"]) }
    private let lockstep: ServiceHarness
    init() async throws { lockstep = try await Self.shared.value }

    /// A service whose clock a test puts ahead, for orders that live for a week.
    private static func patient() async throws -> (ServiceHarness, ClockBox) {
        let box = ClockBox()
        let lockstep = try await ServiceHarness.start(["PAYRAILS_CALL_TIMEOUT_MS": "1500"], parts: nil)
        try await lockstep.startService(.all, clock: box.clock)
        return (lockstep, box)
    }
    private static let forAWeek: [String: JSON] = ["expiresInSeconds": 604_800]

    /// Two sessions that were both paid, and Payrails takes no cancel. The second success.
    private func duplicate(_ order: Order) async throws -> String {
        let second = try #require(try await lockstep.session(order).json["executionId"]?.string)
        for id in [order.execution, second] {
            lockstep.sandbox.add(SandboxFault(.errorBefore(status: 403), on: .cancel, containing: id))
        }
        try lockstep.pay(order.execution)
        #expect(try await lockstep.becomes("paid", order))
        try lockstep.pay(second)
        return second
    }

    @Test("a second success whose cancel fails is a duplicate payment until the money has gone back (M1)")
    func duplicatePayment() async throws {
        let order = try await lockstep.order()
        let second = try await duplicate(order)
        let found = try #require(try await lockstep.discrepancy("duplicate-payment", order))
        #expect(found["state"] == "open")
        #expect(found["merchantReference"]?.string == order.reference)
        #expect(found["executionId"]?.string == second)
        #expect(found["amount"] == lockstep.money("49.99"))
        #expect(found["here"]?.string == "the order is paid")
        #expect(found["there"]?.string == "authorized 49.99 EUR")
        #expect(found["firstSeenAt"] != nil && found["lastSeenAt"] != nil && found["note"] == nil)
        #expect(lockstep.money(of: order) == .init(authorizations: 2, held: 2 * 4999))
        // A person asks for the cancel again, and now it works.
        let cancel = try await lockstep.shop.post("/v1/executions/\(second)/cancel", key: freshWord("cancel"))
        #expect(cancel.status == 202)
        #expect(try await lockstep.becomes("cancelled", execution: second))
        let resolved = try #require(try await lockstep.discrepancy("duplicate-payment", order, state: "resolved"))
        #expect(resolved["id"] == found["id"])
        #expect(resolved["resolvedAt"] != nil && resolved["note"] == nil)
        #expect(lockstep.money(of: order) == .init(authorizations: 2, held: 4999, voided: 4999))
        #expect(try await lockstep.tells("checkout.duplicate_cancelled", order))
        #expect(
            try await lockstep.told(order) == ["discrepancy.opened open", "discrepancy.resolved resolved"],
            "each once, with the object as it was then")
    }

    @Test("a cancel that Payrails undoes afterwards leaves a duplicate payment, and another cancel is possible")
    func undoneCancel() async throws {
        let order = try await lockstep.order()
        let second = try #require(try await lockstep.session(order).json["executionId"]?.string)
        try lockstep.pay(order.execution)
        #expect(try await lockstep.becomes("paid", order))
        try lockstep.pay(second)
        #expect(try await lockstep.tells("checkout.duplicate_cancelled", order))
        #expect(await lockstep.sandbox.becomesQuiet())
        let action = try #require(
            try await lockstep.books.query(
                "SELECT action_id FROM operations WHERE execution_id = \(UUID(canonical: second)) AND kind = 'cancel'"
            ).first?.decode("action_id", as: String.self))
        let undone: JSON = [
            "event": "executionActionUpdated", "time": .string(Timestamp.systemNow.rfc3339),
            "details": [
                "action": "cancel", "actionId": .string(action), "success": false,
                "execution": ["id": .string(second), "workflowCode": "payment-acceptance"],
            ],
        ]
        #expect(try await SignedNotification(undone.text).send(to: lockstep.stranger).status == 200)
        let found = try #require(try await lockstep.discrepancy("duplicate-payment", order))
        #expect(found["executionId"]?.string == second)
        let cancel = try await lockstep.shop.post("/v1/executions/\(second)/cancel", key: freshWord("cancel"))
        #expect(cancel.status == 202, "\(cancel.text)")
    }

    @Test("money that is authorized after a cancel that worked is cancelled again, and where that fails it is seen")
    func afterTheCancel() async throws {
        let order = try await lockstep.order()
        try lockstep.pay(order.execution, .threeDS)
        #expect(try await lockstep.becomes("processing", order))
        #expect(try await lockstep.shop.post("\(order.path)/cancel").status == 200)
        #expect(try await lockstep.becomes("cancelled", execution: order.execution))
        let cancels = { lockstep.sandbox.calls(to: .cancel).count { $0.path.contains(order.execution) } }
        #expect(cancels() == 1)
        // The bank says yes all the same, a moment later.
        let late: JSON = [
            "event": "executionActionUpdated", "time": .string((Timestamp.systemNow + .seconds(1)).rfc3339),
            "details": [
                "action": "authorize", "actionId": .string(UUID().lowercased), "success": true,
                "execution": ["id": .string(order.execution), "workflowCode": "payment-acceptance"],
                "paymentComposition": [
                    ["operationType": "Authorize", "success": true, "amount": lockstep.money("49.99")]
                ],
            ],
        ]
        #expect(try await SignedNotification(late.text).send(to: lockstep.stranger).status == 200)
        #expect(await waitUntil { cancels() == 2 })
        let found = try #require(try await lockstep.discrepancy("duplicate-payment", order))
        #expect(found["here"]?.string == "the order is cancelled")
        #expect(try await lockstep.status(order) == "cancelled")
    }

    @Test("what nobody could find out in its time is an unresolved operation, until it is found out")
    func unresolved() async throws {
        let (lockstep, clock) = try await Self.patient()
        let order = try await lockstep.order("50.00", Self.forAWeek)
        try lockstep.pay(order.execution)
        #expect(try await lockstep.becomes("paid", order))
        lockstep.sandbox.add(SandboxFault(.html(status: 502), on: .capture, times: nil))
        lockstep.sandbox.add(SandboxFault(.errorBefore(status: 503), on: .getExecution, times: nil))
        let capture = try await lockstep.shop.post(
            "/v1/executions/\(order.execution)/capture", ["amount": lockstep.money("20.00"), "final": false],
            key: freshWord("capture"))
        #expect(capture.json["state"] == "unknown")
        clock.advance(by: .seconds(3500))
        #expect(try await lockstep.discrepancies("").isEmpty)
        clock.advance(by: .seconds(200))
        let found = try #require(try await lockstep.discrepancy("unresolved-operation", order))
        #expect(found["executionId"]?.string == order.execution)
        #expect(found["amount"] == lockstep.money("20.00"))
        #expect(found["here"]?.string?.hasPrefix("capture, ") == true)
        // It stays one, however often it is looked at.
        let calls = lockstep.sandbox.calls(to: .capture).count
        #expect(await waitUntil { lockstep.sandbox.calls(to: .capture).count > calls + 3 })
        #expect(try await lockstep.discrepancies("").count == 1)
        lockstep.sandbox.clearFaults()
        #expect(
            try await lockstep.becomes("succeeded", operation: try #require(capture.json["id"]?.string)))
        let resolved = try #require(try await lockstep.discrepancy("unresolved-operation", order, state: "resolved"))
        #expect(resolved["note"] == nil)
        #expect(lockstep.money(of: order) == .init(authorizations: 1, held: 3000, net: 2000))
        #expect(try await lockstep.told(order) == ["discrepancy.opened open", "discrepancy.resolved resolved"])
        await lockstep.stop()
    }

    @Test("a charge whose outcome nobody could find out is one too, until it is found out")
    func unresolvedCharge() async throws {
        let (lockstep, clock) = try await Self.patient()
        let card = try lockstep.card()
        lockstep.sandbox.add(SandboxFault(.html(status: 200), on: .authorize, times: nil))
        lockstep.sandbox.add(SandboxFault(.errorBefore(status: 503), on: .getExecution, times: nil))
        lockstep.sandbox.add(SandboxFault(.errorBefore(status: 503), on: .listPayments, times: nil))
        let charge = try await lockstep.charge(card)
        #expect(try await lockstep.becomes("unknown", charge: charge))
        #expect(try await lockstep.discrepancies("").isEmpty)
        clock.advance(by: .seconds(3700))
        let found = try #require(
            try await lockstep.discrepancy("unresolved-operation", reference: charge.reference))
        #expect(found["here"]?.string?.hasPrefix("authorize, ") == true, "\(found)")
        #expect(found["amount"] == lockstep.money("10.00"))
        lockstep.sandbox.clearFaults()
        #expect(try await lockstep.becomes("succeeded", charge: charge))
        let resolved = try await lockstep.discrepancy(
            "unresolved-operation", reference: charge.reference, state: "resolved")
        #expect(resolved?["id"] == found["id"])
        #expect(lockstep.money(of: charge) == .init(authorizations: 1, held: 1000))
        await lockstep.stop()
    }

    @Test("what stays in flight for a day is overdue, until it has come to its end")
    func overdue() async throws {
        let (lockstep, clock) = try await Self.patient()
        let order = try await lockstep.order("49.99", Self.forAWeek)
        try lockstep.pay(order.execution, .threeDS)
        #expect(try await lockstep.becomes("processing", order))
        clock.advance(by: .seconds(86_000))
        #expect(try await lockstep.discrepancies("").isEmpty)
        clock.advance(by: .seconds(500))
        let found = try #require(try await lockstep.discrepancy("overdue-final-state", order))
        #expect(found["executionId"]?.string == order.execution)
        #expect(["processing", "needsCustomer"].contains(found["here"]?.string ?? "-"))
        _ = lockstep.sandbox.answerChallenge(order.execution, .success)
        #expect(try await lockstep.becomes("paid", order))
        #expect(try await lockstep.discrepancy("overdue-final-state", order, state: "resolved") != nil)
        await lockstep.stop()
    }

    @Test("a success for another amount that is held is a mismatch, until the order is worth that amount (L7)")
    func held() async throws {
        let lockstep = try await ServiceHarness.start(["LOCKSTEP_MISMATCH": "hold"])
        let order = try await lockstep.order()
        let other = try Money(value: "60.00", currencyCode: "EUR")
        #expect(lockstep.sandbox.moveAmount(order.execution, to: other).isAccepted)
        try lockstep.pay(order.execution)
        let found = try #require(try await lockstep.discrepancy("amount-mismatch", order))
        #expect(found["amount"] == lockstep.money("60.00"))
        #expect(found["here"]?.string == "the confirmed amount is 49.99 EUR")
        #expect(found["there"]?.string == "authorized 60.00 EUR")
        #expect(try await lockstep.status(order) == "open")
        #expect(lockstep.money(of: order) == .init(authorizations: 1, held: 6000))
        let change = try await lockstep.shop.put(
            "\(order.path)/amount", ["amount": lockstep.money("60.00")], version: 1)
        #expect(change.status == 200)
        #expect(try await lockstep.becomes("paid", order))
        #expect(try await lockstep.discrepancy("amount-mismatch", order, state: "resolved") != nil)
        await lockstep.stop()
    }

    @Test("a person resolves it with a note, once; it isn't opened again, and others can't see it")
    func byAPerson() async throws {
        let order = try await lockstep.order()
        let second = try await duplicate(order)
        let found = try #require(try await lockstep.discrepancy("duplicate-payment", order))
        let path = "/v1/discrepancies/\(try #require(found["id"]?.string))/resolve"
        let shop = try lockstep.shop
        for note: JSON in ["", .string(String(repeating: "x", count: 1001)), 7] {
            #expect(try await shop.post(path, ["note": note]).outcome == "422 invalid")
        }
        #expect(try await shop.post(path, [:]).outcome == "422 invalid")
        let others = shop.with(token: try await lockstep.makeKey([.checkouts, .payments]))
        for caller in [others, try lockstep.app(order)] {
            #expect(try await caller.post(path, ["note": "mine"]).status == 403)
            #expect(try await caller.get("/v1/discrepancies").status == 403)
        }
        #expect(
            try await shop.post("/v1/discrepancies/\(UUID().lowercased)/resolve", ["note": "x"]).outcome
                == "404 not-found")
        let resolved = try await shop.post(path, ["note": "refunded by bank transfer"])
        #expect(resolved.status == 200)
        #expect(resolved.json["state"] == "resolved")
        #expect(resolved.json["note"] == "refunded by bank transfer")
        #expect(resolved.json["resolvedAt"] != nil)
        #expect(try await shop.post(path, ["note": "again"]).json == resolved.json)
        // Nothing has changed there, so the facts would still open it.
        lockstep.sandbox.redeliver(second)
        #expect(await lockstep.sandbox.becomesQuiet())
        _ = try await lockstep.session(order)
        #expect(try await lockstep.discrepancies("?state=open").filter { $0["executionId"]?.string == second } == [])
        #expect(try await lockstep.told(order) == ["discrepancy.opened open", "discrepancy.resolved resolved"])
        #expect(try await lockstep.feed(as: others.token).contains { $0["data"]?["discrepancy"] != nil } == false)
    }

    @Test("the list has pages, oldest first, and is filtered by state and class")
    func pages() async throws {
        for _ in 0..<3 { _ = try await duplicate(try await lockstep.order()) }
        #expect(try await waitUntil { try await lockstep.discrepancies("?class=duplicate-payment").count >= 3 })
        let all = try await lockstep.discrepancies("?limit=200")
        let ids = all.compactMap { $0["id"]?.string }
        #expect(ids == ids.sorted())
        var paged: [JSON] = []
        var after = ""
        while true {
            let reply = try await lockstep.shop.get("/v1/discrepancies?limit=2\(after)")
            paged += try #require(reply.json["items"]?.array)
            guard let next = reply.json["next"]?.string else { break }
            after = "&after=\(next)"
        }
        let pagedIDs = paged.compactMap { $0["id"]?.string }
        #expect(pagedIDs.starts(with: ids))
        #expect(try await lockstep.discrepancies("?class=missing-here").isEmpty)
        // A process counts them when it starts, and now and then.
        let counting = lockstep.caller(of: try await lockstep.startService(.workers))
        #expect(
            try await waitUntil {
                let metrics = try await counting.get("/metrics").text
                let open = metrics.firstMatch(of: /lockstep_discrepancies_open\{class="duplicate-payment"\} ([0-9]+)/)
                return Int(open?.1 ?? "0") ?? 0 >= 3 && metrics.contains("{class=\"missing-here\"} 0")
            })
        for query in ["?state=closed", "?class=other", "?limit=0", "?after=x", "?surprise=1"] {
            #expect(try await lockstep.shop.get("/v1/discrepancies\(query)").outcome == "422 invalid", "\(query)")
        }
    }
}

extension ServiceHarness {
    func discrepancies(_ query: String) async throws -> [JSON] {
        let reply = try await shop.get("/v1/discrepancies\(query)")
        return try #require(reply.json["items"]?.array, "\(reply.text)")
    }

    /// The one of this class about the order, once there is one in this state.
    func discrepancy(_ kind: String, _ order: Order, state: String = "open") async throws -> JSON? {
        try await discrepancy(kind, reference: order.reference, state: state)
    }

    func discrepancy(_ kind: String, reference: String, state: String = "open") async throws -> JSON? {
        var found: JSON?
        _ = try await waitUntil(.seconds(10)) {
            found = try await discrepancies("?state=\(state)&class=\(kind)&limit=200").first {
                $0["merchantReference"]?.string == reference
            }
            return found != nil
        }
        return found
    }

    /// What the feed tells of discrepancies of the order, with the state that each event shows.
    func told(_ order: Order) async throws -> [String] {
        try await feed().compactMap { event in
            guard let object = event["data"]?["discrepancy"], object["merchantReference"]?.string == order.reference
            else { return nil }
            return "\(event["type"]?.string ?? "-") \(object["state"]?.string ?? "-")"
        }
    }
}
