import Basics
import Foundation

/// The day of a moment somewhere, and the moment of a day's hour there.
extension CivilDate {
    /// The day that it is in the zone at that moment.
    public init(of moment: Timestamp, in zone: TimeZone) {
        let local = Int(moment.seconds) + zone.offset(at: moment.seconds)
        self.init(daysSince1970: local >= 0 ? local / 86_400 : (local - 86_399) / 86_400)
    }

    /// The moment at which clocks in the zone show this day and hour.
    ///
    /// An hour that a clock change leaves out begins when the change happens: clocks go from just before it to after
    /// it. An hour that comes twice is the first of the two. So each day's hour is one moment, and the moments of two
    /// days come in the order of the days.
    ///
    /// - Parameter hour: 0 to 23.
    public func moment(atHour hour: Int, in zone: TimeZone) -> Timestamp {
        let local = Int64(daysSince1970) * 86_400 + Int64(hour) * 3600
        // Clocks that show this are at most a day away from UTC, and change at most once in between.
        let before = Int64(zone.offset(at: local - 86_400))
        let after = Int64(zone.offset(at: local + 86_400))
        // The larger offset gives the earlier moment: the first of two.
        for offset in [max(before, after), min(before, after)] where Int64(zone.offset(at: local - offset)) == offset {
            return Timestamp(seconds: local - offset)
        }
        // No clock ever shows it. The change lies between the moments that the two offsets give.
        var low = local - max(before, after)
        var high = local - min(before, after)
        let offsetBefore = zone.offset(at: low)
        while low + 1 < high {
            let middle = low + (high - low) / 2
            if zone.offset(at: middle) == offsetBefore { low = middle } else { high = middle }
        }
        return Timestamp(seconds: high)
    }
}

extension TimeZone {
    /// Seconds that clocks there are ahead of UTC at a moment, given in seconds since 1970.
    fileprivate func offset(at seconds: Int64) -> Int {
        secondsFromGMT(for: Date(timeIntervalSince1970: TimeInterval(seconds)))
    }
}
