import Basics
import Foundation

/// A period that is to come, and why it is when it is.
public struct ExpectedPeriod: Hashable, Sendable {
    public let period: BillingPeriod
    public let dueAt: Timestamp
    public let amount: Money
    public let card: CardExpiry.State
    /// What an engineer would ask about the date.
    public let why: [String]

    public var json: JSON {
        [
            "index": JSON(period.index), "start": .string(period.start.description),
            "end": .string(period.end.description), "dueAt": .string(dueAt.rfc3339), "amount": amount.json,
            "card": .string(card.rawValue), "why": .array(why.map(JSON.string)),
        ]
    }

    public var line: String {
        let reasons = why.joined(separator: "; ")
        return "\(period.start)\tperiod \(period.index)\tdue \(dueAt.rfc3339)\t\(amount)\t\(reasons)"
    }
}

extension Subscription {
    /// The next periods that have no charge yet, at most `count`.
    ///
    /// - Parameter card: its instrument as it was last seen.
    public func dates(
        _ count: Int, card: InstrumentSnapshot?, hour: Int, expiryZone: TimeZone
    ) -> [ExpectedPeriod] {
        let calendar = calendar(hour: hour)
        return (nextIndex..<nextIndex + count).prefix { has(period: $0) }.map { index in
            let period = calendar.period(index)
            let dueAt = calendar.dueAt(index)
            let expiry = card.flatMap(CardExpiry.init(of:))
            let state = CardExpiry.state(of: expiry, at: dueAt, in: expiryZone)
            var why = ["\(interval) × \(index - anchorIndex) after \(startsOn)"]
            let usesMonths = interval.unit == .months || interval.unit == .years
            if usesMonths, period.start.day != startsOn.day {
                why.append("the month has no day \(startsOn.day)")
            }
            let shown =
                Int(dueAt.seconds)
                + timezone.secondsFromGMT(for: Date(timeIntervalSince1970: TimeInterval(dueAt.seconds)))
            if ((shown % 86_400) + 86_400) % 86_400 != hour * 3600 {
                why.append("clocks change and leave out \(hour):00")
            }
            if state == .expired {
                let hasToken = card?.hasNetworkToken ?? false
                why.append(
                    expiryPolicy.permits(state, hasNetworkToken: hasToken)
                        ? "the card will have expired, and is charged all the same" : "the card will have expired")
            }
            return ExpectedPeriod(period: period, dueAt: dueAt, amount: amount, card: state, why: why)
        }
    }
}
