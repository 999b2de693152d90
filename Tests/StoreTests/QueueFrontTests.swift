import Lockstep
import Postgres
import Testing

@testable import Store

@Suite("The search for what waits begins where something may wait")
struct QueueFrontTests {
    private static let batch = 500

    /// One connection, so that what the server has counted is all there is to count.
    private static func single(_ bench: BooksBench) -> PaymentStore {
        PaymentStore(
            pool: BooksBench.pool(bench.connectionString) { $0.maximumConnections = 1 }, clock: bench.hand.clock,
            identifiers: .system())
    }

    private static func fill(_ bench: BooksBench, _ numbers: Range<Int>) async throws {
        for first in stride(from: numbers.lowerBound, to: numbers.upperBound, by: 2000) {
            let some = first..<min(first + 2000, numbers.upperBound)
            _ = try await bench.store.insertNotifications(some.map { bench.incoming("number \($0)") })
        }
    }

    private static func apply(_ store: PaymentStore, limit: Int = batch) async throws -> Int {
        try await store.applyNotifications(limit: limit) { _, _ in .ignored(event: nil) }.total
    }

    /// How many entries of its index the search has looked at, gone ones included.
    private static func looked(_ store: PaymentStore) async throws -> Int {
        _ = try await store.pool.query("SELECT pg_stat_force_next_flush()")
        let row = try #require(
            try await store.pool.query(
                "SELECT idx_tup_read FROM pg_stat_user_indexes WHERE indexrelname = 'waiting_notifications_pkey'"
            ).first)
        return try row.decode(Int.self)
    }

    @Test("Q2: while somebody's snapshot keeps all that has gone, a search passes over no more of it than at first")
    func heldSnapshot() async throws {
        let bench = try await BooksBench()
        let store = Self.single(bench)
        let count = 40_000
        try await bench.pool.withTransaction(isolation: .repeatableRead) { holder in
            _ = try await holder.query("SELECT count(*) FROM waiting_notifications")
            try await Self.fill(bench, 0..<count)
            let before = try await Self.looked(store)
            var applied = 0
            while applied < count {
                let some = try await Self.apply(store)
                try #require(some == Self.batch)
                applied += some
                // The session isn't idle, or the server would end it.
                _ = try await holder.query("SELECT 1 AS one")
            }
            let searches = count / Self.batch
            // Without the front it is the sum of all that went before: 1.6 million.
            let looked = try await Self.looked(store) - before
            #expect(looked <= searches * (Int(QueueFront.margin) + 3 * Self.batch))
            #expect(looked >= count)
        }
        #expect(try await bench.value("SELECT count(*) FROM waiting_notifications", as: Int.self) == 0)
        await store.pool.shutdown()
        await bench.stop()
    }

    @Test("what comes back behind the front is found: at once when nothing else waits, and soon when much does")
    func behindTheFront() async throws {
        let bench = try await BooksBench()
        let store = bench.store
        try await Self.fill(bench, 0..<4000)
        while try await Self.apply(store) > 0 {}
        func replay() async throws {
            #expect(try await store.replayNotification(.number(1)) == .replayed(1))
        }
        try await replay()
        // It is out of the front's sight, and there was nothing the time before.
        #expect(try await Self.apply(store) == 1)
        // Somebody has just been there, so once there may be nothing.
        try await Self.fill(bench, 4000..<4001)
        #expect(try await Self.apply(store) == 1)
        try await replay()
        let found = [try await Self.apply(store), try await Self.apply(store)]
        #expect(found == [0, 1])
        // And while there is always something at the front.
        try await Self.fill(bench, 5000..<5000 + QueueFront.wholeEvery + 1)
        #expect(try await Self.apply(store, limit: 1) == 1)
        try await replay()
        for _ in 0..<QueueFront.wholeEvery { _ = try await Self.apply(store, limit: 1) }
        let state = try await bench.value("SELECT state FROM notification_states WHERE id = 1", as: String.self)
        #expect(state == "ignored")
        await bench.stop()
    }

    @Test("a front that was moved too far, or back, loses nothing")
    func front() {
        let front = QueueFront()
        #expect(front.next() == 0)
        #expect(!front.note(from: 0, first: 10_000))
        #expect(front.next() == 10_000 - QueueFront.margin)
        // Forwards only, where only the front was looked at.
        #expect(!front.note(from: front.next(), first: 9_000))
        #expect(front.next() == 10_000 - QueueFront.margin)
        // Twice nothing: the whole.
        #expect(!front.note(from: front.next(), first: nil))
        #expect(front.note(from: front.next(), first: nil))
        // What the whole finds is where the front is.
        #expect(!front.note(from: 0, first: 5))
        #expect(front.next() == 0)
        #expect(!front.note(from: 0, first: nil) && !front.note(from: 0, first: nil), "the whole was searched")
    }
}
