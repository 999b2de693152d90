import Basics

extension Subscription {
    /// What the shop changes. Nil: left as it is.
    public struct Change: Hashable, Sendable {
        public enum Effective: String, Hashable, Sendable, CaseIterable {
            /// What is paid for stays as it is; the running period lasts until the next one's first day.
            case nextPeriod
            /// The running period may be cut short, and a charge that is still to be tried gets the new amount.
            case now
        }

        public var amount: Money?
        public var instrument: InstrumentID?
        /// A new anchor.
        public var startsOn: CivilDate?
        public var endsOn: Setting<CivilDate> = .leave
        public var maxCharges: Setting<Int> = .leave
        public var expiryPolicy: ExpiryPolicy?
        public var meta: JSON?
        public var effective: Effective = .nextPeriod

        public init() {}
    }

    /// What becomes of a member that may have no value.
    public enum Setting<Value: Hashable & Sendable>: Hashable, Sendable {
        case leave, clear
        case set(Value)
    }

    /// Why a change isn't made; nothing is changed then.
    public enum Refusal: Error, Hashable, Sendable {
        /// It is cancelled or ended.
        case over
        case currencyChanged
        /// The new anchor is before today in the subscription's zone.
        case anchorPast
        case endBeforeStart
        /// Fewer charges than periods that already have theirs.
        case fewerThanCharged

        /// The member, and a sentence for the caller.
        public var fault: (pointer: String, detail: String)? {
            switch self {
            case .over: nil
            case .currencyChanged: ("/amount/currency", "must be the subscription's currency, which doesn't change")
            case .anchorPast: ("/startsOn", "must not be before today in the subscription's zone")
            case .endBeforeStart: ("/endsOn", "must not be before the next period's first day")
            case .fewerThanCharged: ("/maxCharges", "must not be less than the periods that already began")
            }
        }
    }

    /// - Parameters:
    ///   - today: in the subscription's zone.
    ///   - lastStart: the first day of the newest period that has a charge; nil where none has.
    ///   - othersOpen: periods are due and not paid.
    public mutating func apply(
        _ change: Change, today: CivilDate, lastStart: CivilDate?, othersOpen: Bool
    ) throws(Refusal) -> [Effect] {
        guard !status.isFinal else { throw .over }
        var changed = self
        var effects: [Effect] = []
        if let amount = change.amount {
            guard amount.currency == self.amount.currency else { throw .currencyChanged }
            changed.amount = amount
            if change.effective == .now { effects.append(.changeOpenAmounts) }
        }
        if let anchor = change.startsOn {
            guard anchor >= today else { throw .anchorPast }
            changed.move(to: anchor, effective: change.effective, lastStart: lastStart)
            if nextIndex > 1 { effects.append(.moveLastEnd(of: nextIndex - 1)) }
        }
        if let policy = change.expiryPolicy { changed.expiryPolicy = policy }
        if let meta = change.meta { changed.meta = meta }
        switch change.endsOn {
        case .leave: break
        case .clear: changed.endsOn = nil
        case .set(let day): changed.endsOn = day
        }
        switch change.maxCharges {
        case .leave: break
        case .clear: changed.maxCharges = nil
        case .set(let count): changed.maxCharges = count
        }
        if case .set(let day) = change.endsOn {
            // Today ends it before the next period; a day before anything that was charged would rewrite the past.
            guard day >= (lastStart ?? changed.startsOn) else { throw .endBeforeStart }
        } else if change.startsOn != nil, let endsOn = changed.endsOn {
            guard endsOn >= changed.calendar(hour: 0).start(of: changed.nextIndex) else { throw .endBeforeStart }
        }
        if case .set(let count) = change.maxCharges, count < nextIndex - 1 { throw .fewerThanCharged }
        if let instrument = change.instrument, instrument != self.instrument {
            changed.instrument = instrument
            effects += changed.apply(.instrumentUsable(othersOpen: othersOpen))
        } else if change.expiryPolicy != nil, status == .needsInstrument {
            // The same card may do under another policy; the next run looks.
            effects.append(.retryWaiting)
        }
        self = changed
        return effects
    }

    /// The next period begins on the first day of the new calendar that the change allows: after the newest period's
    /// first day, and, unless it counts now, not before that period's end.
    private mutating func move(to anchor: CivilDate, effective: Change.Effective, lastStart: CivilDate?) {
        let plannedEnd = calendar(hour: 0).start(of: nextIndex)
        let earliest: CivilDate? =
            switch (lastStart, effective) {
            case (nil, _): nil
            case (let start?, .now): start.adding(days: 1)
            case (_?, .nextPeriod): plannedEnd
            }
        startsOn = anchor
        anchorIndex = 1
        guard let earliest, earliest > anchor else {
            anchorIndex = nextIndex
            return
        }
        // How many steps of the new calendar lie before the first day that is allowed.
        let steps = calendar(hour: 0).latestIndex(startingBy: earliest.adding(days: -1)) + 1 - anchorIndex
        anchorIndex = nextIndex - steps
    }
}
