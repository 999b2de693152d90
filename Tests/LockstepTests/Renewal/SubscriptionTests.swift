import Basics
import Foundation
import Testing

@testable import Lockstep

@Suite("A subscription's life")
struct SubscriptionTests {
    typealias S = RenewalSample

    @Test("trouble is told once; a payment ends it and tells that too")
    func trouble() throws {
        var subscription = try S.subscription()
        #expect(subscription.apply(.declinedForNow) == [.tell(.subscriptionPastDue)])
        #expect(subscription.apply(.declinedForNow) == [])
        #expect(subscription.status == .pastDue)
        #expect(subscription.apply(.paid(othersOpen: true)) == [])
        #expect(subscription.status == .pastDue)
        #expect(subscription.apply(.paid(othersOpen: false)) == [.tell(.subscriptionRecovered)])
        #expect(subscription.status == .active)
        #expect(subscription.apply(.paid(othersOpen: false)) == [])
    }

    @Test("R13: a hard decline asks for another card, which counts at once")
    func hardDecline() throws {
        var subscription = try S.subscription(nextIndex: 2)
        #expect(subscription.apply(.declinedForGood(S.declinedCard)) == [.tell(.subscriptionNeedsInstrument)])
        #expect(subscription.declined == S.declinedCard)
        var change = Subscription.Change()
        change.instrument = S.otherCard
        let effects = try subscription.apply(
            change, today: try S.day("2026-02-02"), lastStart: try S.day("2026-01-31"), othersOpen: false)
        #expect(effects == [.tell(.subscriptionRecovered), .retryWaiting])
        #expect(subscription.status == .active)
        // Back to the card that was declined, also after the other one has paid.
        _ = subscription.apply(.paid(othersOpen: false))
        change.instrument = S.card
        _ = try subscription.apply(
            change, today: try S.day("2026-02-02"), lastStart: try S.day("2026-01-31"), othersOpen: false)
        #expect(
            try S.plan(subscription, at: "2026-03-01T00:00:00Z").steps.contains { step in
                if case .skip(_, .instrumentDeclined) = step { true } else { false }
            })
    }

    @Test("a decline of a card that was replaced meanwhile says nothing about the new one")
    func replacedMeanwhile() throws {
        var subscription = try S.subscription()
        #expect(
            subscription.apply(.declinedForGood(DeclinedInstrument(instrument: S.otherCard, appearance: "card"))) == [])
        #expect(subscription.status == .active && subscription.declined == nil)
    }

    @Test("a schedule that ended leaves it past due, or cancels it, by the setting")
    func givenUp() throws {
        var kept = try S.subscription(status: .pastDue)
        #expect(kept.apply(.givenUp(cancels: false)) == [])
        #expect(kept.status == .pastDue)
        var cancelled = try S.subscription(status: .pastDue)
        #expect(
            cancelled.apply(.givenUp(cancels: true)) == [
                .stopPlanned(reason: .cancelled), .tell(.subscriptionCancelled),
            ])
        #expect(cancelled.status == .cancelled)
        var paused = try S.subscription(status: .paused)
        #expect(paused.apply(.givenUp(cancels: true)) == [])
        #expect(paused.status == .paused)
    }

    @Test("pausing and cancelling stop what is planned; what falls into a pause is skipped; said twice, nothing more")
    func pause() throws {
        var subscription = try S.subscription(nextIndex: 3)
        #expect(subscription.apply(.pause) == [.stopPlanned(reason: .paused)])
        #expect(subscription.apply(.pause) == [])
        #expect(subscription.nextChargeOn == nil)
        #expect(subscription.apply(.resume(skippingTo: 6)) == [.skip(3...5, reason: .paused)])
        #expect(subscription.status == .active && subscription.nextIndex == 6)
        #expect(subscription.apply(.resume(skippingTo: 9)) == [])
        #expect(subscription.apply(.cancel).contains(.tell(.subscriptionCancelled)))
        #expect(subscription.apply(.cancel) == [])
    }

    @Test(
        "nothing that its last attempts bring wakes one that is cancelled, ended or paused",
        arguments: [
            Subscription.Status.cancelled, .ended, .paused,
        ])
    func over(_ status: Subscription.Status) throws {
        for event: Subscription.Event in [
            .paid(othersOpen: false), .declinedForNow, .givenUp(cancels: false), .customerNeeded, .instrumentUnusable,
            .declinedForGood(S.declinedCard), .instrumentUsable(othersOpen: false),
        ] {
            var subscription = try S.subscription(status: status)
            #expect(subscription.apply(event) == [], "\(event)")
            #expect(subscription.status == status)
        }
    }

    @Test(
        "a new anchor from the next period on stretches the running one to the first new day that isn't before its end")
    func anchorLater() throws {
        for (anchor, next) in [
            ("2026-02-15", "2026-03-15"), ("2026-02-28", "2026-02-28"), ("2026-03-10", "2026-03-10"),
        ] {
            var subscription = try S.subscription(nextIndex: 2)
            var change = Subscription.Change()
            change.startsOn = try S.day(anchor)
            let effects = try subscription.apply(
                change, today: try S.day("2026-02-10"), lastStart: try S.day("2026-01-31"), othersOpen: false)
            #expect(effects == [.moveLastEnd(of: 1)])
            #expect(subscription.nextChargeOn?.description == next)
            #expect(subscription.startsOn.description == anchor)
        }
    }

    @Test("a new anchor that counts now cuts the running period short")
    func anchorNow() throws {
        var subscription = try S.subscription(nextIndex: 2)
        var change = Subscription.Change()
        change.startsOn = try S.day("2026-02-15")
        change.effective = .now
        _ = try subscription.apply(
            change, today: try S.day("2026-02-10"), lastStart: try S.day("2026-01-31"), othersOpen: false)
        let calendar = subscription.calendar(hour: 0)
        #expect(calendar.start(of: 2).description == "2026-02-15")
        #expect(calendar.start(of: 3).description == "2026-03-15")
    }

    @Test("R5: a moved schedule doesn't charge the day of the last period again")
    func anchorOnLastStart() throws {
        var subscription = try S.subscription(nextIndex: 2)
        var change = Subscription.Change()
        change.startsOn = try S.day("2026-01-31")
        change.effective = .now
        _ = try subscription.apply(
            change, today: try S.day("2026-01-31"), lastStart: try S.day("2026-01-31"), othersOpen: false)
        #expect(subscription.nextChargeOn?.description == "2026-02-28")
    }

    @Test("a new anchor before the first charge is the first charge's day")
    func anchorBeforeFirst() throws {
        var subscription = try S.subscription()
        var change = Subscription.Change()
        change.startsOn = try S.day("2026-01-15")
        let effects = try subscription.apply(
            change, today: try S.day("2026-01-10"), lastStart: nil, othersOpen: false)
        #expect(effects == [])
        #expect(subscription.nextChargeOn?.description == "2026-01-15")
    }

    @Test("what can't be changed is refused whole, with the member's name")
    func refused() throws {
        typealias Refusal = Subscription.Refusal
        func refusal(_ make: (inout Subscription.Change) throws -> Void) throws -> Refusal? {
            var subscription = try S.subscription(nextIndex: 3)
            let before = subscription
            var change = Subscription.Change()
            try make(&change)
            let today = try S.day("2026-03-10")
            let lastStart = try S.day("2026-02-28")
            let refusal = #expect(throws: Refusal.self) {
                try subscription.apply(change, today: today, lastStart: lastStart, othersOpen: false)
            }
            #expect(subscription == before)
            return refusal
        }
        #expect(try refusal { $0.amount = try Money(value: "9.90", currencyCode: "USD") } == .currencyChanged)
        #expect(Refusal.currencyChanged.fault?.pointer == "/amount/currency")
        #expect(try refusal { $0.startsOn = try S.day("2026-03-09") } == .anchorPast)
        #expect(try refusal { $0.endsOn = .set(try S.day("2026-02-27")) } == .endBeforeStart)
        #expect(try refusal { $0.maxCharges = .set(1) } == .fewerThanCharged)
        var over = try S.subscription(status: .cancelled)
        #expect(throws: Refusal.over) {
            try over.apply(
                Subscription.Change(), today: CivilDate(year: 2026, month: 1, day: 1), lastStart: nil, othersOpen: false
            )
        }
    }
}

@Suite("What an attempt's outcome means")
struct AttemptVerdictTests {
    typealias S = RenewalSample
    let rules = RenewalPlan.Rules(expiryZone: .gmt)

    private func verdict(_ outcome: AttemptVerdict.Outcome, attempts: Int = 1, at: String = "2026-01-31T06:00:00Z")
        throws
        -> AttemptVerdict
    {
        rules.verdict(
            on: outcome, dueDay: try S.day("2026-01-31"), attempts: attempts, attemptedAt: try S.at(at), zone: .gmt)
    }

    @Test("R13 R18: the class of the decline decides, and the transition itself plans the next attempt")
    func classes() throws {
        #expect(try verdict(.succeeded) == .paid)
        #expect(
            try verdict(.declined(reason: "InsufficientBalance"))
                == .again(at: try S.at("2026-02-03T09:00:00Z"), counts: true))
        #expect(try verdict(.declined(reason: "InsufficientBalance"), attempts: 5) == .givenUp)
        #expect(try verdict(.declined(reason: "BlockedInstrument")) == .declinedForGood)
        #expect(try verdict(.declined(reason: "SuspectedFraud")) == .declinedForGood)
        #expect(try verdict(.declined(reason: "PayerAuthenticationRequired")) == .customerNeeded)
        #expect(try verdict(.needsCustomer) == .customerNeeded)
    }

    @Test("R17: unknown stays undecided; a reason that hides a charge is unknown too")
    func unknown() throws {
        #expect(try verdict(.unknown) == .undecided)
        #expect(try verdict(.declined(reason: "ProviderTimeout")) == .undecided)
        #expect(try verdict(.declined(reason: "NeverSeen")) == .undecided)
        #expect(try verdict(.declined(reason: nil)) == .undecided)
    }

    @Test("a fault of our own set-up burns no attempt, and ends with the window")
    func configuration() throws {
        let expected = AttemptVerdict.again(at: try S.at("2026-01-31T12:00:00Z"), counts: false)
        #expect(try verdict(.declined(reason: "ProviderConfigError")) == expected)
        #expect(try verdict(.refused) == expected)
        #expect(try verdict(.refused, at: "2026-02-21T20:00:00Z") == .givenUp)
    }
}
