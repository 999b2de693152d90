import Basics
import Foundation
import Lockstep
import Store
import TestKit
import Testing

@Suite("An attempt that was begun and not authorized, when its subscription is stopped or its charge is paid")
struct StoppedAttemptTests {
    private static let stops: [(PaymentStore.SubscriptionStep, SkipReason)] = [
        (.pause, .paused), (.cancel, .cancelled),
    ]

    @Test("what is made for a subscription that was stopped meanwhile isn't authorized", arguments: stops)
    func stoppedBeforeCreated(_ step: PaymentStore.SubscriptionStep, _ reason: SkipReason) async throws {
        let bench = try await RenewalBench()
        let planned = try #require(try await bench.renew())
        try await bench.step(step)
        let standing = try await bench.create(planned)
        #expect(standing.authorization == nil)
        #expect(standing.charge?.state == .skipped && standing.charge?.reason == reason.rawValue)
        let charge = try await bench.charge
        #expect(charge.attempts.map(\.outcome) == [.cancelled] && charge.attempts[0].execution != nil)
        #expect(try await bench.told("charge.skipped") == 1)
        let authorizations: Int = try await bench.books.value(
            "SELECT count(*) FROM operations WHERE kind = 'authorize'")
        #expect(authorizations == 0)
        await bench.stop()
    }

    @Test("an authorization that waits to be sent isn't sent any more", arguments: stops)
    func stoppedBeforeSent(_ step: PaymentStore.SubscriptionStep, _ reason: SkipReason) async throws {
        let bench = try await RenewalBench()
        let authorization = try await bench.attempt()
        try await bench.answer(authorization, .later(seconds: nil))
        try await bench.step(step)
        bench.wait(.seconds(3600))
        let standing = try await bench.resume(try await bench.claimAuthorization(), of: authorization)
        #expect(!standing.goesOn)
        #expect(standing.charge?.state == .skipped && standing.charge?.reason == reason.rawValue)
        #expect(try await bench.store.readOperation(authorization.operation.id)?.state == .failed)
        #expect(try await bench.told("charge.skipped") == 1)
        // The sender may have died after all was sent: what comes of it is taken back.
        try await bench.succeed(authorization)
        #expect(try await bench.charge.state == .skipped)
        let cancels: Int = try await bench.books.value(
            "SELECT count(*) FROM operations WHERE kind = 'cancel' AND state <> 'failed'")
        #expect(cancels == 1)
        await bench.stop()
    }

    @Test("one that runs goes on, whoever looks, but only once")
    func goesOn() async throws {
        let bench = try await RenewalBench()
        let authorization = try await bench.attempt()
        try await bench.answer(authorization, .later(seconds: nil))
        bench.wait(.seconds(3600))
        let slow = try await bench.claimAuthorization()
        #expect(try await bench.resume(slow, of: authorization).goesOn)
        bench.wait(.seconds(3600))
        let quick = try await bench.claimAuthorization()
        #expect(try await !bench.resume(slow, of: authorization).goesOn)
        #expect(try await bench.resume(quick, of: authorization).goesOn)
        #expect(try await bench.charge.state == .processing)
        await bench.stop()
    }

    @Test("M2: a second attempt isn't sent once the first has paid after all")
    func firstPaid() async throws {
        let bench = try await RenewalBench(RenewalPlan.Rules(dunning: try RenewalBench.schedule(limit: 3)))
        let first = try await bench.attempt()
        try await bench.decline(first, "InsufficientBalance")
        bench.wait(.seconds(86_400))
        let second = try await bench.attempt()
        try await bench.answer(second, .later(seconds: nil))
        try await bench.succeed(first)
        #expect(try await bench.charge.attempts.map(\.outcome) == [.succeeded, .cancelled])
        bench.wait(.seconds(3600))
        #expect(try await !bench.resume(try await bench.claimAuthorization(), of: second).goesOn)
        #expect(try await bench.store.readOperation(second.operation.id)?.state == .failed)
        #expect(try await bench.charge.state == .succeeded)
        await bench.stop()
    }

    @Test("M2: a second attempt that is withdrawn isn't planned again once the first has paid after all")
    func firstPaidBeforeWithdrawal() async throws {
        let bench = try await RenewalBench(RenewalPlan.Rules(dunning: try RenewalBench.schedule(limit: 3)))
        let first = try await bench.attempt()
        try await bench.decline(first, "InsufficientBalance")
        bench.wait(.seconds(86_400))
        let second = try #require(try await bench.renew())
        try await bench.succeed(first)
        #expect(try await bench.store.withdrawAttempt(second, seconds: nil).state == .succeeded)
        #expect(try await bench.store.readOperation(second.operation.id)?.state == .failed)
        bench.wait(.seconds(86_400))
        let third = try await bench.renew()
        #expect(third == nil)
        #expect(try await bench.charge.state == .succeeded)
        await bench.stop()
    }

    @Test(
        "what was withdrawn before it was sent isn't planned again for a subscription that was stopped",
        arguments: stops)
    func withdrawn(_ step: PaymentStore.SubscriptionStep, _ reason: SkipReason) async throws {
        let bench = try await RenewalBench()
        let planned = try #require(try await bench.renew())
        try await bench.step(step)
        let charge = try await bench.store.withdrawAttempt(planned, seconds: nil)
        #expect(charge.state == .skipped && charge.reason == reason.rawValue && charge.attempts.isEmpty)
        #expect(try await bench.told("charge.skipped") == 1)
        await bench.stop()
    }

    @Test("what nobody could find out for a day and never was is withdrawn, and no person looks for it any longer")
    func withdrawnAfterADay() async throws {
        let bench = try await RenewalBench()
        let planned = try #require(try await bench.renew())
        try await bench.take(
            .answered(
                planned.operation, of: planned.charge.id, number: 1,
                .unknown(Doubt(kind: .serverError, detail: "HTTP 500"))))
        bench.wait(.seconds(86_401))
        #expect(try await bench.store.openAgedDiscrepancies(limit: 10) == 1)
        #expect(try await bench.store.withdrawAttempt(planned, seconds: nil).attempts.isEmpty)
        let open = try await bench.store.listDiscrepancies(state: .open, kind: nil, after: nil, limit: 10)
        #expect(open.isEmpty)
        #expect(try await bench.told("discrepancy.resolved") == 1)
        await bench.stop()
    }

    @Test("a card that can't be charged any more makes the period wait, and burns nothing")
    func unusable() async throws {
        let bench = try await RenewalBench(RenewalPlan.Rules(dunning: try RenewalBench.schedule(limit: 1)))
        let authorization = try await bench.attempt()
        try await bench.answer(authorization, .abandoned(.skip(reason: SkipReason.instrumentExpired.rawValue)))
        #expect(try await bench.charge.state == .skipped)
        #expect(try await bench.subscription.status == .needsInstrument)
        // The card was renewed: the only attempt that the schedule allows is still to be made.
        let again = try await bench.attempt()
        #expect(again.attempt.number == 2)
        try await bench.succeed(again)
        #expect(try await bench.charge.state == .succeeded)
        #expect(try await bench.subscription.status == .active)
        await bench.stop()
    }

    @Test("an authorization that never arrived is over, and a run makes the next one under its own reference")
    func neverArrived() async throws {
        let bench = try await RenewalBench(RenewalPlan.Rules(dunning: try RenewalBench.schedule(limit: 1)))
        let authorization = try await bench.attempt()
        try await bench.answer(authorization, .unknown(Doubt(kind: .timedOut, detail: "no answer")))
        bench.wait(.seconds(2 * 86_400))
        try await bench.answer(authorization, .abandoned(.again(at: bench.store.now)))
        #expect(try await bench.charge.state == .scheduled)
        #expect(try await bench.subscription.status == .active)
        let again = try await bench.attempt()
        try await bench.step(.pause)
        #expect(try await bench.answer(again, .abandoned(.again(at: bench.store.now))).charge?.state == .skipped)
        #expect(again.attempt.merchantReference != authorization.attempt.merchantReference)
        await bench.stop()
    }

    @Test("a key's time begins when it is sent for the first time, not with what was turned away or another key")
    func keyTime() async throws {
        let bench = try await RenewalBench()
        let authorization = try await bench.attempt()
        for answer in [AttemptAnswer.later(seconds: nil), .wornOut] {
            let operation = try #require(try await bench.store.readOperation(authorization.operation.id))
            try await bench.take(.answered(operation, of: authorization.charge.id, number: 1, answer))
            bench.wait(.seconds(2 * 86_400))
            #expect(try await bench.claimAuthorization().sentAt == bench.store.now)
        }
        await bench.stop()
    }
}
