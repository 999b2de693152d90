import Basics
import Foundation
import Lockstep

extension Settings {
    /// Charges without the customer.
    public struct Renewal: Sendable {
        public typealias Missed = RenewalPlan.Missed
        public enum DunningEnd: String, Sendable, CaseIterable { case pastDue, cancel }

        /// 0 to 23, in the subscription's zone.
        public let hour: Int
        public let missed: Missed
        /// Nil: only `lockstep renew` charges.
        public let every: Duration?
        public let concurrency: Int
        public let expiryZone: TimeZone
        public let expiryNotice: Duration
        public let dunningEnd: DunningEnd
        /// The tables, as text; nil: those that are compiled in.
        public let declinePolicy: String?
        public let dunningSchedule: String?

        init(_ read: SettingsReader) {
            read.begin("Renewals")
            hour = read.usually(
                "0", "LOCKSTEP_RENEW_HOUR", .integer(0...23),
                "The hour of the day, in the subscription's zone, from which a period is due.")
            missed = read.usually(
                "all", "LOCKSTEP_RENEW_MISSED", .word,
                "What becomes of periods that were missed: all are charged in order, only the latest is, or those of more than a day ago are skipped."
            )
            every = read.optional(
                "LOCKSTEP_RENEW_EVERY", .duration,
                "How often the service charges what is due by itself. Without it, lockstep renew does, by a timer.")
            concurrency = read.usually(
                "256", "LOCKSTEP_RENEW_CONCURRENCY", .integer(1...512),
                "Subscriptions that one run deals with at once. Where Payrails is sent fewer calls a second than that, as many, but LOCKSTEP_WORK_CONCURRENCY at least."
            )
            expiryZone = read.usually(
                "-12:00", "LOCKSTEP_EXPIRY_ZONE", .zone,
                "Where a card's month ends. The default is the last place on earth.")
            expiryNotice = read.usually(
                "30", "LOCKSTEP_EXPIRY_NOTICE_DAYS", .days(0...365),
                "How long before a card's expiry instrument.expiring is told.")
            dunningEnd = read.usually(
                "pastDue", "LOCKSTEP_DUNNING_END", .word, "What a subscription is when its dunning schedule has ended.")
            declinePolicy = read.optional(
                "LOCKSTEP_DECLINE_POLICY", .table,
                "A table instead of config's decline policy; usually as LOCKSTEP_DECLINE_POLICY_FILE.")
            dunningSchedule = read.optional(
                "LOCKSTEP_DUNNING_SCHEDULE", .table,
                "A table instead of config's dunning schedule; usually as LOCKSTEP_DUNNING_SCHEDULE_FILE.")
        }
    }

    /// Telling the shop.
    public struct Events: Sendable {
        public let url: ServiceURL?
        /// Not empty where there is an address.
        public let secrets: [Secret<Data>]
        public let timeout: Duration
        public let retries: [Duration]
        public let concurrency: Int
        public let authorityFile: String?
        public let allowsPlainHTTP: Bool

        init(_ read: SettingsReader, allowsPlainHTTP: Bool) {
            self.allowsPlainHTTP = allowsPlainHTTP
            read.begin("Events")
            url = read.optional(
                "LOCKSTEP_EVENTS_URL", .url,
                "Where events are sent, from the first start with it on. Without it, the shop reads the feed.")
            secrets =
                read.optional(
                    "LOCKSTEP_EVENTS_SECRET", .signingSecrets, secret: true,
                    "Signs events, by the Standard Webhooks specification. While a secret rotates, give the new and the old one."
                ) ?? []
            timeout = read.usually(
                "10000", "LOCKSTEP_EVENTS_TIMEOUT_MS", .milliseconds(100...60_000),
                "To get the shop's answer to an event.")
            retries = read.usually(
                "5s,5m,30m,2h,5h,10h,14h,20h,24h", "LOCKSTEP_EVENTS_RETRIES", .schedule,
                "After how long an event that the shop didn't take is sent again; after the last one it is dead (lockstep events). Meanwhile later events of its checkout wait."
            )
            concurrency = read.usually(
                "8", "LOCKSTEP_EVENTS_CONCURRENCY", .integer(1...256), "Events that one process sends at once.")
            authorityFile = read.optional(
                "LOCKSTEP_EVENTS_CA", .path, "Authorities to trust instead of the system's, in PEM.")
            PlainHTTP.check(url, "LOCKSTEP_EVENTS_URL", allowed: allowsPlainHTTP, read)
            if url != nil, !read.isSet("LOCKSTEP_EVENTS_SECRET") {
                read.fault("LOCKSTEP_EVENTS_SECRET", "must be set, as LOCKSTEP_EVENTS_URL is")
            }
        }
    }

    /// How long things are kept.
    public struct Retention: Sendable {
        public let notifications: Duration
        public let events: Duration
        public let personalData: Duration
        public let idempotencyKeys: Duration

        init(_ read: SettingsReader) {
            read.begin("Retention")
            notifications = read.usually(
                "90", "LOCKSTEP_RETAIN_NOTIFICATIONS_DAYS", .days(1...3650),
                "Bodies of notifications that were applied.")
            events = read.usually("90", "LOCKSTEP_RETAIN_EVENTS_DAYS", .days(1...3650), "Events of the feed.")
            personalData = read.usually(
                "400", "LOCKSTEP_RETAIN_PERSONAL_DATA_DAYS", .days(1...3650),
                "Personal data of checkouts that are closed, from their last change or their expiry, of charges that are over, and of subscriptions that were cancelled or have ended: holderReference, meta, basketVersion, and the reasons of captures, cancels and refunds. And instruments that were deleted. Amounts, ids and facts stay."
            )
            idempotencyKeys = read.usually(
                "2", "LOCKSTEP_RETAIN_IDEMPOTENCY_DAYS", .days(1...365), "Callers' idempotency keys with their answers."
            )
        }
    }
}

extension SettingForm where Value == String {
    static let table = SettingForm("the text of a table") { $0 }
}
