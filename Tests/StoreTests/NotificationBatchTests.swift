import Basics
import Foundation
import Lockstep
import Postgres
import Store
import TestKit
import Testing

@Suite("Notifications are written in batches, once, whatever happens to the writing")
struct NotificationBatchTests {
    @Test("W2: batches that hold the same notifications in opposite orders never lock each other out")
    func oppositeOrders() async throws {
        let cluster = try await PostgresCluster.startOwn()
        let bench = try await BooksBench(in: cluster)
        let other = BooksBench.pool(bench.connectionString)
        let stores = [bench.store, PaymentStore(pool: other, clock: bench.hand.clock, identifiers: .system())]
        let rounds = 40
        let size = 400
        for round in 0..<rounds {
            let batch = (0..<size).map { bench.incoming("\(round) \($0) \(String(repeating: "x", count: 300))") }
            let new = try await withThrowingTaskGroup(of: Int.self) { group in
                for number in 0..<8 {
                    // Forwards, backwards, and in any order, through one process and through the other.
                    let turned = number < 2 ? batch : number < 4 ? batch.reversed() : batch.shuffled()
                    group.addTask { try await stores[number % 2].insertNotifications(turned) }
                }
                return try await group.reduce(0, +)
            }
            #expect(new == size)
        }
        #expect(try await bench.value("SELECT count(*) FROM notifications", as: Int.self) == rounds * size)
        await other.shutdown()
        await bench.stop()
        #expect(cluster.deadlocks(in: bench.connectionString) == [])
        try await cluster.stop()
    }

    @Test("W2: the same notification many times in one batch is one row")
    func withinOneBatch() async throws {
        let bench = try await BooksBench()
        let batch = Array(repeating: bench.incoming("one"), count: 32) + [bench.incoming("other")]
        #expect(try await bench.store.insertNotifications(batch) == 2)
        #expect(try await bench.store.insertNotifications(batch) == 0)
        await bench.stop()
    }

    /// A store whose connection is cut after, or hangs at, the statement with this text.
    private func faulty(
        _ bench: BooksBench, _ fault: FaultyProxy.Fault
    ) async throws -> (proxy: FaultyProxy, store: PaymentStore) {
        let proxy = try FaultyProxy(target: try await PostgresCluster.shared().port, fault: fault)
        let name = try #require(bench.connectionString.split(separator: "=").last)
        let pool = BooksBench.pool(proxy.connectionString + " dbname=\(name)") { configuration in
            // The text of a statement is then in the message that runs it.
            configuration.usesPreparedStatements = false
        }
        return (proxy, PaymentStore(pool: pool, clock: bench.hand.clock, identifiers: .system()))
    }

    private func error(_ body: () async throws -> Void) async -> PostgresError? {
        do {
            try await body()
            return nil
        } catch {
            return error as? PostgresError
        }
    }

    @Test("C8: an insert whose answer was lost is no success, and done again it is one row")
    func lostAnswer() async throws {
        let bench = try await BooksBench()
        let (proxy, store) = try await faulty(bench, .cutAfter("INSERT INTO notifications"))
        let batch = [bench.incoming("one"), bench.incoming("two")]
        await #expect(throws: PostgresError.self) { try await store.insertNotifications(batch) }
        #expect(
            try await waitUntil { try await bench.value("SELECT count(*) FROM notifications", as: Int.self) == 2 })
        // Whoever sent them sends them again.
        #expect(try await bench.store.insertNotifications(batch) == 0)
        #expect(try await bench.value("SELECT count(*) FROM notifications", as: Int.self) == 2)
        proxy.stop()
        await store.pool.shutdown(limit: .zero)
        await bench.stop()
    }

    @Test("C8: whether the commit of an effect was answered or not, it is there once", arguments: [true, false])
    func lostCommit(_ arrives: Bool) async throws {
        let bench = try await BooksBench()
        let order = try await bench.order()
        let paid = NotificationMeaning.facts(
            [try bench.completed("authorize")], about: order.execution, event: "executionActionCompleted")
        _ = try await bench.store.insertNotifications([bench.incoming("paid")])
        let (proxy, store) = try await faulty(bench, arrives ? .cutAfter("COMMIT\u{0}") : .hangAt("COMMIT\u{0}"))
        async let failure = error { try await bench.apply(["paid": paid], by: store) }
        #expect(await waitUntil { proxy.struck > 0 })
        if !arrives { proxy.stop() }
        #expect(await failure?.code == .commitUnknown)
        proxy.stop()
        await store.pool.shutdown(limit: .zero)
        // A process that doesn't know how it ended, or another one, does it again.
        #expect(
            try await waitUntil {
                _ = try await bench.apply(["paid": paid])
                return try await bench.status(order) == .paid
            })
        #expect(try await bench.value("SELECT state FROM notification_states", as: String.self) == "applied")
        #expect(try await bench.told("checkout.paid", order) == 1)
        #expect(try await bench.value("SELECT count(*) FROM facts", as: Int.self) == 1)
        await bench.stop()
    }
}
