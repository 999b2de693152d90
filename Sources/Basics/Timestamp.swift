import Foundation

/// A moment in UTC, exact to the nanosecond.
///
/// Payrails stamps with up to nine digits and orders by them; a floating-point date would merge neighbours.
public struct Timestamp: Hashable, Comparable, Sendable {
    /// Whole seconds since 1970-01-01T00:00:00Z, negative before.
    public let seconds: Int64
    /// 0 to 999,999,999, counted forwards from ``seconds``.
    public let nanoseconds: Int32

    /// Nanoseconds outside a second are carried over, so that one moment has one form.
    public init(seconds: Int64, nanoseconds: Int32 = 0) {
        let total = Int64(nanoseconds)
        let carry = total >= 0 ? total / 1_000_000_000 : (total - 999_999_999) / 1_000_000_000
        self.seconds = seconds + carry
        self.nanoseconds = Int32(total - carry * 1_000_000_000)
    }

    /// Microseconds since 1970, as PostgreSQL keeps times; digits beyond are cut off.
    public var microseconds: Int64 { seconds * 1_000_000 + Int64(nanoseconds) / 1000 }

    public init(microseconds: Int64) {
        let (quotient, remainder) = microseconds.quotientAndRemainder(dividingBy: 1_000_000)
        self.init(
            seconds: remainder < 0 ? quotient - 1 : quotient,
            nanoseconds: Int32((remainder < 0 ? remainder + 1_000_000 : remainder) * 1000))
    }

    public static func < (left: Timestamp, right: Timestamp) -> Bool {
        (left.seconds, left.nanoseconds) < (right.seconds, right.nanoseconds)
    }

    public static func + (left: Timestamp, right: Duration) -> Timestamp {
        let (wholeSeconds, attoseconds) = right.components
        // Both parts are less than a second, so their sum fits; the initializer carries.
        return Timestamp(
            seconds: left.seconds + wholeSeconds, nanoseconds: left.nanoseconds + Int32(attoseconds / 1_000_000_000))
    }

    public static func - (left: Timestamp, right: Duration) -> Timestamp { left + (Duration.zero - right) }

    public static func - (left: Timestamp, right: Timestamp) -> Duration {
        .seconds(left.seconds - right.seconds) + .nanoseconds(Int64(left.nanoseconds) - Int64(right.nanoseconds))
    }

    /// The system's clock. Only programs and tests call it; everything else is handed a ``WallClock``.
    public static var systemNow: Timestamp {
        var spec = timespec()
        clock_gettime(CLOCK_REALTIME, &spec)
        return Timestamp(seconds: Int64(spec.tv_sec), nanoseconds: Int32(spec.tv_nsec))
    }
}

/// Where the time comes from: the system's clock in a program, a hand that a test moves in a test.
public struct WallClock: Sendable {
    public let now: @Sendable () -> Timestamp
    public init(now: @escaping @Sendable () -> Timestamp) { self.now = now }
    public static let system = WallClock { .systemNow }
}
