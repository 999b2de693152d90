import Foundation
import Lockstep
import Postgres
import Store
import TestKit
import Testing

@Suite("Every event of the feed is queued for the shop, once")
struct EventDeliveryQueueTests {
    @Test("an event that is committed late isn't skipped, and isn't overtaken by what was committed before it")
    func lateCommit() async throws {
        let bench = try await EventDeliveryBench()
        let (late, early) = try await bench.pool.withTransaction { connection in
            let late = try await bench.write(nil, on: connection)
            let early = try await bench.write(nil)
            // The earlier one is still being written, so neither may be queued.
            #expect(try await bench.store.queueDeliveries(limit: 10) == 0)
            return (late, early)
        }
        try await bench.queue(2)
        #expect(try await bench.claim().map(\.event.id) == [late, early])
        await bench.stop()
    }

    @Test("while many write and many queue, none is missed and none is queued twice")
    func manyWriters() async throws {
        let bench = try await EventDeliveryBench()
        let writers = 6
        let each = 25
        try await withThrowingTaskGroup(of: Int.self) { group in
            for writer in 0..<writers {
                group.addTask {
                    for number in 0..<each {
                        try await bench.pool.withTransaction { connection in
                            try await bench.write(nil, on: connection)
                            let milliseconds = (writer * 7 + number * 3) % 5 * 2
                            _ = try await connection.query("SELECT pg_sleep(\(milliseconds) / 1000.0)::text AS slept")
                            if number % 6 == 0 { try await bench.write(nil, on: connection) }
                        }
                    }
                    return 0
                }
            }
            let all = writers * (each + 5)
            for _ in 0..<3 {
                group.addTask {
                    var passed = 0
                    _ = try await waitUntil {
                        passed += try await bench.store.queueDeliveries(limit: 7)
                        return try await bench.store.readDeliveryBacklog().pending >= all
                    }
                    return passed
                }
            }
            let passed = try await group.reduce(0, +)
            #expect(passed == all)
        }
        let feed = try await bench.feed()
        let queued = try await bench.store.readDeliveries([.pending], limit: 10_000).map(\.event)
        #expect(queued == feed && feed.count == writers * (each + 5))
        await bench.stop()
    }

    @Test("what was written before there was an address stays in the feed; by hand it is sent all the same")
    func before() async throws {
        let bench = try await EventDeliveryBench(begins: false)
        let old = try await bench.write(UUID())
        #expect(try await bench.store.queueDeliveries(limit: 10) == 0)
        try await bench.settle()
        try await bench.store.beginDeliveries()
        let new = try await bench.write(nil)
        // Begun again by the next process: the place is kept.
        try await bench.store.beginDeliveries()
        try await bench.queue(1)
        #expect(try await bench.claim().map(\.event.id) == [new])
        #expect(try await bench.store.resendDeliveries([old, EventID(UUID())]) == [old])
        #expect(try await bench.claim().map(\.event.id) == [old])
        await bench.stop()
    }

    @Test("an event that was sent by hand before the cursor came to it isn't queued again")
    func overtakenCursor() async throws {
        let bench = try await EventDeliveryBench()
        let event = try await bench.write(UUID())
        #expect(try await bench.store.resendDeliveries([event]) == [event])
        let claimed = try await bench.claim()
        #expect(claimed.map(\.event.id) == [event])
        try await bench.accept(claimed[0])
        try await bench.queue(1)
        #expect(try await bench.claim().isEmpty)
        await bench.stop()
    }

    @Test("where nothing is new, nothing is written")
    func idle() async throws {
        let bench = try await EventDeliveryBench()
        try await bench.write(nil)
        try await bench.queue(1)
        for delivery in try await bench.claim() { try await bench.accept(delivery) }
        func version() async throws -> String? {
            try await bench.pool.query("SELECT xmin::text || '/' || xmax::text AS version FROM delivery_cursor").first?
                .decode(String.self)
        }
        let before = try await version()
        for _ in 0..<5 {
            #expect(try await bench.store.queueDeliveries(limit: 10) == 0)
            #expect(try await bench.claim().isEmpty)
        }
        #expect(try await version() == before)
        #expect(try await bench.pool.query("SELECT 1 AS one FROM delivery_lanes").isEmpty)
        await bench.stop()
    }
}
