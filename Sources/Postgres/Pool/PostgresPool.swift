/// Connections to one database, opened as they are needed and shared by all tasks.
///
/// One thread of its own waits for all of its sockets; no task ever blocks. Everything that waits has a limit.
public final class PostgresPool: Sendable {
    /// What the pool has, and what it has counted since it was made.
    public struct Statistics: Hashable, Sendable {
        /// Connections that are open, whatever they do; `idle` and `inUse` are among them.
        public var open = 0
        public var opening = 0
        public var idle = 0
        public var inUse = 0
        /// Tasks that wait for a connection.
        public var waiting = 0
        /// How often a connection was handed out.
        public var acquired = 0
        /// Tasks whose deadline came before a connection did.
        public var timedOut = 0
        /// Tasks that were refused because too many waited.
        public var refused = 0
        public var connectFailures = 0
        /// Transactions that were begun again after 40001 or 40P01.
        public var retriedTransactions = 0
        public var unknownCommits = 0
    }

    let core: PoolCore

    /// Opens nothing yet. A connection string that libpq can't read makes every use throw `connectionFailed`.
    public init(_ configuration: PostgresConfiguration) {
        core = PoolCore(configuration)
        do {
            core.start(try ConnectionParameters(configuration))
            unreadable = nil
        } catch {
            unreadable = error as? PostgresError ?? PostgresError(.connectionFailed, "unreadable connection string")
        }
    }

    /// What libpq said about the connection string, when it couldn't read it.
    private let unreadable: PostgresError?

    deinit { core.closeAll() }

    public var statistics: Statistics { core.statistics }

    /// Lends a connection to `body`, and takes it back when that ends, however it ends.
    ///
    /// A transaction that `body` left open is rolled back. The connection is of no use after `body`.
    /// - Parameter deadline: the end of all waiting, for the connection and for each answer.
    /// - Throws: ``PostgresError``, `CancellationError`, or what `body` throws.
    public nonisolated(nonsending) func withConnection<R: Sendable>(
        deadline: ContinuousClock.Instant? = nil, _ body: (PostgresConnection) async throws -> R
    ) async throws -> R {
        if let unreadable { throw unreadable }
        let id = try await core.acquire(deadline: deadline)
        let connection = PostgresConnection(id: id, core: core, deadline: deadline)
        defer { core.release(id, connection.end()) }
        return try await body(connection)
    }

    /// Runs one statement on whatever connection is free.
    /// - Throws: ``PostgresError`` or `CancellationError`.
    public nonisolated(nonsending) func query(
        _ query: PostgresQuery, deadline: ContinuousClock.Instant? = nil
    ) async throws -> PostgresRows {
        try await withConnection(deadline: deadline) { try await $0.query(query) }
    }

    /// Refuses new work, lets running work end, and returns when every connection is closed.
    /// - Parameter limit: after it, what still runs is cut off.
    public func shutdown(limit: Duration = .seconds(30)) async {
        core.shutDown()
        if unreadable != nil { return core.closeAll() }
        let guillotine = Task { [core] in
            try await Task.sleep(for: limit)
            core.closeAll()
        }
        await core.waitUntilDrained()
        guillotine.cancel()
    }
}
