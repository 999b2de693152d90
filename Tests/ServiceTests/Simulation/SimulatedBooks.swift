import Postgres
import Synchronization
import TestKit

/// A database that one simulation after the other uses, each time empty.
final class SimulatedBooks: Sendable {
    let url: String
    let pool: PostgresPool
    private let tables: [String]
    private let cleared = Mutex(0)

    init() async throws {
        url = try await MigratedDatabase.make()
        var configuration = PostgresConfiguration(connectionString: url)
        configuration.maximumConnections = 2
        pool = PostgresPool(configuration)
        // Processes live for seconds here, and their connections with them: planning each statement anew for its values
        // would take more time than the statements do.
        _ = try await pool.query(
            """
            DO $$ BEGIN
                EXECUTE format('ALTER DATABASE %I SET plan_cache_mode = force_generic_plan', current_database());
            END $$
            """)
        tables = try await pool.query(
            """
            SELECT tablename::text AS name FROM pg_tables
            WHERE schemaname = current_schema AND tablename <> 'schema_migrations'
            """
        ).map { try $0.decode("name", as: String.self) }
    }

    /// By `DELETE`: `TRUNCATE` makes new files for every table and index, which takes longer than a short simulation.
    func clear() async throws {
        let tables = tables
        try await pool.withTransaction { connection in
            // Without triggers, and so in any order.
            _ = try await connection.query("SET LOCAL session_replication_role = replica")
            _ = try await connection.pipeline(tables.map { "DELETE FROM \(unescaped: $0)" })
        }
        if cleared.withLock({ count in
            count += 1
            return count.isMultiple(of: 50)
        }) {
            _ = try await pool.query("VACUUM")
        }
    }

    /// How long until something in the books is due, without renewals; nil: nothing ever is.
    func nextDue(now: PostgresTimestamp) async throws -> Duration? {
        try await pool.query(
            """
            SELECT (extract(epoch FROM min(due) - \(now)::timestamptz) * 1000000)::bigint AS wait FROM (
                SELECT min(greatest(due_at, lease_until)) AS due FROM operations WHERE due_at IS NOT NULL
                UNION ALL SELECT min(due_at) FROM checkouts
                UNION ALL SELECT min(check_at) FROM executions
                UNION ALL SELECT min(settle_at) FROM charges
                UNION ALL SELECT min(greatest(next_attempt_at, lease_until)) FROM charges
                    WHERE subscription_id IS NULL AND next_attempt_at IS NOT NULL) AS everything
            """
        ).first?.decode("wait", as: Int64?.self).map { .microseconds($0) }
    }
}
