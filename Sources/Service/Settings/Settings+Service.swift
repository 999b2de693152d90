import Basics
import Foundation

extension Settings {
    /// PostgreSQL.
    public struct Database: Sendable {
        /// A libpq connection string or address; it may hold a password.
        public let url: Secret<String>
        public let poolSize: Int
        public let usesPreparedStatements: Bool
        public let statementTimeout: Duration
        public let acquireTimeout: Duration
        public let maximumWaiting: Int

        init(_ read: SettingsReader) {
            read.begin("Database")
            url = read.required(
                "LOCKSTEP_DATABASE_URL", .connectionString, standIn: Secret(""), secret: true,
                "Where PostgreSQL is, like postgresql://lockstep@db1,db2/lockstep?target_session_attrs=read-write. Several hosts are tried in turn."
            )
            poolSize = read.usually(
                "16", "LOCKSTEP_DATABASE_POOL_SIZE", .integer(2...500),
                "Connections of one process. More than twice the database's cores makes it slower.")
            usesPreparedStatements = read.usually(
                "1", "LOCKSTEP_DATABASE_PREPARED_STATEMENTS", .flag,
                "0 for PgBouncer in transaction mode before 1.21, which can't keep named statements apart.")
            statementTimeout = read.usually(
                "10000", "LOCKSTEP_DATABASE_STATEMENT_TIMEOUT_MS", .milliseconds(100...600_000),
                "After how long the database gives a statement up.")
            acquireTimeout = read.usually(
                "2000", "LOCKSTEP_DATABASE_ACQUIRE_TIMEOUT_MS", .milliseconds(50...60_000),
                "How long a request waits for a free connection before it is answered with 503.")
            maximumWaiting = read.usually(
                "512", "LOCKSTEP_DATABASE_MAX_WAITING", .integer(1...10_000),
                "How many may wait for a free connection. While as many do, new requests are answered with 503 at once; the gate and notifications aren't."
            )
        }
    }

    /// The HTTP service.
    public struct HTTP: Sendable {
        /// Paths that can be closed to strangers.
        public enum RestrictedPath: String, Sendable, CaseIterable { case healthz, readyz, metrics, openapi }

        public let listen: ListenAddress
        public let publicURL: ServiceURL?
        public let returnURL: ServiceURL?
        public let corsOrigins: Set<String>
        public let restrictedPaths: Set<RestrictedPath>
        public let maximumConnections: Int
        public let drain: Duration

        init(_ read: SettingsReader) {
            read.begin("HTTP service")
            listen = read.usually(
                "127.0.0.1:8080", "LOCKSTEP_LISTEN", .listen,
                "Where the service listens. It speaks plain HTTP: put a proxy with TLS in front of it.")
            publicURL = read.optional(
                "LOCKSTEP_PUBLIC_URL", .url, "Where others reach the service; stands in the OpenAPI document.")
            returnURL = read.optional(
                "LOCKSTEP_RETURN_URL", .url,
                "Where a customer comes back to from a bank's page. Charges without a customer need one too.")
            if returnURL?.hasNumericHost == true {
                read.fault("LOCKSTEP_RETURN_URL", "must name its host: Payrails refuses an IP address there")
            }
            corsOrigins =
                read.optional(
                    "LOCKSTEP_CORS_ORIGINS", .origins,
                    "Origins of web shops whose pages call the service with client tokens.") ?? []
            restrictedPaths =
                read.optional(
                    "LOCKSTEP_RESTRICTED_PATHS", .paths, "Which of these paths only keys with the scope ops may read.")
                ?? []
            maximumConnections = read.usually(
                "10000", "LOCKSTEP_MAX_CONNECTIONS", .integer(16...65_536), "Connections at once; more are refused.")
            drain = read.usually(
                "20", "LOCKSTEP_DRAIN_SECONDS", .seconds(0...600),
                "How long, after SIGTERM, requests and work in flight may take to end.")
        }
    }

    /// How much may come at once, and from whom.
    public struct Load: Sendable {
        public let maximumRequests: Int
        public let maximumFeedReaders: Int
        public let maximumWaitingNotifications: Int
        /// 0: no limit.
        public let merchantRequestsPerSecond: Int
        /// 0: no limit.
        public let clientRequestsPerMinute: Int

        init(_ read: SettingsReader) {
            read.begin("Load")
            maximumRequests = read.usually(
                "1024", "LOCKSTEP_MAX_REQUESTS", .integer(1...16_384),
                "Requests that are served at once; beyond, the answer is 503 at once. The gate, the feed and notifications count by themselves."
            )
            maximumFeedReaders = read.usually(
                "256", "LOCKSTEP_MAX_FEED_READERS", .integer(1...16_384),
                "Requests for events that are served, or wait for one, at once.")
            maximumWaitingNotifications = read.usually(
                "4096", "LOCKSTEP_MAX_WAITING_NOTIFICATIONS", .integer(1...65_536),
                "Notifications that may wait to be written; beyond, the answer is 503 at once, and Payrails sends them again."
            )
            merchantRequestsPerSecond = read.usually(
                "1000", "LOCKSTEP_RATE_LIMIT_MERCHANT_PER_SECOND", .integer(0...1_000_000),
                "Requests of one merchant key in the long run, ten seconds' worth at once; beyond, 429. Counted by each process. 0 for no limit. The gate is never limited: a 429 there would keep a customer from paying."
            )
            clientRequestsPerMinute = read.usually(
                "120", "LOCKSTEP_RATE_LIMIT_CLIENT_PER_MINUTE", .integer(0...1_000_000),
                "Requests of one client token in the long run, and at once; beyond, 429. Counted by each process. 0 for no limit. Not for the gate."
            )
        }
    }

    public struct Logging: Sendable {
        public let level: LogLevel

        init(_ read: SettingsReader) {
            read.begin("Log")
            level = read.usually(
                "info", "LOCKSTEP_LOG_LEVEL", .word, "The least level that is written to standard error.")
        }
    }
}

extension SettingForm where Value == Set<Settings.HTTP.RestrictedPath> {
    fileprivate static let paths = SettingForm(
        "some of \(Settings.HTTP.RestrictedPath.allCases.map(\.rawValue).joined(separator: ", ")), with commas between"
    ) { text in
        guard let parts = SettingText.list(text) else { return nil }
        let paths = parts.compactMap(Settings.HTTP.RestrictedPath.init(rawValue:))
        return paths.count == parts.count ? Set(paths) : nil
    }
}
