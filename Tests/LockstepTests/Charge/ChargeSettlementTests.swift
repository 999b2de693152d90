import Basics
import Testing

@testable import Lockstep

extension Sample {
    static func charge(
        _ state: Charge.State = .processing, _ attempts: ChargeAttempt..., minor: Int64 = 1499, next: Double? = nil
    ) -> Charge {
        Charge(
            id: ChargeID(execution(90).uuid), merchantReference: "topup-1", holderReference: "cust-1",
            instrument: InstrumentID(execution(80).uuid), workflowCode: "payment-acceptance", amount: money(minor),
            state: state, nextAttemptAt: next.map(at), attempts: attempts, createdAt: at(0))
    }

    static func attempt(
        _ number: Int, _ outcome: ChargeAttempt.Outcome = .processing, execution: Int?, reason: String? = nil
    ) -> ChargeAttempt {
        ChargeAttempt(
            number: number, merchantReference: "topup-1~1~\(number)", instrument: InstrumentID(Self.execution(80).uuid),
            paymentMethod: "card", amount: money(1499), execution: execution.map(Self.execution), outcome: outcome,
            reason: reason, begunAt: at(0))
    }

    static func charged(_ number: Int, _ facts: Fact..., cancel: CancelReason? = nil) -> CheckoutExecution {
        CheckoutExecution(
            reference: ExecutionReference(id: execution(number), workflowCode: "payment-acceptance"), ordinal: number,
            merchantReference: "topup-1~1~\(number)", amount: money(1499), picture: ExecutionPicture(of: facts),
            cancelReason: cancel, createdAt: at(0))
    }
}

@Suite("What the facts mean for a charge")
struct ChargeSettlementTests {
    typealias S = Sample

    private func settle(
        _ charge: Charge, _ executions: CheckoutExecution..., inDoubt: Set<Int> = [], refused: [Int: String] = [:],
        abandoned: [Int: ChargeSettlement.Abandonment] = [:], now: Double = 100,
        afterFailure: ChargeSettlement.AfterFailure = .final
    ) -> ChargeSettlement {
        ChargeSettlement(
            of: charge, executions: executions, inDoubt: inDoubt, refused: refused, abandoned: abandoned,
            rules: .init(),
            now: S.at(now), afterFailure: { _ in afterFailure })
    }

    private let success = S.completed("authorize", 10, minor: 1499)
    private func failure(_ reason: String?, at seconds: Double = 10) -> Fact {
        S.status("authorizeFailed", seconds, reason: reason)
    }

    @Test("it succeeds when its execution holds the money, and that is told once")
    func succeeds() {
        let settled = settle(S.charge(.processing, S.attempt(1, execution: 1)), S.charged(1, success))
        #expect(settled.charge.state == .succeeded && settled.charge.attempts[0].outcome == .succeeded)
        #expect(settled.effects == [.event(.chargeSucceeded)])
        #expect(settle(settled.charge, S.charged(1, success)).effects.isEmpty)
        let captured = S.completed("capture", 20, minor: 1499)
        #expect(settle(settled.charge, S.charged(1, success, captured)).effects.isEmpty)
        let refunded = settle(settled.charge, S.charged(1, success, captured, S.completed("refund", 30, minor: 1499)))
        #expect(refunded.charge.state == .succeeded && refunded.effects.isEmpty)
    }

    @Test("a success of another amount, or of one that nobody knows, is neither a success nor a failure")
    func amounts() {
        let charge = S.charge(.processing, S.attempt(1, execution: 1))
        let other = settle(charge, S.charged(1, S.completed("authorize", 10, minor: 1500)))
        #expect(other.charge.state == .unknown && other.charge.reason == "amount-mismatch")
        #expect(other.effects == [.held(S.execution(1))], "a person hears of it")
        // It was taken for a success by what the execution showed as a whole; what is told of the payment is exact.
        let taken = settle(charge, S.charged(1, success))
        let later = settle(taken.charge, S.charged(1, success, S.completed("authorize", 20, minor: 500)))
        #expect(later.charge.state == .succeeded && later.effects == [.held(S.execution(1))])
        let unknown = settle(charge, S.charged(1, S.status("authorizeSuccessful", 10)))
        #expect(unknown.charge.state == .unknown && unknown.effects == [.read(S.execution(1))])
    }

    @Test("a failure counts when the workflow has had its time to try another provider")
    func failureSettles() {
        let charge = S.charge(.processing, S.attempt(1, execution: 1))
        let early = settle(charge, S.charged(1, failure("GenericRejection")), now: 69)
        #expect(early.charge == charge && early.effects.isEmpty && early.dueAt == S.at(70))
        let late = settle(charge, S.charged(1, failure("GenericRejection")), now: 70)
        #expect(late.charge.state == .failed && late.charge.reason == "GenericRejection" && late.dueAt == nil)
        #expect(late.charge.attempts[0].outcome == .failed)
        #expect(late.effects == [.event(.chargeFailed)])
        #expect(settle(late.charge, S.charged(1, failure("GenericRejection"))).effects.isEmpty)
    }

    @Test("R18: what follows a failure is planned by the transition, and asked for once")
    func retry() {
        let charge = S.charge(.processing, S.attempt(1, execution: 1))
        let settled = settle(
            charge, S.charged(1, failure("InsufficientBalance")), afterFailure: .retry(at: S.at(86_400)))
        #expect(settled.charge.state == .scheduled && settled.charge.nextAttemptAt == S.at(86_400))
        #expect(settled.effects.isEmpty, "charge.failed is told when it is final")
        let again = settle(
            settled.charge, S.charged(1, failure("InsufficientBalance"), failure("InsufficientBalance", at: 11)),
            afterFailure: .retry(at: S.at(1)))
        #expect(again.charge == settled.charge && again.effects.isEmpty)
    }

    @Test(
        "M7: a failure behind which a charge can hide is unknown, and so is one without a known result",
        arguments: [
            "ProviderTimeout", "Timeout", "UnexpectedProviderResponse", "InternalServerError", "NeverSeen", nil,
        ])
    func doubtful(_ reason: String?) {
        let charge = S.charge(.processing, S.attempt(1, execution: 1))
        let settled = settle(charge, S.charged(1, failure(reason)), now: 100_000)
        #expect(settled.charge.state == .unknown && settled.charge.attempts[0].outcome == .unknown)
        #expect(settled.effects.isEmpty)
        // The payment's record decides, if it is as new as the failure.
        for (record, state) in [("Authorized", Charge.State.succeeded), ("Failed", .failed), ("Unknown", .unknown)] {
            let told = settle(settled.charge, S.charged(1, failure(reason), S.payment(record, 10, amount: 1499)))
            #expect(told.charge.state == state, "\(record)")
        }
        let old = settle(settled.charge, S.charged(1, failure(reason), S.payment("Authorized", 9, amount: 1499)))
        #expect(old.charge.state == .unknown)
    }

    @Test("where the customer would have to act it is cancelled and told; a success of it later is taken back")
    func needsCustomer() {
        let charge = S.charge(.processing, S.attempt(1, execution: 1))
        let waiting = S.pending("authorize", 10)
        let settled = settle(charge, S.charged(1, waiting))
        #expect(settled.charge.state == .needsCustomer && settled.charge.attempts[0].outcome == .needsCustomer)
        #expect(settled.effects == [.cancel(S.execution(1), .attemptOver), .event(.chargeNeedsCustomer)])
        #expect(settle(settled.charge, S.charged(1, waiting, cancel: .attemptOver)).effects.isEmpty)
        let late = settle(settled.charge, S.charged(1, waiting, success, cancel: .attemptOver))
        #expect(late.charge.state == .needsCustomer)
        #expect(late.effects == [.cancel(S.execution(1), .duplicate)])
        #expect(settle(settled.charge, S.charged(1, waiting, success, cancel: .duplicate)).effects.isEmpty)
    }

    @Test("authorizePending without anything to do for a customer only runs on; a demand for one is no decline")
    func pending() {
        let charge = S.charge(.processing, S.attempt(1, execution: 1))
        let settled = settle(charge, S.charged(1, S.status("authorizePending", 10)))
        #expect(settled.charge == charge && settled.effects.isEmpty)
        let demanded = settle(charge, S.charged(1, failure("PayerAuthenticationRequired")))
        #expect(demanded.charge.state == .needsCustomer)
        #expect(demanded.effects == [.event(.chargeNeedsCustomer)])
    }

    @Test("a call that nobody knows about is unknown; a refusal for good fails it")
    func calls() {
        let charge = S.charge(.processing, S.attempt(1, execution: nil))
        #expect(settle(charge, inDoubt: [1]).charge.state == .unknown)
        #expect(settle(charge).charge == charge)
        let known = S.charge(.unknown, S.attempt(1, .unknown, execution: 1))
        let created = S.charged(1, S.status("created", 1))
        #expect(settle(known, created, inDoubt: [1]).charge == known)
        #expect(settle(known, created).charge.state == .processing)
        let refused = settle(known, created, refused: [1: "request.not-found"])
        #expect(refused.charge.state == .failed && refused.charge.reason == "request.not-found")
        #expect(refused.effects == [.event(.chargeFailed)])
        // Facts are stronger than a refusal.
        #expect(settle(known, S.charged(1, success), refused: [1: "x"]).charge.state == .succeeded)
    }

    @Test("an attempt that nobody goes on with before it was authorized is over, and what comes of it is taken back")
    func abandoned() {
        let charge = S.charge(.unknown, S.attempt(1, .unknown, execution: 1))
        let created = S.charged(1, S.status("created", 1))
        let skipped = settle(charge, created, abandoned: [1: .skip(reason: "instrument-expired")])
        #expect(skipped.charge.state == .skipped && skipped.charge.reason == "instrument-expired")
        #expect(skipped.charge.attempts[0].outcome == .cancelled)
        #expect(skipped.effects == [.cancel(S.execution(1), .attemptOver), .event(.chargeSkipped)])
        let late = settle(skipped.charge, S.charged(1, success, cancel: .attemptOver))
        #expect(late.charge.state == .skipped && late.effects == [.cancel(S.execution(1), .duplicate)])
        let anew = settle(charge, created, abandoned: [1: .again(at: S.at(100))], afterFailure: .final)
        #expect(anew.charge.state == .scheduled && anew.charge.nextAttemptAt == S.at(100))
        #expect(anew.effects == [.cancel(S.execution(1), .attemptOver)])
        // Without an execution there is nothing to cancel.
        let unmade = S.charge(.processing, S.attempt(1, execution: nil))
        #expect(settle(unmade, abandoned: [1: .skip(reason: "paused")]).effects == [.event(.chargeSkipped)])
        // Facts are stronger, and what was over stays so.
        #expect(settle(charge, S.charged(1, success), abandoned: [1: .skip(reason: "x")]).charge.state == .succeeded)
        let failed = S.charge(.failed, S.attempt(1, .failed, execution: 1, reason: "GenericRejection"))
        let told = settle(failed, created, abandoned: [1: .skip(reason: "x")])
        #expect(told.charge == failed && told.effects.isEmpty)
    }

    @Test("M2: a late success pays, and what was planned is off")
    func lateSuccess() {
        let failed = S.charge(.failed, S.attempt(1, .failed, execution: 1, reason: "GenericRejection"))
        let facts = [failure("GenericRejection"), S.completed("authorize", 500, minor: 1499)]
        let settled = settle(failed, S.charged(1, facts[0], facts[1]), now: 600)
        #expect(settled.charge.state == .succeeded && settled.effects == [.event(.chargeSucceeded)])
        let scheduled = S.charge(.scheduled, S.attempt(1, .failed, execution: 1), next: 86_400)
        let paid = settle(scheduled, S.charged(1, facts[0], facts[1]), now: 600)
        #expect(paid.charge.state == .succeeded && paid.charge.nextAttemptAt == nil)
    }

    @Test("M2: of two attempts that succeed the first that is learned of counts, the other is taken back")
    func twoSuccesses() {
        let failed = failure("GenericRejection", at: 1)
        let two = S.charge(.processing, S.attempt(1, .failed, execution: 1), S.attempt(2, execution: 2))
        let late = S.charged(1, failed, success)
        // The first attempt succeeds late, while the second one runs.
        let settled = settle(two, late, S.charged(2, S.status("authorizeRequested", 5)))
        #expect(settled.charge.state == .succeeded)
        #expect(settled.charge.attempts.map(\.outcome) == [.succeeded, .cancelled])
        #expect(settled.effects == [.cancel(S.execution(2), .attemptOver), .event(.chargeSucceeded)])
        // And then the second one too.
        let both = settle(settled.charge, late, S.charged(2, success, cancel: .attemptOver))
        #expect(both.charge == settled.charge && both.effects == [.cancel(S.execution(2), .duplicate)])
        // The other way round.
        let second = settle(two, S.charged(1, failed), S.charged(2, success)).charge
        #expect(second.attempts.map(\.outcome) == [.failed, .succeeded])
        let first = settle(second, late, S.charged(2, success))
        #expect(first.charge.attempts.map(\.outcome) == [.cancelled, .succeeded])
        #expect(first.effects == [.cancel(S.execution(1), .duplicate)])
    }

    @Test("an authorization that is taken back fails the charge; the shop's own cancel of a success doesn't")
    func reversed() {
        let paid = S.charge(.succeeded, S.attempt(1, .succeeded, execution: 1))
        let reversed = settle(paid, S.charged(1, S.status("authorizeSuccessful", 1), failure("GenericRejection")))
        #expect(reversed.charge.state == .failed && reversed.effects == [.event(.chargeFailed)])
        let cancel = S.completed("cancel", 20, minor: 1499)
        #expect(settle(paid, S.charged(1, success, cancel)).charge == paid)
        let running = S.charge(.processing, S.attempt(1, execution: 1))
        let cancelled = settle(
            running, S.charged(1, S.requested("authorize", 1), cancel), afterFailure: .retry(at: S.at(1)))
        #expect(cancelled.charge.state == .failed && cancelled.charge.reason == "cancelled")
    }
}
