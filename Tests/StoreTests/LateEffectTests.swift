import Basics
import Foundation
import Lockstep
import Store
import TestKit
import Testing

@Suite("What happens at the provider after it has answered with an error happens once all the same")
struct LateEffectTests {
    private static let ten = try? Money(value: "10.00", currencyCode: "EUR")
    private static let stored = PaymentStore.LifecycleAnswer.unknown(Doubt(kind: .serverError, detail: "HTTP 500"))
    private struct NotBegun: Error {}

    /// A refund whose 5xx came back, and whose key was replaced since nothing was to be seen.
    private func rekeyed(_ bench: BooksBench) async throws -> (order: BooksBench.Order, operation: PaymentOperation) {
        let order = try await bench.order()
        try await bench.pay(order)
        try await bench.store.learn([try bench.completed("capture", id: "capture")], about: order.execution)
        guard
            case .begun(let first) = try await bench.store.beginLifecycle(
                .refund, of: order.execution, amount: Self.ten, isFinal: nil, reason: nil, request: nil, owner: UUID())
        else { throw NotBegun() }
        _ = try await bench.store.recordLifecycle(first, Self.stored)
        bench.wait(.seconds(3))
        let second = try #require(try await bench.store.claimOperations(limit: 1, owner: UUID()).first)
        _ = try await bench.store.recordLifecycle(second, Self.stored)
        try await bench.store.rekeyLifecycle(second)
        let operation = try #require(try await bench.store.readOperation(first.operation.id))
        #expect(operation.key != first.operation.key && operation.isRekeyed)
        return (order, operation)
    }

    private func refunded(_ bench: BooksBench) -> Fact {
        Fact(
            kind: .action, action: "refund", actionID: "late", phase: .completed, success: true, amount: Self.ten,
            at: bench.hand.now, source: .notification)
    }

    @Test("a refund that comes to light after its key was replaced is the one that was asked for: nothing is sent")
    func comesToLight() async throws {
        let bench = try await BooksBench()
        let (order, operation) = try await rekeyed(bench)
        bench.wait(.seconds(2))
        try await bench.store.learn([refunded(bench)], about: order.execution)
        let settled = try await bench.store.readOperation(operation.id)
        #expect(settled?.state == .succeeded && settled?.actionID == "late")
        bench.wait(.seconds(3600))
        #expect(try await bench.store.claimOperations(limit: 5, owner: UUID()).isEmpty)
        await bench.stop()
    }

    @Test("nothing is sent under a new key before it was looked again, a minute later, and only if nothing shows then")
    func looksAgain() async throws {
        let bench = try await BooksBench()
        let (order, operation) = try await rekeyed(bench)
        bench.wait(.seconds(59))
        #expect(try await bench.store.claimOperations(limit: 5, owner: UUID()).isEmpty)
        bench.wait(.seconds(8))
        let claimed = try #require(try await bench.store.claimOperations(limit: 5, owner: UUID()).first)
        #expect(claimed.operation.isRekeyed)
        // Something of its kind has begun, whose end nobody knows.
        try await bench.store.learn(
            [Fact(kind: .status, code: "refundRequested", at: bench.hand.now, source: .read)], about: order.execution)
        #expect(try await !bench.store.confirmRekeyed(claimed))
        bench.wait(.seconds(1))
        try await bench.store.learn(
            [Fact(kind: .status, code: "refundFailed", at: bench.hand.now, source: .read)], about: order.execution)
        #expect(try await bench.store.confirmRekeyed(claimed))
        #expect(try await bench.store.readOperation(operation.id)?.state == .sent)
        await bench.stop()
    }

    @Test(
        "one refund comes to light of two alike that nobody knew about: each is done once, whichever was taken for it")
    func twoAlike() async throws {
        let bench = try await BooksBench()
        let order = try await bench.order()
        try await bench.pay(order)
        try await bench.store.learn([try bench.completed("capture", id: "capture")], about: order.execution)
        var begun: [ClaimedOperation] = []
        for _ in 0..<2 {
            guard
                case .begun(let claimed) = try await bench.store.beginLifecycle(
                    .refund, of: order.execution, amount: Self.ten, isFinal: nil, reason: nil, request: nil,
                    owner: UUID())
            else { return #expect(Bool(false), "not begun") }
            _ = try await bench.store.recordLifecycle(claimed, .unknown(Doubt(kind: .timedOut, detail: "no answer")))
            begun.append(claimed)
            bench.wait(.seconds(1))
        }
        try await bench.store.learn([refunded(bench)], about: order.execution)
        #expect(try await bench.store.readOperation(begun[0].operation.id)?.state == .succeeded)
        #expect(try await bench.store.readOperation(begun[1].operation.id)?.state == .unknown)
        // It was the second one's.
        let answer = Acknowledgement(actionID: "late", executedAt: nil)
        let second = try await bench.store.recordLifecycle(begun[1], .acknowledged(answer))
        #expect(second.isRekeyed && second.actionID == nil && second.key != begun[1].operation.key)
        bench.wait(.seconds(70))
        let claimed = try #require(try await bench.store.claimOperations(limit: 5, owner: UUID()).first)
        #expect(claimed.operation.id == second.id)
        #expect(try await bench.store.confirmRekeyed(claimed))
        _ = try await bench.store.recordLifecycle(
            claimed, .acknowledged(Acknowledgement(actionID: "own", executedAt: nil)))
        let own = Fact(
            kind: .action, action: "refund", actionID: "own", phase: .completed, success: true, amount: Self.ten,
            at: bench.hand.now, source: .notification)
        try await bench.store.learn([own], about: order.execution)
        #expect(try await bench.store.readOperation(second.id)?.state == .succeeded)
        await bench.stop()
    }

    @Test("a refusal of the second sending isn't told to be the end while the first one may be what runs")
    func refusedWhileRunning() async throws {
        let bench = try await BooksBench()
        let order = try await bench.order()
        try await bench.pay(order)
        try await bench.store.learn([try bench.completed("capture", id: "capture")], about: order.execution)
        guard
            case .begun(let first) = try await bench.store.beginLifecycle(
                .refund, of: order.execution, amount: Self.ten, isFinal: nil, reason: nil, request: nil, owner: UUID())
        else { return #expect(Bool(false), "not begun") }
        _ = try await bench.store.recordLifecycle(first, .unknown(Doubt(kind: .timedOut, detail: "no answer")))
        bench.wait(.seconds(3))
        let second = try #require(try await bench.store.claimOperations(limit: 1, owner: UUID()).first)
        try await bench.store.learn(
            [Fact(kind: .status, code: "refundRequested", at: bench.hand.now, source: .read)], about: order.execution)
        let conflict = PaymentStore.LifecycleAnswer.refused(
            Refusal(kind: .conflict, code: "workflow.busy", detail: "something else runs"))
        #expect(try await bench.store.recordLifecycle(second, conflict).state == .unknown)
        #expect(try await bench.told("operation.failed", order) == 0)
        bench.wait(.seconds(30))
        try await bench.store.learn([refunded(bench)], about: order.execution)
        #expect(try await bench.store.readOperation(first.operation.id)?.state == .succeeded)
        await bench.stop()
    }

    @Test("a change of the amount that the payment proves brings its basket along, and nobody looks for it any longer")
    func basketOfAProvenChange() async throws {
        let bench = try await BooksBench()
        let order = try await bench.order()
        let new = try Money(value: "60.00", currencyCode: "EUR")
        guard
            case .planned(let move) = try await bench.store.beginMove(
                of: order.checkout, to: new, basketVersion: "b2", version: 1, execution: nil, by: .merchant,
                owner: UUID())
        else { return #expect(Bool(false), "not planned") }
        _ = try await bench.store.finishMove(move, .unknown(reason: "a test"))
        bench.wait(.seconds(3601))
        #expect(try await bench.store.openAgedDiscrepancies(limit: 10) == 1)
        try await bench.store.learn(
            [
                Fact(
                    kind: .action, action: "authorize", actionID: "a1", phase: .completed, success: true, amount: new,
                    at: bench.hand.now, source: .notification)
            ], about: order.execution)
        let checkout = try #require(try await bench.store.readCheckout(order.checkout)?.checkout)
        #expect(checkout.status == .paid && checkout.amount == new && checkout.basketVersion == "b2")
        #expect(try await bench.told("discrepancy.resolved", order) == 1)
        await bench.stop()
    }

    @Test("what is told of the payment itself contradicts the execution's amount by which it was kept: a person looks")
    func keptForMore() async throws {
        let bench = try await BooksBench()
        let order = try await bench.order()
        let whole = try Money(value: "49.99", currencyCode: "EUR")
        try await bench.store.learn(
            [Fact(kind: .status, code: "authorizeSuccessful", amount: whole, at: bench.hand.now, source: .read)],
            about: order.execution)
        #expect(try await bench.status(order) == .paid)
        bench.wait(.seconds(1))
        try await bench.store.learn(
            [
                Fact(
                    kind: .action, action: "authorize", actionID: "a1", phase: .completed, success: true,
                    amount: try Money(value: "30.00", currencyCode: "EUR"), at: bench.hand.now, source: .notification)
            ], about: order.execution)
        #expect(try await bench.status(order) == .paid)
        let open = try await bench.store.listDiscrepancies(state: .open, kind: nil, after: nil, limit: 10)
        #expect(open.map(\.cause.kind) == [.amountMismatch])
        await bench.stop()
    }

    @Test("turned away under its new key, it is looked for again before the next sending, and facts still decide it")
    func turnedAway() async throws {
        let bench = try await BooksBench()
        let (order, operation) = try await rekeyed(bench)
        bench.wait(.seconds(70))
        let claimed = try #require(try await bench.store.claimOperations(limit: 5, owner: UUID()).first)
        #expect(try await bench.store.confirmRekeyed(claimed))
        #expect(try await bench.store.recordLifecycle(claimed, .later(seconds: 1)).isRekeyed)
        bench.wait(.seconds(2))
        try await bench.store.learn([refunded(bench)], about: order.execution)
        #expect(try await bench.store.readOperation(operation.id)?.state == .succeeded)
        await bench.stop()
    }

    @Test("a charge that was authorized for another amount is a person's to look at")
    func chargedOtherwise() async throws {
        let bench = try await RenewalBench()
        let authorization = try await bench.attempt()
        try await bench.store.learn(
            [
                Fact(
                    kind: .action, action: "authorize", actionID: "a1", phase: .completed, success: true,
                    amount: try Money(value: "5.00", currencyCode: "EUR"), at: bench.store.now, source: .notification)
            ], about: authorization.execution.id)
        #expect(try await bench.charge.state == .unknown)
        let open = try await bench.store.listDiscrepancies(state: .open, kind: nil, after: nil, limit: 10)
        #expect(open.map(\.cause.kind) == [.amountMismatch])
        await bench.stop()
    }

    @Test("an authorization that failed twice with a kept error waits a minute for its new key")
    func rekeyedAuthorization() async throws {
        let bench = try await RenewalBench()
        let authorization = try await bench.attempt()
        try await bench.answer(authorization, .wornOut)
        bench.wait(.seconds(59))
        #expect(try await bench.store.claimOperations(limit: 5, owner: UUID()).isEmpty)
        bench.wait(.seconds(10))
        let claimed = try #require(try await bench.store.claimOperations(limit: 5, owner: UUID()).first)
        #expect(claimed.operation.isRekeyed && claimed.operation.key != authorization.operation.key)
        await bench.stop()
    }

    @Test("lines that don't add up to the amount any more are left out of the next session, all else stays")
    func lines() async throws {
        let bench = try await BooksBench()
        let meta: JSON = [
            "order": ["reference": "r1", "total": ["value": "49.99"], "lines": [["id": "1"]]],
            "customer": ["name": "A"],
        ]
        let order = try await bench.order(meta: meta)
        func session() async throws -> PlannedSession? {
            let current = try await bench.store.readCheckout(order.checkout)?.checkout.currentExecution
            let answer = try await bench.store.renewSession(
                of: order.checkout, isExpired: true, asked: current.map { [$0] } ?? [], owner: UUID())
            return if case .planned(let planned) = answer { planned } else { nil }
        }
        let same = try #require(try await session())
        #expect(same.request.meta == meta)
        _ = try await bench.finished(same)
        let new = try Money(value: "60.00", currencyCode: "EUR")
        guard
            case .planned(let move) = try await bench.store.beginMove(
                of: order.checkout, to: new, basketVersion: nil, version: 1, execution: nil, by: .merchant,
                owner: UUID())
        else { return #expect(Bool(false), "not planned") }
        _ = try await bench.store.finishMove(move, .applied)
        let moved = try #require(try await session())
        #expect(moved.request.amount == new)
        #expect(moved.request.meta == ["order": ["reference": "r1"], "customer": ["name": "A"]])
        await bench.stop()
    }
}
