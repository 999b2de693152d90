import Foundation

/// PgBouncer in transaction mode before a cluster, where the machine has it: in `PATH`, in `/usr/sbin`, or where
/// `LOCKSTEP_TEST_PGBOUNCER` says.
public final class PgBouncer: Sendable {
    /// The program's path, or nil.
    public static let program: String? = {
        let environment = ProcessInfo.processInfo.environment
        let folders = (environment["PATH"] ?? "").split(separator: ":").map(String.init) + ["/usr/sbin"]
        let candidates = [environment["LOCKSTEP_TEST_PGBOUNCER"]].compactMap { $0 } + folders.map { "\($0)/pgbouncer" }
        return candidates.first { FileManager.default.isExecutableFile(atPath: $0) }
    }()

    private let folder: URL
    /// Its end of a pipe closes with this process, or with ``stop()``; then the shell around PgBouncer ends it.
    private let lifeline = Pipe()

    /// - Parameter poolSize: sessions at the server, which all clients share.
    public init(before cluster: PostgresCluster, program: String, poolSize: Int) throws {
        folder = cluster.folder.appendingPathComponent("pgbouncer-\(UUID().uuidString.prefix(8))")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: false)
        let settings = """
            [databases]
            * = user=postgres host=\(cluster.folder.path) port=\(cluster.port)
            [pgbouncer]
            unix_socket_dir = \(folder.path)
            listen_port = 6432
            pool_mode = transaction
            default_pool_size = \(poolSize)
            auth_type = any
            logfile = \(folder.path)/log
            """
        let file = folder.appendingPathComponent("pgbouncer.ini")
        try settings.write(to: file, atomically: false, encoding: .utf8)
        let tools = try PostgresTools.find()
        let command = (tools.prefix + [program, "-q", file.path]).joined(separator: " ")
        let script = """
            \(tools.prefix.isEmpty ? "" : "chown -R postgres '\(folder.path)'")
            trap '' INT TERM HUP
            \(command) </dev/null & server=$!
            cat >/dev/null
            kill -KILL $server
            """
        _ = fcntl(lifeline.fileHandleForWriting.fileDescriptor, F_SETFD, FD_CLOEXEC)
        try ChildProcess.startAndForget(["sh", "-c", script], input: lifeline.fileHandleForReading.fileDescriptor)
    }

    public func connectionString(database: String) -> String {
        "host=\(folder.path) port=6432 user=postgres dbname=\(database)"
    }

    public func stop() { try? lifeline.fileHandleForWriting.close() }
}
