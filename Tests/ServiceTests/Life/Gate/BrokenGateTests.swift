import Basics
import Foundation
import Lockstep
import PayrailsSandbox
import Postgres
import Store
import TestKit
import Testing

@testable import Service

/// Whatever is broken stays so until the answers are there, and nothing else would end the wait: so each answer shows by
/// itself that the budget works.
@Suite("The gate answers whatever is broken behind it")
struct BrokenGateTests {
    private static let patient = [
        "LOCKSTEP_PREPAYMENT_BUDGET_MS": "1000", "LOCKSTEP_DATABASE_STATEMENT_TIMEOUT_MS": "600000",
        "LOCKSTEP_DATABASE_ACQUIRE_TIMEOUT_MS": "60000", "LOCKSTEP_DRAIN_SECONDS": "1",
    ]

    @Test("with a database that hangs, every question is refused within the budget, also more than it has connections")
    func hangingDatabase() async throws {
        let lockstep = try await ServiceHarness.start(parts: nil)
        let cluster = try await PostgresCluster.shared()
        let proxy = try FaultyProxy(target: cluster.port, fault: .none)
        let name = try #require(lockstep.databaseURL.split(separator: "=").last)
        let service = try await lockstep.startService(
            .all,
            Self.patient.merging(["LOCKSTEP_DATABASE_URL": "\(proxy.connectionString) dbname=\(name)"]) { $1 })
        let order = try await lockstep.order()
        #expect(try await lockstep.gate(order.execution) == "proceed")
        proxy.setFault(.silence)
        let answers = try await withThrowingTaskGroup(of: JSON.self) { group in
            for number in 0..<60 {
                group.addTask {
                    try await lockstep.gateAnswer(
                        order.execution, as: number.isMultiple(of: 2) ? order.token : nil, language: "de"
                    ).json
                }
            }
            return try await group.reduce(into: [JSON]()) { $0.append($1) }
        }
        let sentence = GateMessages.standard.sentence(for: .internal, preferring: ["de"]).text
        #expect(answers.count == 60)
        for answer in answers {
            #expect(answer["reason"] == "internal" && answer["message"]?.string == sentence)
        }
        // What is malformed, and who isn't known by its form, is told without the database.
        let caller = lockstep.caller(of: service)
        #expect(try await caller.with(token: lockstep.key).post("/v1/pre-payment", [:]).outcome == "422 invalid")
        #expect(try await caller.post("/v1/pre-payment", [:]).outcome == "401 unauthorized")
        proxy.setFault(.none)
        #expect(try await waitUntil { try await lockstep.gate(order.execution) == "proceed" })
        await lockstep.stop()
        proxy.stop()
    }

    @Test("a question that comes while the service is stopping is answered, too")
    func stopping() async throws {
        let lockstep = try await ServiceHarness.start()
        let order = try await lockstep.order()
        let port = try lockstep.service.port
        let body: JSON = ["executionId": .string(order.execution), "paymentMethodCode": "card"]
        let asking = try RawClient(port: port)
        asking.write("POST /v1/pre-payment HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer \(order.token)\r\n")
        let other = try RawClient(port: port)
        other.write("GET \(order.path) HTTP/1.1\r\nHost: a\r\n")
        // By the time that this is answered, what was written before has been read: neither connection is an idle one.
        #expect(try await lockstep.status(order) == "open")
        async let stopped: Void = lockstep.stopServices()
        #expect(await waitUntil { (try? RawClient(port: port)) == nil })
        asking.write("Content-Type: application/json\r\nContent-Length: \(body.bytes.count)\r\n\r\n\(body.text)")
        let reply = try await asking.reply()
        #expect(reply.status == 200 && reply.body.contains(#""decision":"proceed""#), "\(reply.body)")
        other.write("Authorization: Bearer \(order.token)\r\nX-Request-Id: mine-1\r\n\r\n")
        let refused = try await other.reply()
        #expect(refused.status == 503 && refused["X-Request-Id"] == "mine-1")
        await stopped
        await lockstep.stop()
    }

    @Test("where credentials can't be checked the answer is a refusal, not a 401")
    func lockedCredentials() async throws {
        let lockstep = try await ServiceHarness.start(Self.patient)
        let order = try await lockstep.order()
        try await lockstep.books.withTransaction { connection in
            _ = try await connection.query("LOCK TABLE merchant_keys, client_tokens IN ACCESS EXCLUSIVE MODE")
            for token in [lockstep.key, order.token] {
                #expect(try await lockstep.gate(order.execution, as: token) == "internal")
            }
        }
        #expect(try await waitUntil { try await lockstep.gate(order.execution) == "proceed" })
        await lockstep.stop()
    }

    @Test("a checkout that somebody holds is refused, and keeps no other customer from paying")
    func heldCheckout() async throws {
        let lockstep = try await ServiceHarness.start(["LOCKSTEP_GATE_POOL_SIZE": "2"])
        let (held, other) = (try await lockstep.order(), try await lockstep.order())
        try await lockstep.books.withTransaction { connection in
            _ = try await connection.query(
                "SELECT 1 AS one FROM checkouts WHERE id = \(UUID(uuidString: held.checkout)) FOR UPDATE")
            try await withThrowingTaskGroup(of: String.self) { group in
                for _ in 0..<6 { group.addTask { try await lockstep.gate(held.execution) } }
                #expect(try await lockstep.gate(other.execution, as: other.token) == "proceed")
                for try await reason in group { #expect(reason == "internal") }
            }
            // What the books refuse needs no lock, and is told.
            #expect(try await lockstep.gate(held.execution, ["amount": lockstep.money("1")]) == "amount-mismatch")
        }
        #expect(try await lockstep.gate(held.execution) == "proceed")
        await lockstep.stop()
    }

    @Test("a checkout that somebody holds for a moment is waited for, and then the customer pays")
    func heldForAMoment() async throws {
        let lockstep = try await ServiceHarness.start()
        let order = try await lockstep.order()
        let asked = try await lockstep.books.withTransaction { connection in
            _ = try await connection.query(
                "SELECT 1 AS one FROM checkouts WHERE id = \(UUID(uuidString: order.checkout)) FOR UPDATE")
            let asked = Task { try await lockstep.gate(order.execution) }
            let waits = try await waitUntil {
                try await lockstep.books.query(
                    """
                    SELECT 1 AS one FROM pg_stat_activity WHERE datname = current_database()
                    AND application_name = 'lockstep-gate' AND wait_event_type = 'Lock'
                    """
                ).count == 1
            }
            #expect(waits)
            return asked
        }
        #expect(try await asked.value == "proceed")
        await lockstep.stop()
    }

    @Test("of many who pay at the same moment each basket is held for its own")
    func manyAtOnce() async throws {
        let lockstep = try await ServiceHarness.start()
        var orders: [Order] = []
        for _ in 0..<24 { orders.append(try await lockstep.order()) }
        try await withThrowingTaskGroup(of: String.self) { group in
            // Each twice: the second finds the lease that the first has just taken.
            for order in orders + orders { group.addTask { try await lockstep.gate(order.execution) } }
            for try await reason in group { #expect(reason == "proceed") }
        }
        let held = try await lockstep.books.query(
            """
            SELECT count(*) AS held FROM checkouts JOIN executions ON executions.id = lease_execution_id
            WHERE executions.checkout_id = checkouts.id AND lease_until > checkouts.created_at AND executions.check_at IS NOT NULL
            """
        ).first?.decode("held", as: Int.self)
        #expect(held == orders.count)
        await lockstep.stop()
    }

    @Test("a question whose time is over takes no lease, and takes no time from those that share its transaction")
    func lateAmongOthers() async throws {
        let lockstep = try await ServiceHarness.start()
        let store = PaymentStore(pool: lockstep.books, clock: .system, identifiers: .system(clock: .system))
        let orders = [try await lockstep.order(), try await lockstep.order()]
        let openings = try zip(orders, [Duration.seconds(-1), .seconds(60)]).map { order, rest in
            PaymentStore.GateOpening(
                question: Lockstep.Gate.Question(
                    execution: try #require(ExecutionID(order.execution)), paymentMethodCode: "card", amount: nil,
                    basketVersion: nil),
                checkout: try #require(CheckoutID(order.checkout)), approved: nil, deadline: .now + rest)
        }
        let verdicts = try await store.openGates(openings, waits: false).map { try $0.get() }
        guard case .refused(.internal) = verdicts[0], case .proceed = verdicts[1] else {
            Issue.record("\(verdicts)")
            return
        }
        let leased = try await lockstep.books.query("SELECT id FROM checkouts WHERE lease_until IS NOT NULL")
            .map { try $0.decode("id", as: UUID.self) }
        #expect(leased == [UUID(uuidString: orders[1].checkout)])
        await lockstep.stop()
    }

    @Test("with Payrails gone the books still know")
    func payrailsGone() async throws {
        let lockstep = try await ServiceHarness.start(Self.patient)
        let order = try await lockstep.order("49.99", ServiceHarness.mayUpdate)
        let moved = try await lockstep.order("49.99", ServiceHarness.mayUpdate)
        await lockstep.sandbox.stop()
        #expect(try await lockstep.gate(order.execution) == "proceed")
        // An amount of which nobody knows whether it was moved keeps the gate shut.
        let change: JSON = ["amount": lockstep.money("60.00")]
        let reply = try await lockstep.shop.put("\(moved.path)/amount", change, version: 1)
        #expect(reply.status == 503)
        let reason = try await lockstep.gate(moved.execution)
        #expect(reason == (reply.problem == "amount-unconfirmed" ? "amount-not-in-step" : "proceed"))
        await lockstep.stopServices()
        await lockstep.books.shutdown()
    }
}
