import Postgres
import Testing

/// A database that one simulation after the other uses, each time empty.
struct SimulatedBooks: Sendable {
    let url: String
    let pool: PostgresPool
    private let tables: String

    init() async throws {
        url = try await MigratedDatabase.make()
        var configuration = PostgresConfiguration(connectionString: url)
        configuration.maximumConnections = 2
        pool = PostgresPool(configuration)
        tables =
            try await pool.query(
                """
                SELECT string_agg(quote_ident(tablename), ', ') AS tables FROM pg_tables
                WHERE schemaname = current_schema AND tablename <> 'schema_migrations'
                """
            ).first?.decode("tables", as: String.self) ?? ""
    }

    func clear() async throws { _ = try await pool.query("TRUNCATE \(unescaped: tables) RESTART IDENTITY") }

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
