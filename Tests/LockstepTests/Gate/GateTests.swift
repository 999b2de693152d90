import Basics
import Testing

@testable import Lockstep

@Suite("The gate: doubt is a refusal")
struct GateTests {
    typealias S = Sample

    private func ask(
        _ checkout: Checkout, _ execution: CheckoutExecution = S.execution(1, .created), method: String = "card",
        others: [CheckoutExecution] = [], amount: Money? = nil, basket: String? = nil, now: Double = 100
    ) -> Gate.Reason? {
        Gate.refusal(
            of: Gate.Question(
                execution: execution.id, paymentMethodCode: method, amount: amount, basketVersion: basket),
            checkout: checkout, execution: execution, others: others, now: S.at(now))
    }

    @Test("a session before this one may hold the money: that comes before all that is about the amount")
    func othersMayHavePaid() {
        var other = S.execution(2, .authorized)
        #expect(ask(S.checkout(), others: [other]) == nil, "known to be of some amount: settled elsewhere")
        other.picture.authorized = nil
        #expect(ask(S.checkout(), others: [other]) == .paymentInProgress)
        #expect(ask(S.checkout(amountState: .unknown), others: [other]) == .paymentInProgress)
        #expect(ask(S.checkout(), others: [other], amount: S.money(1)) == .paymentInProgress)
        #expect(ask(S.checkout(allowed: []), others: [other]) == .paymentInProgress)
        #expect(ask(S.checkout(status: .expired), others: [other]) == .checkoutExpired)
        other.cancelReason = .duplicate
        #expect(ask(S.checkout(), others: [other]) == nil)
    }

    @Test("an open checkout in step may be paid, with everything named or nothing")
    func proceed() {
        #expect(ask(S.checkout()) == nil)
        let full = S.checkout(basketVersion: "b1", allowed: ["payPal", "card"])
        #expect(ask(full, amount: S.money(5749), basket: "b1") == nil)
        #expect(ask(full) == nil)
    }

    @Test("each reason by itself")
    func reasons() {
        #expect(ask(S.checkout(status: .paid, kept: 1)) == .alreadyPaid)
        #expect(ask(S.checkout(status: .refunded, kept: 1)) == .alreadyPaid)
        #expect(ask(S.checkout(current: 2)) == .supersededExecution)
        #expect(ask(S.checkout(current: nil)) == .supersededExecution)
        #expect(ask(S.checkout(status: .cancelled)) == .checkoutCancelled)
        #expect(ask(S.checkout(status: .expired)) == .checkoutExpired)
        #expect(ask(S.checkout(), now: 3600) == .checkoutExpired)
        #expect(ask(S.checkout(), now: 3599) == nil)
        #expect(ask(S.checkout(amountState: .moving)) == .amountNotInStep)
        #expect(ask(S.checkout(amountState: .unknown)) == .amountNotInStep)
        #expect(ask(S.checkout(), S.execution(1, .created, amount: 5748)) == .amountNotInStep)
        #expect(ask(S.checkout(), amount: S.money(5748)) == .amountMismatch)
        #expect(ask(S.checkout(), amount: S.money(5749, "USD")) == .amountMismatch)
        #expect(ask(S.checkout(basketVersion: "b1"), basket: "b2") == .basketChanged)
        #expect(ask(S.checkout(), basket: "b2") == .basketChanged)
        #expect(ask(S.checkout(allowed: ["payPal"])) == .methodNotAllowed)
        #expect(ask(S.checkout(allowed: [])) == .methodNotAllowed)
    }

    @Test(
        "an execution is single use: only one that nobody has tried can be paid without a lease",
        arguments: ExecutionState.allCases)
    func singleUse(state: ExecutionState) {
        let reason = ask(S.checkout(), S.execution(1, state))
        switch state {
        case .created: #expect(reason == nil)
        case .failed, .cancelled, .refunded: #expect(reason == .supersededExecution)
        case .processing, .needsCustomer, .unknown, .authorized, .partiallyCaptured, .captured, .partiallyRefunded:
            #expect(reason == .paymentInProgress)
        }
    }

    @Test("within its lease the same execution may go on; another one may not start")
    func lease() {
        let mine = GateLease(execution: S.execution(1), until: S.at(200))
        for state in [ExecutionState.created, .processing, .needsCustomer, .unknown] {
            #expect(ask(S.checkout(lease: mine), S.execution(1, state)) == nil)
        }
        var doubtful = S.execution(1, .unknown)
        doubtful.picture.hidesCharge = true
        #expect(ask(S.checkout(lease: mine), doubtful) == .paymentInProgress, "it may hold the money")
        // At its end it is over.
        #expect(ask(S.checkout(lease: mine), S.execution(1, .processing), now: 200) == .paymentInProgress)
        #expect(ask(S.checkout(lease: mine), S.execution(1, .created), now: 200) == nil)
        let others = GateLease(execution: S.execution(2), until: S.at(200))
        #expect(ask(S.checkout(lease: others)) == .paymentInProgress)
        #expect(ask(S.checkout(lease: others), now: 200) == nil)
        // What holds money isn't paid again, whatever the lease says.
        for state in ExecutionState.allCases where state.holdsMoney {
            #expect(ask(S.checkout(lease: mine), S.execution(1, state)) == .paymentInProgress)
        }
        // A lease opens nothing else.
        #expect(ask(S.checkout(amountState: .moving, lease: mine)) == .amountNotInStep)
        #expect(ask(S.checkout(lease: mine), S.execution(1, .failed)) == .supersededExecution)
    }

    @Test("of two faults the one that stands first in the contract is told")
    func order() {
        /// A fault that can be made together with the others, by the order of the contract.
        let faults: [(reason: Gate.Reason, make: (inout Checkout, inout Question) -> Void)] = [
            (.alreadyPaid, { checkout, _ in checkout.keptExecution = S.execution(7) }),
            (.supersededExecution, { checkout, _ in checkout.currentExecution = S.execution(8) }),
            (.checkoutCancelled, { checkout, _ in checkout.status = .cancelled }),
            (.checkoutExpired, { _, question in question.now = 5000 }),
            (
                .paymentInProgress,
                { checkout, _ in checkout.lease = GateLease(execution: S.execution(9), until: S.at(9999)) }
            ),
            (.amountNotInStep, { checkout, _ in checkout.amountState = .unknown }),
            (.amountMismatch, { _, question in question.amount = S.money(1) }),
            (.basketChanged, { _, question in question.basket = "other" }),
            (.methodNotAllowed, { checkout, _ in checkout.allowedPaymentMethods = ["payPal"] }),
        ]
        let contract = Gate.Reason.allCases
        #expect(
            contract.map(\.rawValue) == [
                "unknown-execution", "already-paid", "superseded-execution", "checkout-cancelled", "checkout-expired",
                "payment-in-progress", "amount-not-in-step", "amount-mismatch", "basket-changed", "method-not-allowed",
                "validator-refused", "validator-unavailable", "internal",
            ])
        // What needs more than the books is decided by others.
        #expect(faults.map(\.reason) == Array(contract.dropFirst().prefix(faults.count)))
        for first in faults.indices {
            for second in faults.indices {
                var checkout = S.checkout()
                var question = Question()
                faults[first].make(&checkout, &question)
                faults[second].make(&checkout, &question)
                // An order whose payment was cancelled is given up, and not paid.
                let isGivenBack = checkout.wasPaid && checkout.status == .cancelled
                let reason = ask(checkout, amount: question.amount, basket: question.basket, now: question.now)
                #expect(reason == (isGivenBack ? .checkoutCancelled : faults[min(first, second)].reason))
            }
        }
    }

    private struct Question {
        var amount: Money?
        var basket: String?
        var now = 100.0
    }

    @Test("what the shop said yes to must still be what is there: amount and basket, also one without a version")
    func approved() {
        func ask(_ seen: Checkout, then now: Checkout, basket: String? = nil) -> Gate.Reason? {
            Gate.refusal(
                of: Gate.Question(
                    execution: S.execution(1), paymentMethodCode: "card", amount: nil, basketVersion: basket),
                checkout: now, execution: S.execution(1, .created), others: [],
                approved: Gate.Basket(of: seen), now: S.at(100))
        }
        #expect(ask(S.checkout(), then: S.checkout()) == nil)
        #expect(ask(S.checkout(basketVersion: "b1"), then: S.checkout(basketVersion: "b1"), basket: "b1") == nil)
        var dearer = S.checkout(basketVersion: "b2")
        dearer.amount = S.money(5750)
        var execution = S.execution(1, .created)
        execution.amount = dearer.amount
        let question = Gate.Question(
            execution: execution.id, paymentMethodCode: "card", amount: nil, basketVersion: nil)
        #expect(
            Gate.refusal(
                of: question, checkout: dearer, execution: execution, others: [],
                approved: Gate.Basket(of: S.checkout()),
                now: S.at(100)) == .amountMismatch)
        #expect(ask(S.checkout(basketVersion: "b1"), then: S.checkout(basketVersion: "b2")) == .basketChanged)
        #expect(ask(S.checkout(), then: S.checkout(basketVersion: "b1")) == .basketChanged)
        #expect(ask(S.checkout(basketVersion: "b1"), then: S.checkout()) == .basketChanged)
        // What stands before it in the contract's list still does.
        #expect(ask(S.checkout(), then: S.checkout(status: .cancelled, basketVersion: "b1")) == .checkoutCancelled)
    }
}

@Suite("What a client may do to the amount")
struct AmountPolicyTests {
    typealias S = Sample

    @Test("nothing, unless the policy says so; then within its bounds, inclusive, in the checkout's currency")
    func bounds() {
        let current = S.money(5749)
        #expect(!AmountPolicy.merchantOnly.allows(S.money(5749), from: current))
        let free = AmountPolicy(clientMayUpdate: true)
        #expect(free.allows(S.money(1), from: current) && free.allows(S.money(Money.maximumMinor), from: current))
        #expect(!free.allows(S.money(5749, "USD"), from: current))
        let bound = AmountPolicy(clientMayUpdate: true, minimum: S.money(1000), maximum: S.money(2000))
        for (minor, allowed) in [(Int64(999), false), (1000, true), (1500, true), (2000, true), (2001, false)] {
            #expect(bound.allows(S.money(minor), from: current) == allowed)
        }
        let foreign = AmountPolicy(clientMayUpdate: true, minimum: S.money(1, "USD"))
        #expect(!foreign.allows(S.money(1500), from: current))
        let closed = AmountPolicy(clientMayUpdate: false, minimum: S.money(1000), maximum: S.money(2000))
        #expect(!closed.allows(S.money(1500), from: current))
    }
}
