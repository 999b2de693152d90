import Basics
import Foundation
import Lockstep
import Postgres
import Store
import TestKit
import Testing

@Suite("What is applied and what goes at the same time")
struct ApplyAndRetainTests {
    private static let orders = 16

    @Test("Q7: four that apply and four that remove, all at once, never wait in a ring, and leave nothing undone")
    func neverInARing() async throws {
        let bench = try await BooksBench()
        // Whatever is there has outlived its retention.
        let future = bench.hand.now + .seconds(2 * 86_400)
        let limits = RetentionLimits(notifications: future, personalData: future, events: future)
        let rounds = 8
        var bodies = 0
        var checkouts = 0
        for round in 0..<rounds {
            let meanings = try await told(round, bench)
            let removed: [RetentionCount] = try await withThrowingTaskGroup(of: RetentionCount.self) { group in
                for _ in 0..<4 {
                    group.addTask {
                        try await Self.applyAll(meanings, bench)
                        return RetentionCount()
                    }
                    group.addTask { try await bench.store.retain(limits, batch: 3) }
                }
                return try await group.reduce(into: []) { $0.append($1) }
            }
            bodies += removed.map(\.notificationBodies).reduce(0, +)
            checkouts += removed.map(\.checkouts).reduce(0, +)
        }
        _ = try await bench.pool.query("UPDATE executions SET check_at = NULL")
        let rest = try await bench.store.retain(limits)
        #expect(try await bench.value("SELECT count(*) FROM waiting_notifications", as: Int.self) == 0)
        let states = try await bench.pool.query("SELECT DISTINCT state FROM notification_states")
        #expect(try states.map { try $0.decode("state", as: String.self) } == ["applied"])
        #expect(bodies + rest.notificationBodies == rounds * Self.orders * 2)
        #expect(checkouts > 0, "some went while others were applied")
        #expect(try await bench.value("SELECT count(*) FROM events", as: Int.self) == 0)
        #expect(try await bench.store.countOutlived(limits) == RetentionCount())
        await bench.stop()
        #expect(try await PostgresCluster.shared().deadlocks(in: bench.connectionString) == [])
    }

    /// Paid orders whose personal data may go, and two notifications of each that wait, of the same orders in opposite
    /// ways.
    private func told(_ round: Int, _ bench: BooksBench) async throws -> [String: NotificationMeaning] {
        var meanings: [String: NotificationMeaning] = [:]
        var texts: [String] = []
        for number in 0..<Self.orders {
            let order = try await bench.order()
            try await bench.pay(order)
            for action in ["authorize", "capture"] {
                let text = "\(action) \(round) \(number)"
                let fact = try bench.completed(action, id: action)
                meanings[text] = .facts([fact], about: order.execution, event: "executionActionCompleted")
                texts.append(text)
            }
        }
        _ = try await bench.pool.query("UPDATE executions SET check_at = NULL")
        let shuffled = texts.filter { $0.hasPrefix("authorize") } + texts.filter { $0.hasPrefix("capture") }.reversed()
        for text in shuffled { _ = try await bench.store.insertNotifications([bench.incoming(text)]) }
        return meanings
    }

    /// Few at a time, until nothing waits that nobody holds.
    private static func applyAll(_ meanings: [String: NotificationMeaning], _ bench: BooksBench) async throws {
        var count: Int
        repeat {
            count = try await bench.store.applyNotifications(limit: 3) { body, _ in
                meanings[String(decoding: body, as: UTF8.self)] ?? .ignored(event: "other")
            }.total
        } while count > 0
    }
}
