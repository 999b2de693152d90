import Lockstep
import Testing

@Suite("When an event is sent again")
struct DeliveryScheduleTests {
    private let schedule = DeliverySchedule([.seconds(5), .seconds(300), .seconds(7200)])

    @Test("each failure has its pause, and after one attempt more than there are pauses the event is dead")
    func growing() {
        for answer in [
            DeliveryAnswer.refused(status: 500, retryAfter: nil), .refused(status: 404, retryAfter: nil),
            .refused(status: 301, retryAfter: nil), .unanswered(.timedOut), .unanswered(.unreadable),
        ] {
            let verdicts = (1...5).map { schedule.verdict(on: answer, attempt: $0, jitter: 0) }
            #expect(
                verdicts == [
                    .retry(after: .seconds(5)), .retry(after: .seconds(300)), .retry(after: .seconds(7200)), .dead,
                    .dead,
                ])
        }
    }

    @Test("an accepted event is delivered and one that nobody wants is dead, whatever the attempt")
    func final() {
        for attempt in 1...9 {
            #expect(schedule.verdict(on: .accepted(status: 204), attempt: attempt, jitter: 7) == .delivered)
            #expect(
                schedule.verdict(on: .refused(status: 410, retryAfter: .seconds(1)), attempt: attempt, jitter: 7)
                    == .dead)
        }
    }

    @Test("jitter adds up to a tenth, and never takes any away")
    func jitter() {
        let answer = DeliveryAnswer.unanswered(.cannotConnect)
        for jitter in UInt8.min...UInt8.max {
            guard case .retry(let after) = schedule.verdict(on: answer, attempt: 2, jitter: jitter) else {
                Issue.record("no retry")
                continue
            }
            #expect(after >= .seconds(300) && after <= .seconds(330))
        }
        #expect(schedule.verdict(on: answer, attempt: 2, jitter: 255) == .retry(after: .seconds(330)))
    }

    @Test("Retry-After can make the pause longer, not shorter, and not longer than a day")
    func retryAfter() {
        func pause(_ wish: Duration, attempt: Int) -> DeliveryVerdict {
            schedule.verdict(on: .refused(status: 503, retryAfter: wish), attempt: attempt, jitter: 0)
        }
        #expect(pause(.seconds(60), attempt: 1) == .retry(after: .seconds(60)))
        #expect(pause(.seconds(60), attempt: 2) == .retry(after: .seconds(300)))
        #expect(pause(.seconds(999_999_999), attempt: 1) == .retry(after: .seconds(86_400)))
        #expect(pause(.seconds(60), attempt: 4) == .dead)
    }
}
