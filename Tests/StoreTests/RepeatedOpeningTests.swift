import Basics
import Foundation
import Lockstep
import Store
import TestKit
import Testing

@Suite("An order is opened once, however often and late the shop asks for it again")
struct RepeatedOpeningTests {
    private func open(
        _ bench: BooksBench, _ new: NewCheckout
    ) async throws -> PlannedSession {
        guard case .planned(let planned) = try await bench.store.openCheckout(new, owner: UUID()) else {
            throw CancellationError()
        }
        return planned
    }

    /// What the same request finds later.
    private func known(_ bench: BooksBench, _ new: NewCheckout) async throws -> ReadCheckout? {
        switch try await bench.store.openCheckout(new, owner: UUID()) {
        case .known(let read): return read
        case .planned: Issue.record("another session was planned")
        case .busy, .exists, .referenceTaken: Issue.record("the request wasn't known")
        }
        return nil
    }

    private func sessions(_ bench: BooksBench, of checkout: CheckoutID) async throws -> Int {
        try await bench.value(
            "SELECT count(*) FROM operations WHERE kind = 'createSession' AND checkout_id = \(checkout.uuid)")
    }

    @Test("its payload is gone, or it is being paid, or was: the checkout as it is, and no other session")
    func afterItsSession() async throws {
        let bench = try await BooksBench()
        let new = try BooksBench.newCheckout(freshWord("order"))
        let planned = try await open(bench, new)
        let execution = try await bench.finished(planned).execution
        #expect(try await known(bench, new)?.payload != nil)

        bench.wait(.seconds(1201))
        _ = try await bench.store.tidy(limit: 100)
        let late = try await known(bench, new)
        #expect(late?.checkout.currentExecution == execution && late?.payload == nil)

        try await bench.store.learn(
            [Fact(kind: .status, code: "authorizePending", at: bench.hand.now, source: .read)], about: execution)
        #expect(try await known(bench, new)?.checkout.status == .processing)
        bench.wait(.seconds(5))
        try await bench.store.learn([try bench.completed("authorize")], about: execution)
        let paid = try await known(bench, new)
        #expect(paid?.checkout.status == .paid && paid?.checkout.currentExecution == execution)
        #expect(try await sessions(bench, of: planned.checkout.id) == 1)
        await bench.stop()
    }

    @Test("given up before its session was there: none is made for it, and the one under way is taken back")
    func cancelled() async throws {
        let bench = try await BooksBench()
        let new = try BooksBench.newCheckout(freshWord("order"))
        let planned = try await open(bench, new)
        guard case .cancelled = try await bench.store.cancelCheckout(planned.checkout.id, hasAsked: true) else {
            return #expect(Bool(false), "not cancelled")
        }
        #expect(try await known(bench, new)?.checkout.status == .cancelled)
        let session = bench.session(planned)
        #expect(try await bench.store.finishSession(planned, session) == nil, "handed out for an order that is over")
        let cancels: Int = try await bench.value(
            """
            SELECT count(*) FROM operations WHERE kind = 'cancel' AND intent_reason = 'checkoutCancelled'
                AND execution_id = \(session.execution.reference.id.uuid)
            """)
        #expect(cancels == 1)
        #expect(try await known(bench, new)?.payload == nil)
        #expect(try await sessions(bench, of: planned.checkout.id) == 1)
        await bench.stop()
    }

    @Test("expired before it had a session: none is made for it")
    func expired() async throws {
        let bench = try await BooksBench()
        let new = try BooksBench.newCheckout(freshWord("order"))
        let planned = try await open(bench, new)
        try await bench.store.doubtSession(planned, Doubt(kind: .timedOut, detail: "a test"))
        bench.wait(.seconds(3601))
        #expect(try await known(bench, new)?.checkout.currentExecution == nil)
        await bench.stop()
    }

    @Test("a key that is no longer kept stands for nothing: the order has its checkout")
    func forgottenKey() async throws {
        let bench = try await BooksBench()
        let new = try BooksBench.newCheckout(freshWord("order"))
        let planned = try await open(bench, new)
        _ = try await bench.finished(planned)
        bench.wait(.seconds(48 * 3600 + 1))
        guard case .exists(planned.checkout.id) = try await bench.store.openCheckout(new, owner: UUID()) else {
            return #expect(Bool(false), "found by a key that was forgotten")
        }
        await bench.stop()
    }

    @Test("a charge and a subscription, too, are known by their key as long as that is kept")
    func forgottenKeysOfOthers() async throws {
        let bench = try await BooksBench()
        let (instrument, request) = (
            InstrumentID(UUID()), PaymentStore.RequestIdentity(credential: UUID(), key: "k")
        )
        let amount = try Money(value: "9.90", currencyCode: "EUR")
        let berlin = try #require(TimeZone(identifier: "Europe/Berlin"))
        let charge = NewCharge(
            merchantReference: freshWord("charge"), holderReference: "cust_77", instrument: instrument,
            workflowCode: "payment-acceptance", amount: amount, expiryPolicy: .block, meta: nil, request: request)
        let subscription = NewSubscription(
            merchantReference: freshWord("member"), holderReference: "cust_77", instrument: instrument,
            workflowCode: "payment-acceptance", amount: amount, interval: try BillingInterval("P1M"),
            startsOn: CivilDate(of: bench.hand.now, in: berlin), timezone: berlin, endsOn: nil, maxCharges: nil,
            expiryPolicy: .block, meta: nil, request: request)
        func words() async throws -> [String] {
            let first =
                switch try await bench.store.openCharge(charge) {
                case .opened: "opened"
                case .known: "known"
                case .referenceTaken: "taken"
                }
            let second =
                switch try await bench.store.openSubscription(subscription) {
                case .opened: "opened"
                case .known: "known"
                case .referenceTaken: "taken"
                }
            return [first, second]
        }
        #expect(try await words() == ["opened", "opened"])
        bench.wait(.seconds(48 * 3600))
        #expect(try await words() == ["known", "known"])
        bench.wait(.seconds(1))
        #expect(try await words() == ["taken", "taken"])
        await bench.stop()
    }

    @Test("who hears late that the session is there hands it out only while it is the current one, over its amount")
    func finishedAgain() async throws {
        let bench = try await BooksBench()
        let planned = try await bench.planned(freshWord("order"))
        let session = bench.session(planned)
        let execution = session.execution.reference.id
        #expect(try await bench.store.finishSession(planned, session)?.execution == execution)
        #expect(try await bench.store.finishSession(planned, session)?.execution == execution)
        let move = try await bench.store.beginMove(
            of: planned.checkout.id, to: try Money(value: "60.00", currencyCode: "EUR"), basketVersion: nil, version: 1,
            execution: nil, by: .merchant, owner: UUID())
        guard case .planned(let change) = move else { return #expect(Bool(false), "\(move)") }
        #expect(try await bench.store.finishSession(planned, session) == nil, "the amount is moving")
        _ = try await bench.store.finishMove(change, .applied)
        #expect(try await bench.store.finishSession(planned, session) == nil, "it was made for another amount")
        let next = try await bench.store.renewSession(
            of: planned.checkout.id, isExpired: true, asked: [execution], owner: UUID())
        guard case .planned(let second) = next else { return #expect(Bool(false), "\(next)") }
        _ = try await bench.finished(second)
        #expect(try await bench.store.finishSession(planned, session) == nil, "another one is current")
        await bench.stop()
    }

    @Test("the old page pays while another session is being made: that one is neither current nor handed out")
    func paidMeanwhile() async throws {
        let bench = try await BooksBench()
        let order = try await bench.order()
        guard
            case .planned(let planned) = try await bench.store.renewSession(
                of: order.checkout, isExpired: true, asked: [order.execution], owner: UUID())
        else { return #expect(Bool(false), "no session") }
        try await bench.pay(order)
        #expect(try await bench.store.finishSession(planned, bench.session(planned)) == nil)
        let read = try #require(try await bench.store.readCheckout(order.checkout))
        #expect(read.checkout.status == .paid && read.checkout.currentExecution == order.execution)
        #expect(read.settled.executions.count == 2, "a payment of it would be seen")
        await bench.stop()
    }

    @Test("a session before the current one may hold the money: the gate says so at its first look")
    func gateLooksAtAll() async throws {
        let bench = try await BooksBench()
        let order = try await bench.order()
        guard
            case .planned(let planned) = try await bench.store.renewSession(
                of: order.checkout, isExpired: true, asked: [order.execution], owner: UUID())
        else { return #expect(Bool(false), "no session") }
        let current = try await bench.finished(planned).execution
        try await bench.store.learn(
            [
                Fact(
                    kind: .action, action: "authorize", actionID: "a1", phase: .completed, success: true, amount: nil,
                    at: bench.hand.now, source: .notification)
            ], about: order.execution)
        let question = Gate.Question(
            execution: current, paymentMethodCode: "card", amount: try Money(value: "1.00", currencyCode: "EUR"),
            basketVersion: nil)
        guard
            case .refused(.paymentInProgress) = try await bench.store.examineGate(
                question, within: nil, deadline: .now + .seconds(60))
        else { return #expect(Bool(false), "the amount was looked at first") }
        await bench.stop()
    }

    @Test("a client's bounds are of the currency that they were given in")
    func boundsCurrency() async throws {
        let bench = try await BooksBench()
        let (amount, most) = (
            try Money(value: "50.000", currencyCode: "KWD"), try Money(value: "80.000", currencyCode: "KWD")
        )
        let new = NewCheckout(
            merchantReference: freshWord("order"), holderReference: "cust_77", workflowCode: "payment-acceptance",
            amount: amount, basketVersion: nil, amountPolicy: AmountPolicy(clientMayUpdate: true, maximum: most),
            allowedPaymentMethods: nil, meta: nil, lifetime: .seconds(3600), credential: UUID(), idempotencyKey: "k")
        let checkout = try await bench.finished(try await open(bench, new)).settled.checkout
        #expect(checkout.amountPolicy.maximum == most)
        func move(_ value: String, _ currency: String, by mover: PaymentStore.Mover) async throws
            -> PaymentStore.MoveStart
        {
            try await bench.store.beginMove(
                of: checkout.id, to: try Money(value: value, currencyCode: currency), basketVersion: nil, version: nil,
                execution: nil, by: mover, owner: UUID())
        }
        guard case .planned(let inEuro) = try await move("60.00", "EUR", by: .merchant) else {
            return #expect(Bool(false), "the merchant is not bound")
        }
        #expect(try await bench.store.finishMove(inEuro, .applied).amountPolicy.maximum == most)
        guard case .refused(.outsidePolicy) = try await move("700.00", "EUR", by: .client) else {
            return #expect(Bool(false), "80 dinars are not 800 euros")
        }
        guard case .planned(let back) = try await move("60.000", "KWD", by: .merchant) else {
            return #expect(Bool(false), "the merchant is not bound")
        }
        _ = try await bench.store.finishMove(back, .applied)
        guard case .refused(.outsidePolicy) = try await move("80.001", "KWD", by: .client) else {
            return #expect(Bool(false), "more than the most")
        }
        guard case .planned = try await move("80.000", "KWD", by: .client) else {
            return #expect(Bool(false), "the most is allowed")
        }
        await bench.stop()
    }
}
