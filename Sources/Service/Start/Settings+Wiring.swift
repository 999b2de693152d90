import Basics
import Crypto
import Foundation
import HTTPClient
import HTTPServer
import Lockstep
import Payrails
import Postgres
import Store

/// What each part is configured with, by the settings.
extension Settings {
    public var postgres: PostgresConfiguration {
        var configuration = PostgresConfiguration(connectionString: database.url.reveal)
        configuration.maximumConnections = database.poolSize
        // Those who were let in are finished; the door looks at LOCKSTEP_DATABASE_MAX_WAITING.
        configuration.maximumWaiters = database.maximumWaiting + load.maximumRequests + load.maximumFeedReaders + 512
        configuration.acquireTimeout = database.acquireTimeout
        configuration.statementTimeout = database.statementTimeout
        configuration.usesPreparedStatements = database.usesPreparedStatements
        configuration.avoidsSequentialScans = true
        return configuration
    }

    /// - Throws: a ``StartRefusal`` for patience without steps, which the settings' own form excludes.
    public func storePolicy() throws(StartRefusal) -> PaymentStore.Policy {
        guard let pending = Patience(work.healPending), let unknown = Patience(work.healUnknown) else {
            throw StartRefusal(message: "LOCKSTEP_HEAL_PENDING and LOCKSTEP_HEAL_UNKNOWN need at least one step")
        }
        return PaymentStore.Policy(
            settlement: Settlement.Rules(
                mismatch: rules.mismatch == .hold ? .hold : .cancel, failureSettle: rules.failureSettle),
            charges: ChargeSettlement.Rules(failureSettle: rules.failureSettle, declines: try renewal.declines()),
            renewal: try renewalRules(), expiryNotice: renewal.expiryNotice, expiryZone: renewal.expiryZone,
            references: PaymentReference(separator: rules.referenceSeparator),
            healing: HealingSchedule(pending: pending, unknown: unknown),
            discrepancies: OrderDiscrepancies.Rules(
                unresolvedAfter: rules.unresolvedAfter, overdueAfter: rules.overdueAfter, lease: work.lease),
            lease: work.lease, gateLease: gate.lease,
            initFresh: rules.initFresh, clientTokenGrace: rules.clientTokenGrace,
            requestKeyLife: retention.idempotencyKeys)
    }

    /// What joins these books and Payrails, in a service and in a command alike.
    ///
    /// - Parameter metrics: where it counts; a command shows none.
    /// - Throws: ``StartRefusal``, as ``storePolicy()`` does.
    func orchestrator(
        _ payrails: Payrails, through client: HTTPClient, pool: PostgresPool, clock: WallClock,
        identifiers: IdentifierSource, metrics: Metrics = Metrics(), log: Log
    ) throws(StartRefusal) -> Orchestrator {
        var store = PaymentStore(pool: pool, clock: clock, identifiers: identifiers, policy: try storePolicy())
        let alarm = ConfigurationAlarm(metrics, log: log)
        store.onConfigurationFailure = { alarm.raise($0) }
        return Orchestrator(
            store: store, provider: PayrailsClient(payrails.configuration(pacedBy: store), transport: client),
            owner: identifiers.next(), charging: charging, log: log)
    }

    /// How charges without the customer are made.
    public var charging: Orchestrator.Charging {
        var charging = Orchestrator.Charging(returnURL: http.returnURL?.exact)
        if let payrails { charging.keyLife = payrails.idempotencyRetention }
        return charging
    }

    var server: HTTPServerConfiguration {
        var configuration = HTTPServerConfiguration(host: http.listen.host, port: http.listen.port)
        configuration.maximumConnections = http.maximumConnections
        configuration.maximumRequestsInFlight = maximumRequestsInFlight
        // Each thread looks over its own connections; two halve what thousands of idle ones cost the others.
        configuration.threads = 2
        configuration.maximumBodyBytes = { _, path in
            path.hasPrefix("/webhooks/") ? Endpoint.maximumNotificationBytes : 262_144
        }
        // The gate answers 200 whatever is broken: a customer who presses "pay" at this very moment is answered, too.
        let gate = Endpoint.prePayment
        configuration.servesWhileDraining = { method, path in
            method == gate.method && path == gate.pattern.description
        }
        return configuration
    }
}

extension Settings.Payrails {
    public func client() throws(HTTPClientError) -> HTTPClient {
        var configuration = HTTPClientConfiguration()
        configuration.clientCertificateFile = clientCertificateFile
        configuration.clientKeyFile = clientKeyFile
        configuration.authorityFile = authorityFile
        configuration.connectTimeout = connectTimeout
        configuration.allowsPlainHTTP = allowsPlainHTTP
        return try HTTPClient(configuration)
    }

    /// With the limit that all processes on these books share.
    func configuration(pacedBy store: PaymentStore) -> PayrailsConfiguration {
        var configuration = configuration
        let perSecond = sharedRequestsPerSecond
        if perSecond > 0 {
            configuration.sharedPace = {
                let wait = try? await store.reserveCall(perSecond: perSecond)
                return wait.map { SharedPlace(wait: $0, margin: PaymentStore.placeMargin) }
            }
        }
        return configuration
    }

    public var configuration: PayrailsConfiguration {
        var configuration = PayrailsConfiguration(
            baseURL: baseURL.text, clientID: clientID, clientSecret: clientSecret, workspaceID: workspaceID)
        configuration.workflowCode = workflowCode
        configuration.workflowVersion = workflowVersion
        configuration.lookupPath = lookupPath
        configuration.captureMode =
            switch captureMode {
            case .workflow: nil
            case .instant: .instant
            case .manual: .manual
            case .delayed: .delayed
            }
        configuration.sendsCaptureModeOnInit = sendsCaptureModeOnInit
        configuration.sendsOrderProcessingType = sendsOrderProcessingType
        configuration.sendsCIT = sendsCIT
        configuration.skipsThreeDSForCharges = skipsThreeDSForCharges
        configuration.tokenTimeout = tokenTimeout
        configuration.changeTimeout = callTimeout
        configuration.readTimeout = readTimeout
        configuration.waitTimeout = waitTimeout
        configuration.tokenRefreshMargin = tokenRefreshMargin
        configuration.requestsPerSecond = requestsPerSecond
        configuration.requestBurst = requestBurst
        configuration.rateLimitPause = rateLimitPause
        configuration.pageSize = pageSize
        return configuration
    }

    /// The keys of each endpoint, each named by eight digits of its hash, so that a metric can tell which still matches,
    /// whatever stands before it in the list (S8).
    var signatureKeys: [String: [WebhookKey]] {
        (webhookKeys?.keys ?? [:]).reduce(into: [:]) { all, entry in
            all[entry.key] = entry.value.compactMap { key in
                WebhookKey(id: Self.name(of: key), key: key.text, encoding: key.isHexadecimal ? .hex : .utf8)
            }
        }
    }

    private static func name(of key: WebhookKeyList.Key) -> String {
        String(Crypto.sha256(Data("lockstep webhook key: \(key.text.reveal)".utf8)).hexadecimal.prefix(8))
    }
}

/// Why the service does not start: what is wrong, and the command that mends it. The program ends with 78.
public struct StartRefusal: Error, Sendable {
    public let message: String
    public init(message: String) { self.message = message }
}

extension Settings.Retention {
    /// What is older than these is deleted.
    public func limits(at now: Timestamp) -> RetentionLimits {
        RetentionLimits(notifications: now - notifications, personalData: now - personalData, events: now - events)
    }
}
