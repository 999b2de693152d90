import Foundation
import Postgres

/// How many notifications a second become durable, beside what one-row commits of the same row reach.
struct IntakeRun {
    private let options: BenchOptions
    init(_ options: BenchOptions) { self.options = options }

    func run() async throws -> Bool {
        raiseDescriptorLimit()
        let isApplying = options.number("workers", 2) == 1
        let rig = try await Rig(options, serve: isApplying ? ["serve"] : ["serve", "--no-workers"])
        let seconds = options.number("seconds", 6)
        let commits = try PgBench(database: options.database).oneRowCommits(clients: 32, seconds: seconds)
        tell("pgbench, one-row commits, 32 clients: \(commits) a second")
        var isGood = true
        var number = 0
        for connections in [64, 256, 1024] {
            let requests = make(&number, seconds * 45_000)
            let result = try RequestLoad(port: rig.service.port, connections: connections)
                .run(requests, atMost: .seconds(seconds))
            report("\(connections) connections", result, commits, rig)
            isGood = isGood && result.refused == 0 && result.perSecond * 10 >= commits * 12
        }
        // Longer, since one pause of the disk is more than a hundredth of a few seconds.
        let pacedSeconds = options.number("paced-seconds", 5 * seconds)
        let rate = options.number("rate", 10_000)
        await checkpoint(options.database)
        let paced = try RequestLoad(port: rig.service.port, connections: 64, rate: rate)
            .run(make(&number, pacedSeconds * rate), atMost: .seconds(pacedSeconds))
        report("64 connections at \(rate) a second", paced, commits, rig)
        isGood = isGood && paced.latencies.quantile(990) <= .milliseconds(15)
        let stored = try await count(options.database)
        tell("answered 200 in all, and in the table: \(stored)")
        await rig.stop()
        return isGood
    }

    /// Of executions that nobody knows here: what is measured is how they are taken in.
    private func make(_ number: inout Int, _ count: Int) -> PreparedRequests {
        defer { number += count }
        return PreparedRequests.notifications(number..<(number + count)) {
            NotificationBody.authorized(execution: $0, known: false)
        }
    }

    private func report(_ what: String, _ result: LoadResult, _ commits: Int, _ rig: Rig) {
        let ratio = String(format: "%.2f", Double(result.perSecond) / Double(max(1, commits)))
        tell(
            "\(what): \(result.perSecond) a second, \(ratio) of pgbench; \(result.refused) refused; "
                + "p50 \(result.latencies.quantile(500).milliseconds), p99 \(result.latencies.quantile(990).milliseconds), "
                + "longest \(result.latencies.quantile(1000).milliseconds); \(rig.service.residentMebibytes) MiB")
    }

    /// A database that has run for a while writes its log into files that it has used before. A new one fills each file
    /// with zeros first, while every commit waits, which at 20 MB a second is most of what is slow. Who may not ask for
    /// a checkpoint measures that too.
    private func checkpoint(_ database: String) async {
        let pool = PostgresPool(PostgresConfiguration(connectionString: database))
        _ = try? await pool.query("CHECKPOINT")
        await pool.shutdown()
    }

    private func count(_ database: String) async throws -> Int64 {
        let pool = PostgresPool(PostgresConfiguration(connectionString: database))
        let row = try await pool.query("SELECT count(*) AS rows FROM notifications").first
        await pool.shutdown()
        return try row?.decode("rows", as: Int64.self) ?? 0
    }
}

/// A notification as Payrails sends it when an authorization has succeeded, 1.5 KB long.
enum NotificationBody {
    static func authorized(execution number: Int, known: Bool) -> String {
        let digits = String(number, radix: 16)
        let id =
            (known ? "00000001-0000-4000-8000-" : "00000002-0000-4000-9000-")
            + String(repeating: "0", count: 12 - digits.count) + digits
        let head = """
            {"event":"executionActionCompleted","time":"2026-11-30T08:00:00.123456789Z","details":{"action":"authorize",\
            "actionId":"\(id)","success":true,"execution":{"id":"\(id)","merchantReference":"bench-\(number)"},\
            "amount":{"value":"49.99","currency":"EUR"},"paymentComposition":[{"paymentId":"\(id)",\
            "paymentMethodCode":"card","operationType":"Authorize","operationResult":"Success","success":true,\
            "amount":{"value":"49.99","currency":"EUR"},"integrationType":"api"}],"note":"
            """
        return head + String(repeating: "x", count: max(0, 1500 - head.utf8.count - 3)) + "\"}}"
    }
}

/// PostgreSQL's own measure of the machine.
struct PgBench {
    let database: String

    /// How many one-row commits a second, into a table like the one of the notifications.
    func oneRowCommits(clients: Int, seconds: Int) throws -> Int {
        try run("psql", ["-q", "-d", database, "-c", "CREATE TABLE bench_rows (LIKE notifications INCLUDING ALL)"])
        // Letters only, as pgbench takes a colon for a variable.
        let body = String(repeating: "x", count: NotificationBody.authorized(execution: 1, known: false).utf8.count)
        let script = FileManager.default.temporaryDirectory.appendingPathComponent("bench-\(getpid()).sql")
        let text = """
            \\set n random(1, 9000000000000000000)
            INSERT INTO bench_rows (body_hash, endpoint, body, received_at) VALUES (sha256(int8send(:n)), '',
            '\(body)', now()) ON CONFLICT (body_hash) DO NOTHING;
            """
        try Data(text.utf8).write(to: script)
        defer { try? FileManager.default.removeItem(at: script) }
        // By count: a child of this program inherits a blocked SIGALRM, by which pgbench would know the time.
        let output = try run(
            "pgbench",
            [
                "-n", "-M", "prepared", "-c", "\(clients)", "-j", "2", "-t", "\(seconds * 600)", "-f", script.path,
                database,
            ])
        let line = output.split(separator: "\n").first { $0.hasPrefix("tps = ") } ?? ""
        guard let rate = Double(line.dropFirst(6).prefix { $0 == "." || $0.isNumber }) else {
            throw Rig.Failure(description: "pgbench told no rate: \(output)")
        }
        return Int(rate)
    }

    @discardableResult
    private func run(_ program: String, _ arguments: [String]) throws -> String {
        let process = Process()
        let output = Pipe()
        process.executableURL = try Self.find(program)
        process.arguments = arguments
        process.standardOutput = output
        try process.run()
        let text = String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
        process.waitUntilExit()
        guard process.terminationStatus == 0 else { throw Rig.Failure(description: "\(program) ended with an error") }
        return text
    }

    private static func find(_ program: String) throws -> URL {
        let versions = (try? FileManager.default.contentsOfDirectory(atPath: "/usr/lib/postgresql")) ?? []
        let folders = versions.sorted().reversed().map { "/usr/lib/postgresql/\($0)/bin" } + ["/usr/bin"]
        for folder in folders where FileManager.default.isExecutableFile(atPath: "\(folder)/\(program)") {
            return URL(fileURLWithPath: "\(folder)/\(program)")
        }
        throw Rig.Failure(description: "\(program) isn't installed")
    }
}
