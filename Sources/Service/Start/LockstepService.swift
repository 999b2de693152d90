import Basics
import Foundation
import HTTPClient
import HTTPServer
import Lockstep
import Payrails
import Postgres
import Store

/// A running service: the HTTP side, the background work, or both. Tests start it by the same function as the program.
public final class LockstepService: Sendable {
    /// What of it runs in this process.
    public enum Parts: Sendable {
        case all, api, workers
        var hasAPI: Bool { self != .workers }
        var hasWorkers: Bool { self != .api }
    }

    private let server: HTTPServer
    private let pools: [PostgresPool]
    private let clients: [HTTPClient]
    private let work: Task<Void, Never>
    private let bells: Bells
    private let drain: Duration
    let log: Log
    let webhookKeys: NotificationKeys

    private init(
        server: HTTPServer, pools: [PostgresPool], clients: [HTTPClient], work: Task<Void, Never>, bells: Bells,
        drain: Duration, webhookKeys: NotificationKeys, log: Log
    ) {
        self.webhookKeys = webhookKeys
        self.server = server
        self.pools = pools
        self.clients = clients
        self.work = work
        self.bells = bells
        self.drain = drain
        self.log = log
    }

    /// The port that it listens on.
    public var port: UInt16 { server.port }

    /// Starts. Returns once requests are served.
    ///
    /// - Throws: ``StartRefusal`` for a database that is behind or ahead, for certificates that can't be used and for
    ///   an address that can't be listened on; a `PostgresError` when the database can't be reached.
    public static func start(
        settings: Settings, parts: Parts = .all, clock: WallClock = .system, writer: LogWriter = .standardError()
    ) async throws -> LockstepService {
        let log = Log(minimum: settings.log.level, clock: clock, writer: writer)
        for note in settings.notes { log.warning("a setting may surprise", .detail("\(note.name) \(note.detail)")) }
        guard let payrails = settings.payrails else { throw StartRefusal(message: "PAYRAILS_BASE_URL must be set") }
        let client = try makeClient(certificateSettings, payrails.client)
        let eventsClient = try parts.hasWorkers ? makeClient("LOCKSTEP_EVENTS_CA", settings.events.client) : nil
        let checkClient = try parts.hasAPI ? makeClient("LOCKSTEP_PREPAYMENT_HOOK_CA", settings.gate.client) : nil
        let clients = [client] + [eventsClient, checkClient].compactMap { $0 }
        let pool = PostgresPool(settings.postgres)
        let gatePool = parts.hasAPI ? PostgresPool(settings.gatePostgres) : nil
        let pools = [pool] + [gatePool].compactMap { $0 }
        do {
            try await refuseWrongVersion(pool)
            let identifiers = IdentifierSource.system(clock: clock)
            let metrics = Metrics()
            let orchestrator = try settings.orchestrator(
                payrails, through: client, pool: pool, clock: clock, identifiers: identifiers, metrics: metrics,
                log: log)
            let bells = Bells()
            let assembly = Assembly(
                settings: settings, payrails: payrails, parts: parts, orchestrator: orchestrator, pool: pool,
                clock: clock, identifiers: identifiers, bells: bells, log: log, metrics: metrics,
                eventsClient: eventsClient,
                gatePool: gatePool, checkClient: checkClient)
            if settings.events.url != nil { try await orchestrator.store.beginDeliveries() }
            let server = assembly.server()
            do {
                try server.start()
            } catch {
                let why = error.systemError.map { String(cString: strerror($0)) } ?? error.context
                throw StartRefusal(message: "LOCKSTEP_LISTEN: can't listen on \(settings.http.listen): \(why)")
            }
            let workers = assembly.workers
            // On threads of their own: a batch is decided in one go, and meanwhile nobody else could be answered.
            let work = Task(priority: .utility) { await workers.run() }
            log.notice("serving", .count("port", server.port), .flag("workers", parts.hasWorkers))
            return LockstepService(
                server: server, pools: pools, clients: clients, work: work, bells: bells, drain: settings.http.drain,
                webhookKeys: assembly.webhookKeys, log: log)
        } catch {
            await shutDown(pools, clients)
            throw error
        }
    }

    /// Takes nothing new, finishes what is in flight within the limit, then lets everything go (invariant M13). What a
    /// worker could not finish is a row with a lease, and another process goes on with it.
    public func stop() async {
        log.notice("stopping: finishing what is in flight")
        bells.close()
        await server.drain(within: drain)
        await finishWork()
        await Self.shutDown(pools, clients)
        log.notice("stopped")
        log.writer.flush()
    }

    private static func shutDown(_ pools: [PostgresPool], _ clients: [HTTPClient]) async {
        for client in clients { await client.shutdown() }
        for pool in pools { await pool.shutdown() }
    }

    /// - Parameter what: what is to blame, by its name.
    static func makeClient<Client>(
        _ what: String, _ make: () throws(HTTPClientError) -> Client
    ) throws(StartRefusal) -> Client {
        do {
            return try make()
        } catch {
            throw StartRefusal(message: "\(what) can't be used: \(error.detail)")
        }
    }

    static let certificateSettings = "PAYRAILS_CLIENT_CERT, PAYRAILS_CLIENT_KEY or PAYRAILS_CA"

    private func finishWork() async {
        let work = work
        _ = try? await withBudget(drain) { await work.value }
        work.cancel()
    }

    ///
    /// - Throws: a ``StartRefusal`` with the mend.
    public static func refuseWrongVersion(_ pool: PostgresPool) async throws {
        switch try await Migrator(pool: pool).status() {
        case .current: return
        case .behind(let database, let program):
            throw StartRefusal(
                message: "the database is at version \(database) and this program needs \(program): "
                    + "run `lockstep migrate`")
        case .ahead(let database, let program):
            throw StartRefusal(
                message: "the database is at version \(database) and this program only knows \(program): "
                    + "run the newer lockstep; `lockstep migrate --check` tells")
        }
    }
}
