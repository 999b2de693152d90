import Basics
import Foundation
import HTTPClient
import Lockstep
import Payrails
import PayrailsSandbox
import Postgres
import Store
import TestKit
import Testing

@testable import Service

@Suite("How the database is used")
struct DatabaseUseTests {
    @Test("Q12: through a whole life no statement is longer than the 16 KB at which a proxy pins its session")
    func statementLength() async throws {
        let cluster = try await PostgresCluster.startOwn(settings: ["log_min_duration_statement": "0"])
        let lockstep = try await ServiceHarness.start(cluster: cluster)
        try await lockstep.liveThrough()
        _ = try await lockstep.feed()
        _ = try await lockstep.store.retain(
            RetentionLimits(notifications: .systemNow, personalData: .systemNow, events: .systemNow))
        await lockstep.stop()
        // A statement's words, as the server heard them: from `execute` to the next entry, parameters left out.
        let entries = cluster.serverLog.split(separator: /\n(?=[0-9]{4}-[0-9]{2}-[0-9]{2} )/)
        let lengths = entries.filter { $0.contains("  execute ") || $0.contains("  parse ") }.map(\.utf8.count)
        #expect(lengths.count > 100, "there is something to measure")
        #expect(lengths.max() ?? 0 < 8 * 1024, "half of it, to have room")
        try await cluster.stop()
    }

    @Test("Q1: a session that sits in a transaction is ended by the server, the gate's own too")
    func idleSessions() async throws {
        let lockstep = try await ServiceHarness.start(parts: nil)
        let settings = try Settings(environment: lockstep.environment)
        for configuration in [settings.postgres, settings.gatePostgres] {
            let pool = PostgresPool(configuration)
            let limit = try await pool.query("SHOW idle_in_transaction_session_timeout").first?.decode(String.self)
            #expect(limit == "1min")
            await pool.shutdown()
        }
        await lockstep.stop()
    }

    @Test("Q1: a transaction that somebody leaves open shows in the metrics by what has happened since")
    func horizon() async throws {
        let lockstep = try await ServiceHarness.start()
        let store = lockstep.store
        try await lockstep.books.withTransaction(isolation: .repeatableRead) { connection in
            _ = try await connection.query("SELECT 1 AS one FROM checkouts LIMIT 1")
            let before = try await store.oldestSnapshotAge()
            for _ in 0..<20 { _ = try await lockstep.order() }
            #expect(try await store.oldestSnapshotAge() >= before + 20)
        }
        let text = try await lockstep.stranger.get("/metrics").text
        #expect(text.contains("lockstep_database_oldest_snapshot_transactions "))
        await lockstep.stop()
    }

    @Test("Q4: a capture that two processes send, since the lease of the first ran out, is one capture and one result")
    func fencing() async throws {
        let lockstep = try await ServiceHarness.start(parts: .api)
        try await lockstep.startService(.workers)
        let order = try await lockstep.paidOrder("50.00")
        // Payrails takes so long that whoever sends it does so while another one's call runs. Of a capture of the whole
        // amount a second one would be refused by itself; of a part it would take money.
        lockstep.sandbox.add(
            SandboxFault(.delay(milliseconds: 400), on: .capture, times: nil, containing: order.execution))
        let dying = Self.dying(lockstep)
        let start = try await dying.beginLifecycle(
            .capture, of: try #require(ExecutionID(order.execution)),
            amount: try Money(value: "20.00", currencyCode: "EUR"), isFinal: false, reason: nil, request: nil,
            owner: UUID())
        guard case .begun(let claimed) = start else { return #expect(Bool(false), "not begun") }
        // The service's worker takes it on now; and the first, which isn't dead, goes on too.
        let settings = try Settings(environment: lockstep.environment)
        let payrails = try #require(settings.payrails)
        let client = try payrails.client()
        let orchestrator = Orchestrator(
            store: dying, provider: PayrailsClient(payrails.configuration, transport: client), owner: UUID(),
            log: Log(minimum: .error, clock: .system, writer: lockstep.log.writer()))
        async let one = orchestrator.send(claimed)
        async let two = orchestrator.send(claimed)
        _ = try await (one, two)
        #expect(try await lockstep.becomes("succeeded", operation: claimed.operation.id.description))
        let keys = lockstep.sandbox.calls(to: .capture).filter { $0.path.contains(order.execution) }.map(\.key)
        #expect(keys.count >= 2)
        #expect(Set(keys).count == 1)
        #expect(lockstep.money(of: order) == .init(authorizations: 1, held: 3000, net: 2000))
        #expect(try await lockstep.tells("execution.captured", order))
        await client.shutdown()
        await lockstep.stop()
    }

    /// The books as somebody uses them whose leases are over at once: any worker takes on what is begun there.
    private static func dying(_ lockstep: ServiceHarness) -> PaymentStore {
        PaymentStore(
            pool: lockstep.books, clock: .system, identifiers: .system(),
            policy: PaymentStore.Policy(lease: .milliseconds(1)))
    }

    @Test("Q6: a call that is never answered gives its place back, also where it is the only one")
    func stuckCall() async throws {
        let lockstep = try await ServiceHarness.start([
            "LOCKSTEP_WORK_CONCURRENCY": "1", "PAYRAILS_CALL_TIMEOUT_MS": "500",
        ])
        let stuck = try await lockstep.paidOrder("50.00")
        let next = try await lockstep.paidOrder("50.00")
        lockstep.sandbox.add(
            SandboxFault(.delay(milliseconds: 30_000), on: .capture, times: nil, containing: stuck.execution))
        let dying = Self.dying(lockstep)
        for order in [stuck, next] {
            let start = try await dying.beginLifecycle(
                .capture, of: try #require(ExecutionID(order.execution)), amount: nil, isFinal: nil, reason: nil,
                request: nil, owner: UUID())
            guard case .begun = start else { return #expect(Bool(false), "not begun") }
            // The other one comes while the place is taken.
            #expect(
                await waitUntil {
                    lockstep.sandbox.calls(to: .capture).contains { $0.path.contains(stuck.execution) }
                })
        }
        #expect(try await lockstep.becomes("captured", execution: next.execution))
        let call = lockstep.sandbox.calls(to: .capture).first { $0.path.contains(stuck.execution) }
        #expect(call != nil && call?.status == nil, "it isn't answered yet")
        #expect(lockstep.money(of: next) == .init(authorizations: 1, net: 5000))
        await lockstep.stop()
    }
}
