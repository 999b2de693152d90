import Basics
import Testing

@testable import Lockstep

@Suite("When the provider is asked")
struct PatienceTests {
    typealias S = Sample

    @Test("no steps, or a step that isn't positive, is no patience")
    func refused() {
        #expect(Patience([]) == nil)
        #expect(Patience([.seconds(1), .zero]) == nil)
        #expect(Patience([.seconds(-1)]) == nil)
        #expect(Patience([.nanoseconds(1)])?.steps == [.nanoseconds(1)])
    }

    @Test("R19: what runs and what nobody knows are asked about by schedules of their own, the contract's")
    func defaults() {
        #expect(Patience.pending.steps == [10, 30, 120, 600, 3600, 21_600].map { .seconds($0) })
        #expect(Patience.unknown.steps == [2, 10, 60, 300, 1800, 3600].map { .seconds($0) })
    }

    @Test("step by step, the last one again and again, with up to a tenth more, never less")
    func delays() {
        for number in -1...40 {
            let step = Patience.pending.steps[min(max(0, number), 5)]
            var last = Duration.zero
            for jitter in UInt8.min...UInt8.max {
                let delay = Patience.pending.delay(before: number, jitter: jitter)
                #expect(delay >= step && delay <= step + step / 10)
                #expect(delay >= last)
                last = delay
            }
            #expect(Patience.pending.delay(before: number, jitter: 0) == step)
            #expect(last > step)
        }
        #expect(Patience.pending.delay(before: .max, jitter: 255) == .seconds(23_760))
    }

    private func next(
        _ state: ExecutionState, checks: Int = 0, changed: Double = 0, lease: Bool = false, now: Double = 0
    ) -> Timestamp? {
        HealingSchedule().next(
            for: state, checks: checks, changedAt: S.at(changed), hasLease: lease, now: S.at(now), jitter: 0)
    }

    @Test("what runs is asked about soon, what is unknown sooner, what is at its end never")
    func states() {
        #expect(next(.processing) == S.at(10) && next(.needsCustomer) == S.at(10))
        #expect(next(.unknown) == S.at(2))
        #expect(next(.created, lease: true) == S.at(10))
        // A cancel may have come before the bank's yes.
        for state in [ExecutionState.created, .failed, .authorized, .partiallyCaptured, .cancelled] {
            #expect(next(state) == S.at(120))
        }
        for state in [ExecutionState.captured, .partiallyRefunded, .refunded] {
            #expect(next(state) == nil)
        }
    }

    @Test("what is in flight is asked about for ever, what is idle for a day")
    func forEver() {
        let later = 30.0 * 86_400
        for state in ExecutionState.allCases where state.isInFlight {
            #expect(next(state, checks: 1_000_000, changed: 0, now: later) != nil)
        }
        #expect(next(.created, checks: 9, changed: 0, now: 86_399) != nil)
        #expect(next(.created, checks: 9, changed: 0, now: 86_400) == nil)
        #expect(next(.authorized, checks: 9, changed: 0, now: later) == nil)
        #expect(next(.created, checks: 9, changed: 0, lease: true, now: later) != nil)
    }

    @Test("a pending execution whose notifications are lost is asked about within a bounded time (M4)")
    func bounded() {
        var now = 0.0
        for checks in 0..<20 {
            let asked = next(.processing, checks: checks, now: now)
            let wait = asked.map { Double(($0 - S.at(now)).components.seconds) } ?? .infinity
            #expect(wait <= 21_600)
            now += wait
        }
        #expect(now < 20 * 21_600)
    }
}
