import Basics
import Testing

@testable import Lockstep

extension Sample {
    static func checkout(
        _ minor: Int64 = 5749, status: Checkout.Status = .open, current: Int? = 1, kept: Int? = nil,
        amountState: Checkout.AmountState = .inStep, lease: GateLease? = nil, basketVersion: String? = nil,
        allowed: [String]? = nil, expires: Double = 3600
    ) -> Checkout {
        Checkout(
            id: checkoutID(), merchantReference: "order-1", holderReference: "cust-1",
            workflowCode: "payment-acceptance", status: status, amount: money(minor), amountVersion: 3,
            amountState: amountState, basketVersion: basketVersion, amountPolicy: .merchantOnly,
            allowedPaymentMethods: allowed, currentExecution: current.map(execution),
            keptExecution: kept.map(execution), lease: lease, createdAt: at(0), expiresAt: at(expires))
    }

    static func execution(
        _ number: Int, _ state: ExecutionState, authorized: Int64? = 5749, captured: Int64? = nil,
        failedAt: Double? = nil, cancel: CancelReason? = nil, reported: Bool = false, amount: Int64 = 5749
    ) -> CheckoutExecution {
        var picture = ExecutionPicture()
        picture.state = state
        if state.holdsMoney || state == .refunded || state == .cancelled {
            picture.authorized = authorized.map { money($0) }
        }
        picture.captured = captured.map { money($0) }
        picture.failedAt = failedAt.map(at)
        return CheckoutExecution(
            reference: ExecutionReference(id: execution(number), workflowCode: "payment-acceptance"), ordinal: number,
            merchantReference: number == 1 ? "order-1" : "order-1~\(number)", amount: money(amount), picture: picture,
            cancelReason: cancel, cancelReported: reported, createdAt: at(0))
    }
}

@Suite("What the facts mean for the order")
struct SettlementTests {
    typealias S = Sample

    private func settle(
        _ checkout: Checkout, _ executions: CheckoutExecution..., move: Int64? = nil,
        mismatch: Settlement.Rules.Mismatch = .cancel, now: Double = 100
    ) -> Settlement {
        Settlement(
            of: checkout, executions: executions, pendingMove: move.map { S.money($0) },
            rules: Settlement.Rules(mismatch: mismatch), now: S.at(now))
    }

    @Test("nothing known: open until it expires")
    func open() {
        let settled = settle(S.checkout(), S.execution(1, .created))
        #expect(settled.checkout == S.checkout() && settled.effects.isEmpty)
        #expect(settled.dueAt == S.at(3600))
    }

    @Test(
        "an execution in flight makes the order processing",
        arguments: [ExecutionState.processing, .needsCustomer, .unknown])
    func processing(state: ExecutionState) {
        let settled = settle(S.checkout(), S.execution(1, state))
        #expect(settled.checkout.status == .processing && settled.effects.isEmpty)
        // The superseded one that waits somewhere doesn't: the customer has a new session.
        let fresh = settle(S.checkout(current: 2), S.execution(1, state), S.execution(2, .created))
        #expect(fresh.checkout.status == .open)
    }

    @Test(
        "a success for the confirmed amount pays",
        arguments: [ExecutionState.authorized, .partiallyCaptured, .captured, .partiallyRefunded])
    func paid(state: ExecutionState) {
        let settled = settle(S.checkout(), S.execution(1, state))
        #expect(settled.checkout.status == .paid)
        #expect(settled.checkout.keptExecution == S.execution(1))
        #expect(settled.effects == [.event(.checkoutPaid)])
        #expect(settled.dueAt == nil)
    }

    @Test("a success of a superseded session pays as well")
    func supersededPays() {
        let settled = settle(S.checkout(current: 2), S.execution(1, .authorized), S.execution(2, .created))
        #expect(settled.checkout.status == .paid && settled.checkout.keptExecution == S.execution(1))
    }

    @Test("two sessions succeed at once: one pays, the other is cancelled (M1)")
    func duplicate() {
        let settled = settle(S.checkout(current: 2), S.execution(2, .captured), S.execution(1, .authorized))
        #expect(settled.checkout.keptExecution == S.execution(1))
        #expect(settled.effects == [.event(.checkoutPaid), .cancel(S.execution(2), .duplicate)])
    }

    @Test("a second success after the order was paid is cancelled, whatever its amount (M1)")
    func duplicateLater() {
        let paid = S.checkout(status: .paid, current: 2, kept: 1)
        for authorized: Int64? in [5749, 1, nil] {
            let settled = settle(paid, S.execution(1, .captured), S.execution(2, .authorized, authorized: authorized))
            #expect(settled.effects == [.cancel(S.execution(2), .duplicate)])
            #expect(settled.checkout == paid)
        }
    }

    @Test("a cancel that was decided isn't decided again")
    func decidedOnce() {
        for reason in [CancelReason.duplicate, .mismatch, .requested] {
            let settled = settle(
                S.checkout(status: .paid, current: 2, kept: 1), S.execution(1, .captured),
                S.execution(2, .authorized, cancel: reason))
            #expect(settled.effects.isEmpty)
        }
    }

    @Test(
        "a success for another amount is never a payment: cancelled, or held for a person",
        arguments: [1, 5748, 5750, 57_490])
    func mismatch(authorized: Int64) {
        let cancelled = settle(S.checkout(), S.execution(1, .authorized, authorized: authorized))
        #expect(cancelled.effects == [.cancel(S.execution(1), .mismatch)])
        #expect(cancelled.checkout.keptExecution == nil && cancelled.checkout.status == .open)
        let held = settle(S.checkout(), S.execution(1, .authorized, authorized: authorized), mismatch: .hold)
        #expect(held.effects == [.held(S.execution(1))])
        #expect(held.checkout.keptExecution == nil)
    }

    @Test("the same digits in another currency are another amount")
    func otherCurrency() {
        var execution = S.execution(1, .authorized)
        execution.picture.authorized = S.money(5749, "USD")
        #expect(settle(S.checkout(), execution).effects == [.cancel(S.execution(1), .mismatch)])
    }

    @Test("a success whose amount nobody told is read, neither paid nor cancelled")
    func unknownAmount() {
        let settled = settle(S.checkout(), S.execution(1, .authorized, authorized: nil))
        #expect(settled.effects == [.read(S.execution(1))])
        #expect(settled.checkout.keptExecution == nil)
        // It may be what pays the order, so that isn't over.
        let late = settle(S.checkout(), S.execution(1, .authorized, authorized: nil), now: 9999)
        #expect(late.effects == [.read(S.execution(1))] && late.checkout.status == .processing)
    }

    @Test("only the capture was heard of: of the whole amount it pays, of a part it is read (O2)")
    func captureOnly() {
        let whole = settle(S.checkout(), S.execution(1, .captured, authorized: nil, captured: 5749))
        #expect(whole.checkout.status == .paid)
        let part = settle(S.checkout(), S.execution(1, .captured, authorized: nil, captured: 2000))
        #expect(part.effects == [.read(S.execution(1))])
        #expect(part.checkout.keptExecution == nil)
        // Where the authorized amount is known, it counts and not the captured one.
        let partOfWhole = settle(S.checkout(), S.execution(1, .partiallyCaptured, captured: 2000))
        #expect(partOfWhole.checkout.status == .paid)
    }

    @Test("a success after expiry, for the right amount, pays; for another it is cancelled")
    func afterExpiry() {
        let expired = S.checkout(status: .expired)
        #expect(settle(expired, S.execution(1, .authorized), now: 9999).checkout.status == .paid)
        #expect(
            settle(expired, S.execution(1, .authorized, authorized: 1), now: 9999).effects
                == [.cancel(S.execution(1), .mismatch)])
    }

    @Test("a cancelled checkout never becomes paid; a success of it is cancelled and reported")
    func cancelledCheckout() {
        let cancelled = S.checkout(status: .cancelled)
        for reason: CancelReason? in [nil, .checkoutCancelled] {
            let settled = settle(cancelled, S.execution(1, .authorized, cancel: reason))
            #expect(settled.effects == [.cancel(S.execution(1), .duplicate)])
            #expect(settled.checkout == cancelled)
        }
        let done = settle(cancelled, S.execution(1, .cancelled, cancel: .checkoutCancelled))
        #expect(done.effects == [.cancelled(S.execution(1)), .event(.checkoutDuplicateCancelled)])
        // Nobody had paid: nothing to report.
        let unpaid = settle(cancelled, S.execution(1, .cancelled, authorized: nil, cancel: .checkoutCancelled))
        #expect(unpaid.effects.isEmpty, "it may still come to light that something was taken back")
    }

    @Test("a cancel is reported when it is known to have worked, once")
    func reported() {
        let paid = S.checkout(status: .paid, current: 2, kept: 1)
        for (reason, event) in [
            (CancelReason.duplicate, EventType.checkoutDuplicateCancelled), (.mismatch, .checkoutMismatchCancelled),
        ] {
            let done = settle(paid, S.execution(1, .captured), S.execution(2, .cancelled, cancel: reason))
            #expect(done.effects == [.cancelled(S.execution(2)), .event(event)])
            let again = settle(
                paid, S.execution(1, .captured), S.execution(2, .cancelled, cancel: reason, reported: true))
            #expect(again.effects.isEmpty)
        }
    }

    @Test("a failure settles after its time, and not before")
    func failure() {
        let execution = S.execution(1, .failed, failedAt: 50)
        let waiting = settle(S.checkout(), execution, now: 109)
        #expect(waiting.checkout.status == .processing && waiting.effects.isEmpty)
        #expect(waiting.dueAt == S.at(110))
        let failed = settle(waiting.checkout, execution, now: 110)
        #expect(failed.checkout.status == .failed)
        #expect(failed.effects == [.event(.checkoutFailed)])
        #expect(settle(failed.checkout, execution, now: 9999).effects.isEmpty)
        // A later success still pays.
        #expect(settle(failed.checkout, S.execution(1, .authorized), now: 9999).checkout.status == .paid)
    }

    @Test("a failure doesn't settle while another session is in flight")
    func failureWaitsForOthers() {
        let current = S.execution(2, .failed, failedAt: 10)
        let waiting = settle(S.checkout(current: 2), S.execution(1, .needsCustomer), current, now: 1000)
        #expect(waiting.checkout.status == .processing && waiting.effects.isEmpty)
        // One that is being cancelled isn't waited for.
        let failed = settle(
            S.checkout(current: 2), S.execution(1, .needsCustomer, cancel: .requested), current, now: 1000)
        #expect(failed.checkout.status == .failed)
        #expect(settle(S.checkout(current: 2), S.execution(1, .failed), current, now: 1000).checkout.status == .failed)
        // Once told as failed it isn't taken back because a superseded one goes on.
        let told = settle(S.checkout(status: .failed, current: 2), S.execution(1, .needsCustomer), current, now: 1000)
        #expect(told.checkout.status == .failed && told.effects.isEmpty)
    }

    @Test("a failed checkout with a new session is open again")
    func newSessionAfterFailure() {
        let settled = settle(
            S.checkout(status: .failed, current: 2), S.execution(1, .failed, failedAt: 10), S.execution(2, .created))
        #expect(settled.checkout.status == .open && settled.effects.isEmpty)
    }

    @Test("expiry: in time, once, not while something is in flight, not under a lease")
    func expiry() {
        #expect(settle(S.checkout(), S.execution(1, .created), now: 3599).checkout.status == .open)
        let expired = settle(S.checkout(), S.execution(1, .created), now: 3600)
        #expect(expired.checkout.status == .expired && expired.effects == [.event(.checkoutExpired)])
        #expect(settle(expired.checkout, S.execution(1, .created), now: 3700).effects.isEmpty)
        #expect(settle(S.checkout(), S.execution(1, .needsCustomer), now: 3700).checkout.status == .processing)
        let inFlightElsewhere = settle(
            S.checkout(current: 2), S.execution(1, .processing), S.execution(2, .created), now: 3700)
        #expect(inFlightElsewhere.checkout.status != .expired)
        let lease = GateLease(execution: S.execution(1), until: S.at(3710))
        let leased = settle(S.checkout(lease: lease), S.execution(1, .created), now: 3700)
        #expect(leased.checkout.status == .open && leased.dueAt == S.at(3710))
        #expect(settle(S.checkout(lease: lease), S.execution(1, .created), now: 3710).checkout.status == .expired)
        // The lease's execution is over: nothing to wait for.
        let over = settle(S.checkout(lease: lease), S.execution(1, .cancelled, authorized: nil), now: 3700)
        #expect(over.checkout.status == .expired && over.checkout.lease == nil)
    }

    @Test("an order that was told to be expired is told so once, whatever is tried on it afterwards")
    func expiredOnce() {
        let expired = settle(S.checkout(), S.execution(1, .created), now: 3600).checkout
        for state in [ExecutionState.processing, .needsCustomer, .unknown, .cancelled, .failed, .created] {
            let tried = settle(expired, S.execution(1, state, authorized: nil, failedAt: 3650), now: 3700)
            #expect(tried.checkout.status == .expired && tried.effects.isEmpty, "\(state)")
        }
    }

    @Test("a payment and its whole refund that are learned together are both told, in their order")
    func refundedTogether() {
        let settled = settle(S.checkout(), S.execution(1, .refunded, captured: 5749))
        #expect(settled.checkout.status == .refunded && settled.checkout.keptExecution == S.execution(1))
        #expect(settled.effects == [.event(.checkoutPaid), .event(.checkoutRefunded)])
        #expect(settle(settled.checkout, S.execution(1, .refunded, captured: 5749)).effects.isEmpty)
        // What paid for another amount, or was taken back by us, never paid.
        #expect(settle(S.checkout(), S.execution(1, .refunded, authorized: 1)).checkout.keptExecution == nil)
        let ours = settle(S.checkout(), S.execution(1, .refunded, cancel: .mismatch, reported: true))
        #expect(ours.checkout.keptExecution == nil && ours.effects.isEmpty)
        // It proves which amount a change came to, as money that is held does.
        let moved = settle(
            S.checkout(amountState: .unknown), S.execution(1, .refunded, authorized: 6000, captured: 6000), move: 6000)
        #expect(moved.checkout.amount == S.money(6000) && moved.checkout.status == .refunded)
    }

    @Test("when the kept one is cancelled or wholly refunded, so is the checkout, once")
    func keptGone() {
        let paid = S.checkout(status: .paid, kept: 1)
        for (state, status, event) in [
            (ExecutionState.cancelled, Checkout.Status.cancelled, EventType.checkoutCancelled),
            (.refunded, .refunded, .checkoutRefunded),
        ] {
            let settled = settle(paid, S.execution(1, state))
            #expect(settled.checkout.status == status && settled.effects == [.event(event)])
            #expect(settled.checkout.keptExecution == S.execution(1))
            #expect(settle(settled.checkout, S.execution(1, state)).effects.isEmpty)
        }
        #expect(settle(paid, S.execution(1, .partiallyRefunded)).checkout.status == .paid)
        // Another success can't pay it again.
        let second = settle(
            S.checkout(status: .refunded, current: 2, kept: 1), S.execution(1, .refunded), S.execution(2, .authorized))
        #expect(second.checkout.status == .refunded && second.effects == [.cancel(S.execution(2), .duplicate)])
    }

    @Test("a reversed authorization is asked about, and after its time the order isn't paid any more")
    func keptReversed() {
        let paid = S.checkout(status: .paid, kept: 1)
        let reversed = S.execution(1, .failed, failedAt: 90)
        let asked = settle(paid, reversed, now: 100)
        #expect(asked.checkout.status == .paid && asked.effects == [.read(S.execution(1))])
        #expect(asked.dueAt == S.at(150))
        let gone = settle(paid, reversed, now: 150)
        #expect(gone.checkout.status == .cancelled && gone.effects == [.event(.checkoutCancelled)])
        // It was only a cascade: nothing happened.
        #expect(settle(paid, S.execution(1, .authorized), now: 150).checkout == paid)
        // And money that comes after all is given back.
        let late = settle(gone.checkout, S.execution(1, .authorized), now: 500)
        #expect(late.checkout.status == .cancelled && late.effects == [.cancel(S.execution(1), .duplicate)])
    }

    @Test(
        "a success settles a change of the amount whose outcome is unknown",
        arguments: [Checkout.AmountState.moving, .unknown])
    func moves(amountState: Checkout.AmountState) {
        let moving = S.checkout(5749, amountState: amountState)
        let applied = settle(moving, S.execution(1, .authorized, authorized: 6000), move: 6000)
        #expect(applied.checkout.amount == S.money(6000) && applied.checkout.amountVersion == 4)
        #expect(applied.checkout.amountState == .inStep && applied.checkout.status == .paid)
        #expect(
            applied.effects
                == [.amountMoved(applied: true), .event(.checkoutAmountChanged), .event(.checkoutPaid)])
        let notApplied = settle(moving, S.execution(1, .authorized), move: 6000)
        #expect(notApplied.checkout.amount == S.money(5749) && notApplied.checkout.amountVersion == 3)
        #expect(notApplied.effects == [.amountMoved(applied: false), .event(.checkoutPaid)])
        // Neither of them: the move is still to be looked into, and nothing is paid or cancelled meanwhile.
        let neither = settle(moving, S.execution(1, .authorized, authorized: 1), move: 6000)
        #expect(neither.checkout == moving && neither.effects == [.read(S.execution(1))])
        // Nor does the success of a superseded session say anything about the current one's amount.
        let superseded = settle(
            S.checkout(5749, current: 2, amountState: amountState), S.execution(1, .authorized),
            S.execution(2, .created), move: 6000)
        #expect(superseded.checkout.keptExecution == nil && superseded.effects == [.read(S.execution(1))])
    }

    @Test("the lease ends when facts show that the attempt is over", arguments: ExecutionState.allCases)
    func lease(state: ExecutionState) {
        let lease = GateLease(execution: S.execution(1), until: S.at(200))
        let settled = settle(S.checkout(lease: lease), S.execution(1, state, failedAt: 90))
        let mayStillRun: Set<ExecutionState> = [.created, .processing, .needsCustomer, .unknown]
        #expect((settled.checkout.lease != nil) == mayStillRun.contains(state))
        // What another execution does is no reason.
        let other = settle(S.checkout(current: 2, lease: lease), S.execution(1, .created), S.execution(2, state))
        #expect(other.checkout.lease == lease)
    }
}
