import Basics
import Lockstep

/// One ``TokenBucket`` for all calls of a client, and the waiting for it.
actor RateLimiter {
    private var bucket: TokenBucket
    private let clock: SteadyClock
    private let longestPause: Duration
    private let sharedPace: (@Sendable () async -> SharedPlace?)?

    init(_ configuration: PayrailsConfiguration, clock: SteadyClock) {
        bucket = TokenBucket(perSecond: configuration.requestsPerSecond, burst: configuration.requestBurst)
        longestPause = configuration.maximumRateLimitPause
        sharedPace = configuration.sharedPace
        self.clock = clock
    }

    /// Waits for a place; nil when the call may go now, a refusal when its time isn't enough or nobody wants it any more.
    func admit(until deadline: Duration) async -> Refusal? {
        while true {
            let now = clock.now()
            switch bucket.reserve(at: now, patience: deadline - now) {
            case .tooLong(let wait):
                return Refusal(
                    kind: .notSent, detail: "our own rate limit leaves no place for this call in its time",
                    retryAfterSeconds: Int(clamping: wait.components.seconds) + 1)
            case .go(let wait):
                if wait > .zero {
                    do { try await clock.sleep(wait) } catch {
                        return Refusal(kind: .notSent, detail: "cancelled while waiting for the rate limit")
                    }
                }
                if !bucket.isPaused(at: clock.now()) { return await admitAmongAll(until: deadline) }
            }
        }
    }

    /// The place among all processes. One that comes too late, or that is missed, is given up: the limit holds all the
    /// same.
    private func admitAmongAll(until deadline: Duration) async -> Refusal? {
        guard let sharedPace else { return nil }
        while true {
            let asked = clock.now()
            guard let place = await sharedPace() else {
                return Refusal(kind: .notSent, detail: "the limit that all processes share can't be asked")
            }
            guard clock.now() + place.wait <= deadline else {
                return Refusal(
                    kind: .notSent,
                    detail: "the limit that all processes share leaves no place for this call in its time",
                    retryAfterSeconds: Int(clamping: place.wait.components.seconds) + 1)
            }
            do { if place.wait > .zero { try await clock.sleep(place.wait) } } catch {
                return Refusal(kind: .notSent, detail: "cancelled while waiting for the rate limit")
            }
            // Reckoned from before the question: the place may be that much older than its answer.
            if clock.now() - asked - place.wait <= place.margin { return nil }
        }
    }

    /// The provider wants to be left alone for a while.
    func pause(for time: Duration) { bucket.pause(until: clock.now() + min(time, longestPause)) }
}
