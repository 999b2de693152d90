import Basics
import Foundation
import PayrailsSandbox
import TestKit
import Testing

@testable import Service

@Suite("Renewals that are late, or can't reach Payrails")
struct RenewalOutageTests {
    @Test("a Payrails that is down ends the run early, burns nothing, and the next run charges")
    func down() async throws {
        let lockstep = try await ServiceHarness.start(parts: .api)
        var subscriptions: [AskedSubscription] = []
        for _ in 0..<30 { subscriptions.append(try await lockstep.subscription(try lockstep.card())) }
        let before = lockstep.sandbox.calls.count
        lockstep.sandbox.add(SandboxFault(.errorBefore(status: 503), times: nil))
        let summary = try await lockstep.renew("2027-01-31T06:00:00Z")
        #expect(summary.stoppedEarly && summary.isUnfinished)
        #expect(lockstep.sandbox.calls.count - before < 30, "it stops long before everything was tried")
        for subscription in subscriptions { #expect(try await lockstep.charges(subscription).isEmpty) }
        lockstep.sandbox.clearFaults()
        let after = try await lockstep.renew("2027-01-31T06:15:00Z")
        #expect(!after.isUnfinished)
        for subscription in subscriptions {
            #expect(lockstep.successes(subscription.reference) == [1: 1])
        }
        await lockstep.stop()
    }

    @Test(
        "a run that is three months late: all in order and one a run, only the latest, or none that is older than a day",
        arguments: [
            ("all", ["succeeded", "succeeded", "succeeded"]),
            ("latest", ["skipped missed", "skipped missed", "succeeded"]),
            ("skip", ["skipped missed", "skipped missed", "skipped missed"]),
        ])
    func late(_ policy: String, _ expected: [String]) async throws {
        let lockstep = try await ServiceHarness.start(["LOCKSTEP_RENEW_MISSED": policy])
        let subscription = try await lockstep.subscription(try lockstep.card())
        try await lockstep.renew("2027-04-10T06:00:00Z")
        if policy == "all" { #expect(try await lockstep.come(to: ["succeeded"], subscription)) }
        for hour in 7...9 { try await lockstep.renew("2027-04-10T0\(hour):00:00Z") }
        #expect(try await lockstep.come(to: expected, subscription))
        let paid = lockstep.successes(subscription.reference)
        #expect(paid.values.allSatisfy { $0 == 1 })
        #expect(paid.count == expected.filter { $0 == "succeeded" }.count)
        await lockstep.stop()
    }

    @Test("R18: the next attempt is planned by the decline itself, whether it was told or found by reading")
    func whicheverPath() async throws {
        for parts in [LockstepService.Parts.api, .all] {
            let lockstep = try await ServiceHarness.start(["LOCKSTEP_FAILURE_SETTLE_SECONDS": "0"], parts: parts)
            // Without workers, nothing that is told is applied; with them, nothing is told by a reading.
            let subscription = try await lockstep.subscription(try lockstep.card("9995"))
            if parts == .all {
                lockstep.sandbox.add(
                    SandboxFault(.errorBefore(status: 503), on: .getExecution, times: nil))
            }
            try await lockstep.renew("2027-01-31T06:00:00Z")
            if parts == .api { try await lockstep.renew("2027-01-31T07:00:00Z") }
            #expect(try await lockstep.come(to: ["scheduled InsufficientBalance"], subscription))
            let charge = try await lockstep.charges(subscription).first
            #expect(charge?["nextAttemptAt"] == "2027-02-03T08:00:00Z")
            #expect(try await lockstep.status(subscription) == "pastDue")
            await lockstep.stop()
        }
    }

    @Test("with LOCKSTEP_RENEW_EVERY the service does it by itself")
    func byItself() async throws {
        let lockstep = try await ServiceHarness.start(["LOCKSTEP_RENEW_EVERY": "100ms"])
        let subscription = try await lockstep.subscription(try lockstep.card(), ServiceHarness.monthOld)
        #expect(try await lockstep.come(to: ["succeeded"], subscription))
        #expect(try await waitUntil { try await lockstep.status(subscription) == "ended" })
        #expect(lockstep.successes(subscription.reference) == [1: 1])
        await lockstep.stop()
    }

    @Test("three runs at once keep one limit of calls a second between them")
    func oneLimit() async throws {
        let lockstep = try await ServiceHarness.start(
            ["PAYRAILS_SHARED_REQUESTS_PER_SECOND": "40"], parts: .api
        ) { $0.requestsPerSecond = 60 }
        var subscriptions: [AskedSubscription] = []
        for _ in 0..<20 { subscriptions.append(try await lockstep.subscription(try lockstep.card())) }
        let harness = lockstep
        try await withThrowingTaskGroup { group in
            for _ in 0..<3 { group.addTask { _ = try await harness.renew("2027-01-31T06:00:00Z") } }
            try await group.waitForAll()
        }
        #expect(lockstep.sandbox.calls.filter { $0.status == 429 }.isEmpty)
        for subscription in subscriptions { #expect(lockstep.successes(subscription.reference) == [1: 1]) }
        await lockstep.stop()
    }
}
