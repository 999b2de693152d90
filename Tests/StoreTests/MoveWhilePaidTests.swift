import Basics
import Foundation
import Lockstep
import Store
import TestKit
import Testing

@Suite("An amount that moved while somebody paid is the one that was paid")
struct MoveWhilePaidTests {
    private static func pending(_ action: String, at: Timestamp) -> Fact {
        Fact(kind: .status, code: "\(action)Pending", at: at, source: .read)
    }

    private static func succeeded(_ amount: Money, at: Timestamp) -> Fact {
        Fact(
            kind: .action, action: "authorize", actionID: "a1", phase: .completed, success: true, amount: amount,
            at: at, source: .notification)
    }

    private func planned(_ bench: BooksBench, _ order: BooksBench.Order, _ amount: Money) async throws -> PlannedMove {
        guard
            case .planned(let move) = try await bench.store.beginMove(
                of: order.checkout, to: amount, basketVersion: nil, version: 1, execution: nil, by: .merchant,
                owner: UUID())
        else { throw CancellationError() }
        return move
    }

    @Test("the provider takes the change on while a payment that nobody told of runs: what succeeds decides")
    func runs() async throws {
        let bench = try await BooksBench()
        let (old, new) = (
            try Money(value: "49.99", currencyCode: "EUR"), try Money(value: "60.00", currencyCode: "EUR")
        )
        for paid in [old, new] {
            let order = try await bench.order()
            let move = try await planned(bench, order, new)
            // The reading after the change shows the payment.
            try await bench.store.learn([Self.pending("authorize", at: bench.hand.now)], about: order.execution)
            let doubted = try await bench.store.finishMove(move, .applied, shown: new)
            #expect(doubted.amountState == .unknown && doubted.amount == old && doubted.amountVersion == 1)
            bench.wait(.seconds(5))
            try await bench.store.learn([Self.succeeded(paid, at: bench.hand.now)], about: order.execution)
            let checkout = try #require(try await bench.store.readCheckout(order.checkout)?.checkout)
            #expect(checkout.status == .paid && checkout.amount == paid && checkout.amountState == .inStep)
            #expect(checkout.amountVersion == (paid == new ? 2 : 1))
            #expect(try await bench.told("operation.failed", order) == (paid == new ? 0 : 1))
            #expect(try await bench.told("checkout.amount_changed", order) == (paid == new ? 1 : 0))
        }
        await bench.stop()
    }

    /// A change that the provider took on while a payment ran that nobody had told of.
    private func heldChange(
        _ bench: BooksBench, to amount: Money
    ) async throws -> (order: BooksBench.Order, move: PlannedMove) {
        let order = try await bench.order()
        let move = try await planned(bench, order, amount)
        try await bench.store.learn([Self.pending("authorize", at: bench.hand.now)], about: order.execution)
        #expect(try await bench.store.finishMove(move, .applied, shown: amount).amountState == .unknown)
        return (order, move)
    }

    @Test("the page of that payment is left, and a session asked for: it is made at the amount that everybody was told")
    func leftForAnotherSession() async throws {
        let bench = try await BooksBench()
        let (old, new) = (
            try Money(value: "49.99", currencyCode: "EUR"), try Money(value: "60.00", currencyCode: "EUR")
        )
        let (order, move) = try await heldChange(bench, to: new)
        guard
            case .askFirst = try await bench.store.renewSession(
                of: order.checkout, isExpired: false, asked: [], owner: UUID())
        else { return #expect(Bool(false), "nobody looked whether it is still being paid") }
        guard
            case .planned(let session) = try await bench.store.renewSession(
                of: order.checkout, isExpired: false, asked: [order.execution], owner: UUID())
        else { return #expect(Bool(false), "no session") }
        #expect(session.request.amount == old)
        #expect(try await bench.told("operation.failed", order) == 1)
        let checkout = try #require(try await bench.store.readCheckout(order.checkout)?.checkout)
        #expect(checkout.amount == old && checkout.amountVersion == 1 && checkout.amountState == .inStep)
        // Who still works on the change finds it decided.
        let late = try await bench.store.finishMove(move, .applied, shown: new)
        #expect(late.amount == old && late.amountVersion == 1)
        // The page that was left is paid after all, for what it showed.
        bench.wait(.seconds(5))
        try await bench.store.learn([Self.succeeded(old, at: bench.hand.now)], about: order.execution)
        #expect(try await bench.status(order) == .paid)
        await bench.stop()
    }

    @Test("the payment has failed since: no session before the change is settled, and then at the new amount")
    func failedMeanwhile() async throws {
        let bench = try await BooksBench()
        let new = try Money(value: "60.00", currencyCode: "EUR")
        let (order, move) = try await heldChange(bench, to: new)
        bench.wait(.seconds(1))
        try await bench.store.learn(
            [Fact(kind: .status, code: "authorizeFailed", at: bench.hand.now, source: .read)], about: order.execution)
        guard
            case .refused(.amountUnconfirmed) = try await bench.store.renewSession(
                of: order.checkout, isExpired: false, asked: [order.execution], owner: UUID())
        else { return #expect(Bool(false), "a session at an amount that nobody has decided on") }
        #expect(
            try await bench.store.claimOperations(limit: 5, owner: UUID()).map(\.operation.id) == [move.operation.id])
        #expect(try await bench.store.finishMove(move, .applied, shown: new).amount == new)
        guard
            case .planned(let session) = try await bench.store.renewSession(
                of: order.checkout, isExpired: false, asked: [order.execution], owner: UUID())
        else { return #expect(Bool(false), "no session") }
        #expect(session.request.amount == new)
        await bench.stop()
    }

    @Test("an older session has paid meanwhile what was told: without the change the order is paid, and needs none")
    func olderSessionPaid() async throws {
        let bench = try await BooksBench()
        let order = try await bench.order()
        guard
            case .planned(let planned) = try await bench.store.renewSession(
                of: order.checkout, isExpired: true, asked: [order.execution], owner: UUID())
        else { return #expect(Bool(false), "no session") }
        let current = try await bench.finished(planned).execution
        let move = try await self.planned(bench, order, try Money(value: "60.00", currencyCode: "EUR"))
        try await bench.store.learn([Self.pending("authorize", at: bench.hand.now)], about: current)
        _ = try await bench.store.finishMove(move, .applied)
        try await bench.pay(order)
        #expect(try await bench.status(order) != .paid, "nobody knows yet for which amount")
        guard
            case .refused(.alreadyPaid) = try await bench.store.renewSession(
                of: order.checkout, isExpired: true, asked: [current], owner: UUID())
        else { return #expect(Bool(false), "another session of a paid order") }
        #expect(try await bench.status(order) == .paid)
        await bench.stop()
    }

    @Test("the payment never ends: after its time the change is given up, and who pays then pays what was told")
    func neverEnds() async throws {
        let bench = try await BooksBench()
        let (old, new) = (
            try Money(value: "49.99", currencyCode: "EUR"), try Money(value: "60.00", currencyCode: "EUR")
        )
        for paid in [old, new] {
            let (order, move) = try await heldChange(bench, to: new)
            bench.wait(.seconds(3599))
            #expect(try await bench.store.finishMove(move, .applied).amountState == .unknown)
            bench.wait(.seconds(1))
            let decided = try await bench.store.finishMove(move, .applied)
            #expect(decided.amountState == .inStep && decided.amount == old && decided.amountVersion == 1)
            #expect(try await bench.told("operation.failed", order) == 1)
            // What Payrails has is written down, so that nobody is let pay by it.
            let there = try #require(
                try await bench.store.readCheckout(order.checkout)?.settled.executions.first {
                    $0.id == order.execution
                })
            #expect(there.amount == new)
            bench.wait(.seconds(5))
            try await bench.store.learn([Self.succeeded(paid, at: bench.hand.now)], about: order.execution)
            #expect((try await bench.status(order) == .paid) == (paid == old))
            let cancels = try await bench.value(
                """
                SELECT count(*) FROM operations WHERE kind = 'cancel' AND intent_reason = 'mismatch'
                    AND execution_id = \(order.execution.uuid)
                """, as: Int.self)
            #expect(cancels == (paid == old ? 0 : 1))
        }
        await bench.stop()
    }

    @Test("what was paid is neither the one nor the other amount: it is taken back, and the change stands")
    func neither() async throws {
        let bench = try await BooksBench()
        let order = try await bench.order()
        let new = try Money(value: "60.00", currencyCode: "EUR")
        let move = try await planned(bench, order, new)
        try await bench.store.learn(
            [Self.succeeded(try Money(value: "45.00", currencyCode: "EUR"), at: bench.hand.now)], about: order.execution
        )
        let moved = try await bench.store.finishMove(move, .applied, shown: new)
        #expect(moved.amountState == .inStep && moved.amount == new && moved.status != .paid)
        let cancels = try await bench.value(
            "SELECT count(*) FROM operations WHERE kind = 'cancel' AND intent_reason = 'mismatch'", as: Int.self)
        #expect(cancels == 1)
        await bench.stop()
    }

    @Test("a reading shows an amount that somebody else set: the gate is shut until it is back")
    func bySomebodyElse() async throws {
        let bench = try await BooksBench()
        let order = try await bench.order()
        let (own, other) = (
            try Money(value: "49.99", currencyCode: "EUR"), try Money(value: "55.00", currencyCode: "EUR")
        )
        func read(_ amount: Money) async throws {
            _ = try await bench.store.learnReading(
                ExecutionSnapshot(
                    reference: ExecutionReference(id: order.execution, workflowCode: "payment-acceptance"),
                    merchantReference: order.reference, holderReference: nil, workspaceID: nil, amount: amount,
                    createdAt: nil, facts: []), askedAt: bench.hand.now)
        }
        func gate() async throws -> String {
            let question = Gate.Question(
                execution: order.execution, paymentMethodCode: "card", amount: nil, basketVersion: nil)
            switch try await bench.store.examineGate(question, within: nil, deadline: .now + .seconds(60)) {
            case .refused(let reason): return reason.rawValue
            case .passable: return "passable"
            case .leased: return "leased"
            }
        }
        #expect(try await gate() == "passable")
        try await read(other)
        #expect(try await gate() == "amount-not-in-step")
        #expect(try await bench.store.readCheckout(order.checkout)?.checkout.amount == own)
        try await read(own)
        #expect(try await gate() == "passable")
        // What a reading shows that began before a change was through is what was before it.
        let before = bench.hand.now
        bench.wait(.seconds(2))
        let move = try await planned(bench, order, other)
        #expect(try await bench.store.finishMove(move, .applied).amount == other)
        _ = try await bench.store.learnReading(
            ExecutionSnapshot(
                reference: move.execution, merchantReference: order.reference, holderReference: nil, workspaceID: nil,
                amount: own, createdAt: nil, facts: []), askedAt: before)
        #expect(try await gate() == "passable")
        await bench.stop()
    }

    @Test("money of which nobody can say how much it is: no expiry, no second payment, and in the end a person looks")
    func unmeasured() async throws {
        let bench = try await BooksBench()
        let order = try await bench.order()
        try await bench.store.learn(
            [
                Fact(
                    kind: .action, action: "authorize", actionID: "a1", phase: .completed, success: true, amount: nil,
                    at: bench.hand.now, source: .notification)
            ], about: order.execution)
        guard
            case .askFirst = try await bench.store.renewSession(
                of: order.checkout, isExpired: true, asked: [], owner: UUID())
        else { return #expect(Bool(false), "handed out before anybody asked") }
        guard
            case .busy = try await bench.store.renewSession(
                of: order.checkout, isExpired: true, asked: [order.execution], owner: UUID())
        else { return #expect(Bool(false), "handed out a second payment") }
        bench.wait(.seconds(3601))
        _ = try await bench.store.settleDue(limit: 10)
        #expect(try await bench.told("checkout.expired", order) == 0)
        #expect(try await bench.status(order) == .processing)
        // Readings go on, and none of them tells.
        _ = try await bench.store.learnReading(
            ExecutionSnapshot(
                reference: ExecutionReference(id: order.execution, workflowCode: "payment-acceptance"),
                merchantReference: order.reference, holderReference: nil, workspaceID: nil, amount: nil, createdAt: nil,
                facts: []), askedAt: bench.hand.now)
        #expect(try await bench.told("discrepancy.opened", order) == 1)
        bench.wait(.seconds(5))
        try await bench.store.learn(
            [Self.succeeded(try Money(value: "49.99", currencyCode: "EUR"), at: bench.hand.now)],
            about: order.execution)
        #expect(try await bench.status(order) == .paid)
        #expect(try await bench.told("discrepancy.resolved", order) == 1)
        await bench.stop()
    }
}
