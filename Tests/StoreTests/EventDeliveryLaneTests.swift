import Foundation
import Lockstep
import Postgres
import Store
import Synchronization
import TestKit
import Testing

@Suite("Events of a checkout are sent one after the other, by one process at a time")
struct EventDeliveryLaneTests {
    @Test("the second event of a checkout waits for the first to be delivered; others wait for nothing")
    func headOfLine() async throws {
        let bench = try await EventDeliveryBench()
        let (one, other) = (UUID(), UUID())
        let first = try await bench.write(one)
        let second = try await bench.write(one)
        let elsewhere = try await bench.write(other)
        let alone = [try await bench.write(nil), try await bench.write(nil)]
        try await bench.queue(5)
        let claimed = try await bench.claim()
        #expect(claimed.map(\.event.id) == [first, elsewhere] + alone)
        #expect(try await bench.claim().isEmpty)

        // Refused: its pause is the whole lane's.
        #expect(try await bench.refuse(claimed[0], .retry(after: .seconds(5))))
        #expect(try await bench.claim().isEmpty)
        let waiting = try await bench.store.readDeliveries([.pending], limit: 10)
        #expect(waiting.first { $0.event == second }?.nextAttemptAt == nil)
        #expect(waiting.first { $0.event == first }?.nextAttemptAt != nil)
        bench.wait(.seconds(5))
        let again = try await bench.claim()
        #expect(again.map(\.event.id) == [first] && again[0].attempt == 2)
        #expect(try await bench.accept(again[0]))
        let next = try await bench.claim()
        #expect(next.map(\.event.id) == [second] && next[0].attempt == 1)
        await bench.stop()
    }

    @Test("a dead event lets the next one of its checkout go")
    func dead() async throws {
        let bench = try await EventDeliveryBench()
        let checkout = UUID()
        let (first, second) = (try await bench.write(checkout), try await bench.write(checkout))
        try await bench.queue(2)
        try await bench.refuse(try await bench.claim()[0], .dead)
        #expect(try await bench.claim().map(\.event.id) == [second])
        let dead = try await bench.store.readDeliveries([.dead], limit: 10)
        #expect(dead.map(\.event) == [first] && dead[0].lastStatus == 500 && dead[0].attempts == 1)
        let backlog = try await bench.store.readDeliveryBacklog()
        #expect(backlog.pending == 1 && backlog.dead == 1 && backlog.oldestQueuedAt != nil)
        await bench.stop()
    }

    @Test(
        "W12, Q4: whoever dies after sending leaves a lease; then another has it, and the late answer of the first counts nothing"
    )
    func lease() async throws {
        let bench = try await EventDeliveryBench()
        let event = try await bench.write(UUID())
        try await bench.queue(1)
        let lost = try await bench.claim()[0]
        bench.wait(EventDeliveryBench.lease - .seconds(1))
        #expect(try await bench.claim().isEmpty)
        bench.wait(.seconds(1))
        let taken = try await bench.claim()
        #expect(taken.map(\.event.id) == [event] && taken[0].event.json == lost.event.json)
        #expect(try await bench.refuse(lost, .dead) == false)
        #expect(try await bench.accept(lost) == false)
        #expect(try await bench.accept(taken[0]))
        #expect(try await bench.store.readDeliveries([.delivered], limit: 9).map(\.event) == [event])
        await bench.stop()
    }

    @Test("sent again by hand: dead, delivered and pending ones, each with all its attempts before it")
    func resend() async throws {
        let bench = try await EventDeliveryBench()
        let (dead, delivered, pending) = (
            try await bench.write(UUID()), try await bench.write(UUID()), try await bench.write(UUID())
        )
        try await bench.queue(3)
        let claimed = try await bench.claim()
        try await bench.refuse(claimed[0], .dead)
        try await bench.accept(claimed[1])
        try await bench.refuse(claimed[2], .retry(after: .seconds(3600)))
        #expect(try await bench.claim().isEmpty)
        #expect(try await bench.store.resendDeliveries(in: .dead) == 1)
        #expect(try await bench.store.resendDeliveries(in: .pending) == 2)
        #expect(try await bench.store.resendDeliveries([delivered]) == [delivered])
        let again = try await bench.claim()
        #expect(Set(again.map(\.event.id)) == [dead, delivered, pending])
        #expect(again.allSatisfy { $0.attempt == 1 })
        await bench.stop()
    }

    @Test("what is being sent isn't sent a second time because somebody asks for it meanwhile")
    func resendInFlight() async throws {
        let bench = try await EventDeliveryBench()
        let checkout = UUID()
        let (first, second) = (try await bench.write(checkout), try await bench.write(checkout))
        try await bench.queue(2)
        try await bench.refuse(try await bench.claim()[0], .dead)
        let running = try await bench.claim()
        #expect(running.map(\.event.id) == [second])
        #expect(try await bench.store.resendDeliveries([first, second]) == [first, second])
        #expect(try await bench.claim().isEmpty)
        // The one in flight fails; the earlier one that was asked for doesn't wait for its pause.
        #expect(try await bench.refuse(running[0], .retry(after: .seconds(300))))
        let next = try await bench.claim()
        #expect(next.map(\.event.id) == [first])
        try await bench.accept(next[0])
        #expect(try await bench.claim().map(\.event.id) == [second])
        await bench.stop()
    }

    @Test("what a person asks for while an attempt runs that then fails is sent at once, not after the pause")
    func hastened() async throws {
        let bench = try await EventDeliveryBench()
        let event = try await bench.write(nil)
        try await bench.queue(1)
        let running = try await bench.claim()[0]
        #expect(try await bench.store.resendDeliveries([event]) == [event])
        #expect(try await bench.claim().isEmpty)
        #expect(try await bench.refuse(running, .retry(after: .seconds(3600))))
        let asked = try await bench.claim()
        #expect(asked.map(\.event.id) == [event])
        // Only once.
        #expect(try await bench.refuse(asked[0], .retry(after: .seconds(3600))))
        #expect(try await bench.claim().isEmpty)
        await bench.stop()
    }

    @Test("an event that is queued while the last one before it is being finished isn't forgotten")
    func queuedMeanwhile() async throws {
        let bench = try await EventDeliveryBench()
        let checkout = UUID()
        try await bench.write(checkout)
        try await bench.queue(1)
        try await bench.accept(try await bench.claim()[0])
        let last = try await bench.write(checkout)
        try await bench.queue(1)
        let next = try await bench.write(checkout)
        try await bench.settle()
        let queueing = try await bench.pool.withTransaction { connection in
            // What finishing does, step by step, with the queueing in between.
            _ = try await connection.query("SELECT 1 AS one FROM delivery_lanes WHERE lane = \(checkout) FOR UPDATE")
            _ = try await connection.query(
                """
                UPDATE event_deliveries SET state = 'delivered', finished_at = now() WHERE event_id = \(last.uuid)
                """)
            let queueing = Task { try await bench.store.queueDeliveries(limit: 10) }
            let isWaiting = try await waitUntil(.seconds(3)) {
                try await !bench.pool.query(
                    """
                    SELECT 1 AS one FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'
                    """
                ).isEmpty
            }
            #expect(isWaiting, "the lane was not waited for")
            _ = try await connection.query("DELETE FROM delivery_lanes WHERE lane = \(checkout)")
            return queueing
        }
        #expect(try await queueing.value == 1)
        #expect(try await bench.claim().map(\.event.id) == [next])
        await bench.stop()
    }

    @Test("many processes, many answers: never two of a checkout at once, always in order, and nothing is left behind")
    func manyProcesses() async throws {
        let bench = try await EventDeliveryBench()
        let checkouts = (0..<5).map { _ in UUID() }
        let perCheckout = 24
        let book = Book()
        try await withThrowingTaskGroup { group in
            group.addTask {
                for _ in 0..<perCheckout { for checkout in checkouts { try await bench.write(checkout) } }
            }
            for process in 0..<4 {
                group.addTask {
                    var turn = process
                    _ = try await waitUntil(.seconds(25)) {
                        _ = try await bench.store.queueDeliveries(limit: 9)
                        for delivery in try await bench.claim(3) {
                            turn += 1
                            book.begin(delivery.event.id)
                            await Task.yield()
                            book.end(delivery.event.id, isAccepted: turn % 3 != 0)
                            let isMine =
                                try await turn % 3 == 0
                                ? bench.refuse(delivery, .retry(after: .zero)) : bench.accept(delivery)
                            #expect(isMine)
                        }
                        return book.accepted.count == checkouts.count * perCheckout
                    }
                }
            }
            try await group.waitForAll()
        }
        let feed = try await bench.pool.query(
            "SELECT id, checkout_id FROM events ORDER BY transaction_id, number"
        ).map { try $0.decode((UUID, UUID).self) }
        for checkout in checkouts {
            let expected = feed.filter { $0.1 == checkout }.map { EventID($0.0) }
            let mine = Set(expected)
            #expect(book.accepted.filter { mine.contains($0) } == expected)
        }
        #expect(try await bench.pool.query("SELECT 1 AS one FROM delivery_lanes").isEmpty)
        await bench.stop()
    }

    /// What the receivers of all processes saw.
    private final class Book: Sendable {
        private let state = Mutex((running: Set<EventID>(), accepted: [EventID]()))
        var accepted: [EventID] { state.withLock(\.accepted) }

        func begin(_ event: EventID) {
            let isAlone = state.withLock { $0.running.insert(event).inserted }
            #expect(isAlone, "an event was sent by two at once")
        }

        func end(_ event: EventID, isAccepted: Bool) {
            state.withLock { state in
                state.running.remove(event)
                if isAccepted { state.accepted.append(event) }
            }
        }
    }
}
