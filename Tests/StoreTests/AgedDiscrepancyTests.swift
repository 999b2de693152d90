import Basics
import Foundation
import Lockstep
import Store
import TestKit
import Testing

@Suite("What time alone makes a discrepancy, however short the time")
struct AgedDiscrepancyTests {
    private struct NotBegun: Error {}

    /// The bench's books by other rules.
    private func store(_ bench: BooksBench, _ rules: OrderDiscrepancies.Rules) -> PaymentStore {
        PaymentStore(
            pool: bench.pool, clock: bench.hand.clock, identifiers: .system(),
            policy: PaymentStore.Policy(discrepancies: rules))
    }

    private func capture(_ bench: BooksBench, _ store: PaymentStore) async throws -> ClaimedOperation {
        let order = try await bench.order()
        try await bench.pay(order)
        guard
            case .begun(let claimed) = try await store.beginLifecycle(
                .capture, of: order.execution, amount: nil, isFinal: nil, reason: nil, request: nil, owner: UUID())
        else { throw NotBegun() }
        return claimed
    }

    private func open(_ store: PaymentStore) async throws -> [Discrepancy.Class] {
        try await store.listDiscrepancies(state: .open, kind: nil, after: nil, limit: 10).map(\.cause.kind)
    }

    @Test("a change of an instrument that nobody could find out is one, too, told once, until it is found out")
    func instrument() async throws {
        let bench = try await BooksBench()
        let store = bench.store
        let (instrument, other) = (InstrumentID(UUID()), InstrumentID(UUID()))
        let deletion = try await store.beginInstrumentOperation(.deleteInstrument, of: instrument, owner: UUID())
        let change = try await store.beginInstrumentOperation(
            .changeInstrument, of: other, wish: "default", owner: UUID())
        // An init that nobody got is worth nothing, so nobody looks for it.
        _ = try await store.beginInstrumentOperation(.tokenization, of: nil, owner: UUID())
        for operation in [deletion, change] {
            try await store.finishInstrumentOperation(operation, succeeded: nil, reason: "timedOut")
        }
        bench.wait(.seconds(3599))
        #expect(try await store.openAgedDiscrepancies(limit: 10) == 0)
        bench.wait(.seconds(1))
        #expect(try await store.openAgedDiscrepancies(limit: 10) == 2)
        #expect(try await store.openAgedDiscrepancies(limit: 10) == 0)
        let found = try await store.listDiscrepancies(
            state: .open, kind: .unresolvedOperation, after: nil, limit: 10)
        #expect(Set(found.map(\.cause.subject)) == [deletion.id.uuid, change.id.uuid])
        let first = try #require(found.first { $0.cause.subject == deletion.id.uuid })
        #expect(first.cause.here == "deleteInstrument, unknown, timedOut, instrument \(instrument)")
        #expect(try await count(bench, "discrepancy.opened") == 2)
        // One is found out, a person deals with the other.
        try await store.finishInstrumentOperation(deletion, succeeded: true, reason: nil)
        let second = try #require(found.first { $0.cause.subject == change.id.uuid })
        #expect(try await store.resolveDiscrepancy(second.id, note: "seen in the portal")?.state == .resolved)
        #expect(try await open(store) == [])
        #expect(try await count(bench, "discrepancy.resolved") == 2)
        bench.wait(.seconds(3600))
        #expect(try await store.openAgedDiscrepancies(limit: 10) == 0)
        try await store.finishInstrumentOperation(change, succeeded: true, reason: nil)
        #expect(try await count(bench, "discrepancy.resolved") == 2)
        await bench.stop()
    }

    private func count(_ bench: BooksBench, _ type: String) async throws -> Int {
        try await bench.value("SELECT count(*) FROM events WHERE type = \(type)")
    }

    @Test("what Payrails took on is overdue by its own time, also where that is the shorter one")
    func overdue() async throws {
        let bench = try await BooksBench()
        let store = store(bench, .init(unresolvedAfter: .seconds(3600), overdueAfter: .seconds(5)))
        let claimed = try await capture(bench, store)
        _ = try await store.recordLifecycle(
            claimed, .acknowledged(Acknowledgement(actionID: "capture", executedAt: nil)))
        bench.wait(.seconds(4))
        #expect(try await store.openAgedDiscrepancies(limit: 10) == 0)
        bench.wait(.seconds(1))
        #expect(try await store.openAgedDiscrepancies(limit: 10) == 1)
        #expect(try await open(store) == [.overdueFinalState])
        #expect(try await store.openAgedDiscrepancies(limit: 10) == 0)
        await bench.stop()
    }

    @Test("what is being sent for the first time has its lease, what is unknown has not")
    func unresolved() async throws {
        let bench = try await BooksBench()
        let store = store(bench, .init(unresolvedAfter: .seconds(2), overdueAfter: .seconds(5), lease: .seconds(30)))
        _ = try await capture(bench, store)
        bench.wait(.seconds(29))
        #expect(try await store.openAgedDiscrepancies(limit: 10) == 0)
        bench.wait(.seconds(1))
        #expect(try await store.openAgedDiscrepancies(limit: 10) == 1)
        let second = try await capture(bench, store)
        _ = try await store.recordLifecycle(second, .unknown(Doubt(kind: .timedOut, detail: "no answer")))
        bench.wait(.seconds(1))
        #expect(try await store.openAgedDiscrepancies(limit: 10) == 0)
        bench.wait(.seconds(1))
        #expect(try await store.openAgedDiscrepancies(limit: 10) == 1)
        #expect(try await open(store) == [.unresolvedOperation, .unresolvedOperation])
        await bench.stop()
    }
}
