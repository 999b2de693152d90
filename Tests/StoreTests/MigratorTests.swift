import Foundation
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

    /// A database as the program of an earlier version left it.
    private func database(of version: Int) async throws -> PostgresPool {
        let url = try await PostgresCluster.shared().makeDatabase()
        let pool = PostgresPool(PostgresConfiguration(connectionString: url))
        let scripts = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent().appending(path: "sql")
        for migration in Migrator.migrations where migration.version <= version {
            let name = String(format: "%04d_%@.sql", migration.version, migration.name)
            let script = try String(contentsOf: scripts.appending(path: name), encoding: .utf8)
            try await pool.withConnection { try await $0.executeScript(script) }
            _ = try await pool.query(
                """
                INSERT INTO schema_migrations (version, name, applied_at)
                VALUES (\(migration.version), \(migration.name), now())
                """)
        }
        return pool
    }

    @Test("what was stored by version 7 is there afterwards: what waits still waits, and what was done stays done")
    func notificationOutcomes() async throws {
        let pool = try await database(of: 7)
        let execution = UUID()
        _ = try await pool.query(
            """
            INSERT INTO notifications (body_hash, endpoint, body, received_at, state, event, execution_id, attempts,
                error, applied_at)
            SELECT sha256(state::bytea), 'shop', CASE WHEN state = 'bodiless' THEN NULL ELSE state::bytea END,
                timestamptz '2026-11-30 08:00Z' + place * interval '1 minute',
                CASE WHEN state = 'bodiless' THEN 'applied' ELSE state END,
                CASE WHEN state NOT IN ('received','dead') THEN 'event of ' || state END,
                CASE WHEN state = 'parked' THEN \(execution) END, place, 'error of ' || state,
                CASE WHEN state NOT IN ('received','dead') THEN timestamptz '2026-11-30 09:00Z' END
            FROM unnest(ARRAY['received','applied','parked','ignored','dead','bodiless'])
                WITH ORDINALITY AS old(state, place)
            """)
        let before = try await pool.query("SELECT to_jsonb(notifications)::text AS row FROM notifications ORDER BY id")
            .map { try $0.decode(String.self) }
        #expect(try await Migrator(pool: pool).migrate().first == 8)
        let after = try await pool.query(
            """
            SELECT to_jsonb(old)::text AS row FROM (SELECT id, body, event,
                CASE WHEN state = 'received' THEN 'error of received' ELSE error END AS error, state, attempts,
                endpoint, body_hash, applied_at, received_at, execution_id
                FROM notifications JOIN notification_states USING (id)) AS old ORDER BY id
            """
        ).map { try $0.decode(String.self) }
        #expect(before.count == 6)
        #expect(after == before)
        let waiting = try await pool.query(
            "SELECT attempts FROM waiting_notifications JOIN notifications USING (id, received_at)")
        #expect(try waiting.map { try $0.decode(Int.self) } == [1])
        await pool.shutdown()
    }
}
