import Crypto
import Foundation
import Postgres

/// Brings the database to the version that this program needs. Migrations only ever go forwards.
public struct Migrator: Sendable {
    /// One step, with the query that proves that it worked.
    public struct Migration: Sendable {
        public let version: Int
        public let name: String
        let script: String
        let check: String
    }

    public static let migrations: [Migration] = [
        Migration(
            version: 1, name: "core", script: text(PackageResources._001_core_sql),
            check: text(PackageResources._001_core_check_sql)),
        Migration(
            version: 2, name: "event_delivery", script: text(PackageResources._002_event_delivery_sql),
            check: text(PackageResources._002_event_delivery_check_sql)),
        Migration(
            version: 3, name: "retention", script: text(PackageResources._003_retention_sql),
            check: text(PackageResources._003_retention_check_sql)),
        Migration(
            version: 4, name: "charges", script: text(PackageResources._004_charges_sql),
            check: text(PackageResources._004_charges_check_sql)),
        Migration(
            version: 5, name: "subscriptions", script: text(PackageResources._005_subscriptions_sql),
            check: text(PackageResources._005_subscriptions_check_sql)),
        Migration(
            version: 6, name: "discrepancies", script: text(PackageResources._006_discrepancies_sql),
            check: text(PackageResources._006_discrepancies_check_sql)),
        Migration(
            version: 7, name: "disputes", script: text(PackageResources._007_disputes_sql),
            check: text(PackageResources._007_disputes_check_sql)),
        Migration(
            version: 8, name: "notification_outcomes", script: text(PackageResources._008_notification_outcomes_sql),
            check: text(PackageResources._008_notification_outcomes_check_sql)),
        Migration(
            version: 9, name: "renewals", script: text(PackageResources._009_renewals_sql),
            check: text(PackageResources._009_renewals_check_sql)),
        Migration(
            version: 10, name: "undated_facts", script: text(PackageResources._010_undated_facts_sql),
            check: text(PackageResources._010_undated_facts_check_sql)),
        Migration(
            version: 11, name: "expiring_instruments", script: text(PackageResources._011_expiring_instruments_sql),
            check: text(PackageResources._011_expiring_instruments_check_sql)),
        Migration(
            version: 12, name: "bounds_currency", script: text(PackageResources._012_bounds_currency_sql),
            check: text(PackageResources._012_bounds_currency_check_sql)),
    ]

    public enum Status: Sendable, Equatable {
        case current
        /// `lockstep migrate` has something to do.
        case behind(database: Int, program: Int)
        /// A newer program has been here; this one must not serve.
        case ahead(database: Int, program: Int)
    }

    public struct Failure: Error, Sendable {
        public let version: Int
        public let detail: String
    }

    private let pool: PostgresPool
    public init(pool: PostgresPool) { self.pool = pool }

    public static var latest: Int { migrations.last?.version ?? 0 }

    public func status() async throws -> Status {
        let version = try await pool.withConnection { try await Self.version($0) }
        if version == Self.latest { return .current }
        return version < Self.latest
            ? .behind(database: version, program: Self.latest) : .ahead(database: version, program: Self.latest)
    }

    /// Runs what is missing, each step in its own transaction. Safe to run at once from many machines: a lock makes
    /// the others wait, and then find nothing to do.
    ///
    /// - Returns: the versions that were applied.
    public func migrate() async throws -> [Int] {
        var applied: [Int] = []
        for migration in Self.migrations {
            let ran = try await pool.withTransaction { connection in
                // Any number will do, as long as every program uses the same: "lockstep" in ASCII, cut to 31 bits.
                _ = try await connection.query("SELECT pg_advisory_xact_lock(1819239275)")
                guard try await Self.version(connection) < migration.version else { return false }
                try await connection.executeScript(migration.script)
                let isRight = try await connection.query("\(unescaped: migration.check)").first
                guard try isRight?.decode("holds", as: Bool.self) == true else {
                    throw Failure(version: migration.version, detail: "its check did not hold; nothing was changed")
                }
                _ = try await connection.query(
                    """
                    INSERT INTO schema_migrations (version, name, applied_at)
                    VALUES (\(migration.version), \(migration.name), now())
                    """)
                return true
            }
            if ran { applied.append(migration.version) }
        }
        return applied
    }

    private static func version(_ connection: PostgresConnection) async throws -> Int {
        // Not to_regclass: it may answer from this session's cache, which doesn't know what another one has just made.
        let exists = try await connection.query(
            """
            SELECT EXISTS (SELECT FROM pg_class WHERE relname = 'schema_migrations'
                AND relnamespace = current_schema()::regnamespace) AS there
            """
        ).first
        guard try exists?.decode("there", as: Bool.self) == true else { return 0 }
        let row = try await connection.query("SELECT coalesce(max(version), 0) AS version FROM schema_migrations").first
        return try row?.decode("version", as: Int.self) ?? 0
    }

    private static func text(_ bytes: [UInt8]) -> String { String(decoding: bytes, as: UTF8.self) }
}
