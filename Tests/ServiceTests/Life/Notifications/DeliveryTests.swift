import Basics
import Crypto
import Foundation
import PayrailsSandbox
import Postgres
import TestKit
import Testing

@testable import Service

@Suite("Notifications: late, twice, shuffled, lost, and to many at once")
struct DeliveryTests {
    private static let shared = Task { try await ServiceHarness.shared() }

    @Test("W1, W2, W3, W19: thirty-two copies of a notification at once to two processes are one row and one effect")
    func duplicates() async throws {
        let lockstep = try await ServiceHarness.start(parts: nil)
        let programs = [try await lockstep.startProgram(), try await lockstep.startProgram()]
        lockstep.sandbox.add(SandboxNotificationFault(.lost, times: nil))
        // Several times, since two that come at the same instant only sometimes do.
        for _ in 0..<5 {
            let order = try await lockstep.order()
            let one = try await told(lockstep, order)
            let replies = try await atOnce(32) { number in try await one.send(to: programs[number % 2].stranger) }
            #expect(replies.map(\.status) == Array(repeating: 200, count: 32))
            #expect(try await lockstep.becomes("paid", order))
            let rows = try await lockstep.books.query(
                """
                SELECT state FROM notifications JOIN notification_states USING (id)
                WHERE body_hash = \(Crypto.sha256(one.body))
                """)
            #expect(rows.count == 1)
            #expect(try await results(lockstep, order) == 1)
            #expect(try await lockstep.tells("checkout.paid", order))
            // Payrails delivers it once more, hours later.
            #expect(try await one.send(to: lockstep.stranger).status == 200)
            #expect(try await lockstep.tally(order)["checkout.paid"] == 1)
        }
        await lockstep.stop()
    }

    /// The notification of an authorization that worked, which Payrails made and nobody got.
    private func told(_ lockstep: ServiceHarness, _ order: Order) async throws -> SignedNotification {
        try lockstep.pay(order.execution)
        try #require(await lockstep.sandbox.becomesQuiet())
        let held = lockstep.sandbox.deliveries.last {
            $0.executionID == order.execution && $0.event == "executionActionCompleted"
        }
        return SignedNotification(try #require(held).body)
    }

    /// How many results of actions are known of an order's execution.
    private func results(_ lockstep: ServiceHarness, _ order: Order) async throws -> Int {
        try await lockstep.books.query(
            """
            SELECT 1 AS one FROM facts WHERE kind = 'action' AND phase = 'completed'
                AND execution_id = \(UUID(uuidString: order.execution))
            """
        ).count
    }

    @Test("W4: the same event delivered in other bytes is another row and no second effect")
    func otherBytes() async throws {
        let lockstep = try await ServiceHarness.start(["LOCKSTEP_HEAL_PENDING": "1h"])
        let order = try await lockstep.order()
        lockstep.sandbox.add(SandboxNotificationFault(.lost, executionID: order.execution, times: nil))
        let one = try await told(lockstep, order)
        let json = try JSON(parsing: one.body)
        let again = [one.body, json.bytes, Data("\n".utf8) + json.bytes, json.bytes + Data(" \r\n".utf8)]
        let copies = Set(again).map { SignedNotification($0) }
        for copy in copies { #expect(try await copy.send(to: lockstep.stranger).status == 200) }
        let hashes = copies.map { Crypto.sha256($0.body) }
        #expect(
            try await waitUntil {
                try await lockstep.books.query(
                    """
                    SELECT 1 AS one FROM notifications JOIN notification_states USING (id)
                    WHERE state = 'applied' AND body_hash = ANY(\(hashes))
                    """
                ).count == copies.count
            })
        #expect(try await lockstep.becomes("paid", order))
        #expect(try await results(lockstep, order) == 1)
        #expect(try await lockstep.tells("checkout.paid", order))
        await lockstep.stop()
    }

    @Test("forty orders through two services, with everything that can befall a notification, end as the ledger says")
    func chaos() async throws {
        let lockstep = try await ServiceHarness.start()
        try await lockstep.startService()
        for kind in [
            SandboxNotificationFault.Kind.twice, .shuffled(milliseconds: 15), .late(milliseconds: 30), .lost,
            .wrongSignature,
        ] {
            lockstep.sandbox.add(SandboxNotificationFault(kind, times: nil, probability: 0.2))
        }
        let orders = try await atOnce(40) { number in
            let order = try await lockstep.order("\(10 + number).00")
            try lockstep.pay(order.execution, number.isMultiple(of: 4) ? .cascade(result: "Score") : .success)
            return order
        }
        for (order, number) in zip(orders, 0...) {
            #expect(try await lockstep.becomes("paid", order), "order \(number)")
            #expect(try await lockstep.tells("checkout.paid", order))
        }
        let captures = try await atOnce(orders.count) { number in
            try await lockstep.shop.post(
                "/v1/executions/\(orders[number].execution)/capture",
                ["amount": lockstep.money("5.00"), "final": false],
                key: freshWord("capture"))
        }
        #expect(captures.allSatisfy { $0.status == 202 })
        for capture in captures {
            #expect(try await lockstep.becomes("succeeded", operation: try #require(capture.json["id"]?.string)))
        }
        for order in orders {
            let balance = lockstep.money(of: order)
            #expect(balance.authorizations == 1)
            #expect(balance.net == 500)
            let amounts = try await lockstep.execution(order.execution)["amounts"]
            #expect(amounts?["captured"] == lockstep.money("5.00"))
        }
        #expect(lockstep.log.errors == [])
        await lockstep.stop()
    }

    @Test("W6, W7: a notification that comes before the creation's answer waits, and takes effect with it")
    func beforeTheAnswer() async throws {
        let lockstep = try await Self.shared.value
        let reference = freshWord("early")
        lockstep.sandbox.add(
            SandboxFault(.delayAfter(milliseconds: 1500), on: .clientInit, containing: reference))
        async let answer = lockstep.shop.post(
            "/v1/checkouts", lockstep.newCheckout(reference), key: freshWord("key"))
        #expect(await waitUntil { !lockstep.sandbox.executionIDs(merchantReference: reference).isEmpty })
        let execution = try #require(lockstep.sandbox.executionIDs(merchantReference: reference).first)
        try lockstep.pay(execution)
        #expect(
            try await waitUntil {
                try await lockstep.books.query(
                    """
                    SELECT 1 AS one FROM notification_outcomes
                    WHERE state = 'parked' AND event = 'executionActionCompleted'
                        AND execution_id = \(UUID(uuidString: execution))
                    """
                ).count == 1
            })
        // It comes again while it waits: it is neither lost nor refused for that.
        lockstep.sandbox.redeliver(execution)
        #expect(await lockstep.sandbox.becomesQuiet())
        let order = try lockstep.order(reference, try await answer)
        #expect(order.answer.json["status"] == "paid", "what waited takes effect in the same transaction")
        let parked = try await lockstep.books.query(
            """
            SELECT 1 AS one FROM notification_outcomes
            WHERE state = 'parked' AND execution_id = \(UUID(uuidString: execution))
            """
        )
        #expect(parked.isEmpty)
        #expect(try await lockstep.events(order, atLeast: 2) == ["checkout.created", "checkout.paid"])
    }

    @Test("C1, O5: a payment whose notifications are all lost is paid here too, by asking", arguments: [true, false])
    func allLost(_ asksGate: Bool) async throws {
        let lockstep = try await Self.shared.value
        let order = try await lockstep.order()
        lockstep.sandbox.add(SandboxNotificationFault(.lost, executionID: order.execution, times: nil))
        if asksGate { #expect(try await lockstep.gate(order.execution) == "proceed") }
        try lockstep.pay(order.execution)
        #expect(try await lockstep.becomes("paid", order))
        #expect(try await lockstep.execution(order.execution)["amounts"]?["authorized"] == lockstep.money("49.99"))
        // So are a capture and a refund.
        for (kind, state) in [("capture", "captured"), ("refund", "refunded")] {
            let reply = try await lockstep.shop.post(
                "/v1/executions/\(order.execution)/\(kind)", key: freshWord("key"))
            #expect(reply.status == 202)
            #expect(try await lockstep.becomes("succeeded", operation: try #require(reply.json["id"]?.string)))
            #expect(try await lockstep.becomes(state, execution: order.execution))
        }
        #expect(lockstep.money(of: order) == .init(authorizations: 1, refunded: 4999))
    }

    @Test("W14: a notification that can't be stored isn't acknowledged, and is applied when it comes again")
    func databaseGone() async throws {
        let cluster = try await PostgresCluster.startOwn()
        let lockstep = try await ServiceHarness.start(
            ["LOCKSTEP_DATABASE_ACQUIRE_TIMEOUT_MS": "300"], cluster: cluster
        ) { $0.notificationBackoff = .milliseconds(100) }
        let order = try await lockstep.order()
        try await cluster.stop(mode: .immediate)
        try lockstep.pay(order.execution)
        #expect(
            await waitUntil {
                lockstep.sandbox.deliveries.contains { $0.attempts.contains { $0.status == 503 } }
            })
        #expect(!lockstep.sandbox.deliveries.contains { $0.event != "executionCreated" && $0.state == .delivered })
        try await cluster.start()
        #expect(try await lockstep.becomes("paid", order))
        await lockstep.stop()
        try await cluster.stop()
    }
}
