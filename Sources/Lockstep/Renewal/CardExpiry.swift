import Basics
import Foundation

/// The month after which a card is expired, in the Gregorian calendar (reference 6.4).
///
/// Year and month are kept as they are printed on the card, never as a moment: a moment is another month in another
/// zone. What has no expiry, or one that can't be read, has no value of this type, and is unknown, not expired.
public struct CardExpiry: Hashable, Comparable, Sendable {
    /// 1 to 12.
    public let month: Int
    /// Four digits.
    public let year: Int

    /// Nil where either is missing or impossible.
    public init?(month: Int?, year: Int?) {
        guard let month, let year, (1...12).contains(month), (1000...9999).contains(year) else { return nil }
        self.month = month
        self.year = year
    }

    /// Nil for what never has one, PayPal, whatever stands in its data.
    public init?(of instrument: InstrumentSnapshot) {
        guard instrument.paymentMethod.lowercased() != "paypal" else { return nil }
        self.init(month: instrument.expiryMonth, year: instrument.expiryYear)
    }

    /// The contract's `expiry.state`.
    public enum State: String, Hashable, Sendable, CaseIterable { case valid, expired, unknown }

    /// Where it stands with an expiry that may be missing.
    public static func state(of expiry: CardExpiry?, at moment: Timestamp, in zone: TimeZone) -> State {
        guard let expiry else { return .unknown }
        return expiry.isExpired(at: moment, in: zone) ? .expired : .valid
    }

    /// Whether the month is over in the zone. A card is valid through the last day of its month.
    public func isExpired(at moment: Timestamp, in zone: TimeZone) -> Bool {
        let today = CivilDate(of: moment, in: zone)
        return (year, month) < (today.year, today.month)
    }

    /// The last day on which it is valid.
    public var lastDay: CivilDate {
        CivilDate(year: year, month: month, day: CivilDate.days(inMonth: month, of: year))
    }

    public static func < (left: CardExpiry, right: CardExpiry) -> Bool {
        (left.year, left.month) < (right.year, right.month)
    }
}
