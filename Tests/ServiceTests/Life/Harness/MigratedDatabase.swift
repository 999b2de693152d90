import Foundation
import Postgres
import Store
import TestKit
import Testing

/// Databases with this version's tables. The shared cluster's are copies of one that was migrated once.
enum MigratedDatabase {
    private static let template = Task {
        let url = try await PostgresCluster.shared().makeDatabase()
        try await migrate(url)
        return try #require(url.split(separator: "=").last.map(String.init))
    }

    /// - Returns: the connection string.
    static func make(in cluster: PostgresCluster? = nil) async throws -> String {
        if let cluster {
            let url = try await cluster.makeDatabase()
            try await migrate(url)
            return url
        }
        return try await PostgresCluster.shared().makeDatabase(template: try await template.value)
    }

    private static func migrate(_ url: String) async throws {
        let pool = PostgresPool(PostgresConfiguration(connectionString: url))
        _ = try await Migrator(pool: pool).migrate()
        await pool.shutdown()
    }
}
