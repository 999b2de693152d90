import Basics
import Foundation
import HTTPClient
import Lockstep
import PayrailsSandbox
import Postgres
import Store

/// The service under measurement with all that it needs.
final class Rig: Sendable {
    let service: ServiceProcess
    let sandbox: PayrailsSandbox
    let client: HTTPClient
    let key: String
    private let database: String
    private let sandboxSettings: SandboxConfiguration

    struct Failure: Error, CustomStringConvertible {
        let description: String
    }

    static let webhookKey = "bench-notification-key"

    /// Migrates, makes a key, starts the sandbox in this process and `lockstep serve` as one of its own.
    init(_ options: BenchOptions, serve arguments: [String] = ["serve"]) async throws {
        let port = try FreePort.find()
        var sandboxSettings = SandboxConfiguration()
        sandboxSettings.notificationTargets = [
            NotificationTarget(url: "http://127.0.0.1:\(port)/webhooks/payrails", key: Self.webhookKey)
        ]
        sandbox = try PayrailsSandbox(sandboxSettings)
        try sandbox.start()

        let environment = Self.environment(options.database, port: port, sandbox, sandboxSettings)
        database = options.database
        self.sandboxSettings = sandboxSettings
        try ServiceProcess.runToEnd(["migrate"], environment)
        key = try ServiceProcess.runToEnd(
            ["keys", "create", "--name", "bench", "--scopes", "checkouts,payments,ops"], environment)
        var configuration = HTTPClientConfiguration()
        configuration.maximumConnections = 512
        configuration.maximumConnectionsPerHost = 256
        client = try HTTPClient(configuration)
        service = try ServiceProcess(port: port, environment, arguments)
        try await service.waitUntilReady(client)
    }

    /// The settings of another service on the same database.
    func environment(port: UInt16) -> [String: String] {
        Self.environment(database, port: port, sandbox, sandboxSettings)
    }

    private static func environment(
        _ database: String, port: UInt16, _ sandbox: PayrailsSandbox, _ settings: SandboxConfiguration
    ) -> [String: String] {
        [
            "LOCKSTEP_DATABASE_URL": database, "LOCKSTEP_LISTEN": "127.0.0.1:\(port)",
            "LOCKSTEP_LOG_LEVEL": "warning", "PAYRAILS_BASE_URL": sandbox.baseURL,
            "PAYRAILS_CLIENT_ID": settings.clientID, "PAYRAILS_CLIENT_SECRET": settings.clientSecret,
            "PAYRAILS_WORKSPACE_ID": settings.workspaceID, "PAYRAILS_WEBHOOK_KEYS": webhookKey,
            // The sandbox has no limit, and one key stands for a whole shop; what is measured is the service.
            "PAYRAILS_REQUESTS_PER_SECOND": "0", "LOCKSTEP_RATE_LIMIT_MERCHANT_PER_SECOND": "0",
            "PATH": ProcessInfo.processInfo.environment["PATH"] ?? "/usr/bin:/bin",
        ]
    }

    func stop() async {
        service.stop()
        await sandbox.stop()
        await client.shutdown()
    }
}

/// `lockstep serve`, found beside this program.
final class ServiceProcess: @unchecked Sendable {
    // Foundation's Process is only used from one task at a time: started here, stopped once.
    private let process = Process()
    let port: UInt16
    let startedAt = ContinuousClock.now

    var url: String { "http://127.0.0.1:\(port)" }

    init(port: UInt16, _ environment: [String: String], _ arguments: [String] = ["serve"]) throws {
        self.port = port
        process.executableURL = Self.program
        process.arguments = arguments
        process.environment = environment
        process.standardInput = FileHandle.nullDevice
        try process.run()
        let id = process.processIdentifier
        // Whatever ends this program, the service goes with it.
        atexit { ServiceProcess.killAll() }
        Self.running.withLock { $0.append(id) }
    }

    /// How long it took from the start until `/readyz` said so.
    @discardableResult
    func waitUntilReady(_ client: HTTPClient) async throws -> Duration {
        while ContinuousClock.now - startedAt < .seconds(30) {
            let answer = try? await client.send(
                HTTPClientRequest(method: "GET", url: "\(url)/readyz", timeout: .seconds(1)))
            if answer?.status == 200 { return .now - startedAt }
            try await Task.sleep(for: .milliseconds(2))
        }
        throw Rig.Failure(description: "the service didn't become ready in 30 s")
    }

    /// Resident memory in MiB, by the kernel's account.
    var residentMebibytes: Int {
        let status = (try? String(contentsOfFile: "/proc/\(process.processIdentifier)/status", encoding: .utf8)) ?? ""
        let line = status.split(separator: "\n").first { $0.hasPrefix("VmRSS:") } ?? ""
        return (line.split(separator: " ").compactMap { Int($0) }.first ?? 0) / 1024
    }

    var isRunning: Bool { process.isRunning }

    func stop() {
        process.terminate()
        process.waitUntilExit()
    }

    @discardableResult
    static func runToEnd(_ arguments: [String], _ environment: [String: String]) throws -> String {
        let process = Process()
        let output = Pipe()
        process.executableURL = program
        process.arguments = arguments
        process.environment = environment
        process.standardOutput = output
        try process.run()
        let text = String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
        process.waitUntilExit()
        guard process.terminationStatus == 0 else {
            throw Rig.Failure(description: "lockstep \(arguments.joined(separator: " ")) ended with an error")
        }
        return text.trimmingCharacters(in: .whitespacesAndNewlines)
    }

    /// The same on a thread of its own, whatever it ends with: tasks' threads are few, and who waits on one of them keeps
    /// a stand-in in this process from answering.
    static func runBeside(_ arguments: [String], _ environment: [String: String]) async {
        await withCheckedContinuation { continuation in
            Thread.detachNewThread {
                _ = try? runToEnd(arguments, environment)
                continuation.resume()
            }
        }
    }

    private static var program: URL {
        URL(fileURLWithPath: CommandLine.arguments[0]).deletingLastPathComponent().appendingPathComponent("lockstep")
    }

    private static let running = LockedList()
    private static func killAll() { for id in running.withLock({ $0 }) { kill(id, SIGKILL) } }
}

/// A list behind a lock.
final class LockedList: @unchecked Sendable {
    // Every access goes through the lock.
    private let lock = NSLock()
    private var items: [Int32] = []

    func withLock<Result>(_ body: (inout [Int32]) -> Result) -> Result {
        lock.lock()
        defer { lock.unlock() }
        return body(&items)
    }
}

enum FreePort {
    /// A port that was free a moment ago.
    static func find() throws -> UInt16 {
        let socket = Glibc.socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        defer { close(socket) }
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = inet_addr("127.0.0.1")
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let isBound = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(socket, $0, length) == 0 && getsockname(socket, $0, &length) == 0
            }
        }
        guard isBound else { throw Rig.Failure(description: "no free port") }
        return UInt16(bigEndian: address.sin_port)
    }
}
