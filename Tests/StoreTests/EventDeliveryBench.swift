import Basics
import Foundation
import Lockstep
import Postgres
import Store
import TestKit
import Testing

/// Books in a database of their own, with a clock that only the test moves.
final class EventDeliveryBench: Sendable {
    let pool: PostgresPool
    let store: PaymentStore
    private let hand = HandClock()

    static let lease: Duration = .seconds(30)

    /// - Parameter begins: whether events are queued from now on.
    init(begins: Bool = true) async throws {
        let url = try await PostgresCluster.shared().makeDatabase()
        var configuration = PostgresConfiguration(connectionString: url)
        configuration.maximumConnections = 12
        configuration.acquireTimeout = .seconds(20)
        pool = PostgresPool(configuration)
        _ = try await Migrator(pool: pool).migrate()
        store = PaymentStore(pool: pool, clock: hand.clock, identifiers: .system())
        if begins { try await store.beginDeliveries() }
    }

    func stop() async { await pool.shutdown() }

    func wait(_ duration: Duration) { hand.move(by: duration) }

    /// Writes an event as the books do, in a transaction of its own or in one that runs.
    @discardableResult
    func write(_ checkout: UUID?, on connection: PostgresConnection? = nil) async throws -> EventID {
        let id = UUID()
        let insert: PostgresQuery = """
            INSERT INTO events (id, type, scope, checkout_id, data, time)
            VALUES (\(id), 'checkout.paid', 'checkouts', \(checkout), '{}', now())
            """
        if let connection {
            _ = try await connection.query(insert)
        } else {
            _ = try await pool.query(insert)
        }
        return EventID(id)
    }

    /// Queues until the cursor has passed so many; transactions of other tests may hold the feed back for a moment.
    func queue(_ count: Int) async throws {
        var passed = 0
        let isDone = try await waitUntil {
            passed += try await store.queueDeliveries(limit: 100)
            return passed >= count
        }
        #expect(isDone && passed == count)
    }

    /// Returns when every event is older than whatever still runs, in other tests' databases too.
    func settle() async throws {
        let isSettled = try await waitUntil {
            try await pool.query(
                "SELECT count(*) AS n FROM events WHERE transaction_id >= pg_snapshot_xmin(pg_current_snapshot())"
            ).first?.decode(Int64.self) == 0
        }
        #expect(isSettled)
    }

    func claim(_ limit: Int = 100) async throws -> [ClaimedDelivery] {
        try await store.claimDeliveries(limit: limit, lease: Self.lease)
    }

    @discardableResult
    func accept(_ delivery: ClaimedDelivery) async throws -> Bool {
        try await store.finishDelivery(delivery, .accepted(status: 200), .delivered)
    }

    @discardableResult
    func refuse(_ delivery: ClaimedDelivery, _ verdict: DeliveryVerdict) async throws -> Bool {
        try await store.finishDelivery(delivery, .refused(status: 500, retryAfter: nil), verdict)
    }

    /// The events of the feed, in its order.
    func feed() async throws -> [EventID] {
        try await pool.query("SELECT id FROM events ORDER BY transaction_id, number")
            .map { EventID(try $0.decode(UUID.self)) }
    }
}
