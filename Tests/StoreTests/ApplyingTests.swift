import Basics
import Foundation
import Lockstep
import Postgres
import Store
import TestKit
import Testing

@Suite("What is known of an execution decides, not who learned it, when, or how often")
struct ApplyingTests {
    @Test("W8: told and asked at the same moment, many times over, an order is paid once and told once")
    func toldAndAsked() async throws {
        let bench = try await BooksBench()
        for _ in 0..<12 {
            let order = try await bench.order()
            let paid = try bench.completed("authorize")
            let read = Fact(
                kind: .status, code: "authorizeSuccessful", amount: paid.amount, at: paid.at + .milliseconds(-2),
                source: .read)
            _ = try await bench.store.insertNotifications([bench.incoming(order.reference)])
            try await withThrowingTaskGroup(of: Void.self) { group in
                for number in 0..<8 {
                    group.addTask {
                        if number.isMultiple(of: 2) {
                            try await bench.apply([order.reference: .facts([paid], about: order.execution, event: "x")])
                        } else {
                            try await bench.store.learn([read], about: order.execution)
                        }
                    }
                }
                try await group.waitForAll()
            }
            #expect(try await bench.status(order) == .paid)
            #expect(try await bench.told("checkout.paid", order) == 1)
        }
        await bench.stop()
    }

    @Test("W8: two executions of one order that succeed at the same moment: one pays, one cancel is written down")
    func twoSuccesses() async throws {
        let bench = try await BooksBench()
        for _ in 0..<12 {
            let order = try await bench.order()
            guard
                case .planned(let planned) = try await bench.store.renewSession(
                    of: order.checkout, isExpired: true, asked: [order.execution], owner: UUID())
            else { return #expect(Bool(false), "not planned") }
            let second = try await bench.finished(planned).execution
            let paid = try bench.completed("authorize")
            try await withThrowingTaskGroup(of: Void.self) { group in
                for number in 0..<8 {
                    group.addTask {
                        try await bench.store.learn([paid], about: number.isMultiple(of: 2) ? order.execution : second)
                    }
                }
                try await group.waitForAll()
            }
            #expect(try await bench.told("checkout.paid", order) == 1)
            let cancels = try await bench.pool.query(
                "SELECT execution_id FROM operations WHERE kind = 'cancel' AND checkout_id = \(order.checkout.uuid)")
            #expect(cancels.count == 1)
            let kept = try await bench.store.readCheckout(order.checkout)?.checkout.keptExecution
            let cancelled = try cancels.first?.decode("execution_id", as: UUID.self)
            #expect(Set([kept?.uuid, cancelled]) == [order.execution.uuid, second.uuid])
        }
        await bench.stop()
    }

    @Test(
        "O10: a process whose clock is wrong, or stands still, neither loses what it learns nor what others did",
        arguments: [Duration.seconds(-86_400), .zero, .seconds(86_400)])
    func clocks(_ difference: Duration) async throws {
        let bench = try await BooksBench()
        let hand = bench.hand
        let other = PaymentStore(
            pool: bench.pool, clock: WallClock { hand.now + difference }, identifiers: .system())
        let at = Timestamp(seconds: 1_799_999_000, nanoseconds: 123_456_788)
        let failed = try bench.completed("authorize", success: false, id: "first", at: at)
        let succeeded = try bench.completed(
            "authorize", id: "second", at: Timestamp(seconds: at.seconds, nanoseconds: at.nanoseconds + 1))
        for isReversed in [false, true] {
            let order = try await bench.order()
            let facts = isReversed ? [succeeded, failed] : [failed, succeeded]
            try await other.learn([facts[0]], about: order.execution)
            try await bench.store.learn([facts[1]], about: order.execution)
            #expect(try await bench.status(order) == .paid)
            // And what is told late by the other one, once more, takes nothing back.
            try await other.learn(facts, about: order.execution)
            #expect(try await bench.status(order) == .paid)
            #expect(try await bench.told("checkout.paid", order) == 1)
        }
        await bench.stop()
    }

    @Test("W18: what can't be applied becomes a row that says so, and stops neither its batch nor the next")
    func poison() async throws {
        let bench = try await BooksBench()
        let poisoned = try await bench.order()
        _ = try await bench.pool.query(
            """
            ALTER TABLE facts ADD CONSTRAINT poison CHECK (execution_id <> \(unescaped: "'\(poisoned.execution)'"))
            """)
        let orders = [try await bench.order(), try await bench.order()]
        var meanings: [String: NotificationMeaning] = [
            "a refused fact": .facts([try bench.completed("authorize")], about: poisoned.execution, event: "x"),
            // PostgreSQL has no text with a zero in it.
            "a text that is none": .ignored(event: "a\u{0}b"),
        ]
        for order in orders {
            meanings[order.reference] = .facts([try bench.completed("authorize")], about: order.execution, event: "x")
        }
        let names = [orders[0].reference, "a refused fact", "a text that is none", orders[1].reference]
        for name in names { _ = try await bench.store.insertNotifications([bench.incoming(name)]) }
        let count = try await bench.apply(meanings)
        #expect(count.applied == 2 && count.dead == 2)
        for order in orders { #expect(try await bench.status(order) == .paid) }
        let dead = try await bench.store.readNotifications([.dead], limit: 10)
        #expect(dead.count == 2)
        #expect(dead.allSatisfy { $0.attempts == 1 && $0.bodyBytes != nil && $0.error?.isEmpty == false })
        bench.wait(.seconds(90))
        let standing = try #require(try await bench.store.notificationStanding()[.dead])
        #expect(standing.count == 2 && standing.oldest == bench.hand.now + .seconds(-90))

        // The cause is mended, and a person has them applied again.
        _ = try await bench.pool.query("ALTER TABLE facts DROP CONSTRAINT poison")
        meanings["a text that is none"] = .ignored(event: "a b")
        #expect(try await bench.store.replayNotifications(in: .dead) == 2)
        let again = try await bench.apply(meanings)
        #expect(again.applied == 1 && again.ignored == 1 && again.dead == 0)
        #expect(try await bench.status(poisoned) == .paid)
        #expect(try await bench.told("checkout.paid", poisoned) == 1)
        await bench.stop()
    }

    @Test("what is brought back waits once, is applied once, and its tries are counted on")
    func broughtBack() async throws {
        let bench = try await BooksBench()
        let order = try await bench.order()
        let paid = NotificationMeaning.facts([try bench.completed("authorize")], about: order.execution, event: "x")
        _ = try await bench.store.insertNotifications([bench.incoming("paid")])
        // What waits already isn't brought back a second time.
        #expect(try await bench.store.replayNotification(.number(1)) == .replayed(1))
        #expect(try await bench.store.replayNotifications(in: .received) == 0)
        #expect(try await bench.apply(["paid": paid]).applied == 1)
        let replayed = try await withThrowingTaskGroup(of: ReplayResult.self) { group in
            for _ in 0..<8 { group.addTask { try await bench.store.replayNotification(.number(1)) } }
            return try await group.reduce(into: []) { $0.append($1) }
        }
        #expect(replayed == Array(repeating: .replayed(1), count: 8))
        let waiting = try await bench.store.readNotifications(Set(NotificationState.allCases), limit: 10)
        #expect(waiting.map(\.state) == [.received] && waiting.map(\.attempts) == [1])
        let counts = try await withThrowingTaskGroup(of: Int.self) { group in
            for _ in 0..<8 { group.addTask { try await bench.apply(["paid": paid]).total } }
            return try await group.reduce(0, +)
        }
        #expect(counts == 1)
        let applied = try await bench.store.readNotifications(Set(NotificationState.allCases), limit: 10)
        #expect(applied.map(\.state) == [.applied] && applied.map(\.attempts) == [2])
        #expect(applied.first?.event == "x" && applied.first?.execution == order.execution)
        #expect(try await bench.told("checkout.paid", order) == 1)
        await bench.stop()
    }

    @Test("of more than are counted, the oldest one's age is told", arguments: [NotificationState.parked, .dead])
    func oldest(_ state: NotificationState) async throws {
        let bench = try await BooksBench()
        // The first to come lies where it is found last.
        _ = try await bench.pool.query(
            """
            WITH stored AS (
                INSERT INTO notifications (id, body_hash, endpoint, body, received_at) OVERRIDING SYSTEM VALUE
                SELECT number, sha256(int8send(number)), '', '', timestamptz '2026-11-30Z' + number * interval '1 second'
                FROM generate_series(20500, 1, -1) AS number RETURNING id
            )
            INSERT INTO notification_outcomes (id, state, execution_id, attempts)
            SELECT id, \(state.rawValue), gen_random_uuid(), 1 FROM stored ORDER BY id DESC
            """)
        let standing = try #require(try await bench.store.notificationStanding()[state])
        #expect(standing.count == 20_000)
        #expect(standing.oldest == Timestamp(rfc3339: "2026-11-30T00:00:01Z"))
        await bench.stop()
    }
}
