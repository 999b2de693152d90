import Basics
import PayrailsSandbox
import TestKit
import Testing

@testable import Service

/// What the database server heard, by its own log.
@Suite("What the database hears")
struct StatementLogTests {
    @Test("Q9: an order is paid at once where its notification came in, and by looking elsewhere; nothing is notified")
    func woken() async throws {
        let cluster = try await PostgresCluster.startOwn(settings: ["log_min_duration_statement": "0"])
        // Nobody asks Payrails, and nobody looks for work: only the process that took the notification knows of it.
        let seldom = [
            "LOCKSTEP_POLL_MS": "60000", "LOCKSTEP_HEAL_PENDING": "1h", "LOCKSTEP_HEAL_UNKNOWN": "1h",
        ]
        let alone = try await ServiceHarness.start(seldom, cluster: cluster)
        _ = try await alone.paidOrder()
        await alone.stop()
        // Here that process has no workers, and no other is told.
        let apart = try await ServiceHarness.start(seldom, cluster: cluster, parts: .api)
        try await apart.startService(.workers, ["LOCKSTEP_POLL_MS": "20"])
        _ = try await apart.paidOrder()
        await apart.stop()
        let statements = cluster.logged.filter {
            $0.contains("  execute ") || $0.contains("  parse ") || $0.contains("  statement: ")
        }
        #expect(statements.count > 100, "there is something to look at")
        for statement in statements.map({ $0.lowercased() }) {
            #expect(!statement.contains("notify") && !statement.contains("listen"), "\(statement)")
        }
        try await cluster.stop()
    }

    @Test("Q11: without prepared statements a whole life runs, and the server is told of no name")
    func unnamed() async throws {
        let cluster = try await PostgresCluster.startOwn(settings: [
            "log_min_duration_statement": "0", "log_line_prefix": "%m [%p] %d %a ",
        ])
        let lockstep = try await ServiceHarness.start(cluster: cluster, parts: nil)
        try await lockstep.startService(
            .all,
            [
                "LOCKSTEP_DATABASE_PREPARED_STATEMENTS": "0",
                "LOCKSTEP_DATABASE_URL": lockstep.databaseURL + " application_name=unprepared",
            ])
        try await lockstep.liveThrough()
        await lockstep.stop()
        let steps = cluster.logged.filter { $0.contains("  execute ") || $0.contains("  parse ") }
        let own = steps.filter { $0.contains(" unprepared LOG:") }
        #expect(own.count > 100, "there is something to look at")
        for step in own {
            #expect(step.contains("  execute <unnamed>") || step.contains("  parse <unnamed>"), "\(step)")
        }
        // The tests' own connections give names, so the log would show one.
        #expect(steps.contains { !$0.contains(" unprepared LOG:") && $0.contains("  execute s") })
        try await cluster.stop()
    }
}

extension PostgresCluster {
    /// What the server has logged, by entries.
    fileprivate var logged: [Substring] { serverLog.split(separator: /\n(?=[0-9]{4}-[0-9]{2}-[0-9]{2} )/) }
}

extension ServiceHarness {
    /// An order is created, changed, checked, paid, captured and refunded.
    func liveThrough() async throws {
        let order = try await order("49.99", Self.mayUpdate)
        let change: JSON = ["amount": money("60.00")]
        #expect(try await app(order).put("\(order.path)/amount", change, version: 1).status == 200)
        #expect(try await gate(order.execution, as: order.token) == "proceed")
        try pay(order.execution)
        #expect(try await becomes("paid", order))
        for (action, state) in [("capture", "captured"), ("refund", "refunded")] {
            let path = "/v1/executions/\(order.execution)/\(action)"
            #expect(try await shop.post(path, key: freshWord("key")).status == 202)
            #expect(try await becomes(state, execution: order.execution))
        }
    }
}
