import Basics
import Foundation
import Postgres
import Store

/// The database under measurement, filled without the service.
struct Books {
    private let pool: PostgresPool
    private let store: PaymentStore

    init(_ database: String) {
        var configuration = PostgresConfiguration(connectionString: database)
        configuration.statementTimeout = .seconds(600)
        pool = PostgresPool(configuration)
        store = PaymentStore(pool: pool, clock: .system, identifiers: .system())
    }

    func close() async { await pool.shutdown() }

    private static let identifier = "('00000001-0000-4000-8000-' || lpad(to_hex(n), 12, '0'))::uuid"

    /// Checkouts with one open execution each, nothing about which is due.
    func makeExecutions(_ numbers: Range<Int>) async throws {
        for range in numbers.chunks(of: 50_000) {
            _ = try await pool.query(
                """
                INSERT INTO checkouts (id, merchant_reference, holder_reference, workflow_code, status, amount_minor,
                    currency, amount_version, amount_state, client_may_update, created_by, creation_key,
                    current_execution_id, created_at, expires_at, due_at)
                SELECT \(unescaped: Self.identifier), 'bench-' || n, 'holder-' || n % 1000, 'payment-acceptance', 'open',
                    4999, 'EUR', 1, 'inStep', false, \(UUID()), 'key-' || n, \(unescaped: Self.identifier), now(),
                    now() + interval '1 day', now() + interval '1 day'
                FROM generate_series(\(Int64(range.lowerBound)), \(Int64(range.upperBound - 1))) AS n
                """)
            _ = try await pool.query(
                """
                INSERT INTO executions (id, checkout_id, ordinal, workflow_code, merchant_reference, state,
                    amount_minor, currency, created_at, check_at, changed_at)
                SELECT \(unescaped: Self.identifier), \(unescaped: Self.identifier), 1, 'payment-acceptance',
                    'bench-' || n, 'created', 4999, 'EUR', now(), now() + interval '1 hour' + n * interval '1 millisecond', now()
                FROM generate_series(\(Int64(range.lowerBound)), \(Int64(range.upperBound - 1))) AS n
                """)
        }
        // So that what comes after such a load isn't measured with it.
        _ = try await pool.query("VACUUM ANALYZE checkouts, executions")
    }

    /// Unapplied notifications, one about each of the executions.
    func storeNotifications(_ numbers: Range<Int>) async throws {
        for range in numbers.chunks(of: 2000) {
            let batch = range.map { number in
                IncomingNotification(
                    endpoint: "", body: Data(NotificationBody.authorized(execution: number, known: true).utf8),
                    receivedAt: .systemNow)
            }
            _ = try await store.insertNotifications(batch)
        }
        _ = try await pool.query("ANALYZE notifications, waiting_notifications")
    }

    func unapplied() async throws -> Int64 {
        try await pool.query("SELECT count(*) AS rows FROM waiting_notifications")
            .first?.decode("rows", as: Int64.self) ?? 0
    }

    func waitUntilApplied() async throws {
        while try await isWaiting() { try await Task.sleep(for: .milliseconds(200)) }
    }

    /// Looked for from the end, where it is found at once while there is any.
    private func isWaiting() async throws -> Bool {
        try await pool.query("SELECT id FROM waiting_notifications ORDER BY id DESC LIMIT 1").first != nil
    }

    func paid() async throws -> Int64 {
        try await pool.query("SELECT count(*) AS rows FROM checkouts WHERE status = 'paid'")
            .first?.decode("rows", as: Int64.self) ?? 0
    }

    /// From the answer's clock to the transaction that applied.
    func lagMilliseconds(after number: Int) async throws -> (half: Int64, most: Int64) {
        let row = try await pool.query(
            """
            SELECT (1000 * percentile_cont(0.5) WITHIN GROUP (ORDER BY extract(epoch FROM applied_at - received_at)))
                ::bigint AS half,
                (1000 * percentile_cont(0.99) WITHIN GROUP (ORDER BY extract(epoch FROM applied_at - received_at)))
                ::bigint AS most
            FROM notification_outcomes JOIN notifications USING (id)
            WHERE id > \(Int64(number)) AND state = 'applied'
            """
        ).first
        return try row.map { try $0.decode((Int64, Int64).self) } ?? (0, 0)
    }

    func makeDue(_ count: Int) async throws {
        _ = try await pool.query(
            """
            UPDATE executions SET check_at = now() - interval '1 minute' WHERE id IN (
                SELECT id FROM executions TABLESAMPLE SYSTEM (5) LIMIT \(count))
            """)
        _ = try await pool.query("ANALYZE executions")
    }

    /// The plan of the search by which healing claims.
    func explainDue(_ count: Int) async throws -> [String] {
        try await pool.query(
            """
            EXPLAIN (ANALYZE, BUFFERS) SELECT id FROM executions WHERE check_at <= now()
            ORDER BY check_at LIMIT \(unescaped: String(count)) FOR UPDATE SKIP LOCKED
            """
        ).map { try $0.decode(String.self) }
    }

    func claimDue(_ count: Int) async throws -> Int { try await store.claimReadings(limit: count).count }
}

extension Range<Int> {
    fileprivate func chunks(of size: Int) -> [Range<Int>] {
        stride(from: lowerBound, to: upperBound, by: size).map { $0..<Swift.min($0 + size, upperBound) }
    }
}
