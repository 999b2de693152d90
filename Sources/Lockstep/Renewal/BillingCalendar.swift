import Basics
import Foundation

/// A subscription's period: from its first day to the day after its last, which is the next one's first.
public struct BillingPeriod: Hashable, Sendable {
    /// Counted from 1 over the whole life of the subscription.
    public let index: Int
    public let start: CivilDate
    public let end: CivilDate

    public init(index: Int, start: CivilDate, end: CivilDate) {
        self.index = index
        self.start = start
        self.end = end
    }
}

/// When each period begins and is due. Every period is computed from the anchor and never from the one before, so that
/// 31 January, 28 February and 31 March follow each other, and 29 February comes back in leap years.
public struct BillingCalendar: Hashable, Sendable {
    /// The day that periods are counted from.
    public let anchor: CivilDate
    /// The index of the period that begins on the anchor: 1, until a subscription gets a new anchor. Then it can also
    /// be the index of a period that never was.
    public let anchorIndex: Int
    public let interval: BillingInterval
    /// Whose days they are.
    public let zone: TimeZone
    /// The hour of the day from which a period is due, 0 to 23 (`LOCKSTEP_RENEW_HOUR`).
    public let hour: Int

    public init(anchor: CivilDate, anchorIndex: Int = 1, interval: BillingInterval, zone: TimeZone, hour: Int = 0) {
        self.anchor = anchor
        self.anchorIndex = anchorIndex
        self.interval = interval
        self.zone = zone
        self.hour = hour
    }

    /// The first day of a period. A day that its month doesn't have is the month's last.
    public func start(of index: Int) -> CivilDate {
        let steps = (index - anchorIndex) * interval.count
        switch interval.unit {
        case .days: return anchor.adding(days: steps)
        case .weeks: return anchor.adding(days: steps * 7)
        case .months: return anchor.adding(months: steps)
        case .years: return anchor.adding(months: steps * 12)
        }
    }

    public func period(_ index: Int) -> BillingPeriod {
        BillingPeriod(index: index, start: start(of: index), end: start(of: index + 1))
    }

    /// When a period is due: at that hour of its first day in the zone. An hour that clocks leave out is the moment of
    /// their change; one that comes twice is the first of the two.
    public func dueAt(_ index: Int) -> Timestamp { start(of: index).moment(atHour: hour, in: zone) }

    /// The newest period that is due at that moment; less than 1 before the first.
    public func newestDue(at moment: Timestamp) -> Int {
        var index = latestIndex(startingBy: CivilDate(of: moment, in: zone))
        // Due later today, or, where a zone left a day out, already due tomorrow.
        while dueAt(index) > moment { index -= 1 }
        while dueAt(index + 1) <= moment { index += 1 }
        return index
    }

    /// The latest period whose first day is not after that day.
    public func latestIndex(startingBy day: CivilDate) -> Int {
        let days = day.days(since: anchor)
        // A guess that is never too small, and at most a few periods too large.
        let steps =
            switch interval.unit {
            case .days: floor(days, interval.count)
            case .weeks: floor(days, interval.count * 7)
            case .months: floor(day.months(since: anchor), interval.count)
            case .years: floor(day.months(since: anchor), interval.count * 12)
            }
        var index = anchorIndex + steps + 1
        while start(of: index) > day { index -= 1 }
        return index
    }

    private func floor(_ value: Int, _ divisor: Int) -> Int {
        value >= 0 ? value / divisor : (value - divisor + 1) / divisor
    }
}

extension CivilDate {
    /// The same day so many months later, or the last of a month that doesn't have it.
    func adding(months: Int) -> CivilDate {
        let total = year * 12 + (month - 1) + months
        let (year, month) = (total >= 0 ? total / 12 : (total - 11) / 12, (total % 12 + 12) % 12 + 1)
        return CivilDate(year: year, month: month, day: min(day, CivilDate.days(inMonth: month, of: year)))
    }

    /// How many months lie between the two months, whatever the days.
    func months(since other: CivilDate) -> Int { (year - other.year) * 12 + month - other.month }
}
