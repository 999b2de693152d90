import Foundation
import Postgres
import Service
import Store

/// `lockstep migrate`: brings the database to this version.
struct MigrateCommand: Command {
    static let name = "migrate"
    static let summary = "brings the database to this version (--check: only tells)"
    static let help = """
        usage: lockstep migrate [--check] [--json]

        Safe to run at once from many machines: one does the work, the others wait and find it done.

          --check  changes nothing; exit 1 when the database is behind
        """
    private let onlyChecks: Bool
    private let asJSON: Bool

    init(_ arguments: inout Arguments) throws {
        onlyChecks = arguments.flag("--check")
        asJSON = arguments.flag("--json")
    }

    func run() async throws -> ExitCode {
        let settings = try Settings(environment: ProcessInfo.processInfo.environment, for: .database)
        let pool = PostgresPool(settings.postgres)
        let migrator = Migrator(pool: pool)
        if onlyChecks {
            let status = try await migrator.status()
            await pool.shutdown()
            return report(status)
        }
        let status = try await migrator.status()
        if case .ahead = status {
            await pool.shutdown()
            return report(status)
        }
        let applied = try await migrator.migrate()
        await pool.shutdown()
        if asJSON {
            print("{\"applied\":[\(applied.map(String.init).joined(separator: ","))],\"version\":\(Migrator.latest)}")
        } else if applied.isEmpty {
            print("nothing to do: the database is at version \(Migrator.latest)")
        } else {
            print(
                "the database is at version \(Migrator.latest); applied \(applied.map(String.init).joined(separator: ", "))"
            )
        }
        return .done
    }

    private func report(_ status: Migrator.Status) -> ExitCode {
        let (word, database, program) =
            switch status {
            case .current: ("current", Migrator.latest, Migrator.latest)
            case .behind(let database, let program): ("behind", database, program)
            case .ahead(let database, let program): ("ahead", database, program)
            }
        if asJSON {
            print("{\"database\":\(database),\"program\":\(program),\"status\":\"\(word)\"}")
        } else {
            print("the database is at version \(database), this program needs \(program): \(word)")
        }
        return status == .current ? .done : .needsPerson
    }
}
