import Basics
import Foundation
import Lockstep
import Postgres
import Store
import TestKit
import Testing

@Suite("Whoever took longer than its lease decides nothing, and frees nothing, of the one that has it now")
struct LeaseTests {
    /// Less than a lease, more than any first pause: what was freed by mistake would be claimed after it.
    private static let aWhile = Duration.seconds(5)
    private static let refusal = Refusal(kind: .rejected, code: "workflow.action.not-allowed", detail: "no")
    private static let doubt = Doubt(kind: .timedOut, detail: "no answer")

    private func isFree(_ bench: BooksBench) async throws -> Bool {
        bench.wait(Self.aWhile)
        return try await !bench.store.claimOperations(limit: 5, owner: UUID()).isEmpty
    }

    @Test("W12: a capture")
    func capture() async throws {
        let bench = try await BooksBench()
        let order = try await bench.order()
        try await bench.pay(order)
        guard
            case .begun(let slow) = try await bench.store.beginLifecycle(
                .capture, of: order.execution, amount: nil, isFinal: nil, reason: nil, request: nil, owner: UUID())
        else { return #expect(Bool(false), "not begun") }
        #expect(try await bench.store.claimOperations(limit: 5, owner: UUID()).isEmpty)
        bench.wait(.seconds(31))
        let quick = try #require(try await bench.store.claimOperations(limit: 5, owner: UUID()).first)
        for answer in [PaymentStore.LifecycleAnswer.refused(Self.refusal), .unknown(Self.doubt), .later(seconds: 0)] {
            #expect(try await bench.store.recordLifecycle(slow, answer).state == .sent)
            #expect(try await !isFree(bench))
        }
        try await bench.store.postponeOperation(slow)
        #expect(try await !isFree(bench))
        // The one that has it may say what it heard, and what certainly happened may be said by both.
        let known = try await bench.store.recordLifecycle(quick, .unknown(Self.doubt))
        #expect(known.state == .unknown)
        try await bench.store.rekeyLifecycle(slow)
        #expect(try await bench.store.readOperation(known.id)?.key == slow.operation.key)
        let done = try await bench.store.recordLifecycle(
            slow, .acknowledged(Acknowledgement(actionID: "capture", executedAt: nil)))
        #expect(done.state == .acknowledged && done.actionID == "capture")
        await bench.stop()
    }

    @Test("W12: a change of the amount, whose books would say another amount than the provider's")
    func move() async throws {
        let bench = try await BooksBench()
        let order = try await bench.order()
        let amount = try Money(value: "60.00", currencyCode: "EUR")
        guard
            case .planned(let slow) = try await bench.store.beginMove(
                of: order.checkout, to: amount, basketVersion: nil, version: 1, execution: nil, by: .merchant,
                owner: UUID())
        else { return #expect(Bool(false), "not planned") }
        bench.wait(.seconds(31))
        let quick = try #require(try await bench.store.claimOperations(limit: 5, owner: UUID()).first)
        for result in [PaymentStore.MoveResult.refused(reason: "before"), .unknown(reason: "before")] {
            #expect(try await bench.store.finishMove(slow, result).amountState == .moving)
            #expect(try await !isFree(bench))
        }
        let moved = try await bench.store.finishMove(
            PlannedMove(
                operation: quick.operation, checkout: slow.checkout, execution: slow.execution, amount: amount),
            .applied)
        #expect(moved.amount == amount && moved.amountState == .inStep && moved.amountVersion == 2)
        await bench.stop()
    }

    @Test("W12: a creation, whose refusal would free the order's reference for a second one")
    func creation() async throws {
        let bench = try await BooksBench()
        let reference = freshWord("order")
        let slow = try await bench.planned(reference)
        bench.wait(.seconds(31))
        let claimed = try #require(try await bench.store.claimOperations(limit: 5, owner: UUID()).first)
        let quick = try #require(try await bench.store.resumePlannedSession(claimed))
        try await bench.store.refuseSession(slow, Self.refusal)
        #expect(try await !isFree(bench))
        try await bench.store.doubtSession(slow, Self.doubt)
        #expect(try await !isFree(bench))
        #expect(try await bench.store.rekeySession(slow, owner: UUID()) == nil)
        let other = bench.session(slow).execution
        #expect(try await bench.store.adoptExecution(other, insteadOf: slow, owner: UUID()) == nil)
        guard
            case .exists = try await bench.store.openCheckout(
                try BooksBench.newCheckout(reference), owner: UUID())
        else { return #expect(Bool(false), "the reference is free") }
        #expect(quick.operation.key == slow.operation.key)
        let ready = try await bench.finished(quick)
        #expect(ready.settled.checkout.currentExecution == ready.execution)
        await bench.stop()
    }

    @Test("W12: a caller's idempotency key")
    func idempotencyKey() async throws {
        let bench = try await BooksBench()
        let credential = UUID()
        let hash = Data(repeating: 7, count: 32)
        func claim() async throws -> IdempotencyClaim {
            try await bench.store.claimIdempotencyKey(
                credential: credential, key: "key", requestHash: hash, lease: .seconds(30))
        }
        guard case .fresh(let slow) = try await claim() else { return #expect(Bool(false), "not fresh") }
        bench.wait(.seconds(31))
        guard case .fresh(let quick) = try await claim() else { return #expect(Bool(false), "not free") }
        try await bench.store.releaseIdempotencyKey(credential: credential, key: "key", until: slow)
        guard case .inUse = try await claim() else { return #expect(Bool(false), "somebody else's was freed") }
        try await bench.store.releaseIdempotencyKey(credential: credential, key: "key", until: quick)
        guard case .fresh = try await claim() else { return #expect(Bool(false), "its own was not freed") }
        await bench.stop()
    }

    @Test("W12: a caller's idempotency key whose request shows that it still runs, until it no longer does")
    func renewedKey() async throws {
        let bench = try await BooksBench()
        let credential = UUID()
        func claim() async throws -> IdempotencyClaim {
            try await bench.store.claimIdempotencyKey(
                credential: credential, key: "key", requestHash: Data(repeating: 7, count: 32), lease: .seconds(30))
        }
        func renew(_ until: Timestamp) async throws -> Timestamp? {
            try await bench.store.renewIdempotencyKey(
                credential: credential, key: "key", until: until, lease: .seconds(30))
        }
        guard case .fresh(let first) = try await claim() else { return #expect(Bool(false), "not fresh") }
        var end = first
        for _ in 0..<4 {
            bench.wait(.seconds(20))
            end = try #require(try await renew(end))
            guard case .inUse = try await claim() else { return #expect(Bool(false), "it runs a second time") }
        }
        #expect(try await renew(first) == nil)
        // Its process dies.
        bench.wait(.seconds(31))
        guard case .fresh(let next) = try await claim() else { return #expect(Bool(false), "not free") }
        #expect(try await renew(end) == nil)
        let answer = StoredAnswer(status: 201, headers: .object([:]), body: Data("{}".utf8))
        try await bench.store.finishIdempotencyKey(credential: credential, key: "key", answer: answer)
        #expect(try await renew(next) == nil)
        guard case .replay = try await claim() else { return #expect(Bool(false), "no answer was kept") }
        await bench.stop()
    }
}
