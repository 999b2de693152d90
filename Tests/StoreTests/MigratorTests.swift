import Postgres
import Store
import TestKit
import Testing

@Suite("The database is brought to this version, once")
struct MigratorTests {
    @Test("four migrations at once do each step once, and another finds nothing to do")
    func atOnce() async throws {
        let url = try await PostgresCluster.shared().makeDatabase()
        let pools = (0..<4).map { _ in PostgresPool(PostgresConfiguration(connectionString: url)) }
        #expect(try await Migrator(pool: pools[0]).status() == .behind(database: 0, program: Migrator.latest))
        let applied = try await withThrowingTaskGroup(of: [Int].self) { group in
            for pool in pools { group.addTask { try await Migrator(pool: pool).migrate() } }
            return try await group.reduce(into: []) { $0 += $1 }
        }
        #expect(applied.sorted() == Migrator.migrations.map(\.version))
        #expect(try await Migrator(pool: pools[0]).migrate() == [])
        #expect(try await Migrator(pool: pools[0]).status() == .current)
        for pool in pools { await pool.shutdown() }
    }

    @Test("a database that a newer program has changed is recognised")
    func ahead() async throws {
        let url = try await PostgresCluster.shared().makeDatabase()
        let pool = PostgresPool(PostgresConfiguration(connectionString: url))
        _ = try await Migrator(pool: pool).migrate()
        let newer = Migrator.latest + 1
        _ = try await pool.query(
            "INSERT INTO schema_migrations (version, name, applied_at) VALUES (\(newer), 'newer', now())")
        #expect(try await Migrator(pool: pool).status() == .ahead(database: newer, program: Migrator.latest))
        #expect(try await Migrator(pool: pool).migrate() == [])
        await pool.shutdown()
    }
}
