import Basics
import Foundation

/// Everything that can be set, read once at the start. The nested types are the table: each reads its own settings, and
/// what they read is what `--help` and `config/lockstep.env.example` show.
public struct Settings: Sendable {
    public let database: Database
    public let http: HTTP
    public let load: Load
    public let log: Logging
    /// Nil where the command doesn't need Payrails and it isn't set up.
    public let payrails: Payrails?
    public let gate: Gate
    public let rules: Rules
    public let work: Work
    public let renewal: Renewal
    public let events: Events
    public let retention: Retention

    /// What a command can't do without, besides the database.
    public enum Need: Sendable {
        /// `migrate`, `keys`, `retain`, `notifications`.
        case database
        /// `serve`, `renew`, `reconcile`, `doctor`.
        case payrails
    }

    /// Reads the settings.
    ///
    /// - Parameters:
    ///   - environment: names and values; nothing else is looked at.
    ///   - readFile: reads the file of an `X_FILE`.
    /// - Throws: every fault at once.
    public init(
        environment: [String: String], for need: Need = .payrails,
        readFile: @escaping (String) throws -> Data = { try Data(contentsOf: URL(fileURLWithPath: $0)) }
    ) throws(SettingsFaults) {
        let reader = SettingsReader(environment: environment, readFile: readFile)
        self.init(reader, need)
        reader.reportUnknownNames()
        guard reader.faults.isEmpty else { throw SettingsFaults(faults: reader.faults) }
    }

    private init(_ reader: SettingsReader, _ need: Need) {
        database = Database(reader)
        http = HTTP(reader)
        load = Load(reader)
        log = Logging(reader)
        reader.begin("Calls to others")
        let allowsPlainHTTP = PlainHTTP.isAllowed(reader)
        // Nobody here calls these two, but tokens and customers travel to them.
        PlainHTTP.check(http.publicURL, "LOCKSTEP_PUBLIC_URL", allowed: allowsPlainHTTP, reader)
        PlainHTTP.check(http.returnURL, "LOCKSTEP_RETURN_URL", allowed: allowsPlainHTTP, reader)
        payrails = Payrails(reader, isNeeded: need == .payrails, allowsPlainHTTP: allowsPlainHTTP)
        gate = Gate(reader, allowsPlainHTTP: allowsPlainHTTP)
        rules = Rules(reader)
        work = Work(reader)
        renewal = Renewal(reader)
        events = Events(reader, allowsPlainHTTP: allowsPlainHTTP)
        retention = Retention(reader)
        check(reader)
    }

    /// What no setting can see by itself.
    private func check(_ reader: SettingsReader) {
        if let payrails, payrails.longestStep >= work.lease {
            reader.fault(
                "LOCKSTEP_LEASE_SECONDS",
                "must be more than a step at Payrails can take, \(payrails.longestStep.components.seconds) s: a token and a "
                    + "call, both twice (PAYRAILS_TOKEN_TIMEOUT_MS, PAYRAILS_CALL_TIMEOUT_MS)")
        }
        if retention.personalData < max(retention.notifications, retention.events) {
            reader.fault(
                "LOCKSTEP_RETAIN_PERSONAL_DATA_DAYS",
                "must not be less than LOCKSTEP_RETAIN_NOTIFICATIONS_DAYS and LOCKSTEP_RETAIN_EVENTS_DAYS: bodies and "
                    + "events hold such data too")
        }
    }

    /// The table, in its order.
    public static let entries: [SettingsEntry] = {
        let reader = SettingsReader(environment: [:], readFile: { _ in Data() })
        _ = Settings(reader, .payrails)
        return reader.entries
    }()
}

/// Whether `http://` may leave this machine.
enum PlainHTTP {
    static func isAllowed(_ reader: SettingsReader) -> Bool {
        reader.usually(
            "0", "LOCKSTEP_ALLOW_PLAIN_HTTP", .flag,
            "1 lets http:// go to other machines, unencrypted. For networks that are safe by other means.")
    }

    /// Tells of an address that would go out in the clear.
    static func check(_ url: ServiceURL?, _ name: String, allowed: Bool, _ reader: SettingsReader) {
        guard let url, url.isPlain, !url.isThisMachine, !allowed else { return }
        reader.fault(name, "must be https://, unless LOCKSTEP_ALLOW_PLAIN_HTTP=1")
    }
}
