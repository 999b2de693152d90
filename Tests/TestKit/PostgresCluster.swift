import Foundation
import Postgres
import Synchronization

/// A throw-away PostgreSQL: a folder under the system's temporary one, a Unix socket in it, and 127.0.0.1 on a free
/// port. It is gone when the process is, however that ends.
///
/// The binaries come from `LOCKSTEP_TEST_POSTGRES_BIN`, else from `PATH`, else from Debian's folders. PostgreSQL refuses
/// to run as root; then it runs as the user `postgres`.
public final class PostgresCluster: Sendable {
    /// How to end the server (`pg_ctl stop -m`): fast ends sessions in order, immediate is a crash.
    public enum StopMode: String, Sendable { case smart, fast, immediate }

    public struct Failure: Error, CustomStringConvertible {
        public let description: String
    }

    /// The folder that holds the data, the socket and the log.
    public let folder: URL
    public let port: UInt16
    private let tools: PostgresTools
    /// Its end of a pipe closes with this process, which tells the watchdog to clean up.
    private let lifeline: Pipe
    private let admin: PostgresPool
    private static let names = Mutex(0)

    /// The cluster of this process, started on first use, for tests that don't stop it.
    public static func shared() async throws -> PostgresCluster { try await sharedStart.value }

    private static let sharedStart = Task { try await startOwn() }

    /// Another cluster, for a test that stops, kills or configures it.
    /// - Parameters:
    ///   - settings: lines for `postgresql.conf`, such as `["fsync": "on"]`.
    ///   - withTLS: makes a certificate for 127.0.0.1, its own authority, in ``certificate``.
    public static func startOwn(
        settings: [String: String] = [:], withTLS: Bool = false
    ) async throws -> PostgresCluster {
        let cluster = try PostgresCluster()
        try await cluster.initialize(settings, withTLS: withTLS)
        try await cluster.start()
        return cluster
    }

    private init() throws {
        tools = try PostgresTools.find()
        port = try Self.freePort()
        folder = FileManager.default.temporaryDirectory
            .appendingPathComponent("lockstep-pg-\(getpid())-\(UUID().uuidString.prefix(8))")
        lifeline = Pipe()
        admin = PostgresPool(Self.poolConfiguration(Self.connectionString(folder, port, "postgres")))
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: false)
        try tools.startWatchdog(over: folder, lifeline: lifeline)
    }

    private func initialize(_ settings: [String: String], withTLS: Bool) async throws {
        try await tools.own(folder)
        try await tools.run(
            "initdb", "-D", data, "-U", "postgres", "--auth=trust", "--no-sync", "--no-locale", "--encoding=UTF8",
            "--no-instructions")
        var lines = Self.settings(folder: folder, port: port).merging(settings) { _, given in given }
        if withTLS {
            let key = folder.appendingPathComponent("server.key").path
            try await tools.runAsOwner(
                "openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days",
                "2",
                "-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", certificate)
            lines.merge(["ssl": "on", "ssl_cert_file": certificate, "ssl_key_file": key]) { $1 }
        }
        let file = try FileHandle(forWritingTo: folder.appendingPathComponent("data/postgresql.conf"))
        try file.seekToEnd()
        try file.write(contentsOf: Data(lines.map { "\($0) = '\($1)'\n" }.joined().utf8))
        try file.close()
    }

    private static func settings(folder: URL, port: UInt16) -> [String: String] {
        [
            "listen_addresses": "127.0.0.1", "port": "\(port)", "unix_socket_directories": folder.path,
            "max_connections": "500", "shared_buffers": "64MB", "fsync": "off", "full_page_writes": "off",
            "autovacuum": "off", "jit": "off", "deadlock_timeout": "100ms", "log_min_messages": "warning",
            "max_prepared_transactions": "10", "restart_after_crash": "on", "log_line_prefix": "%m [%p] %d ",
        ]
    }

    /// The file with the certificate of a cluster that was started with TLS.
    public var certificate: String { folder.appendingPathComponent("server.crt").path }

    private var data: String { folder.appendingPathComponent("data").path }

    // MARK: Databases

    /// A fresh database with a name of its own.
    /// - Parameter template: the name of a database to copy, with everything in it and nobody connected to it.
    /// - Returns: its connection string.
    public func makeDatabase(template: String = "template1") async throws -> String {
        let number = Self.names.withLock { names in
            names += 1
            return names
        }
        let name = "test_\(number)"
        _ = try await admin.query(
            // Copying files needs a checkpoint, which costs nothing without fsync.
            "CREATE DATABASE \(unescaped: name) TEMPLATE \(unescaped: template) STRATEGY FILE_COPY",
            deadline: .now + .seconds(30))
        return connectionString(database: name)
    }

    /// By the Unix socket, or over 127.0.0.1, as the superuser and without a password.
    public func connectionString(database: String, overTCP: Bool = false) -> String {
        overTCP
            ? "host=127.0.0.1 port=\(port) user=postgres dbname=\(database)"
            : Self.connectionString(folder, port, database)
    }

    private static func connectionString(_ folder: URL, _ port: UInt16, _ database: String) -> String {
        "host=\(folder.path) port=\(port) user=postgres dbname=\(database)"
    }

    private static func poolConfiguration(_ connectionString: String) -> PostgresConfiguration {
        var configuration = PostgresConfiguration(connectionString: connectionString)
        configuration.maximumConnections = 2
        configuration.acquireTimeout = .seconds(30)
        configuration.statementTimeout = .seconds(60)
        configuration.applicationName = "testkit"
        // Nothing may stay connected to what CREATE DATABASE copies, and nothing needs to.
        configuration.usesPreparedStatements = false
        return configuration
    }

    // MARK: Start and stop

    /// Starts the server and returns when it takes connections.
    public func start() async throws {
        try await tools.run("pg_ctl", "start", "-D", data, "-l", log, "-w", "-t", "60")
    }

    /// Stops the server and returns when it is gone.
    public func stop(mode: StopMode = .fast) async throws {
        try await tools.run("pg_ctl", "stop", "-D", data, "-m", mode.rawValue, "-w", "-t", "60")
    }

    private var log: String { folder.appendingPathComponent("log").path }

    /// What the server has logged.
    public var serverLog: String { (try? String(contentsOfFile: log, encoding: .utf8)) ?? "" }

    /// How much the server has logged, in bytes.
    public var logLength: UInt64 {
        (try? FileManager.default.attributesOfItem(atPath: log)[.size] as? UInt64) ?? 0
    }

    /// What the server says about transactions of one database that waited for each other: in the shared cluster
    /// other tests may provoke their own.
    ///
    /// - Parameter mark: the ``logLength`` from which on to look.
    public func deadlocks(in connectionString: String, since mark: UInt64 = 0) -> [String] {
        guard let name = connectionString.firstMatch(of: /dbname=(\w+)/)?.1 else { return ["no database's name"] }
        guard let file = FileHandle(forReadingAtPath: log) else { return ["no log of the server"] }
        defer { try? file.close() }
        try? file.seek(toOffset: mark)
        let text = String(decoding: (try? file.readToEnd()) ?? Data(), as: UTF8.self)
        let entries = text.split(separator: /\n(?=[0-9]{4}-[0-9]{2}-[0-9]{2} )/)
        // What waited for what is in the entry that follows.
        return zip(entries, entries.dropFirst() + [""])
            .filter { $0.0.contains("] \(name) ERROR:  deadlock detected") }
            .map { "\($0)\n\($1)" }
    }

    private static func freePort() throws -> UInt16 {
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        guard descriptor >= 0 else { throw Failure(description: "no socket") }
        defer { close(descriptor) }
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = inet_addr("127.0.0.1")
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let isBound = withUnsafeMutablePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(descriptor, $0, length) == 0 && getsockname(descriptor, $0, &length) == 0
            }
        }
        guard isBound else { throw Failure(description: "no free port") }
        return UInt16(bigEndian: address.sin_port)
    }
}
