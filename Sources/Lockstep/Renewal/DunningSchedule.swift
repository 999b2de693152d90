import Basics
import Foundation

/// When a period that wasn't paid is tried again, and how often at most (`config/dunning.json`).
public struct DunningSchedule: Hashable, Sendable {
    /// A later try.
    public struct Step: Hashable, Sendable {
        /// Days after the period's due day, 1 to 365.
        public let day: Int
        /// The hour of that day in the subscription's zone, 0 to 23.
        public let hour: Int

        public init(day: Int, hour: Int) {
            self.day = day
            self.hour = hour
        }
    }

    /// How many declined attempts a card network lets one card have in so many days.
    public struct Cap: Hashable, Sendable {
        public let attempts: Int
        public let days: Int

        public init(attempts: Int, days: Int) {
            self.attempts = attempts
            self.days = days
        }

        /// When the next attempt may be made; nil for now.
        ///
        /// - Parameter declines: when attempts with this card were declined, in any order.
        public func freeAt(after declines: [Timestamp], now: Timestamp) -> Timestamp? {
            let window = Duration.seconds(Int64(days) * 86_400)
            let recent = declines.filter { $0 + window > now }.sorted()
            guard recent.count >= attempts else { return nil }
            // As many must leave the window as there are too many, and one more for the new one.
            return recent[recent.count - attempts] + window
        }
    }

    /// By day.
    public let steps: [Step]
    /// Attempts of one period, the first one included.
    public let limit: Int
    /// For how many days after its due day a period waits for a usable instrument.
    public let windowDays: Int
    /// After how many hours an attempt that failed by our own set-up is made again. It counts for nothing.
    public let configurationRetryHours: Int
    /// By the network's name in lower case; `default` for the others.
    let caps: [String: Cap]

    init(steps: [Step], limit: Int, windowDays: Int, configurationRetryHours: Int, caps: [String: Cap]) {
        self.steps = steps
        self.limit = limit
        self.windowDays = windowDays
        self.configurationRetryHours = configurationRetryHours
        self.caps = caps
    }

    /// The cap of a network that may not be known.
    public func cap(of network: String?) -> Cap {
        network.flatMap { caps[$0.lowercased()] } ?? caps["default"] ?? Cap(attempts: 15, days: 30)
    }

    /// The longest time over which a network counts.
    public var longestCapDays: Int { caps.values.map(\.days).max() ?? cap(of: nil).days }

    /// When a period is tried again after a soft decline; nil when its attempts are used up.
    ///
    /// - Parameters:
    ///   - dueDay: the period's first day.
    ///   - attempts: how many were made, those that count for nothing left out.
    ///   - last: when the last one was made. Nothing is tried twice on one day, and a try whose day has passed is over.
    public func next(dueDay: CivilDate, attempts: Int, last: Timestamp, zone: TimeZone) -> Timestamp? {
        guard attempts < limit else { return nil }
        let lastDay = CivilDate(of: last, in: zone)
        for step in steps {
            let day = dueDay.adding(days: step.day)
            guard day > lastDay else { continue }
            return day.moment(atHour: step.hour, in: zone)
        }
        return nil
    }

    /// Until when a period waits for a usable instrument.
    public func windowEnd(dueDay: CivilDate, zone: TimeZone) -> Timestamp {
        dueDay.adding(days: windowDays + 1).moment(atHour: 0, in: zone)
    }

    /// `config/dunning.json`, compiled in. Without a readable table nothing would be tried again.
    public static let standard =
        (try? DunningSchedule(table: Data(PackageResources.dunning_json)))
        ?? DunningSchedule(steps: [], limit: 1, windowDays: 0, configurationRetryHours: 24, caps: [:])
}

extension DunningSchedule {
    /// Reads the table's JSON.
    ///
    /// - Throws: what is wrong and where, so that a bad table stops the start.
    public init(table: Data) throws(TableFault) {
        let reader = try TableReader.document(table)
        var steps: [Step] = []
        for (index, line) in try reader.list("attempts").enumerated() {
            let step = try TableReader(line, at: "attempts/\(index)")
            steps.append(Step(day: try step.integer("day", in: 1...365), hour: try step.integer("hour", in: 0...23)))
            try step.end()
            guard index == 0 || steps[index - 1].day < steps[index].day else {
                throw TableFault("attempts/\(index): day must be later than the one before")
            }
        }
        let windowDays = try reader.integer("windowDays", in: 0...365)
        guard windowDays >= steps.last?.day ?? 0 else {
            throw TableFault("the table: windowDays must reach to the last attempt's day at least")
        }
        var caps: [String: Cap] = [:]
        for (network, line) in try reader.object("networkCaps").sorted(by: { $0.key < $1.key }) {
            let cap = try TableReader(line, at: "networkCaps/\(network)")
            caps[network.lowercased()] = Cap(
                attempts: try cap.integer("attempts", in: 1...1000), days: try cap.integer("days", in: 1...365))
            try cap.end()
        }
        guard caps["default"] != nil else { throw TableFault("networkCaps: default must be there") }
        let limit = try reader.integer("limit", in: 1...100)
        let hours = try reader.integer("configurationRetryHours", in: 1...720)
        try reader.end()
        self.init(steps: steps, limit: limit, windowDays: windowDays, configurationRetryHours: hours, caps: caps)
    }
}
