/// Where the database is, and the limits of a pool.
public struct PostgresConfiguration: Sendable {
    /// A libpq connection string or URL. Several hosts may be given; they are tried in turn, and unless the string says
    /// otherwise only one that takes writes is accepted (`target_session_attrs=read-write`).
    public var connectionString: String
    /// 1 or more.
    public var maximumConnections = 10
    /// Tasks that may wait for a connection; one more is refused at once with `poolExhausted`.
    public var maximumWaiters = 512
    /// The longest wait for a connection, within the caller's own deadline.
    public var acquireTimeout: Duration = .seconds(3)
    /// The longest that opening a connection to one host may take, name lookup and TLS included.
    public var connectTimeout: Duration = .seconds(5)
    /// The longest that one statement may run. The server enforces it (`statement_timeout`), and half a second later
    /// this side does, by closing the connection.
    public var statementTimeout: Duration = .seconds(15)
    /// How long a statement may wait for a lock that somebody else holds, before the server ends it with 55P03; nil: as
    /// long as it may run.
    public var lockTimeout: Duration?
    /// How long a transaction may sit without a statement before the server ends its session.
    public var idleInTransactionTimeout: Duration = .seconds(60)
    /// Named prepared statements, one per SQL text and connection. False behind PgBouncer in transaction mode; then
    /// `statement_timeout` is set inside each transaction only, since PgBouncer refuses start-up options.
    public var usesPreparedStatements = true
    /// A prepared statement keeps the plan that was right when its tables were small, a scan of all rows, until the
    /// server has analyzed them again; meanwhile they may have grown a hundredfold. True tells the planner to scan a
    /// table only where no index serves (`enable_seqscan`). For sessions whose statements all have an index.
    public var avoidsSequentialScans = false
    /// Statements kept per connection; the least recently used one makes room.
    public var maximumPreparedStatements = 256
    /// A connection that was idle for longer is asked for a sign of life before it is used.
    public var idleCheckInterval: Duration = .seconds(30)
    public var applicationName = "lockstep"

    public init(connectionString: String) { self.connectionString = connectionString }

    /// Whether libpq can read a connection string; what it names may still not be there.
    public static func isReadable(_ connectionString: String) -> Bool {
        (try? ConnectionParameters(PostgresConfiguration(connectionString: connectionString))) != nil
    }
}

/// Prints no connection string, which may have a password in it.
extension PostgresConfiguration: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    public var description: String { "PostgreSQL, at most \(maximumConnections) connections as \(applicationName)" }
    public var debugDescription: String { description }
    public var customMirror: Mirror { Mirror(self, children: []) }
}
