import Basics
import Foundation
import HTTPClient
import HTTPServer
import Lockstep
import Payrails
import Postgres
import Store
import TestKit

@testable import Service

/// One process of Lockstep: the router with every handler, the background work, connections of its own. It can be
/// killed, which leaves everything as it is at that moment.
final class SimulatedProcess: Sendable {
    let fate: Fate
    private let router: Router
    private let bells: Bells
    private let pool: PostgresPool
    private let client: HTTPClient
    private let work: Task<Void, Never>

    /// How long a worker or a request holds what it took. A call to Payrails is given up well before.
    static let lease = Duration.milliseconds(500)

    static var policy: PaymentStore.Policy {
        get throws {
            let pending = Patience([20, 40, 80, 160, 320].map { .milliseconds($0) }) ?? .pending
            let unknown = Patience([10, 20, 40, 80, 160].map { .milliseconds($0) }) ?? .unknown
            return PaymentStore.Policy(
                settlement: Settlement.Rules(failureSettle: .milliseconds(100)),
                healing: HealingSchedule(pending: pending, unknown: unknown), lease: lease,
                gateLease: .milliseconds(300), initFresh: .milliseconds(150))
        }
    }

    init(environment: [String: String], fate: Fate, log lines: LogLines) throws {
        self.fate = fate
        let settings = try Settings(environment: environment)
        guard let payrails = settings.payrails else { throw StartRefusal(message: "no Payrails") }
        let log = Log(minimum: .debug, clock: .system, writer: lines.writer())
        var configuration = payrails.configuration
        configuration.changeTimeout = .milliseconds(200)
        configuration.readTimeout = .milliseconds(200)
        configuration.tokenTimeout = .milliseconds(150)
        configuration.rateLimitPause = .milliseconds(20)
        configuration.maximumRateLimitPause = .milliseconds(20)
        var transport = HTTPClientConfiguration()
        transport.allowsPlainHTTP = true
        client = try HTTPClient(transport)
        var database = settings.postgres
        database.maximumConnections = 6
        pool = PostgresPool(database)
        bells = Bells()
        let identifiers = IdentifierSource.system()
        let store = PaymentStore(pool: pool, clock: .system, identifiers: identifiers, policy: try Self.policy)
        let orchestrator = Orchestrator(
            store: store,
            provider: MortalProvider(provider: PayrailsClient(configuration, transport: client), fate: fate),
            owner: identifiers.next(), log: log)
        let assembly = Assembly(
            settings: settings, payrails: payrails, parts: .all, orchestrator: orchestrator, pool: pool,
            clock: .system, identifiers: identifiers, bells: bells, log: log)
        router = Router(
            routes: assembly.routes,
            Router.Surroundings(
                authenticator: assembly.authenticator,
                idempotency: StoreIdempotencyKeeper(store: store, lease: Self.lease), log: log,
                metrics: HTTPMetrics(assembly.metrics), explain: Assembly.explain))
        var pace = Workers.Pace()
        pace.notifications = .milliseconds(10)
        pace.operations = .milliseconds(10)
        pace.readings = .milliseconds(15)
        pace.settling = .milliseconds(15)
        let workers = Workers(
            orchestrator: orchestrator, authenticator: assembly.authenticator, bells: bells,
            notifications: assembly.notificationMetrics, log: log, pace: pace)
        work = Task { await workers.run() }
        fate.atDeath { [pool, client, bells] in
            bells.close()
            Task {
                await pool.shutdown(limit: .zero)
                await client.shutdown()
            }
        }
    }

    /// The answer, or nil when the process dies before it has one.
    func answer(_ request: IncomingRequest) async -> Answer? {
        await fate.race { [router] in await router.respond(to: request) }
    }

    /// Stops it in order.
    func stop() async {
        bells.close()
        await work.value
        fate.end()
        await pool.shutdown()
        await client.shutdown()
    }

    /// Lets go of what is stuck in a process that was killed, and waits for its end.
    func bury() async {
        fate.end()
        await work.value
    }
}
