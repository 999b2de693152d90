extension Subscription {
    /// What can happen to it, besides the changes that the shop asks for.
    public enum Event: Hashable, Sendable {
        /// A period was paid. `othersOpen`: others are due and not paid.
        case paid(othersOpen: Bool)
        /// An attempt failed, and another one follows by the schedule.
        case declinedForNow
        /// A period's schedule is over without success.
        case givenUp(cancels: Bool)
        /// The instrument was declined for good.
        case declinedForGood(DeclinedInstrument)
        /// A period can't be paid without the customer.
        case customerNeeded
        /// The instrument is expired, disabled or gone, so a period was not charged.
        case instrumentUnusable
        /// It can be charged (again): replaced, or changed at the provider. `othersOpen` as above.
        case instrumentUsable(othersOpen: Bool)
        /// The last period is over with.
        case finished
        case pause
        /// `skippingTo`: the first period that isn't skipped, since those before fell into the pause.
        case resume(skippingTo: Int)
        case cancel
        /// Periods up to there have their charges.
        case begun(upTo: Int)
    }

    /// What must be made true besides the new row.
    public enum Effect: Hashable, Sendable {
        case tell(EventType)
        /// Planned attempts are off: charges between attempts, and those that wait for an instrument, are skipped with
        /// this reason. What is in flight settles by itself.
        case stopPlanned(reason: SkipReason)
        /// Periods that get a charge which is skipped from the start.
        case skip(ClosedRange<Int>, reason: SkipReason)
        /// Charges that wait for an instrument are due at once.
        case retryWaiting
        /// The amount of charges that aren't in flight and not over.
        case changeOpenAmounts
        /// The last period that has a charge ends on the first day of the next one.
        case moveLastEnd(of: Int)
    }

    /// Events that don't fit the status change nothing: a cancelled subscription stays cancelled whatever its last
    /// attempt's result was.
    public mutating func apply(_ event: Event) -> [Effect] {
        switch event {
        case .begun(let index):
            nextIndex = max(nextIndex, index + 1)
            return []
        case .pause:
            guard status.runs else { return [] }
            status = .paused
            return [.stopPlanned(reason: .paused)]
        case .resume(let index):
            guard status == .paused else { return [] }
            status = .active
            guard index > nextIndex else { return [] }
            let skipped = nextIndex...(index - 1)
            nextIndex = index
            return [.skip(skipped, reason: .paused)]
        case .cancel: return cancel()
        case .finished:
            guard !status.isFinal else { return [] }
            status = .ended
            return [.tell(.subscriptionEnded)]
        case .declinedForGood(let declined):
            // A card that was replaced in the meantime says nothing about the new one.
            guard declined.instrument == instrument else { return [] }
            // Also of a paused one: that card isn't tried again.
            self.declined = declined
            return turn(to: .needsInstrument)
        case .paid(let othersOpen):
            // What another card pays says nothing about the one that was declined.
            if declined?.instrument == instrument { declined = nil }
            return recover(othersOpen: othersOpen)
        case .instrumentUsable(let othersOpen):
            // What was declined stays so for the day when the shop goes back to it: the plan compares the card itself.
            guard status == .needsInstrument else { return status.runs ? [.retryWaiting] : [] }
            return recover(othersOpen: othersOpen) + [.retryWaiting]
        case .declinedForNow, .customerNeeded: return status == .needsInstrument ? [] : turn(to: .pastDue)
        case .givenUp(let cancels):
            // A paused one has no schedule that could have ended.
            if cancels { return status.runs ? cancel() : [] }
            return status == .needsInstrument ? [] : turn(to: .pastDue)
        case .instrumentUnusable: return turn(to: .needsInstrument)
        }
    }

    private mutating func cancel() -> [Effect] {
        guard !status.isFinal else { return [] }
        status = .cancelled
        return [.stopPlanned(reason: .cancelled), .tell(.subscriptionCancelled)]
    }

    /// To a status that tells of trouble; told once.
    private mutating func turn(to trouble: Status) -> [Effect] {
        guard status.runs, status != trouble else { return [] }
        status = trouble
        return [.tell(trouble == .pastDue ? .subscriptionPastDue : .subscriptionNeedsInstrument)]
    }

    private mutating func recover(othersOpen: Bool) -> [Effect] {
        guard status == .pastDue || status == .needsInstrument else { return [] }
        // The instrument may be well again while a period still isn't paid.
        if othersOpen { return turn(to: .pastDue) }
        status = .active
        return [.tell(.subscriptionRecovered)]
    }
}

extension Subscription {
    /// Why what wasn't sent so far isn't sent any more; nil while its periods are charged.
    public var stopReason: SkipReason? {
        switch status {
        case .active, .pastDue, .needsInstrument: nil
        case .paused: .paused
        case .cancelled, .ended: .cancelled
        }
    }
}

/// Why a period wasn't charged.
public enum SkipReason: String, Hashable, Sendable, CaseIterable {
    /// Nobody charged it in time, and `LOCKSTEP_RENEW_MISSED` says to leave it.
    case missed
    case instrumentExpired = "instrument-expired"
    case instrumentDisabled = "instrument-disabled"
    case instrumentMissing = "instrument-missing"
    /// An earlier attempt with it was declined for good.
    case instrumentDeclined = "instrument-declined"
    case paused
    case cancelled

    /// Whether a usable instrument within the dunning window makes the charge scheduled again.
    public var waitsForInstrument: Bool {
        switch self {
        case .instrumentExpired, .instrumentDisabled, .instrumentMissing, .instrumentDeclined: true
        case .missed, .paused, .cancelled: false
        }
    }
}
