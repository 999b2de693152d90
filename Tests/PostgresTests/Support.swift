import Foundation
import Postgres
import Synchronization
import TestKit
import Testing

/// A pool on a fresh schema, or on a fresh database (which takes longer to make), shut down afterwards.
func withPool<R: Sendable>(
    maximumConnections: Int = 4, ownDatabase: Bool = false, configure: (inout PostgresConfiguration) -> Void = { _ in },
    _ body: (PostgresPool) async throws -> R
) async throws -> R {
    let cluster = try await PostgresCluster.shared()
    let connectionString =
        ownDatabase ? try await cluster.makeDatabase() : try await Schemas.make()
    var configuration = PostgresConfiguration(connectionString: connectionString)
    configuration.maximumConnections = maximumConnections
    configuration.acquireTimeout = .seconds(30)
    configure(&configuration)
    return try await withPool(configuration, body)
}

/// One database for all tests that need no more than a place of their own for tables.
private enum Schemas {
    private static let database = Task { try await PostgresCluster.shared().makeDatabase() }
    private static let count = Shared(0)

    static func make() async throws -> String {
        let name = count.change { count in
            count += 1
            return "place_\(count)"
        }
        let database = try await database.value
        let admin = PostgresPool(PostgresConfiguration(connectionString: database))
        _ = try await admin.query("CREATE SCHEMA \(unescaped: name)")
        await admin.shutdown()
        return database + " options='-c search_path=\(name)'"
    }
}

func withPool<R: Sendable>(
    _ configuration: PostgresConfiguration, _ body: (PostgresPool) async throws -> R
) async throws -> R {
    let pool = PostgresPool(configuration)
    do {
        let value = try await body(pool)
        await pool.shutdown(limit: .seconds(15))
        return value
    } catch {
        await pool.shutdown(limit: .seconds(5))
        throw error
    }
}

/// Waits until the condition holds, and fails the test when it doesn't in time.
func eventually(
    within limit: Duration = .seconds(30), _ comment: Comment? = nil, sourceLocation: SourceLocation = #_sourceLocation,
    _ condition: () async throws -> Bool
) async throws {
    if try await waitUntil(limit, condition) { return }
    Issue.record(comment ?? "not in time", sourceLocation: sourceLocation)
    throw CancellationError()
}

/// The error's code, or nil when nothing was thrown.
func code(of body: () async throws -> Void) async -> PostgresError.Code? {
    await error(of: body)?.code
}

func error(of body: () async throws -> Void) async -> PostgresError? {
    do {
        try await body()
        return nil
    } catch let error as PostgresError {
        return error
    } catch {
        Issue.record(error)
        return nil
    }
}

extension PostgresPool {
    /// The only row's only column.
    func value<T: PostgresDecodable>(_ query: PostgresQuery, as type: T.Type = T.self) async throws -> T {
        let rows = try await self.query(query)
        return try #require(rows.first).decode(type)
    }
}

/// A value that several tasks of a test change.
final class Shared<Value: Sendable>: Sendable {
    private let mutex: Mutex<Value>
    init(_ value: Value) { mutex = Mutex(value) }
    var value: Value { mutex.withLock { $0 } }
    func change<R: Sendable>(_ body: (inout Value) -> R) -> R { mutex.withLock { body(&$0) } }
}
