import Basics
import Foundation

/// What is to be done for a subscription now, and when it is looked at next. A pure function of the subscription, its
/// charges that aren't over, one reading of its instrument, the clock, and the rules.
public struct RenewalPlan: Hashable, Sendable {
    /// What happens to periods that nobody charged in time (`LOCKSTEP_RENEW_MISSED`).
    public enum Missed: String, Hashable, Sendable, CaseIterable { case all, latest, skip }

    public struct Rules: Hashable, Sendable {
        /// `LOCKSTEP_RENEW_HOUR`.
        public var hour: Int
        public var missed: Missed
        /// `LOCKSTEP_EXPIRY_ZONE`: where a card's month ends.
        public var expiryZone: TimeZone
        public var dunning: DunningSchedule
        public var declines: DeclinePolicy
        /// Whether a subscription is cancelled when its schedule has ended (`LOCKSTEP_DUNNING_END`).
        public var cancelsAfterDunning: Bool

        public init(
            hour: Int = 0, missed: Missed = .all, expiryZone: TimeZone = .gmt, dunning: DunningSchedule = .standard,
            declines: DeclinePolicy = .standard, cancelsAfterDunning: Bool = false
        ) {
            self.hour = hour
            self.missed = missed
            self.expiryZone = expiryZone
            self.dunning = dunning
            self.declines = declines
            self.cancelsAfterDunning = cancelsAfterDunning
        }
    }

    /// A period whose charge isn't over.
    public struct OpenCharge: Hashable, Sendable {
        public enum Standing: Hashable, Sendable {
            /// Between attempts, or before the first.
            case scheduled(at: Timestamp)
            /// An attempt runs, or nobody knows what became of it.
            case inFlight
            /// Skipped, for want of a usable instrument.
            case waiting
        }
        public let index: Int
        /// The period's first day.
        public let start: CivilDate
        public let standing: Standing

        public init(index: Int, start: CivilDate, standing: Standing) {
            self.index = index
            self.start = start
            self.standing = standing
        }
    }

    /// What the provider says about the instrument right now.
    public enum Instrument: Hashable, Sendable {
        /// `declines`: when attempts with it were declined, of any subscription.
        case enabled(InstrumentSnapshot, declines: [Timestamp])
        case disabled
        case missing
        /// The provider could not be asked: nothing is tried, nothing is burnt.
        case unreadable
    }

    public enum Step: Hashable, Sendable {
        /// The period gets a charge that is skipped.
        case skip(BillingPeriod, SkipReason)
        /// The period gets a charge that is scheduled for that time (a network's cap).
        case postpone(BillingPeriod, until: Timestamp)
        /// The period gets a charge and its first attempt.
        case begin(BillingPeriod)
        /// The next attempt of an open charge, which may have been waiting.
        case retry(index: Int)
        /// An open charge waits for another instrument from now on.
        case suspend(index: Int, SkipReason)
        /// An open charge is tried later (a network's cap).
        case deferRetry(index: Int, until: Timestamp)
        /// Its time is over.
        case giveUp(index: Int)
        /// Something is due, and the instrument could not be read.
        case hold
        /// Nothing will be charged any more.
        case finish
    }

    public private(set) var steps: [Step] = []
    /// When it is looked at next; nil when only an event can bring something: an answer, a resumption.
    public private(set) var nextAt: Timestamp?
    /// Whether the instrument has to be read before anything can be said. ``steps`` are empty while it wasn't.
    public private(set) var needsInstrument = false

    private let subscription: Subscription
    private let rules: Rules
    private let now: Timestamp
    private let calendar: BillingCalendar

    /// - Parameter instrument: nil while it wasn't read.
    public init(
        for subscription: Subscription, open: [OpenCharge], instrument: Instrument?, rules: Rules, now: Timestamp
    ) {
        self.subscription = subscription
        self.rules = rules
        self.now = now
        calendar = subscription.calendar(hour: rules.hour)
        guard subscription.status.runs else { return }
        let open = open.sorted { $0.index < $1.index }
        let fresh = FreshPeriods(of: subscription, calendar: calendar, missed: rules.missed, now: now)
        let due = open.filter(isDue)
        needsInstrument = !due.isEmpty || fresh.wanted != nil
        if needsInstrument, instrument == nil {
            nextAt = (due.map(dueAt) + [fresh.missed.first, fresh.wanted].compactMap { $0 }.map(calendar.dueAt)).min()
            return
        }
        steps += fresh.missed.map { .skip(calendar.period($0), .missed) }
        if let instrument, needsInstrument {
            decide(due, fresh.wanted, instrument)
        } else if fresh.isOver, !open.contains(where: isAlive) {
            steps.append(.finish)
            return
        }
        look(open, fresh: fresh)
    }

    /// A charge that an attempt, or a look at the instrument, is due for.
    private func isDue(_ charge: OpenCharge) -> Bool {
        switch charge.standing {
        case .scheduled(let at): at <= now
        case .waiting: isAlive(charge)
        case .inFlight: false
        }
    }

    /// When it is looked at. What waits for an instrument is looked at in every run, as its period is due since long.
    private func dueAt(_ charge: OpenCharge) -> Timestamp {
        // By its own first day: the calendar may have another anchor by now.
        if case .scheduled(let at) = charge.standing {
            at
        } else {
            charge.start.moment(atHour: rules.hour, in: subscription.timezone)
        }
    }

    /// Whether something is still to come of a charge.
    private func isAlive(_ charge: OpenCharge) -> Bool {
        charge.standing != .waiting || now < windowEnd(charge.start)
    }

    private func windowEnd(_ start: CivilDate) -> Timestamp {
        rules.dunning.windowEnd(dueDay: start, zone: subscription.timezone)
    }

    /// At most one attempt for each run, the oldest period's. What hinders it hinders the others too.
    private mutating func decide(_ due: [OpenCharge], _ fresh: Int?, _ instrument: Instrument) {
        let reading: (card: InstrumentSnapshot, declines: [Timestamp])
        switch instrument {
        case .unreadable: return steps.append(.hold)
        case .missing: return block(due, fresh, .instrumentMissing)
        case .disabled: return block(due, fresh, .instrumentDisabled)
        case .enabled(let card, let declines): reading = (card, declines)
        }
        let state = CardExpiry.state(of: CardExpiry(of: reading.card), at: now, in: rules.expiryZone)
        guard subscription.expiryPolicy.permits(state, hasNetworkToken: reading.card.hasNetworkToken ?? false) else {
            return block(due, fresh, .instrumentExpired)
        }
        guard
            subscription.declined
                != DeclinedInstrument(instrument: reading.card.id, appearance: reading.card.appearance)
        else {
            return block(due, fresh, .instrumentDeclined)
        }
        let freeAt = rules.dunning.cap(of: reading.card.network).freeAt(after: reading.declines, now: now)
        switch (due.first, fresh, freeAt) {
        case (let charge?, _, nil): steps.append(.retry(index: charge.index))
        case (let charge?, _, let freeAt?):
            let isInTime = freeAt < windowEnd(charge.start)
            steps.append(isInTime ? .deferRetry(index: charge.index, until: freeAt) : .giveUp(index: charge.index))
        case (nil, let index?, nil): steps.append(.begin(calendar.period(index)))
        case (nil, let index?, let freeAt?): steps.append(.postpone(calendar.period(index), until: freeAt))
        case (nil, nil, _): break
        }
    }

    /// Whatever is due waits for another instrument.
    private mutating func block(_ due: [OpenCharge], _ fresh: Int?, _ reason: SkipReason) {
        for charge in due where charge.standing != .waiting {
            steps.append(.suspend(index: charge.index, reason))
        }
        if let fresh { steps.append(.skip(calendar.period(fresh), reason)) }
    }

    /// When something is due next, as far as it is known before an attempt's outcome.
    private mutating func look(_ open: [OpenCharge], fresh: FreshPeriods) {
        var times: [Timestamp] = []
        var begun = fresh.missed.last ?? subscription.nextIndex - 1
        var handled: Set<Int> = []
        for step in steps {
            switch step {
            case .skip(let period, let reason):
                begun = max(begun, period.index)
                if reason.waitsForInstrument, now < windowEnd(period.start) {
                    times.append(calendar.dueAt(period.index))
                }
            case .begin(let period): begun = max(begun, period.index)
            case .postpone(let period, let until):
                begun = max(begun, period.index)
                times.append(until)
            case .deferRetry(let index, let until):
                handled.insert(index)
                times.append(until)
            case .retry(let index), .giveUp(let index): handled.insert(index)
            case .suspend, .hold, .finish: break
            }
        }
        for charge in open where !handled.contains(charge.index) {
            if charge.standing != .inFlight, isAlive(charge) { times.append(dueAt(charge)) }
        }
        if subscription.has(period: begun + 1) { times.append(calendar.dueAt(begun + 1)) }
        nextAt = times.min()
    }
}

/// Periods that are due and have no charge.
private struct FreshPeriods {
    /// Those that the policy leaves out, oldest first.
    var missed: [Int] = []
    /// The one that is to be charged next.
    var wanted: Int?
    /// No period comes any more.
    var isOver: Bool

    init(of subscription: Subscription, calendar: BillingCalendar, missed policy: RenewalPlan.Missed, now: Timestamp) {
        var newest = calendar.newestDue(at: now)
        while newest >= subscription.nextIndex, !subscription.has(period: newest) { newest -= 1 }
        let next = subscription.nextIndex
        isOver = !subscription.has(period: next)
        guard newest >= next else { return }
        switch policy {
        case .all: wanted = next
        case .latest:
            missed = Array(next..<newest)
            wanted = newest
        case .skip:
            let day = Duration.seconds(86_400)
            let firstInTime = (next...newest).first { calendar.dueAt($0) + day >= now } ?? newest + 1
            missed = Array(next..<firstInTime)
            wanted = firstInTime <= newest ? firstInTime : nil
        }
        isOver = wanted == nil && !subscription.has(period: newest + 1)
    }
}
