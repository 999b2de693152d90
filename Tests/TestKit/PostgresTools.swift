import Foundation

/// PostgreSQL's programs, run as a user whom they accept.
struct PostgresTools: Sendable {
    private let binaries: String
    /// What goes before each command: nothing, or what makes root the user `postgres`.
    let prefix: [String]

    static func find() throws -> PostgresTools {
        let environment = ProcessInfo.processInfo.environment
        let versions = (try? FileManager.default.contentsOfDirectory(atPath: "/usr/lib/postgresql")) ?? []
        let newestFirst = versions.sorted { (Int($0) ?? 0) > (Int($1) ?? 0) }
        let candidates =
            [environment["LOCKSTEP_TEST_POSTGRES_BIN"]].compactMap { $0 }
            + (environment["PATH"] ?? "").split(separator: ":").map(String.init)
            + newestFirst.map { "/usr/lib/postgresql/\($0)/bin" }
        // Debian's PATH has a pg_ctl-less wrapper folder, so look for what only the server's folder has.
        let isComplete: (String) -> Bool = { folder in
            ["initdb", "pg_ctl", "postgres"].allSatisfy {
                FileManager.default.isExecutableFile(atPath: "\(folder)/\($0)")
            }
        }
        guard let binaries = candidates.first(where: isComplete) else {
            throw PostgresCluster.Failure(description: "PostgreSQL's server programs were not found")
        }
        let becomePostgres = ["setpriv", "--reuid=postgres", "--regid=postgres", "--init-groups"]
        return PostgresTools(binaries: binaries, prefix: geteuid() == 0 ? becomePostgres : [])
    }

    /// Gives the folder to the user that the server runs as.
    func own(_ folder: URL) async throws {
        if !prefix.isEmpty { try await ChildProcess.run(["chown", "postgres:postgres", folder.path]) }
    }

    func run(_ program: String, _ arguments: String...) async throws {
        try await ChildProcess.run(prefix + ["\(binaries)/\(program)"] + arguments)
    }

    /// Another program, so that what it writes belongs to the server's user.
    func runAsOwner(_ command: String...) async throws { try await ChildProcess.run(prefix + command) }

    /// Starts a process that outlives this one by a moment: it waits for the end of its input, which comes when this
    /// process ends in whatever way, then stops the server and removes the folder.
    func startWatchdog(over folder: URL, lifeline: Pipe) throws {
        let stop = (prefix + ["\(binaries)/pg_ctl"]).joined(separator: " ")
        let script = """
            trap '' INT TERM HUP
            cat >/dev/null
            \(stop) stop -D '\(folder.path)/data' -m immediate -w -t 20
            rm -rf '\(folder.path)'
            """
        // Other children must not hold the writing end open.
        _ = fcntl(lifeline.fileHandleForWriting.fileDescriptor, F_SETFD, FD_CLOEXEC)
        let descriptor = lifeline.fileHandleForReading.fileDescriptor
        try ChildProcess.startAndForget(["sh", "-c", script], input: descriptor)
        try lifeline.fileHandleForReading.close()
    }
}
