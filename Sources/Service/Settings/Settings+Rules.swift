import Basics
import Foundation
import Lockstep

extension Settings {
    /// The check before a payment.
    public struct Gate: Sendable {
        public let hookURL: ServiceURL?
        /// Not empty where there is a hook.
        public let hookSecrets: [Secret<Data>]
        public let hookAuthorityFile: String?
        public let budget: Duration
        public let lease: Duration
        public let poolSize: Int
        public let maximumRequests: Int
        public let messages: GateMessages
        public let allowsPlainHTTP: Bool

        init(_ read: SettingsReader, allowsPlainHTTP: Bool) {
            self.allowsPlainHTTP = allowsPlainHTTP
            read.begin("Gate")
            hookURL = read.optional(
                "LOCKSTEP_PREPAYMENT_HOOK_URL", .url,
                "Where the shop is asked before each payment, by a signed POST that it answers with 200 and {valid, message?} in the time that is left. Without it, it isn't asked. A message of more than 200 characters is cut."
            )
            hookSecrets =
                read.optional(
                    "LOCKSTEP_PREPAYMENT_HOOK_SECRET", .signingSecrets, secret: true, "Signs the question to the shop.")
                ?? []
            hookAuthorityFile = read.optional(
                "LOCKSTEP_PREPAYMENT_HOOK_CA", .path,
                "Authorities to trust there instead of the system's, in PEM.")
            budget = read.usually(
                "3000", "LOCKSTEP_PREPAYMENT_BUDGET_MS", .milliseconds(200...9500),
                "By when the gate has answered. The SDK itself gives up after 10 seconds.")
            lease = read.usually(
                "120", "LOCKSTEP_GATE_LEASE_SECONDS", .seconds(1...3600),
                "How long a yes keeps the amount from being moved.")
            poolSize = read.usually(
                "8", "LOCKSTEP_GATE_POOL_SIZE", .integer(1...100),
                "Connections to the database that only the gate uses, beside LOCKSTEP_DATABASE_POOL_SIZE.")
            maximumRequests = read.usually(
                "1024", "LOCKSTEP_GATE_MAX_REQUESTS", .integer(1...16_384),
                "Questions to the gate that are answered at once; beyond, it refuses at once with the reason internal. No rate limit counts them."
            )
            messages = Self.messages(read)
            PlainHTTP.check(hookURL, "LOCKSTEP_PREPAYMENT_HOOK_URL", allowed: allowsPlainHTTP, read)
            if hookURL != nil, !read.isSet("LOCKSTEP_PREPAYMENT_HOOK_SECRET") {
                read.fault("LOCKSTEP_PREPAYMENT_HOOK_SECRET", "must be set, as LOCKSTEP_PREPAYMENT_HOOK_URL is")
            }
        }

        private static func messages(_ read: SettingsReader) -> GateMessages {
            let table = read.optional(
                "LOCKSTEP_MESSAGES", .table,
                "Sentences for customers in place of config/messages.json's, by language and reason, the rest staying as it is; usually as LOCKSTEP_MESSAGES_FILE."
            )
            let language = read.usually(
                "en", "LOCKSTEP_MESSAGES_LANGUAGE", .text("a language of that table", upTo: 35),
                "What customers read whose request asks for no language of the table (Accept-Language).")
            do {
                return try GateMessages(overlaying: table.map { Data($0.utf8) }, usualLanguage: language)
            } catch {
                read.fault("LOCKSTEP_MESSAGES", "must \(error.words)")
                return .standard
            }
        }
    }

    /// How payments are understood.
    public struct Rules: Sendable {
        public enum Mismatch: String, Sendable, CaseIterable { case cancel, hold }

        public let referenceSeparator: String
        public let initFresh: Duration
        public let clientTokenGrace: Duration
        public let mismatch: Mismatch
        public let failureSettle: Duration
        public let unresolvedAfter: Duration
        public let overdueAfter: Duration
        public let reconcileGrace: Duration
        public let staleAfter: Duration

        init(_ read: SettingsReader) {
            read.begin("Rules")
            referenceSeparator = read.usually(
                "~", "LOCKSTEP_REFERENCE_SEPARATOR",
                .matching("1 to 4 visible characters of ASCII, none a letter or a digit") { text in
                    (1...4).contains(text.utf8.count)
                        && text.utf8.allSatisfy { (0x21...0x7E).contains($0) }
                        && !text.contains { $0.isLetter || $0.isNumber }
                },
                "Stands between an order's reference and the number of its execution. The shop's references can't hold it."
            )
            initFresh = read.usually(
                "600", "LOCKSTEP_INIT_FRESH_SECONDS", .seconds(0...3300),
                "How long an init payload is handed out again.")
            clientTokenGrace = read.usually(
                "3600", "LOCKSTEP_CLIENT_TOKEN_GRACE_SECONDS", .seconds(0...604_800),
                "How long after its checkout's expiry a client token still shows how it ended.")
            mismatch = read.usually(
                "cancel", "LOCKSTEP_MISMATCH", .word,
                "What becomes of a success for another amount than the confirmed one.")
            failureSettle = read.usually(
                "60", "LOCKSTEP_FAILURE_SETTLE_SECONDS", .seconds(0...3600),
                "How long after a failure the workflow may still try another provider.")
            unresolvedAfter = read.usually(
                "1h", "LOCKSTEP_UNRESOLVED_AFTER", .duration, "After how long an unknown outcome is a discrepancy.")
            overdueAfter = read.usually(
                "24h", "LOCKSTEP_OVERDUE_AFTER", .duration, "After how long a payment in flight is a discrepancy.")
            reconcileGrace = read.usually(
                "300", "LOCKSTEP_RECONCILE_GRACE_SECONDS", .seconds(0...86_400),
                "Payments younger than this are left for the next reconciliation.")
            staleAfter = read.usually(
                "10", "LOCKSTEP_STALE_SECONDS", .seconds(0...86_400),
                "After how long without news Payrails is asked about a payment in flight that somebody reads. 0 is never."
            )
        }
    }

    /// Background work.
    public struct Work: Sendable {
        public let lease: Duration
        public let healPending: [Duration]
        public let healUnknown: [Duration]
        public let poll: Duration
        public let concurrency: Int

        init(_ read: SettingsReader) {
            read.begin("Background work")
            lease = read.usually(
                "30", "LOCKSTEP_LEASE_SECONDS", .seconds(5...600),
                "How long a worker holds what it took; after it, another one goes on.")
            healPending = read.usually(
                "10s,30s,2m,10m,1h,6h", "LOCKSTEP_HEAL_PENDING", .schedule,
                "After how long Payrails is asked about a payment in flight; the last one again and again.")
            healUnknown = read.usually(
                "2s,10s,1m,5m,30m,1h", "LOCKSTEP_HEAL_UNKNOWN", .schedule,
                "The same for one whose outcome is unknown.")
            poll = read.usually(
                "500", "LOCKSTEP_POLL_MS", .milliseconds(10...60_000),
                "How often work of other processes is looked for.")
            concurrency = read.usually(
                "8", "LOCKSTEP_WORK_CONCURRENCY", .integer(1...256),
                "Calls to Payrails that each kind of work makes at once.")
        }
    }
}
