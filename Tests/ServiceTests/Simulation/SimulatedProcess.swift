import Basics
import Foundation
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
    private let time: VirtualTime
    private let orchestrator: Orchestrator
    private let workers: Workers
    private let work: Task<Void, Never>?

    /// What all processes of a simulation have in common.
    struct Surroundings: Sendable {
        let settings: Settings
        let time: VirtualTime
        let link: SimulatedLink
        let log: Log
    }

    /// - Parameter worksByItself: whether it looks for work; else somebody calls ``workOnce()``.
    init(_ around: Surroundings, fate: Fate, worksByItself: Bool = true) throws {
        self.fate = fate
        time = around.time
        let settings = around.settings
        let clock = time.wallClock
        guard let payrails = settings.payrails else { throw StartRefusal(message: "no Payrails") }
        pool = PostgresPool(settings.postgres)
        time.watch(pool)
        bells = Bells(clock: time.steadyClock)
        let identifiers = IdentifierSource.system(clock: clock)
        let store = PaymentStore(
            pool: pool, clock: clock, identifiers: identifiers, policy: try settings.storePolicy())
        let client = PayrailsClient(payrails.configuration, transport: around.link, clock: time.steadyClock)
        orchestrator = Orchestrator(
            store: store, provider: MortalProvider(provider: client, fate: fate), owner: identifiers.next(),
            charging: settings.charging, log: around.log)
        let assembly = Assembly(
            settings: settings, payrails: payrails, parts: .all, orchestrator: orchestrator, pool: pool,
            clock: clock, identifiers: identifiers, bells: bells, log: around.log)
        router = Router(
            routes: assembly.routes,
            Router.Surroundings(
                authenticator: assembly.authenticator,
                idempotency: StoreIdempotencyKeeper(store: store, lease: settings.work.lease), log: around.log,
                metrics: HTTPMetrics(assembly.metrics), clock: clock, identifiers: identifiers,
                explain: Assembly.explain))
        var pace = Workers.Pace()
        pace.notifications = .seconds(4)
        pace.operations = .seconds(4)
        pace.readings = .seconds(4)
        pace.settling = .seconds(4)
        // Figures for people.
        pace.counting = .seconds(86_400)
        pace.noting = .seconds(86_400)
        pace.ageing = .seconds(600)
        workers = Workers(
            orchestrator: orchestrator, authenticator: assembly.authenticator, bells: bells,
            notifications: assembly.notificationMetrics, log: around.log, pace: pace)
        let workers = workers
        work =
            worksByItself
            ? Task { await Self.mortally(fate) { await workers.run() } } : nil
        fate.atDeath { [pool, bells, time] in
            bells.close()
            time.forget(pool)
            Task { await pool.shutdown(limit: .zero) }
        }
    }

    /// It may also end before each transaction, and within one before each statement.
    ///
    /// Not optimized: Swift 6.3's optimizer loses the type of a task's own value that is a function.
    @_optimize(none)
    private static func mortally<Value: Sendable>(
        _ fate: Fate, _ body: @Sendable () async -> Value
    ) async -> Value {
        await StepPoint.$hold.withValue({ _ in await fate.pass(0.1) }, operation: body)
    }

    /// The answer, or nil when the process dies before it has one.
    func answer(_ request: IncomingRequest) async -> Answer? {
        await fate.race { [router, fate] in
            await Self.mortally(fate) { await router.respond(to: request) }
        }
    }

    /// A run over the subscriptions that are due by then, as `lockstep renew --as-of` makes it.
    func renew(asOf: Timestamp) async {
        let run = RenewalRun(id: orchestrator.store.newRun().id, asOf: asOf)
        let runner = RenewalRunner(orchestrator, run: run, options: RenewalRunner.Options(concurrency: 4))
        _ = await fate.race { [fate] in
            await Self.mortally(fate) { _ = try? await runner.perform() }
        }
    }

    /// Does what is due now. How much that was.
    func workOnce() async throws -> Int {
        try await workers.applyNotifications() + workers.advanceOperations() + workers.advanceCharges()
            + workers.readExecutions() + orchestrator.store.settleDue(limit: 200)
    }

    /// Stops it in order.
    func stop() async {
        bells.close()
        await work?.value
        fate.end()
        await pool.shutdown()
    }

    /// Lets go of what is stuck in a process that was killed, and waits for its end.
    func bury() async {
        fate.end()
        await work?.value
        await pool.shutdown(limit: .zero)
    }
}
