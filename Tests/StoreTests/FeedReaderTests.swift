import Foundation
import Lockstep
import Postgres
import Store
import Synchronization
import TestKit
import Testing

/// How many events are written is `LOCKSTEP_TEST_FEED_EVENTS` (20000).
@Suite("A reader of the feed sees each event once, whoever writes how")
struct FeedReaderTests {
    private static let events =
        ProcessInfo.processInfo.environment["LOCKSTEP_TEST_FEED_EVENTS"].flatMap { Int($0) } ?? 20_000
    private static let writers = 16

    /// What writers and readers know of each other.
    private final class Board: Sendable {
        private let state = Mutex((written: 0, isOver: false))
        /// Takes the next few events to write; nil when all are taken.
        func take(_ count: Int) -> Int? {
            state.withLock { state in
                let count = min(count, FeedReaderTests.events - state.written)
                guard count > 0 else { return nil }
                state.written += count
                return count
            }
        }
        func end() { state.withLock { $0.isOver = true } }
        var isOver: Bool { state.withLock { $0.isOver } }
    }

    @Test("M11: sixteen that pause before they commit, two that read meanwhile: nothing missed, nothing twice")
    func manyWriters() async throws {
        let bench = try await BooksBench()
        let board = Board()
        let began = ContinuousClock.now
        let pages = try await withThrowingTaskGroup(of: [EventID].self, returning: [[EventID]].self) { group in
            group.addTask {
                try await withThrowingTaskGroup { writers in
                    for _ in 0..<Self.writers { writers.addTask { try await write(bench, board) } }
                    try await writers.waitForAll()
                }
                board.end()
                return []
            }
            group.addTask { try await read(bench, board) { 500 } }
            group.addTask { try await read(bench, board) { .random(in: 7...300) } }
            return try await group.reduce(into: []) { if !$1.isEmpty { $0.append($1) } }
        }
        let rate = Double(Self.events) / ((ContinuousClock.now - began) / .seconds(1))
        print("feed: \(Self.events) events by \(Self.writers) writers, \(Int(rate)) a second, read by two meanwhile")
        let stored = try await bench.value("SELECT count(*) FROM events", as: Int.self)
        #expect(stored == Self.events && pages.count == 2)
        for seen in pages {
            #expect(seen.count == stored, "missed or twice")
            #expect(Set(seen).count == seen.count, "twice")
        }
        #expect(pages.first == pages.last, "both saw them in one order")
        await bench.stop()
    }

    /// One transaction after the other, some of them with their number long before their events, all with a pause.
    private func write(_ bench: BooksBench, _ board: Board) async throws {
        while let count = board.take(.random(in: 1...8)) {
            try await bench.pool.withTransaction { connection in
                let pause = Double.random(in: 0...1) < 0.02 ? Int.random(in: 20...60) : Int.random(in: 0...3)
                let sleep: PostgresQuery = "SELECT pg_sleep(\(pause) / 1000.0)::text AS slept"
                if Bool.random() { _ = try await connection.query("SELECT pg_current_xact_id()::text AS number") }
                if Bool.random() { _ = try await connection.query(sleep) }
                _ = try await connection.query(
                    """
                    INSERT INTO events (id, type, scope, data, time)
                    SELECT id, 'checkout.paid', 'checkouts', '{}', now()
                    FROM unnest(\((0..<count).map { _ in UUID() })) AS new(id)
                    """)
                _ = try await connection.query(sleep)
            }
        }
    }

    /// - Parameter limit: how many events are asked for, each time.
    private func read(
        _ bench: BooksBench, _ board: Board, _ limit: @Sendable () -> Int
    ) async throws -> [EventID] {
        var seen: [EventID] = []
        var cursor = FeedCursor.start
        while true {
            let page = try await bench.store.readEvents(after: cursor, scopes: [.checkouts], limit: limit())
            seen += page.map(\.id)
            if let last = page.last { cursor = last.cursor }
            guard page.isEmpty else { continue }
            let isDone = { board.isOver && seen.count >= Self.events }
            // Transactions of other databases may hold the end of the feed back for a while.
            let goesOn = try await waitUntil { if isDone() { true } else { try await hasMore(bench, cursor) } }
            if !goesOn || isDone() { return seen }
        }
    }

    private func hasMore(_ bench: BooksBench, _ cursor: FeedCursor) async throws -> Bool {
        try await !bench.store.readEvents(after: cursor, scopes: [.checkouts], limit: 1).isEmpty
    }
}
