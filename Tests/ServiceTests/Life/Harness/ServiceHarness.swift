import Basics
import Foundation
import Lockstep
import PayrailsSandbox
import Postgres
import Store
import Synchronization
import TestKit
import Testing

@testable import Service

/// The whole of Lockstep as a customer of it sees it: a database of its own in a real cluster, the stand-in for Payrails
/// on a real socket, and the service on another, started by the function that the program uses.
///
/// A suite shares one; its tests tell their orders apart by reference, and aim faults at their own.
final class ServiceHarness: Sendable {
    let databaseURL: String
    /// The tests' own look into the books.
    let books: PostgresPool
    let store: PaymentStore
    let sandbox: PayrailsSandbox
    let log: LogLines
    let environment: [String: String]
    /// A merchant key with every scope.
    let key: String
    private let services: Mutex<[LockstepService]>
    private let programs = Mutex<[ServedProgram]>([])

    /// The key that the stand-in signs with, for the endpoint `try`.
    static let notificationKey = "6f2d9c1b-notification-key-of-the-tests"
    static let endpoint = "/webhooks/payrails/try"

    /// Quick, patient enough for a busy machine, and without anything that only waits.
    private static let settings = [
        "LOCKSTEP_LISTEN": "127.0.0.1:0", "LOCKSTEP_LOG_LEVEL": "debug", "LOCKSTEP_POLL_MS": "20",
        "LOCKSTEP_DATABASE_POOL_SIZE": "12", "LOCKSTEP_DATABASE_ACQUIRE_TIMEOUT_MS": "10000",
        "LOCKSTEP_HEAL_UNKNOWN": "50ms,100ms,200ms,500ms", "LOCKSTEP_HEAL_PENDING": "200ms,500ms,1s",
        "LOCKSTEP_PREPAYMENT_BUDGET_MS": "9000", "LOCKSTEP_RATE_LIMIT_MERCHANT_PER_SECOND": "0",
        "LOCKSTEP_RATE_LIMIT_CLIENT_PER_MINUTE": "0", "PAYRAILS_REQUESTS_PER_SECOND": "0",
        "LOCKSTEP_STALE_SECONDS": "0",
        "PAYRAILS_WEBHOOK_KEYS": "try=\(notificationKey)", "LOCKSTEP_RETURN_URL": "https://shop.example/back",
    ]

    private init(
        databaseURL: String, books: PostgresPool, store: PaymentStore, sandbox: PayrailsSandbox,
        environment: [String: String], key: String, log: LogLines
    ) {
        self.databaseURL = databaseURL
        self.books = books
        self.store = store
        self.sandbox = sandbox
        self.environment = environment
        self.key = key
        self.log = log
        services = Mutex([])
    }

    /// - Parameters:
    ///   - changes: settings in place of the usual ones.
    ///   - cluster: for a test that stops the database; else the one that all share.
    ///   - parts: which part of the service is started; nil starts none.
    static func start(
        _ changes: [String: String] = [:], cluster: PostgresCluster? = nil, parts: LockstepService.Parts? = .all,
        sandbox change: (inout SandboxConfiguration) -> Void = { _ in }
    ) async throws -> ServiceHarness {
        var configuration = SandboxConfiguration()
        configuration.authorizeDelay = .milliseconds(3)
        configuration.actionDelay = .milliseconds(3)
        configuration.notificationBackoff = .milliseconds(20)
        change(&configuration)
        let sandbox = try PayrailsSandbox(configuration)
        try sandbox.start()
        let url = try await MigratedDatabase.make(in: cluster)
        var environment = settings.merging(changes) { _, changed in changed }
        environment["LOCKSTEP_DATABASE_URL"] = url
        environment["PAYRAILS_BASE_URL"] = sandbox.baseURL
        environment["PAYRAILS_CLIENT_ID"] = sandbox.clientID
        environment["PAYRAILS_CLIENT_SECRET"] = sandbox.clientSecret
        environment["PAYRAILS_WORKSPACE_ID"] = sandbox.workspaceID
        var pool = PostgresConfiguration(connectionString: url)
        pool.maximumConnections = 4
        let books = PostgresPool(pool)
        let store = PaymentStore(pool: books, clock: .system, identifiers: .system())
        let created = try await store.createKey(name: "shop", scopes: Set(Scope.allCases))
        let harness = ServiceHarness(
            databaseURL: url, books: books, store: store, sandbox: sandbox, environment: environment,
            key: try #require(created).1.reveal, log: LogLines())
        if let parts { try await harness.startService(parts) }
        return harness
    }

    /// One that the tests of a file share.
    ///
    /// Nothing tells when the last of them has ended. But where tests run one at a time, those of an earlier file have by
    /// now, and what they shared is stopped: dozens of idle services would take the time and the connections of the rest.
    static func shared(
        _ changes: [String: String] = [:], parts: LockstepService.Parts? = .all, file: String = #fileID,
        sandbox change: (inout SandboxConfiguration) -> Void = { _ in }
    ) async throws -> ServiceHarness {
        if CommandLine.arguments.contains("--no-parallel") {
            let others = sharedByFile.withLock { shared in
                defer { shared = shared.filter { $0.key == file } }
                return shared.filter { $0.key != file }.values.flatMap(\.self)
            }
            for harness in others { await harness.stop() }
        }
        let harness = try await start(changes, parts: parts, sandbox: change)
        sharedByFile.withLock { $0[file, default: []].append(harness) }
        return harness
    }

    private static let sharedByFile = Mutex<[String: [ServiceHarness]]>([:])

    // MARK: services

    /// Starts one more service on the same books. New executions notify every service that has an API.
    @discardableResult
    func startService(
        _ parts: LockstepService.Parts = .all, _ changes: [String: String] = [:], clock: WallClock = .system
    ) async throws -> LockstepService {
        let settings = try Settings(environment: environment.merging(changes) { _, changed in changed })
        let service = try await LockstepService.start(
            settings: settings, parts: parts, clock: clock, writer: log.writer())
        let all = services.withLock { services in
            services.append(service)
            return services
        }
        sandbox.setNotificationTargets(
            all.map {
                NotificationTarget(
                    url: "http://127.0.0.1:\($0.port)\(Self.endpoint)", key: Self.notificationKey)
            })
        return service
    }

    /// Stops every service and program; the database and the stand-in go on.
    func stopServices() async {
        let programs = programs.withLock { programs in
            defer { programs = [] }
            return programs
        }
        for program in programs where program.isRunning { _ = await program.end(by: SIGTERM) }
        let running = services.withLock { services in
            defer { services = [] }
            return services
        }
        for service in running { await service.stop() }
    }

    /// Stops all that was started here.
    func stop() async {
        await stopServices()
        await sandbox.stop()
        await books.shutdown()
    }

    /// Starts `lockstep serve` as a process of its own on the same books; callers reach it where no service runs here.
    func startProgram(
        _ arguments: [String] = [], _ changes: [String: String] = [:]
    ) async throws -> ServedProgram {
        let program = try await ServedProgram(
            arguments, environment: environment.merging(changes) { _, changed in changed })
        let all = programs.withLock { programs in
            programs.append(program)
            return programs.filter(\.isRunning)
        }
        sandbox.setNotificationTargets(
            all.map { NotificationTarget(url: $0.baseURL + Self.endpoint, key: Self.notificationKey) })
        return program
    }

    var service: LockstepService {
        get throws {
            let first = services.withLock { $0.first }
            return try #require(first)
        }
    }

    // MARK: callers

    /// As the shop, with every scope.
    var shop: JSONCaller { get throws { try stranger.with(token: key) } }
    /// Without any credentials.
    var stranger: JSONCaller {
        get throws {
            if let program = programs.withLock({ $0.last(where: \.isRunning) }) { return program.stranger }
            return caller(of: try service)
        }
    }
    /// As the app, with its client token.
    func app(_ order: Order) throws -> JSONCaller { try stranger.with(token: order.token) }

    func caller(of service: LockstepService) -> JSONCaller {
        JSONCaller(baseURL: "http://127.0.0.1:\(service.port)")
    }

    /// A merchant key with these scopes only.
    func makeKey(_ scopes: Set<Scope>) async throws -> String {
        try #require(try await store.createKey(name: "key-\(UUID().uuidString)", scopes: scopes)).1.reveal
    }
}
