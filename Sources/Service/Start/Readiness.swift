import Foundation
import Postgres
import Store

/// Whether the process can serve: it isn't stopping, and the database answers and has this version's tables.
struct Readiness: Sendable {
    let pool: PostgresPool
    let bells: Bells

    func answer() async throws -> Answer {
        guard !bells.isClosed else { throw Problem(.unavailable, "the process is stopping") }
        let pool = pool
        do {
            // A probe that hangs tells less than one that says no.
            let status = try await withBudget(.seconds(1)) { try await Migrator(pool: pool).status() }
            guard status == .current else { throw Problem(.unavailable, "the database has another version's tables") }
            return .ok(["status": "ok"])
        } catch let problem as Problem {
            throw problem
        } catch {
            throw Problem(.unavailable, "the database doesn't answer")
        }
    }
}
