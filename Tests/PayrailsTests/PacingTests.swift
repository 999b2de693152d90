import Basics
import Foundation
import Lockstep
import Synchronization
import Testing

@testable import HTTPClient
@testable import Payrails

@Suite("The rate limit")
struct PacingTests {
    private func wait(_ answer: TokenBucket.Answer) -> Duration? {
        if case .go(let wait) = answer { wait } else { nil }
    }

    @Test("a burst goes at once, then one call for each interval, and a quiet time fills the burst again")
    func bucket() {
        var bucket = TokenBucket(perSecond: 10, burst: 3)
        let start = Duration.seconds(50)
        let waits = (0..<5).map { _ in wait(bucket.reserve(at: start, patience: .seconds(9))) }
        #expect(waits == [.zero, .zero, .zero, .milliseconds(100), .milliseconds(200)])
        let later = (0..<4).map { _ in wait(bucket.reserve(at: start + .seconds(10), patience: .seconds(9))) }
        #expect(later == [.zero, .zero, .zero, .milliseconds(100)])
    }

    @Test("over any ten seconds no more than a burst and ten seconds' worth of calls go, however they come")
    func neverMore() {
        var generator = SplitMix(seed: 7)
        var bucket = TokenBucket(perSecond: 8, burst: 5)
        var now = Duration.seconds(100)
        var gone: [Duration] = []
        for _ in 0..<2000 {
            now += .milliseconds(Int.random(in: 0...200, using: &generator))
            if let wait = wait(bucket.reserve(at: now, patience: .seconds(2))) { gone.append(now + wait) }
        }
        for (index, first) in gone.enumerated() {
            let within = gone[index...].prefix { $0 < first + .seconds(10) }.count
            #expect(within <= 85)
        }
        #expect(gone == gone.sorted())
        #expect(gone.count > 1000)
    }

    @Test("whoever can't wait takes no place from the others")
    func impatient() {
        var bucket = TokenBucket(perSecond: 1, burst: 1)
        #expect(bucket.reserve(at: .zero, patience: .zero) == .go(after: .zero))
        for _ in 0..<10 { #expect(bucket.reserve(at: .zero, patience: .milliseconds(999)) == .tooLong(.seconds(1))) }
        #expect(bucket.reserve(at: .zero, patience: .seconds(1)) == .go(after: .seconds(1)))
    }

    @Test("after a pause the calls go one by one, without a burst")
    func pause() {
        var bucket = TokenBucket(perSecond: 10, burst: 5)
        bucket.pause(until: .seconds(3))
        #expect(bucket.isPaused(at: .milliseconds(2999)))
        #expect(!bucket.isPaused(at: .seconds(3)))
        let waits = (0..<3).map { _ in wait(bucket.reserve(at: .seconds(1), patience: .seconds(9))) }
        #expect(waits == [.seconds(2), .milliseconds(2100), .milliseconds(2200)])
        #expect(bucket.reserve(at: .seconds(1), patience: .seconds(1)) == .tooLong(.milliseconds(2300)))
    }

    @Test("without a limit nobody waits, but a pause still counts")
    func unlimited() {
        var bucket = TokenBucket(perSecond: 0, burst: 0)
        for _ in 0..<1000 { #expect(bucket.reserve(at: .zero, patience: .zero) == .go(after: .zero)) }
        bucket.pause(until: .seconds(1))
        #expect(bucket.reserve(at: .zero, patience: .seconds(1)) == .go(after: .seconds(1)))
    }

    @Test("a 429 pauses all calls for as long as Retry-After says, and whoever has no time for that is not sent")
    func retryAfter() async throws {
        let reference = try #require(Samples.reference)
        let key = try #require(Samples.key)
        let hand = HandClock()
        let transport = ScriptedTransport { _, index throws(HTTPClientError) in
            index == 0 ? .json(429, "", headers: ["Retry-After": "45"]) : .json(202, Samples.acknowledgement("capture"))
        }
        let client = PayrailsClient(
            .test { $0.changeTimeout = .seconds(30) }, transport: transport, clock: hand.clock)
        #expect(await client.capture(reference, CaptureRequest(), key: key).refusal?.kind == .rateLimited)
        // 45 s are more than the 30 s of a change: it isn't sent, and says when to come again.
        let refusal = await client.capture(reference, CaptureRequest(), key: key).refusal
        #expect(refusal?.kind == .notSent)
        #expect((45...46).contains(refusal?.retryAfterSeconds ?? 0))
        #expect(transport.calls.count == 1)
        hand.advance(by: .seconds(45))
        #expect(await client.capture(reference, CaptureRequest(), key: key).value != nil)
    }

    @Test(
        "a 429 without Retry-After is a short pause, and no header can stop us for longer than the setting",
        arguments: [
            (nil, 1.0), ("", 1), ("Wed, 21 Oct 2026 07:28:00 GMT", 1), ("-5", 1), ("99999999999999999999", 60),
            ("3600", 60),
        ] as [(String?, Double)])
    func pauses(_ header: String?, _ seconds: Double) async throws {
        let reference = try #require(Samples.reference)
        let hand = HandClock()
        let transport = ScriptedTransport { _, index throws(HTTPClientError) in
            index == 0
                ? .json(429, "", headers: header.map { ["Retry-After": $0] } ?? [:]) : .json(200, Samples.pending3DS)
        }
        let client = PayrailsClient(
            .test { $0.readTimeout = .milliseconds(100) }, transport: transport, clock: hand.clock)
        _ = await client.readExecution(reference, wait: nil)
        hand.advance(by: .seconds(seconds) - .seconds(0.5))
        #expect(await client.readExecution(reference, wait: nil).refusal?.kind == .notSent)
        hand.advance(by: .seconds(0.5))
        #expect(await client.readExecution(reference, wait: nil).value != nil)
    }

    @Test("a pause that comes while a call waits for its place makes it wait for the pause, too")
    func pauseWhileWaiting() async throws {
        let jump = JumpClock()
        let held = Mutex<RateLimiter?>(nil)
        let clock = SteadyClock(
            now: jump.clock.now,
            sleep: { time in
                // The 429 of another call comes while this one sleeps, once.
                let limiter = held.withLock { held in
                    defer { held = nil }
                    return held
                }
                await limiter?.pause(for: .seconds(30))
                try await jump.clock.sleep(time)
            })
        let limiter = RateLimiter(.test { ($0.requestsPerSecond, $0.requestBurst) = (1, 1) }, clock: clock)
        held.withLock { $0 = limiter }
        let start = jump.now
        #expect(await limiter.admit(until: start + .seconds(60)) == nil)
        #expect(await limiter.admit(until: start + .seconds(60)) == nil)
        #expect(jump.now - start >= .seconds(30))
    }

    @Test("all calls of a client share the limit, token calls included")
    func shared() async throws {
        let jump = JumpClock()
        let limiter = RateLimiter(.test { ($0.requestsPerSecond, $0.requestBurst) = (4, 1) }, clock: jump.clock)
        let start = jump.now
        for _ in 0..<9 { #expect(await limiter.admit(until: start + .seconds(100)) == nil) }
        #expect(jump.now - start == .seconds(2))
        #expect(await limiter.admit(until: jump.now)?.kind == .notSent)
    }

    @Test("a place among all processes that is missed, since this one was slow, is given up for another")
    func missedPlace() async throws {
        let jump = JumpClock()
        let asked = Mutex(0)
        let clock = SteadyClock(
            now: jump.clock.now,
            sleep: { time in
                // The first sleep is longer than it should be by more than the place is good for.
                try await jump.clock.sleep(asked.withLock { $0 } == 1 ? time + .milliseconds(101) : time)
            })
        let limiter = RateLimiter(
            .test { configuration in
                configuration.requestsPerSecond = 0
                configuration.sharedPace = {
                    asked.withLock { $0 += 1 }
                    return SharedPlace(wait: .milliseconds(300), margin: .milliseconds(100))
                }
            }, clock: clock)
        let start = jump.now
        #expect(await limiter.admit(until: start + .seconds(5)) == nil)
        #expect(asked.withLock { $0 } == 2)
        #expect(jump.now - start == .milliseconds(701))
        // Where no place is left in its time, nothing is sent.
        #expect(await limiter.admit(until: jump.now + .milliseconds(299))?.kind == .notSent)
    }

    @Test("a call that is cancelled while it waits was not sent")
    func cancelled() async throws {
        // The hand stands still, so the second call waits until it is cancelled, however slow the machine is.
        let clock = HandClock().clock
        let limiter = RateLimiter(.test { ($0.requestsPerSecond, $0.requestBurst) = (1, 1) }, clock: clock)
        #expect(await limiter.admit(until: .seconds(5)) == nil)
        let waiting = Task { await limiter.admit(until: .seconds(5)) }
        waiting.cancel()
        #expect(await waiting.value?.kind == .notSent)
    }
}
