import Basics
import Foundation
import HTTPClient
import HTTPServer
import Lockstep
import Payrails
import Postgres
import Store

/// Joins the parts of one process: the only place that knows them all.
struct Assembly: Sendable {
    let settings: Settings
    let payrails: Settings.Payrails
    let parts: LockstepService.Parts
    let orchestrator: Orchestrator
    let pool: PostgresPool
    /// The gate's own; ``pool`` itself where there is none.
    let gatePool: PostgresPool
    let clock: WallClock
    let identifiers: IdentifierSource
    let bells: Bells
    let log: Log
    let metrics: Metrics
    let httpMetrics: HTTPMetrics
    let admission: Admission
    let gatekeeper: Gatekeeper
    let authenticator: StoreAuthenticator
    let openDiscrepancies: GaugeFamily
    let notificationMetrics: NotificationMetrics
    let renewalMetrics: RenewalMetrics
    let inbox: Inbox
    let webhookKeys: NotificationKeys
    let events: EventPusher?

    init(
        settings: Settings, payrails: Settings.Payrails, parts: LockstepService.Parts, orchestrator: Orchestrator,
        pool: PostgresPool, clock: WallClock, identifiers: IdentifierSource, bells: Bells, log: Log,
        metrics: Metrics = Metrics(), eventsClient: HTTPClient? = nil, gatePool: PostgresPool? = nil,
        checkClient: HTTPClient? = nil
    ) {
        self.settings = settings
        self.payrails = payrails
        self.parts = parts
        self.orchestrator = orchestrator
        self.pool = pool
        self.gatePool = gatePool ?? pool
        self.clock = clock
        self.identifiers = identifiers
        self.bells = bells
        self.log = log
        self.metrics = metrics
        authenticator = StoreAuthenticator(store: orchestrator.store, clock: clock)
        notificationMetrics = NotificationMetrics(metrics, clock: clock)
        renewalMetrics = RenewalMetrics(metrics, clock: clock)
        openDiscrepancies = metrics.gauge(
            "lockstep_discrepancies_open", help: "What doesn't add up and waits for a person, by class.",
            labels: ["class"])
        webhookKeys = NotificationKeys(payrails.signatureKeys)
        inbox = Inbox(
            store: orchestrator.store, log: log, bell: bells.notifications,
            maximumWaiting: settings.load.maximumWaitingNotifications)
        httpMetrics = HTTPMetrics(metrics)
        let maximumWaiting = settings.database.maximumWaiting
        admission = Admission(settings.admissionLimits) { pool.statistics.waiting >= maximumWaiting }
        gatekeeper = settings.gatekeeper(
            store: gatePool.map(orchestrator.store.over) ?? orchestrator.store, client: checkClient,
            metrics: GateMetrics(metrics), clock: clock, identifiers: identifiers)
        events = eventsClient.flatMap { client in
            settings.pusher(
                client: client, store: orchestrator.store, metrics: DeliveryMetrics(metrics, clock: clock),
                clock: clock, log: log)
        }
    }

    var workers: Workers {
        var pace = Workers.Pace()
        pace.notifications = settings.work.poll
        pace.operations = settings.work.poll
        // What is looked for is an hour old as a rule.
        pace.ageing = settings.work.poll * 20
        pace.concurrency = settings.work.concurrency
        pace.renewals = settings.renewal.every
        pace.renewalConcurrency = settings.renewalConcurrency
        return Workers(
            orchestrator: orchestrator, authenticator: authenticator, bells: bells, notifications: notificationMetrics,
            oldestSnapshot: metrics.gauge(
                "lockstep_database_oldest_snapshot_transactions",
                help:
                    "Transactions since the oldest one that is still open somewhere; while it grows, queues get slower."
            ),
            discrepancies: openDiscrepancies, renewals: renewalMetrics, events: events, log: log, pace: pace,
            isIdle: !parts.hasWorkers)
    }

    func server() -> HTTPServer {
        let router = Router(routes: routes, surroundings)
        var configuration = settings.server
        configuration.refusalResponse = { Self.response(to: $0, identifiers) }
        let clock = clock
        let server = HTTPServer(configuration) { request in
            let answer = await router.respond(
                to: IncomingRequest(
                    method: request.method, path: request.path, query: request.query ?? "", headers: request.headers,
                    body: request.body, receivedAt: clock.now(), arrival: request.receivedAt))
            return HTTPServerResponse(status: answer.status, headers: answer.headers, body: answer.body)
        }
        observe(server)
        return server
    }

    private var surroundings: Router.Surroundings {
        Router.Surroundings(
            authenticator: authenticator,
            idempotency: StoreIdempotencyKeeper(store: orchestrator.store, lease: settings.work.lease), log: log,
            metrics: httpMetrics, clock: clock, identifiers: identifiers, corsOrigins: settings.http.corsOrigins,
            admission: admission, rateLimits: RateLimits(settings.rateLimitPolicies), explain: Self.explain)
    }

    /// The database's trouble is nobody's fault out there: come again.
    @Sendable static func explain(_ error: any Error) -> Problem? {
        guard let error = error as? PostgresError else { return nil }
        // Class 22 is about the data of a statement; whatever else goes wrong will pass.
        if error.sqlState?.hasPrefix("22") == true { return Problem(.internalError) }
        return Problem(.unavailable, "the database can't be used at the moment")
    }

    private static func response(
        to refusal: HTTPServerRefusal, _ identifiers: IdentifierSource
    ) -> HTTPServerResponse {
        let kind: ProblemKind =
            switch refusal.kind {
            case .badFraming, .malformedRequest: .malformedRequest
            case .timeout: .requestTimeout
            case .bodyTooLarge: .tooLarge
            case .uriTooLong: .uriTooLong
            case .unsupportedEncoding: .unsupportedMediaType
            case .headersTooLarge: .headersTooLarge
            case .overloaded, .draining: .unavailable
            }
        let id = RequestID(callers: refusal.headers, else: identifiers)
        var answer = Problem(kind).answer(requestID: id)
        answer.headers["X-Request-Id"] = id.text
        return HTTPServerResponse(status: answer.status, headers: answer.headers, body: answer.body)
    }
}
