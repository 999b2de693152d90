import Basics
import Foundation
import Testing

@testable import Lockstep

@Suite("What is to be done for a subscription")
struct RenewalPlanTests {
    typealias S = RenewalSample
    typealias Open = RenewalPlan.OpenCharge

    @Test("nothing before midnight in its zone, its first period from then on, the next one a month later")
    func firstPeriod() throws {
        let subscription = try S.subscription()
        let before = try S.plan(subscription, at: "2026-01-30T22:59:59Z")
        #expect(before.steps.isEmpty && !before.needsInstrument)
        #expect(before.nextAt == (try S.at("2026-01-30T23:00:00Z")))
        let due = try S.plan(subscription, at: "2026-01-30T23:00:00Z")
        #expect(due.steps == [.begin(try S.period(1, "2026-01-31", "2026-02-28"))])
        #expect(due.nextAt == (try S.at("2026-02-27T23:00:00Z")))
    }

    @Test("the instrument is asked for only when something is due, and nothing is decided without it")
    func readingFirst() throws {
        let due = try S.plan(try S.subscription(), nil, at: "2026-01-31T00:00:00Z")
        #expect(due.steps.isEmpty && due.needsInstrument)
        #expect(due.nextAt == (try S.at("2026-01-30T23:00:00Z")))
        #expect(!(try S.plan(try S.subscription(nextIndex: 2), nil, at: "2026-01-31T00:00:00Z")).needsInstrument)
    }

    @Test("D4 D5: a period that has its charge doesn't become due again, however often it is looked at on that day")
    func onceADay() throws {
        let begun = try S.subscription(nextIndex: 2)
        for hour in 0..<24 {
            let plan = try S.plan(begun, at: "2026-01-31T\(hour < 10 ? "0" : "")\(hour):00:00Z")
            #expect(plan.steps.isEmpty)
        }
        let inFlight = Open(index: 1, start: try S.day("2026-01-31"), standing: .inFlight)
        #expect(try S.plan(begun, open: [inFlight], at: "2026-01-31T12:00:00Z").steps.isEmpty)
    }

    @Test("missed periods: all are charged, one a run and in order")
    func missedAll() throws {
        let plan = try S.plan(try S.subscription(), at: "2026-04-05T00:00:00Z")
        #expect(plan.steps == [.begin(try S.period(1, "2026-01-31", "2026-02-28"))])
        #expect(plan.nextAt == (try S.at("2026-02-27T23:00:00Z")), "the next run goes on with the second")
    }

    @Test("missed periods: only the latest is charged, the others are skipped")
    func missedLatest() throws {
        let plan = try S.plan(try S.subscription(), missed: .latest, at: "2026-04-05T00:00:00Z")
        #expect(
            plan.steps == [
                .skip(try S.period(1, "2026-01-31", "2026-02-28"), .missed),
                .skip(try S.period(2, "2026-02-28", "2026-03-31"), .missed),
                .begin(try S.period(3, "2026-03-31", "2026-04-30")),
            ])
    }

    @Test("missed periods: what is due since more than a day is skipped, to the second")
    func missedSkip() throws {
        let late = try S.plan(try S.subscription(), missed: .skip, at: "2026-01-31T23:00:01Z")
        #expect(late.steps == [.skip(try S.period(1, "2026-01-31", "2026-02-28"), .missed)])
        #expect(late.nextAt == (try S.at("2026-02-27T23:00:00Z")))
        let inTime = try S.plan(try S.subscription(), missed: .skip, at: "2026-01-31T23:00:00Z")
        #expect(inTime.steps == [.begin(try S.period(1, "2026-01-31", "2026-02-28"))])
    }

    @Test("skipping what was missed needs no instrument")
    func missedWithoutReading() throws {
        let plan = try S.plan(try S.subscription(), nil, missed: .skip, at: "2026-02-05T00:00:00Z")
        #expect(!plan.needsInstrument)
        #expect(plan.steps.count == 1)
    }

    @Test("R11: an expired card is not charged: the period is skipped and waits, in each later run, for another card")
    func expired() throws {
        let plan = try S.plan(try S.subscription(), S.expired(), at: "2026-01-31T06:00:00Z")
        #expect(plan.steps == [.skip(try S.period(1, "2026-01-31", "2026-02-28"), .instrumentExpired)])
        #expect(plan.nextAt == (try S.at("2026-01-30T23:00:00Z")), "due in every run")
        let waiting = Open(index: 1, start: try S.day("2026-01-31"), standing: .waiting)
        let blocked = try S.subscription(status: .needsInstrument, nextIndex: 2)
        let again = try S.plan(blocked, open: [waiting], S.expired(), at: "2026-02-01T06:00:00Z")
        #expect(again.steps.isEmpty)
        let better = try S.plan(blocked, open: [waiting], at: "2026-02-02T06:00:00Z")
        #expect(better.steps == [.retry(index: 1)])
        let tooLate = try S.plan(blocked, open: [waiting], at: "2026-02-22T06:00:00Z")
        #expect(tooLate.steps.isEmpty, "the dunning window is over")
        #expect(tooLate.nextAt == (try S.at("2026-02-27T23:00:00Z")))
    }

    @Test("the policy of the subscription says what an expired card is worth; an unknown expiry blocks nothing")
    func policies() throws {
        let begin = RenewalPlan.Step.begin(try S.period(1, "2026-01-31", "2026-02-28"))
        let now = "2026-01-31T06:00:00Z"
        #expect(try S.plan(try S.subscription(policy: .allow), S.expired(), at: now).steps == [begin])
        let token = try S.subscription(policy: .allowWithNetworkToken)
        #expect(try S.plan(token, S.expired(token: true), at: now).steps == [begin])
        #expect(try S.plan(token, S.expired(), at: now).steps != [begin])
        let unknown = RenewalPlan.Instrument.enabled(S.snapshot(month: nil, year: nil), declines: [])
        #expect(try S.plan(try S.subscription(), unknown, at: now).steps == [begin])
    }

    @Test("R14: no instrument, no attempt", arguments: [RenewalPlan.Instrument.missing, .disabled])
    func noInstrument(_ instrument: RenewalPlan.Instrument) throws {
        let reason: SkipReason = instrument == .missing ? .instrumentMissing : .instrumentDisabled
        let plan = try S.plan(try S.subscription(), instrument, at: "2026-01-31T06:00:00Z")
        #expect(plan.steps == [.skip(try S.period(1, "2026-01-31", "2026-02-28"), reason)])
        let scheduled = Open(
            index: 1, start: try S.day("2026-01-31"), standing: .scheduled(at: try S.at("2026-02-03T08:00:00Z")))
        let retry = try S.plan(
            try S.subscription(status: .pastDue, nextIndex: 2), open: [scheduled], instrument,
            at: "2026-02-03T08:00:00Z"
        )
        #expect(retry.steps == [.suspend(index: 1, reason)])
    }

    @Test("a provider that can't be asked burns nothing, and the period stays due")
    func unreadable() throws {
        let plan = try S.plan(try S.subscription(), .unreadable, at: "2026-01-31T06:00:00Z")
        #expect(plan.steps == [.hold])
        #expect(try #require(plan.nextAt) <= (try S.at("2026-01-31T06:00:00Z")))
    }

    @Test("R13: a card that was declined for good isn't tried in the next period either, another one is")
    func declinedForGood() throws {
        let subscription = try S.subscription(status: .needsInstrument, nextIndex: 2, declined: S.declinedCard)
        let plan = try S.plan(subscription, at: "2026-02-28T06:00:00Z")
        #expect(plan.steps == [.skip(try S.period(2, "2026-02-28", "2026-03-31"), .instrumentDeclined)])
        var changed = subscription
        changed.instrument = S.otherCard
        let other = RenewalPlan.Instrument.enabled(S.snapshot(S.otherCard), declines: [])
        #expect(
            try S.plan(changed, other, at: "2026-02-28T06:00:00Z").steps == [
                .begin(try S.period(2, "2026-02-28", "2026-03-31"))
            ])
        let renewed = RenewalPlan.Instrument.enabled(S.snapshot(year: 2033), declines: [])
        #expect(
            try S.plan(subscription, renewed, at: "2026-02-28T06:00:00Z").steps == [
                .begin(try S.period(2, "2026-02-28", "2026-03-31"))
            ], "its issuer renewed it")
    }

    @Test("a retry is due at its hour and not a second before; the oldest period first, one a run")
    func retries() throws {
        let pastDue = try S.subscription(status: .pastDue, nextIndex: 2)
        let scheduled = Open(
            index: 1, start: try S.day("2026-01-31"), standing: .scheduled(at: try S.at("2026-02-03T08:00:00Z")))
        let early = try S.plan(pastDue, open: [scheduled], at: "2026-02-03T07:59:59Z")
        #expect(early.steps.isEmpty && !early.needsInstrument)
        #expect(early.nextAt == (try S.at("2026-02-03T08:00:00Z")))
        #expect(try S.plan(pastDue, open: [scheduled], at: "2026-02-03T08:00:00Z").steps == [.retry(index: 1)])
        let both = try S.plan(pastDue, open: [scheduled], at: "2026-02-28T06:00:00Z")
        #expect(both.steps == [.retry(index: 1)])
        #expect(both.nextAt == (try S.at("2026-02-27T23:00:00Z")), "the second period is for the next run")
    }

    @Test("a blocked card hinders every period that is due, not only the oldest")
    func allBlocked() throws {
        let scheduled = Open(
            index: 1, start: try S.day("2026-01-31"), standing: .scheduled(at: try S.at("2026-02-17T08:00:00Z")))
        let plan = try S.plan(
            try S.subscription(status: .pastDue, nextIndex: 2), open: [scheduled], .disabled, at: "2026-02-28T06:00:00Z"
        )
        #expect(
            plan.steps == [
                .suspend(index: 1, .instrumentDisabled),
                .skip(try S.period(2, "2026-02-28", "2026-03-31"), .instrumentDisabled),
            ])
    }

    @Test("a network's cap puts an attempt off, and ends it where the window is over before")
    func capped() throws {
        let now = try S.at("2026-02-03T08:00:00Z")
        func declines(daysAgo: Int64) -> RenewalPlan.Instrument {
            .enabled(
                S.snapshot(),
                declines: (0..<15).map { now - .seconds(daysAgo * 86_400 - Int64($0)) })
        }
        let scheduled = Open(index: 1, start: try S.day("2026-01-31"), standing: .scheduled(at: now))
        let pastDue = try S.subscription(status: .pastDue, nextIndex: 2)
        let soon = try S.plan(pastDue, open: [scheduled], declines(daysAgo: 29), at: now.rfc3339)
        #expect(soon.steps == [.deferRetry(index: 1, until: now + .seconds(86_400))])
        #expect(soon.nextAt == now + .seconds(86_400))
        let never = try S.plan(pastDue, open: [scheduled], declines(daysAgo: 1), at: now.rfc3339)
        #expect(never.steps == [.giveUp(index: 1)])
        let fresh = try S.plan(try S.subscription(), declines(daysAgo: 29), at: now.rfc3339)
        #expect(
            fresh.steps == [.postpone(try S.period(1, "2026-01-31", "2026-02-28"), until: now + .seconds(86_400))])
    }

    @Test(
        "nothing for one that is paused, cancelled or ended",
        arguments: [Subscription.Status.paused, .cancelled, .ended])
    func stopped(_ status: Subscription.Status) throws {
        let plan = try S.plan(try S.subscription(status: status), at: "2026-06-01T00:00:00Z")
        #expect(plan.steps.isEmpty && plan.nextAt == nil && !plan.needsInstrument)
    }

    @Test("the last period by endsOn, that day included, and by maxCharges; then it is over, when its charges are")
    func ends() throws {
        let byDay = try S.subscription(endsOn: "2026-02-28", nextIndex: 2)
        #expect(
            try S.plan(byDay, at: "2026-02-28T06:00:00Z").steps == [
                .begin(try S.period(2, "2026-02-28", "2026-03-31"))
            ])
        #expect(try S.plan(byDay, at: "2026-02-28T06:00:00Z").nextAt == nil)
        for over in [
            try S.subscription(endsOn: "2026-02-27", nextIndex: 2), try S.subscription(maxCharges: 1, nextIndex: 2),
        ] {
            let plan = try S.plan(over, at: "2026-02-28T06:00:00Z")
            #expect(plan.steps == [.finish])
            let open = Open(index: 1, start: try S.day("2026-01-31"), standing: .inFlight)
            #expect(try S.plan(over, open: [open], at: "2026-02-28T06:00:00Z").steps.isEmpty)
        }
        let missed = try S.plan(
            try S.subscription(endsOn: "2026-02-28"), missed: .latest, at: "2027-01-01T00:00:00Z")
        #expect(missed.steps.last == .begin(try S.period(2, "2026-02-28", "2026-03-31")))
    }

    @Test("R9: whatever its fields, a plan ends, and never charges one period twice over a life of random runs")
    func randomLives() throws {
        var dice = Seeded(seed: 7)
        for _ in 0..<300 {
            var subscription = try S.subscription(
                ["P1D", "P1W", "P1M", "P3M"].randomElement(using: &dice) ?? "P1M",
                maxCharges: Bool.random(using: &dice) ? Int.random(in: 1...9, using: &dice) : nil)
            let missed = RenewalPlan.Missed.allCases.randomElement(using: &dice) ?? .all
            var begun: [Int] = []
            var skipped: [Int] = []
            var now = try S.at("2026-01-25T00:00:00Z")
            for _ in 0..<40 {
                now = now + .seconds(Int64.random(in: 1...20 * 86_400, using: &dice))
                let plan = RenewalPlan(
                    for: subscription, open: [], instrument: S.good,
                    rules: RenewalPlan.Rules(missed: missed, expiryZone: .gmt), now: now)
                for step in plan.steps {
                    switch step {
                    case .begin(let period):
                        begun.append(period.index)
                        _ = subscription.apply(.begun(upTo: period.index))
                    case .skip(let period, _):
                        skipped.append(period.index)
                        _ = subscription.apply(.begun(upTo: period.index))
                    case .finish: _ = subscription.apply(.finished)
                    default: Issue.record("an unexpected step: \(step)")
                    }
                }
            }
            let all = (begun + skipped).sorted()
            #expect(all == Array(1...max(1, all.count)) || all.isEmpty, "each once, none left out")
            #expect(begun == begun.sorted())
        }
    }
}
