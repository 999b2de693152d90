import Basics
import Foundation
import Lockstep
import PayrailsSandbox
import Postgres
import TestKit
import Testing

@testable import Service

@Suite("Idempotency that went wrong for others")
struct KeyFailureTests {
    private static let shared = Task { try await ServiceHarness.shared(["PAYRAILS_CALL_TIMEOUT_MS": "1500"]) }
    private let lockstep: ServiceHarness
    init() async throws { lockstep = try await Self.shared.value }

    private func storedKeys(_ kind: String, _ order: Order) async throws -> Set<String> {
        let rows = try await lockstep.books.query(
            """
            SELECT idempotency_key FROM operations
            WHERE kind = \(kind) AND checkout_id = \(UUID(canonical: order.checkout))
            """)
        return Set(try rows.map { try $0.decode("idempotency_key", as: UUID.self).lowercased })
    }

    private func sentKeys(_ route: SandboxRoute, _ text: String) -> [String] {
        lockstep.sandbox.calls(to: route).filter { $0.path.contains(text) }.compactMap(\.key).map { $0.lowercased() }
    }

    @Test("I1: the key is on disk before the first byte is sent, and nothing of the content is in it")
    func writtenFirst() async throws {
        let orders = [try await lockstep.paidOrder("50.00"), try await lockstep.paidOrder("50.00")]
        var keys: [String] = []
        for order in orders {
            // Payrails holds the call; its key is in the books meanwhile.
            lockstep.sandbox.add(SandboxFault(.delay(milliseconds: 400), on: .capture, containing: order.execution))
            async let capture = lockstep.shop.post(
                "/v1/executions/\(order.execution)/capture", ["amount": lockstep.money("10.00"), "final": false],
                key: freshWord("capture"))
            #expect(await waitUntil { !sentKeys(.capture, order.execution).isEmpty })
            let sent = sentKeys(.capture, order.execution)
            #expect(try await storedKeys("capture", order).isSuperset(of: sent))
            #expect(try await capture.status == 202)
            keys += sent
        }
        // The same content twice, and two intents: two keys.
        let again = try await lockstep.shop.post(
            "/v1/executions/\(orders[0].execution)/capture", ["amount": lockstep.money("10.00"), "final": false],
            key: freshWord("capture"))
        #expect(again.status == 202)
        #expect(try await lockstep.becomes("succeeded", operation: try #require(again.json["id"]?.string)))
        keys = orders.flatMap { sentKeys(.capture, $0.execution) }
        #expect(keys.count == 3 && Set(keys).count == 3)
        #expect(lockstep.money(of: orders[0]).net == 2000 && lockstep.money(of: orders[1]).net == 1000)
        for key in keys { #expect(UUID(canonical: key) != nil) }
    }

    @Test(
        "I2, I3: a call that timed out is sent again under its own key, by whichever process, and looked up; never under a new one"
    )
    func sameKey() async throws {
        let lockstep = try await ServiceHarness.start(["PAYRAILS_CALL_TIMEOUT_MS": "500"], parts: nil)
        try await lockstep.startService(.api)
        let order = try await lockstep.order("50.00")
        // It takes effect, and twice its answer comes when nobody waits for it any more.
        lockstep.sandbox.add(
            SandboxFault(.delayAfter(milliseconds: 1500), on: .lookup, times: 2, containing: order.execution))
        lockstep.sandbox.add(SandboxFault(.errorBefore(status: 503), on: .getExecution, containing: order.execution))
        let change = try await lockstep.shop.put(
            "\(order.path)/amount", ["amount": lockstep.money("60.00")], version: 1)
        #expect(change.outcome == "503 amount-unconfirmed")
        // The process that sent it is gone; another one goes on.
        await lockstep.stopServices()
        try await lockstep.startService(.all)
        #expect(try await waitUntil { try await lockstep.checkout(order)["amountState"] == "inStep" })
        #expect(try await lockstep.checkout(order)["amount"] == lockstep.money("60.00"))
        let moves = lockstep.sandbox.calls(to: .lookup).filter { $0.path.contains(order.execution) }
        #expect(moves.count >= 2)
        #expect(moves.first?.faults == ["delayAfter"])
        #expect(Set(moves.map(\.key)).count == 1)
        await lockstep.stop()
    }

    @Test(
        "I2, I3: a creation that was never answered is asked for again under its own key, then by its reference",
        arguments: [SandboxFault.Kind.delayAfter(milliseconds: 1500), .errorAfter(status: 500)])
    func sameKeyOfCreation(_ kind: SandboxFault.Kind) async throws {
        let lockstep = try await ServiceHarness.start(["PAYRAILS_CALL_TIMEOUT_MS": "500"])
        let reference = freshWord("lost")
        lockstep.sandbox.add(SandboxFault(kind, on: .clientInit, times: 2, containing: reference))
        let key = freshWord("create")
        let body = lockstep.newCheckout(reference)
        let first = try await lockstep.shop.post("/v1/checkouts", body, key: key)
        #expect([201, 503].contains(first.status), "\(first.text)")
        #expect(
            await waitUntil {
                lockstep.sandbox.calls(to: .listExecutions).contains { $0.query?.contains(reference) ?? false }
            })
        // The same request of the shop's gets a session in the end, of this order and no other.
        #expect(
            try await waitUntil { try await lockstep.shop.post("/v1/checkouts", body, key: key).status == 201 })
        // A session that was made in its place has a reference of its own.
        let creations = lockstep.sandbox.calls(to: .clientInit).filter {
            $0.body?["merchantReference"]?.string == reference
        }
        #expect(creations.count >= 2)
        #expect(Set(creations.map(\.key)).count == 1)
        #expect(lockstep.sandbox.executionIDs(merchantReference: reference).count == 1)
        await lockstep.stop()
    }

    @Test("I5, I11: the caller's key is taken in the database before anything is done, by whichever process")
    func takenFirst() async throws {
        let reference = freshWord("first")
        let key = freshWord("key")
        let second = try await lockstep.startService(.api)
        lockstep.sandbox.add(SandboxFault(.delay(milliseconds: 600), on: .clientInit, containing: reference))
        async let creation = lockstep.shop.post("/v1/checkouts", lockstep.newCheckout(reference), key: key)
        #expect(
            await waitUntil {
                lockstep.sandbox.calls(to: .clientInit).contains { $0.body?["merchantReference"]?.string == reference }
            })
        let rows = try await lockstep.books.query("SELECT status FROM idempotency_keys WHERE key = \(key)")
        #expect(rows.count == 1)
        #expect(try rows.first?.decode("status", as: Int32?.self) == nil)
        // The other process sees it as well.
        let other = lockstep.caller(of: second).with(token: lockstep.key)
        let meanwhile = try await other.post("/v1/checkouts", lockstep.newCheckout(reference), key: key)
        #expect(meanwhile.outcome == "409 idempotency-key-in-use")
        #expect(try await creation.status == 201)
        let after = try await other.post("/v1/checkouts", lockstep.newCheckout(reference), key: key)
        #expect(after.status == 201 && after.headers["Idempotent-Replayed"] == "true")
        #expect(lockstep.sandbox.executionIDs(merchantReference: reference).count == 1)
    }

    @Test("I6, I7: of many with one key over two processes one runs, whatever else any of them is told")
    func oneRuns() async throws {
        let order = try await lockstep.paidOrder("50.00")
        let callers = [
            try lockstep.shop, lockstep.caller(of: try await lockstep.startService(.api)).with(token: lockstep.key),
        ]
        let key = freshWord("capture")
        let body: JSON = ["amount": lockstep.money("5.00"), "final": false]
        let path = "/v1/executions/\(order.execution)/capture"
        let replies = try await atOnce(24) { number in
            try await callers[number % 2].post(path, body, key: key)
        }
        let taken = replies.filter { $0.status == 202 }
        #expect(Set(taken.compactMap { $0.json["id"]?.string }).count == 1)
        #expect(replies.allSatisfy { $0.status == 202 || $0.outcome == "409 idempotency-key-in-use" })
        #expect(sentKeys(.capture, order.execution).count == 1)
        #expect(await waitUntil { lockstep.money(of: order).net == 500 })
    }

    @Test("I10: no transaction is open while Payrails is asked, and an error of the line is never a final answer")
    func nothingHeld() async throws {
        let order = try await lockstep.paidOrder("50.00")
        lockstep.sandbox.add(SandboxFault(.delay(milliseconds: 1000), on: .capture, containing: order.execution))
        lockstep.sandbox.add(SandboxFault(.closeAfter, on: .capture, times: 2, containing: order.execution))
        let key = freshWord("capture")
        let body: JSON = ["amount": lockstep.money("5.00"), "final": false]
        let path = "/v1/executions/\(order.execution)/capture"
        async let capture = lockstep.shop.post(path, body, key: key)
        #expect(await waitUntil { !sentKeys(.capture, order.execution).isEmpty })
        // The call has run for a while, and still runs; no transaction is as old as it is, whatever its session does.
        #expect(
            try await waitUntil(.seconds(5)) {
                guard let call = captureCall(order), call.status == nil,
                    Timestamp.systemNow - call.time > .milliseconds(300)
                else { return false }
                return try await transactions(since: call.time) == 0
            })
        let taken = try await lockstep.books.query(
            "SELECT 1 AS one FROM checkouts WHERE id = \(UUID(canonical: order.checkout)) FOR UPDATE")
        #expect(taken.count == 1)
        #expect(captureCall(order)?.status == nil, "the order could be locked while Payrails was being asked")
        let reply = try await capture
        #expect(reply.status == 202)
        #expect(reply.json["state"] != "failed")
        let id = try #require(reply.json["id"]?.string)
        #expect(try await lockstep.becomes("succeeded", operation: id))
        // The same request again is told of the same capture, and takes no more money.
        let again = try await lockstep.shop.post(path, body, key: key)
        #expect(again.status == 202)
        #expect(again.json["id"]?.string == id)
        #expect(lockstep.money(of: order) == .init(authorizations: 1, held: 4500, net: 500))
    }

    /// The first capture of the order that Payrails was asked for.
    private func captureCall(_ order: Order) -> SandboxCall? {
        lockstep.sandbox.calls(to: .capture).first { $0.path.contains(order.execution) }
    }

    /// How many transactions of others are open since this moment or longer.
    private func transactions(since time: Timestamp) async throws -> Int {
        let rows = try await lockstep.books.query(
            """
            SELECT count(*) AS found FROM pg_stat_activity
            WHERE datname = current_database() AND pid <> pg_backend_pid()
                AND xact_start <= to_timestamp(\(time.microseconds) / 1000000.0)
            """)
        return try #require(rows.first).decode("found", as: Int.self)
    }
}
