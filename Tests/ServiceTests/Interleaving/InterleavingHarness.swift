import Basics
import Foundation
import HTTPClient
import Lockstep
import Payrails
import PayrailsSandbox
import Postgres
import Store
import TestKit
import Testing

@testable import Service

/// The whole of Lockstep in this process, over a database server of its own and the stand-in, with every step in a
/// test's hands: nothing runs by itself.
final class InterleavingHarness: Sendable {
    let cluster: PostgresCluster
    let books: PostgresPool
    /// Its connection string.
    private let database: String
    let store: PaymentStore
    let sandbox: PayrailsSandbox
    let workers: Workers
    private let router: Router
    private let key: String
    let transport: HTTPClient

    init() async throws {
        cluster = try await PostgresCluster.startOwn()
        let lockstep = try await ServiceHarness.start(cluster: cluster, parts: nil) {
            $0.authorizeDelay = .zero
            $0.actionDelay = .zero
            $0.pendingBeforeSuccess = 0
        }
        sandbox = lockstep.sandbox
        key = lockstep.key
        let settings = try Settings(environment: lockstep.environment)
        let payrails = try #require(settings.payrails)
        var configuration = settings.postgres
        configuration.maximumConnections = 10
        books = PostgresPool(configuration)
        database = configuration.connectionString
        let log = Log(minimum: .error, clock: .system, writer: lockstep.log.writer())
        let quick = try #require(Patience([.milliseconds(1)]))
        // What only waits for a payment isn't asked about: there are thousands of them.
        let never = try #require(Patience([.seconds(3600)]))
        let identifiers = IdentifierSource.system()
        store = PaymentStore(
            pool: books, clock: .system, identifiers: identifiers,
            policy: PaymentStore.Policy(healing: HealingSchedule(pending: never, unknown: quick)))
        transport = try payrails.client()
        let provider = PayrailsClient(payrails.configuration, transport: HeldTransport(transport: transport))
        // The token is there before any step is counted.
        guard case .done = await provider.checkCredentials() else { throw StartRefusal(message: "no token") }
        let bells = Bells()
        let assembly = Assembly(
            settings: settings, payrails: payrails, parts: .all,
            orchestrator: Orchestrator(store: store, provider: provider, owner: identifiers.next(), log: log),
            pool: books, clock: .system, identifiers: identifiers, bells: bells, log: log)
        workers = assembly.workers
        router = Router(
            routes: assembly.routes,
            Router.Surroundings(
                authenticator: assembly.authenticator,
                idempotency: StoreIdempotencyKeeper(store: store, lease: settings.work.lease), log: log,
                metrics: HTTPMetrics(assembly.metrics), explain: Assembly.explain))
    }

    /// A call of the shop's.
    func call(
        _ method: String, _ path: String, _ body: JSON, version: Int64? = nil, key: String? = nil
    ) async -> Answer {
        var headers: HTTPHeaders = ["Authorization": "Bearer \(self.key)", "Content-Type": "application/json"]
        if let version { headers["If-Match"] = "\"\(version)\"" }
        if let key { headers["Idempotency-Key"] = key }
        return await router.respond(
            to: IncomingRequest(
                method: method, path: path, headers: headers, body: body.bytes, receivedAt: .systemNow))
    }

    /// Lets the background work go on until there is none that matters for the checkout.
    func settle(_ id: CheckoutID) async throws -> Bool {
        try await waitUntil {
            let open = try await books.query(
                "SELECT 1 AS one FROM operations WHERE checkout_id = \(id.uuid) AND finished_at IS NULL")
            let checkout = try await store.readCheckout(id)?.checkout
            if open.isEmpty, checkout?.amountState == .inStep, checkout?.status != .processing { return true }
            _ = try await workers.applyNotifications()
            _ = try await workers.advanceOperations()
            _ = try await workers.readExecutions()
            return false
        }
    }

    /// How many wait for a lock now.
    func blocked() async throws -> Int {
        let rows = try await books.query(
            "SELECT count(*) AS count FROM pg_stat_activity WHERE wait_event_type = 'Lock'")
        return Int(try rows.first?.decode("count", as: Int64.self) ?? 0)
    }

    /// What the server says about transactions that waited for each other.
    var deadlocks: [String] { cluster.deadlocks(in: database) }
}

/// Stops before each call to Payrails.
private struct HeldTransport: HTTPTransport {
    let transport: HTTPClient

    func send(_ request: HTTPClientRequest) async throws(HTTPClientError) -> HTTPClientResponse {
        await StepPoint.hold?(.transaction)
        return try await transport.send(request)
    }
}
