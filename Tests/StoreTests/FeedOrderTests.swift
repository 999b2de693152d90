import Basics
import Foundation
import Lockstep
import Postgres
import Store
import TestKit
import Testing

/// As text, 100 comes before 99, and 10 before 9.
@Suite("The feed's order is that of numbers, also where transactions' ids get one digit more")
struct FeedOrderTests {
    /// Transactions' ids in the order in which their events must come, each older than anything that runs.
    private static let transactions = [8, 9, 10, 11, 98, 99, 100, 101, 499, 500]

    /// Writes two events for each transaction, the last one first, so that nothing but the transaction orders them.
    private func write(_ bench: BooksBench, _ checkout: UUID?) async throws -> [EventID] {
        var events: [EventID] = []
        for transaction in Self.transactions.reversed() {
            let pair = [UUID(), UUID()]
            for id in pair {
                _ = try await bench.pool.query(
                    """
                    INSERT INTO events (transaction_id, id, type, scope, checkout_id, data, time)
                    VALUES (\(String(transaction))::text::xid8, \(id), 'checkout.paid', 'checkouts', \(checkout), '{}',
                        now())
                    """)
            }
            events = pair.map { EventID($0) } + events
        }
        return events
    }

    @Test("reading, in pages of any size", arguments: [1, 2, 3, 7, 500])
    func reading(_ limit: Int) async throws {
        let bench = try await BooksBench()
        let written = try await write(bench, UUID())
        var seen: [EventID] = []
        var cursor = FeedCursor.start
        while true {
            let page = try await bench.store.readEvents(after: cursor, scopes: [.checkouts], limit: limit)
            guard let last = page.last else { break }
            #expect(FeedCursor(last.cursor.description) == last.cursor)
            cursor = last.cursor
            seen += page.map(\.id)
            try #require(seen.count <= written.count)
        }
        #expect(seen == written)
        await bench.stop()
    }

    @Test("queueing for the shop, and sending what one checkout's are", arguments: [1, 3, 500])
    func delivering(_ limit: Int) async throws {
        let bench = try await BooksBench()
        let written = try await write(bench, UUID())
        _ = try await bench.pool.query("INSERT INTO delivery_cursor (transaction_id, number) VALUES ('0'::xid8, 0)")
        var passed = 0
        while true {
            let count = try await bench.store.queueDeliveries(limit: limit)
            guard count > 0 else { break }
            passed += count
            try #require(passed <= written.count)
        }
        #expect(passed == written.count)
        #expect(try await bench.store.readDeliveries([.pending], limit: 100).map(\.event) == written)
        var sent: [EventID] = []
        while let next = try await bench.store.claimDeliveries(limit: 5, lease: .seconds(30)).first {
            sent.append(next.event.id)
            #expect(try await bench.store.finishDelivery(next, .accepted(status: 200), .delivered))
        }
        #expect(sent == written)
        await bench.stop()
    }

    @Test("what the cursor has passed is retained no longer, what it hasn't is")
    func retaining() async throws {
        let bench = try await BooksBench()
        let written = try await write(bench, UUID())
        // The cursor stands behind the first event of transaction 99; a text would have it stand behind all of 100 too.
        let number = try await bench.value(
            "SELECT min(number) FROM events WHERE transaction_id = '99'::xid8", as: Int64.self)
        _ = try await bench.pool.query(
            "INSERT INTO delivery_cursor (transaction_id, number) VALUES ('99'::xid8, \(number))")
        let future = Timestamp.systemNow + .seconds(86_400)
        let limits = RetentionLimits(notifications: future, personalData: future, events: future)
        #expect(try await bench.store.countOutlived(limits).events == 11)
        #expect(try await bench.store.retain(limits, batch: 2).events == 11)
        let left = try await bench.store.readEvents(after: .start, scopes: [.checkouts], limit: 100).map(\.id)
        #expect(left == Array(written.dropFirst(11)))
        await bench.stop()
    }
}
