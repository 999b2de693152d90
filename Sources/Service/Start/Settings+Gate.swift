import Basics
import HTTPClient
import Lockstep
import Postgres
import Store

extension Settings.Gate {
    /// A client of its own, which shows no certificate: what is Payrails' doesn't go to the shop. Nil where the shop isn't
    /// asked.
    func client() throws(HTTPClientError) -> HTTPClient? {
        guard hookURL != nil else { return nil }
        var configuration = HTTPClientConfiguration()
        configuration.authorityFile = hookAuthorityFile
        configuration.allowsPlainHTTP = allowsPlainHTTP
        configuration.connectTimeout = budget
        configuration.maximumConnections = 128
        configuration.maximumConnectionsPerHost = 128
        configuration.maximumRequests = maximumRequests
        configuration.userAgent = "lockstep/\(LockstepVersion.current)"
        return try HTTPClient(configuration)
    }
}

extension Settings {
    /// The gate's own few connections. Nothing there is worth more time than the budget.
    var gatePostgres: PostgresConfiguration {
        var configuration = postgres
        configuration.maximumConnections = gate.poolSize
        configuration.maximumWaiters = gate.maximumRequests
        // Who has waited so long has no time left for what comes after; and a database that is gone for longer than that
        // isn't waited for.
        configuration.acquireTimeout = gate.budget / 2
        configuration.connectTimeout = gate.budget
        configuration.statementTimeout = gate.budget
        // One checkout that somebody holds must not take a connection from all the others.
        configuration.lockTimeout = min(gate.budget / 4, .milliseconds(500))
        configuration.applicationName = "lockstep-gate"
        return configuration
    }

    /// - Parameters:
    ///   - store: over the gate's own connections.
    ///   - client: nil where the shop isn't asked.
    func gatekeeper(
        store: PaymentStore, client: HTTPClient?, metrics: GateMetrics, clock: WallClock, identifiers: IdentifierSource
    ) -> Gatekeeper {
        var check: MerchantCheck?
        if let client, let url = gate.hookURL {
            check = MerchantCheck(
                client: client, url: url.exact, signature: WebhookSignature(secrets: gate.hookSecrets), clock: clock,
                identifiers: identifiers, metrics: metrics)
        }
        return Gatekeeper(
            store: store, leases: Batcher(maximumBatch: 64) { await store.openGates($0, waits: false) },
            check: check, messages: gate.messages, timing: Gatekeeper.Timing(budget: gate.budget),
            metrics: metrics)
    }
}
