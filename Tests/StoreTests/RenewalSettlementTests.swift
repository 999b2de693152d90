import Basics
import Foundation
import Lockstep
import Store
import TestKit
import Testing

@Suite("What the end of an attempt is to its period and its subscription")
struct RenewalSettlementTests {
    @Test("the schedule's limit counts the attempt that has just failed", arguments: [1, 2, 3])
    func limit(_ limit: Int) async throws {
        let bench = try await RenewalBench(RenewalPlan.Rules(dunning: try RenewalBench.schedule(limit: limit)))
        for number in 1...limit {
            try await bench.decline(try await bench.attempt(), "InsufficientBalance")
            let expected: Charge.State = number == limit ? .failed : .scheduled
            #expect(try await bench.charge.state == expected)
            bench.wait(.seconds(86_400))
        }
        let more = try await bench.renew()
        #expect(more == nil)
        #expect(try await bench.subscription.status == .pastDue)
        await bench.stop()
    }

    @Test(
        "what failed by our own set-up is no decline: a network's cap and the schedule's limit stay whole",
        arguments: ["ProviderConfigError", "request.param.invalid"])
    func configuration(_ reason: String) async throws {
        let rules = RenewalPlan.Rules(dunning: try RenewalBench.schedule(limit: 1, networkCap: 1))
        let bench = try await RenewalBench(rules)
        for _ in 0..<3 {
            let attempt = try await bench.attempt()
            if reason.contains(".") {
                try await bench.answer(attempt, .refused(reason: reason))
            } else {
                try await bench.decline(attempt, reason)
            }
            #expect(try await bench.charge.state == .scheduled)
            #expect(try await bench.subscription.status == .active)
            bench.wait(.seconds(3600))
        }
        // A decline is one, and uses up both.
        try await bench.decline(try await bench.attempt(), "InsufficientBalance")
        #expect(try await bench.charge.state == .failed)
        await bench.stop()
    }

    @Test(
        "a later attempt is sent as its charge was begun, also by whoever takes it up, whatever the shop changed since")
    func meta() async throws {
        let bench = try await RenewalBench(RenewalPlan.Rules(dunning: try RenewalBench.schedule(limit: 2)))
        try await bench.decline(try await bench.attempt(), "InsufficientBalance")
        var change = Subscription.Change()
        change.meta = ["tier": "none"]
        _ = try await bench.store.changeSubscription(bench.id, change)
        bench.wait(.seconds(86_400))
        let planned = try #require(try await bench.renew())
        #expect(planned.request.meta == ["tier": "gold"])
        bench.wait(.seconds(3600))
        let claimed = try await bench.store.claimOperations(limit: 10, owner: UUID())
        let left = try #require(claimed.first { $0.operation.id == planned.operation.id })
        #expect(try await bench.store.resumeExecution(left)?.request.meta == planned.request.meta)
        await bench.stop()
    }

    /// What becomes of a subscription's attempt, with `LOCKSTEP_DUNNING_END=cancel`.
    enum End: String, CaseIterable, Sendable { case declined, declinedWhilePaused, cancelledAtProvider, configuration }

    @Test("a subscription is cancelled when its schedule has ended, and by nothing less", arguments: End.allCases)
    func dunningEnd(_ end: End) async throws {
        let rules = RenewalPlan.Rules(dunning: try RenewalBench.schedule(limit: 1), cancelsAfterDunning: true)
        let bench = try await RenewalBench(rules)
        let attempt = try await bench.attempt()
        switch end {
        case .declined: try await bench.decline(attempt, "InsufficientBalance")
        case .declinedWhilePaused:
            try await bench.step(.pause)
            try await bench.decline(attempt, "InsufficientBalance")
        case .cancelledAtProvider: try await bench.cancel(attempt)
        case .configuration:
            // Beyond the window, nothing is tried again.
            try await bench.decline(attempt, "ProviderConfigError")
            bench.wait(.seconds(11 * 86_400))
            try await bench.decline(try await bench.attempt(), "ProviderConfigError")
        }
        #expect(try await bench.charge.state == .failed)
        let expected: Subscription.Status =
            switch end {
            case .declined: .cancelled
            case .declinedWhilePaused: .paused
            case .cancelledAtProvider, .configuration: .pastDue
            }
        #expect(try await bench.subscription.status == expected)
        await bench.stop()
    }

    @Test("R12 R13: a card that was declined for good is known again by a reading that doesn't tell of its token")
    func declinedAppearance() async throws {
        let bench = try await RenewalBench()
        let attempt = try await bench.attempt(showing: bench.snapshot(hasNetworkToken: true))
        try await bench.decline(attempt, "BlockedInstrument")
        #expect(try await bench.subscription.status == .needsInstrument)
        bench.wait(.seconds(31 * 86_400))
        let next = try await bench.renew(showing: bench.snapshot(hasNetworkToken: nil))
        #expect(next == nil)
        #expect(try await bench.charge.period?.index == 2)
        #expect(try await bench.charge.reason == SkipReason.instrumentDeclined.rawValue)
        await bench.stop()
    }
}
