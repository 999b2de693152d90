import Basics
import Foundation

/// A charge that repeats by a calendar. A value: what happens to it is an ``Event``, what must be made true besides the
/// new row is an ``Effect``, and the store does both in one transaction.
public struct Subscription: Hashable, Sendable {
    public enum Status: String, Hashable, Sendable, CaseIterable {
        case active
        /// Nothing is charged until it is resumed.
        case paused
        /// A period is due and not paid, and its schedule runs or has ended without success.
        case pastDue
        /// The instrument can't be charged; another one, or a change of it, is waited for.
        case needsInstrument
        case cancelled
        /// Its last period is over with: nothing more will be charged.
        case ended

        public var isFinal: Bool { self == .cancelled || self == .ended }
        /// Whether its periods are charged.
        public var runs: Bool { self == .active || self == .pastDue || self == .needsInstrument }
    }

    public let id: SubscriptionID
    public let merchantReference: String
    public let holderReference: String
    public var instrument: InstrumentID
    /// The provider's workflow that its charges go through.
    public let workflowCode: String
    /// Of the periods that have not begun to be charged.
    public var amount: Money
    public let interval: BillingInterval
    /// The anchor, as the shop gave it last.
    public var startsOn: CivilDate
    /// The index of the period that begins on the anchor.
    public var anchorIndex: Int
    /// Whose days they are, by its name in IANA's list.
    public let timezone: TimeZone
    /// The last day on which a period may begin.
    public var endsOn: CivilDate?
    /// How many periods there are at most, those included that were skipped.
    public var maxCharges: Int?
    public var expiryPolicy: ExpiryPolicy
    public internal(set) var status: Status
    /// The next period that has no charge yet, from 1.
    public internal(set) var nextIndex: Int
    /// What was declined for good: it isn't tried again until it changes or is replaced.
    public internal(set) var declined: DeclinedInstrument?
    public var meta: JSON?
    public let createdAt: Timestamp

    public init(
        id: SubscriptionID, merchantReference: String, holderReference: String, instrument: InstrumentID,
        workflowCode: String, amount: Money, interval: BillingInterval, startsOn: CivilDate, anchorIndex: Int = 1,
        timezone: TimeZone, endsOn: CivilDate? = nil, maxCharges: Int? = nil, expiryPolicy: ExpiryPolicy = .block,
        status: Status = .active, nextIndex: Int = 1, declined: DeclinedInstrument? = nil, meta: JSON? = nil,
        createdAt: Timestamp
    ) {
        self.id = id
        self.merchantReference = merchantReference
        self.holderReference = holderReference
        self.instrument = instrument
        self.workflowCode = workflowCode
        self.amount = amount
        self.interval = interval
        self.startsOn = startsOn
        self.anchorIndex = anchorIndex
        self.timezone = timezone
        self.endsOn = endsOn
        self.maxCharges = maxCharges
        self.expiryPolicy = expiryPolicy
        self.status = status
        self.nextIndex = nextIndex
        self.declined = declined
        self.meta = meta
        self.createdAt = createdAt
    }

    /// - Parameter hour: from which hour of its first day a period is due.
    public func calendar(hour: Int) -> BillingCalendar {
        BillingCalendar(
            anchor: startsOn, anchorIndex: anchorIndex, interval: interval, zone: timezone, hour: hour)
    }

    /// Whether a period of that index is still to come, by ``endsOn`` and ``maxCharges``.
    public func has(period index: Int) -> Bool {
        if let maxCharges, index > maxCharges { return false }
        if let endsOn, calendar(hour: 0).start(of: index) > endsOn { return false }
        return true
    }

    /// The first day of the next period; nil where none comes.
    public var nextChargeOn: CivilDate? {
        guard status.runs, has(period: nextIndex) else { return nil }
        return calendar(hour: 0).start(of: nextIndex)
    }
}

/// An instrument that was declined for good, as it was then.
public struct DeclinedInstrument: Hashable, Sendable {
    public let instrument: InstrumentID
    /// ``InstrumentSnapshot/appearance`` at that time.
    public let appearance: String

    public init(instrument: InstrumentID, appearance: String) {
        self.instrument = instrument
        self.appearance = appearance
    }
}

extension InstrumentSnapshot {
    /// What an issuer changes when it replaces or renews a card: `card 4242 2030-12 token`. Nothing secret.
    public var appearance: String {
        let expiry = CardExpiry(of: self).map { "\($0.year)-\($0.month)" } ?? "-"
        return "\(paymentMethod) \(suffix ?? "-") \(expiry)\(hasNetworkToken == true ? " token" : "")"
    }
}
