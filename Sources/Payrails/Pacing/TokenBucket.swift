/// How often we may call, as a value: no clock, no waiting, no actor.
///
/// The generic cell rate algorithm: each call moves ``next`` by one interval, and may go as long as that is not more
/// than a burst ahead of now.
struct TokenBucket: Sendable {
    /// Nil: no limit of our own, only pauses that the provider asks for.
    private let interval: Duration?
    /// How far ``next`` may be ahead of now.
    private let slack: Duration
    private var next: Duration = .zero
    private var pausedUntil: Duration = .zero

    init(perSecond: Int, burst: Int) {
        interval = perSecond > 0 ? .seconds(1) / perSecond : nil
        slack = (interval ?? .zero) * max(0, burst - 1)
    }

    enum Answer: Equatable {
        /// Go after this time; the place is taken.
        case go(after: Duration)
        /// It would take this long, which is more than the caller has; no place is taken.
        case tooLong(Duration)
    }

    mutating func reserve(at now: Duration, patience: Duration) -> Answer {
        let start = max(next, now)
        let wait = max(.zero, start - slack - now, pausedUntil - now)
        guard wait <= patience else { return .tooLong(wait) }
        if let interval { next = start + interval }
        return .go(after: wait)
    }

    /// Whether a place that was taken earlier must be taken again, because a pause came in between.
    func isPaused(at now: Duration) -> Bool { pausedUntil > now }

    /// Nobody goes before this time, and afterwards one by one, without a burst.
    mutating func pause(until end: Duration) {
        pausedUntil = max(pausedUntil, end)
        next = max(next, end + slack)
    }
}
