import Basics
import Foundation
import Lockstep
import PayrailsSandbox
import Store
import TestKit
import Testing

@testable import Service

@Suite("What earlier runs left unknown, and cards that can't be read")
struct RenewalLookUpTests {
    /// Subscriptions whose first attempt is open after a run: the provider gave no answer in time.
    private func unknown(_ count: Int, _ lockstep: ServiceHarness) async throws -> [String] {
        var subscriptions: [AskedSubscription] = []
        for _ in 0..<count { subscriptions.append(try await lockstep.subscription(try lockstep.card("0119"))) }
        try await lockstep.renew("2027-01-31T06:00:00Z")
        return try subscriptions.map {
            try #require(lockstep.executions($0, period: 1, attempt: 1).first)
        }
    }

    @Test(
        "five and more attempts of before that can't be looked up keep nobody from being charged",
        arguments: [400, 500])
    func unreadableAttempts(_ status: Int) async throws {
        let lockstep = try await ServiceHarness.start(parts: .api)
        for execution in try await unknown(6, lockstep) {
            lockstep.sandbox.add(
                SandboxFault(.errorBefore(status: status), on: .getExecution, times: nil, containing: execution))
        }
        let new = try await lockstep.subscription(try lockstep.card())
        let summary = try await lockstep.renew("2027-01-31T07:00:00Z")
        #expect(await waitUntil { lockstep.successes(new.reference) == [1: 1] })
        #expect(!summary.stoppedEarly && summary.isUnfinished)
        #expect(summary.unanswered >= 5)
        // An answer, whatever it says, is no silence: then all of them are asked about.
        #expect(summary.leftLookUps == (status == 500))
        await lockstep.stop()
    }

    @Test("cards that can't be read come behind what else is due, and aren't an outage", arguments: [400, 500])
    func unreadableCards(_ status: Int) async throws {
        let lockstep = try await ServiceHarness.start(parts: .api)
        var bad: [AskedSubscription] = []
        for _ in 0..<12 { bad.append(try await lockstep.subscription(try lockstep.card())) }
        let good = try await lockstep.subscription(try lockstep.card())
        for subscription in bad {
            lockstep.sandbox.add(
                SandboxFault(
                    .errorBefore(status: status), on: .getInstrument, times: nil, containing: subscription.card.id))
        }
        let first = try await lockstep.renew("2027-01-31T06:00:00Z")
        if status == 400 {
            #expect(!first.stoppedEarly && first.untried == 12 && first.isUnfinished)
            #expect(await waitUntil { lockstep.successes(good.reference) == [1: 1] })
        }
        // At the latest now it isn't behind them any more.
        try await lockstep.renew("2027-01-31T07:00:00Z")
        #expect(await waitUntil { lockstep.successes(good.reference) == [1: 1] })
        for subscription in bad { #expect(try await lockstep.charges(subscription).isEmpty) }
        lockstep.sandbox.clearFaults()
        #expect(try await lockstep.renew("2027-01-31T08:00:00Z").untried == 0)
        for subscription in bad { #expect(await waitUntil { lockstep.successes(subscription.reference) == [1: 1] }) }
        await lockstep.stop()
    }

    @Test("a card that can't be read isn't put off to the day of a run that was made as of a far one")
    func farRun() async throws {
        let lockstep = try await ServiceHarness.start(parts: .api)
        let subscription = try await lockstep.subscription(try lockstep.card())
        lockstep.sandbox.add(
            SandboxFault(.errorBefore(status: 400), on: .getInstrument, containing: subscription.card.id))
        #expect(try await lockstep.renew("2035-01-31T06:00:00Z").untried == 1)
        try await lockstep.renew("2027-01-31T06:00:00Z")
        #expect(await waitUntil { lockstep.successes(subscription.reference) == [1: 1] })
        await lockstep.stop()
    }

    @Test("runs that overlap share the look-ups, and a run that begins later looks again")
    func shared() async throws {
        let lockstep = try await ServiceHarness.start(parts: .api)
        let executions = Set(try await unknown(3, lockstep))
        let store = lockstep.store
        let (one, other) = (store.newRun(), store.newRun())
        let began = store.now
        let first = try await store.claimLookUps(one, since: began, limit: 2)
        let second = try await store.claimLookUps(other, since: began, limit: 10)
        #expect(first.count == 2 && second.count == 1)
        #expect(Set((first + second).map(\.id.description)) == executions)
        #expect(try await store.claimLookUps(other, since: began, limit: 10).isEmpty)
        // What the one has looked into just now, the other needn't.
        try await store.releaseLookUps(one, first.map(\.id))
        #expect(try await store.claimLookUps(other, since: began, limit: 10).isEmpty)
        // Nobody gives back what is another's.
        try await store.releaseLookUps(one, second.map(\.id))
        #expect(await waitUntil { store.now > began + .milliseconds(1) })
        let third = try await store.claimLookUps(store.newRun(), since: store.now, limit: 10)
        #expect(Set(third.map(\.id)) == Set(first.map(\.id)))
        await lockstep.stop()
    }

    @Test("--limit: what is left is told, and what waits for another instrument doesn't stand before it")
    func limit() async throws {
        let lockstep = try await ServiceHarness.start(parts: .api)
        var waiting: [AskedSubscription] = []
        for _ in 0..<3 {
            let card = try lockstep.card()
            waiting.append(try await lockstep.subscription(card))
            #expect(lockstep.sandbox.changeInstrument(card.id, status: "disabled").isAccepted)
        }
        try await lockstep.renew("2027-01-31T06:00:00Z")
        for subscription in waiting { #expect(try await lockstep.status(subscription) == "needsInstrument") }
        var due: [AskedSubscription] = []
        for _ in 0..<3 { due.append(try await lockstep.subscription(try lockstep.card())) }
        let first = try await lockstep.renew("2027-01-31T07:00:00Z", limit: 2)
        #expect(first.looked == 2 && first.isLimited && first.isUnfinished)
        #expect(
            await waitUntil { due.count { lockstep.successes($0.reference) == [1: 1] } == 2 })
        // The limit is reached again, and nothing is left.
        let second = try await lockstep.renew("2027-01-31T08:00:00Z", limit: 1)
        #expect(second.looked == 1 && !second.isLimited && !second.isUnfinished)
        for subscription in due { #expect(await waitUntil { lockstep.successes(subscription.reference) == [1: 1] }) }
        // Without a limit those that wait have their turn.
        #expect(try await lockstep.renew("2027-01-31T09:00:00Z").looked == 3)
        await lockstep.stop()
    }
}
