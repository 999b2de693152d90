import Basics
import Foundation

extension Settings {
    /// The check before a payment.
    public struct Gate: Sendable {
        public let hookURL: ServiceURL?
        /// Not empty where there is a hook.
        public let hookSecrets: [Secret<Data>]
        public let budget: Duration
        public let lease: Duration

        init(_ read: SettingsReader, allowsPlainHTTP: Bool) {
            read.begin("Gate")
            hookURL = read.optional(
                "LOCKSTEP_PREPAYMENT_HOOK_URL", .url,
                "Where the shop is asked before each payment. Without it, it isn't.")
            hookSecrets =
                read.optional(
                    "LOCKSTEP_PREPAYMENT_HOOK_SECRET", .signingSecrets, secret: true, "Signs the question to the shop.")
                ?? []
            budget = read.usually(
                "3000", "LOCKSTEP_PREPAYMENT_BUDGET_MS", .milliseconds(200...9500),
                "By when the gate has answered. The SDK itself gives up after 10 seconds.")
            lease = read.usually(
                "120", "LOCKSTEP_GATE_LEASE_SECONDS", .seconds(1...3600),
                "How long a yes keeps the amount from being moved.")
            PlainHTTP.check(hookURL, "LOCKSTEP_PREPAYMENT_HOOK_URL", allowed: allowsPlainHTTP, read)
            if hookURL != nil, !read.isSet("LOCKSTEP_PREPAYMENT_HOOK_SECRET") {
                read.fault("LOCKSTEP_PREPAYMENT_HOOK_SECRET", "must be set, as LOCKSTEP_PREPAYMENT_HOOK_URL is")
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
