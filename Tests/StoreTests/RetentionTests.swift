import Basics
import Foundation
import Lockstep
import Postgres
import Store
import TestKit
import Testing

@Suite("What has outlived its retention goes, and nothing else")
struct RetentionTests {
    private static let canary = "somebody@example.org"
    private static let day = Duration.seconds(86_400)

    /// Everything that is older than this is to go.
    private func limits(_ bench: BooksBench, _ age: Duration = RetentionTests.day) -> RetentionLimits {
        let limit = bench.hand.now - age
        return RetentionLimits(notifications: limit, personalData: limit, events: limit)
    }

    /// The columns of any table that hold this text.
    private func places(of text: String, _ bench: BooksBench) async throws -> [String] {
        let columns = try await bench.pool.query(
            """
            SELECT table_name::text AS table_name, column_name::text AS column_name, data_type::text AS data_type
            FROM information_schema.columns
            WHERE table_schema = 'public' AND data_type IN ('text', 'jsonb', 'bytea', 'ARRAY')
            """)
        var found: [String] = []
        for column in columns {
            let (table, name, type) = try column.decode((String, String, String).self)
            let value = type == "bytea" ? "encode(\(name), 'escape')" : "\(name)::text"
            let rows = try await bench.pool.query(
                "SELECT 1 AS one FROM \(unescaped: table) WHERE position(\(text) IN \(unescaped: value)) > 0 LIMIT 1")
            if !rows.isEmpty { found.append("\(table).\(name)") }
        }
        return found
    }

    // MARK: bodies

    @Test("bodies go by age and only once they are dealt with; what waits or is dead keeps its own, however old")
    func bodies() async throws {
        let bench = try await BooksBench()
        func store(_ age: String) async throws {
            for state in NotificationState.allCases {
                for number in 0..<3 {
                    let text = "\(Self.canary) \(age) \(state) \(number)"
                    _ = try await bench.store.insertNotifications([bench.incoming(text)])
                    guard state != .received else { continue }
                    _ = try await bench.pool.query(
                        """
                        WITH taken AS (DELETE FROM waiting_notifications WHERE id =
                            (SELECT id FROM notifications WHERE body = \(Data(text.utf8))) RETURNING id)
                        INSERT INTO notification_outcomes (id, state, attempts)
                        SELECT id, \(state.rawValue), 1 FROM taken
                        """)
                }
            }
        }
        try await store("old")
        bench.wait(Self.day + .seconds(1))
        try await store("young")
        let expected = try await bench.store.countOutlived(limits(bench))
        #expect(expected.notificationBodies == 9)
        #expect(try await bench.store.retain(limits(bench), batch: 2) == expected)
        let kept = try await bench.pool.query("SELECT body FROM notifications WHERE body IS NOT NULL ORDER BY id")
            .map { String(decoding: try $0.decode("body", as: Data.self), as: UTF8.self) }
        #expect(kept.filter { $0.contains(" old ") }.allSatisfy { $0.contains("received") || $0.contains("dead") })
        #expect(kept.count == 15 + 6)
        #expect(try await bench.value("SELECT count(*) FROM notifications", as: Int.self) == 30)
        #expect(try await bench.store.retain(limits(bench)) == RetentionCount())
        await bench.stop()
    }

    @Test("S6: a notification that comes again after its body has gone is still the same one, and does nothing")
    func replayed() async throws {
        let bench = try await BooksBench()
        let order = try await bench.order()
        let notification = bench.incoming("paid")
        let paid = NotificationMeaning.facts(
            [try bench.completed("authorize")], about: order.execution, event: "executionActionCompleted")
        #expect(try await bench.store.insertNotifications([notification]) == 1)
        #expect(try await bench.apply(["paid": paid]).applied == 1)
        bench.wait(Self.day * 2)
        let never = Timestamp(seconds: 0)
        let onlyBodies = RetentionLimits(
            notifications: bench.hand.now - Self.day, personalData: never, events: never)
        #expect(try await bench.store.retain(onlyBodies).notificationBodies == 1)
        #expect(try await bench.store.insertNotifications([notification]) == 0)
        #expect(try await bench.apply(["paid": paid]).total == 0)
        #expect(try await bench.told("checkout.paid", order) == 1)
        await bench.stop()
    }

    @Test("what came before its execution was known takes effect with it, though its body has gone meanwhile")
    func parked() async throws {
        let bench = try await BooksBench()
        let planned = try await bench.planned(freshWord("order"))
        let session = bench.session(planned)
        let paid = NotificationMeaning.facts(
            [try bench.completed("authorize")], about: session.execution.reference.id, event: "x")
        _ = try await bench.store.insertNotifications([bench.incoming("paid")])
        #expect(try await bench.apply(["paid": paid]).parked == 1)
        bench.wait(Self.day * 2)
        #expect(try await bench.store.retain(limits(bench)).notificationBodies == 1)
        let ready = try #require(try await bench.store.finishSession(planned, session))
        #expect(ready.settled.checkout.status == .paid)
        #expect(try await bench.value("SELECT state FROM notification_states", as: String.self) == "applied")
        await bench.stop()
    }

    @Test("a body that is still needed can't go, whoever tries", arguments: [NotificationState.received, .dead])
    func neededBody(_ state: NotificationState) async throws {
        let bench = try await BooksBench()
        _ = try await bench.store.insertNotifications([bench.incoming("needed")])
        if state == .dead {
            _ = try await bench.pool.query(
                """
                WITH taken AS (DELETE FROM waiting_notifications RETURNING id)
                INSERT INTO notification_outcomes (id, state, attempts) SELECT id, 'dead', 1 FROM taken
                """)
        }
        let error = await #expect(throws: PostgresError.self) {
            try await bench.pool.query("UPDATE notifications SET body = NULL")
        }
        #expect(error?.sqlState == "23514")
        await bench.stop()
    }

    @Test("what is being brought back while bodies go keeps its body, and without one nothing is brought back")
    func broughtBackMeanwhile() async throws {
        let bench = try await BooksBench()
        _ = try await bench.store.insertNotifications([bench.incoming("one"), bench.incoming("other")])
        #expect(try await bench.apply([:]).ignored == 2)
        bench.wait(Self.day * 2)
        let bodies = RetentionLimits(
            notifications: bench.hand.now - Self.day, personalData: Timestamp(seconds: 0),
            events: Timestamp(seconds: 0))
        let numbers = try await bench.store.readNotifications([.ignored], limit: 10).map(\.number)
        let gone = try await bench.pool.withTransaction { connection in
            _ = try await connection.query(
                "DELETE FROM notification_outcomes WHERE id = \(numbers[0])")
            _ = try await connection.query(
                "INSERT INTO waiting_notifications (id, received_at) VALUES (\(numbers[0]), now())")
            return try await bench.store.retain(bodies).notificationBodies
        }
        #expect(gone == 1)
        #expect(try await bench.store.retain(bodies).notificationBodies == 0)
        #expect(try await bench.store.replayNotification(.number(numbers[1])) == .bodyGone(numbers[1]))
        #expect(try await bench.store.replayNotifications(in: .ignored) == 0)
        #expect(try await bench.apply([:]).ignored == 1)
        #expect(try await bench.store.readNotifications([.ignored], limit: 10).count == 2)
        await bench.stop()
    }

    @Test("Q7: batches are as small as they are said to be, and what somebody holds is not waited for")
    func batches() async throws {
        let bench = try await BooksBench()
        let orders = 7
        for number in 0..<orders {
            let order = try await bench.order(holder: Self.canary)
            try await bench.pay(order)
            _ = try await bench.store.insertNotifications([bench.incoming("\(number)")])
        }
        try await bench.apply([:])
        _ = try await bench.pool.query("UPDATE executions SET check_at = NULL")
        _ = try await bench.pool.query(
            """
            CREATE TABLE batches (transaction_id xid8, name text, size bigint)
            """)
        _ = try await bench.pool.query(
            """
            CREATE FUNCTION note_batch() RETURNS trigger LANGUAGE plpgsql AS $$
            BEGIN
                INSERT INTO batches SELECT pg_current_xact_id(), TG_TABLE_NAME, count(*) FROM changed;
                RETURN NULL;
            END $$
            """)
        for (table, verb, rows) in [
            ("notifications", "UPDATE", "NEW"), ("checkouts", "UPDATE", "NEW"), ("events", "DELETE", "OLD"),
        ] {
            _ = try await bench.pool.query(
                """
                CREATE TRIGGER note AFTER \(unescaped: verb) ON \(unescaped: table)
                REFERENCING \(unescaped: rows) TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION note_batch()
                """)
        }
        bench.wait(Self.day * 3)
        let held = try await bench.pool.withTransaction { connection in
            _ = try await connection.query("SELECT id FROM checkouts ORDER BY expires_at LIMIT 1 FOR UPDATE")
            _ = try await connection.query("SELECT id FROM notifications ORDER BY id LIMIT 1 FOR UPDATE")
            return try await bench.store.retain(limits(bench), batch: 2)
        }
        #expect(held.checkouts == orders - 1 && held.notificationBodies == orders - 1)
        #expect(held.events == orders * 2)
        let rest = try await bench.store.retain(limits(bench), batch: 2)
        #expect(rest.checkouts == 1 && rest.notificationBodies == 1 && rest.events == 0)
        #expect(try await bench.value("SELECT max(size) FROM batches", as: Int.self) == 2)
        #expect(
            try await bench.value(
                "SELECT count(*) FROM (SELECT FROM batches GROUP BY transaction_id, name HAVING sum(size) > 2) AS more",
                as: Int.self) == 0)
        await bench.stop()
    }

    // MARK: personal data

    @Test("personal data of what is closed goes from every table; money and ids stay")
    func personalData() async throws {
        let bench = try await BooksBench()
        let order = try await bench.order(holder: Self.canary, meta: ["mail": .string(Self.canary)])
        _ = try await bench.store.insertNotifications([bench.incoming("paid by \(Self.canary)")])
        try await bench.apply([
            "paid by \(Self.canary)": .facts([try bench.completed("authorize")], about: order.execution, event: "x")
        ])
        _ = try await bench.pool.query("UPDATE executions SET check_at = NULL")
        #expect(
            Set(try await places(of: Self.canary, bench)) == [
                "checkouts.holder_reference", "checkouts.meta", "events.data", "notifications.body",
            ])
        bench.wait(Self.day * 3)
        let expected = try await bench.store.countOutlived(limits(bench))
        #expect(expected.checkouts == 1 && expected.notificationBodies == 1 && expected.events == 2)
        #expect(try await bench.store.retain(limits(bench)) == expected)
        #expect(try await places(of: Self.canary, bench) == [])
        let checkout = try #require(try await bench.store.readCheckout(order.checkout)?.checkout)
        #expect(checkout.status == .paid && checkout.keptExecution == order.execution)
        #expect(checkout.amount.value == "49.99" && checkout.merchantReference == order.reference)
        #expect(try await bench.store.readExecution(order.execution)?.facts.count == 1)
        #expect(try await bench.store.retain(limits(bench)) == RetentionCount())
        await bench.stop()
    }

    @Test("what the shop said of its captures and cancels goes too; a reason of our own is nobody's, and stays")
    func reasons() async throws {
        let bench = try await BooksBench()
        let order = try await bench.order()
        try await bench.pay(order)
        for kind in [PaymentOperation.Kind.cancel, .capture] {
            guard
                case .begun(let claimed) = try await bench.store.beginLifecycle(
                    kind, of: order.execution, amount: nil, isFinal: nil, reason: Self.canary, request: nil,
                    owner: UUID())
            else { return #expect(Bool(false), "not begun") }
            _ = try await bench.store.recordLifecycle(
                claimed, .refused(Refusal(kind: .rejected, code: "workflow.action.not-allowed", detail: "no")))
        }
        _ = try await bench.pool.query(
            """
            INSERT INTO operations (id, kind, checkout_id, execution_id, workflow_code, idempotency_key, state,
                intent_reason, created_at, finished_at)
            VALUES (\(UUID()), 'cancel', \(order.checkout.uuid), \(order.execution.uuid), 'payment-acceptance',
                \(UUID()), 'failed', 'duplicate', now(), now())
            """)
        _ = try await bench.pool.query("UPDATE executions SET check_at = NULL")
        #expect(try await places(of: Self.canary, bench) == ["operations.intent_reason"])
        bench.wait(Self.day * 3)
        #expect(try await bench.store.retain(limits(bench)).checkouts == 1)
        #expect(try await places(of: Self.canary, bench) == [])
        let kept = try await bench.pool.query("SELECT intent_reason FROM operations WHERE intent_reason IS NOT NULL")
        #expect(try kept.map { try $0.decode(String.self) } == ["duplicate"])
        await bench.stop()
    }

    @Test("what isn't closed for good keeps what it needs, however old")
    func notClosed() async throws {
        let bench = try await BooksBench()
        let names = ["open", "in flight", "asked about", "being captured", "changed lately", "closed"]
        var orders: [String: BooksBench.Order] = [:]
        for name in names { orders[name] = try await bench.order(holder: "\(Self.canary) \(name)") }
        let inFlight = try #require(orders["in flight"])
        try await bench.store.learn(
            [
                Fact(
                    kind: .action, action: "authorize", actionID: "a", phase: .requested, at: bench.hand.now,
                    source: .answer)
            ], about: inFlight.execution)
        for name in names.dropFirst(2) { try await bench.pay(try #require(orders[name])) }
        _ = try await bench.pool.query(
            "UPDATE executions SET check_at = NULL WHERE id <> \(orders["asked about"]?.execution.uuid)")
        let captured = try #require(orders["being captured"])
        let start = try await bench.store.beginLifecycle(
            .capture, of: captured.execution, amount: nil, isFinal: nil, reason: nil, request: nil, owner: UUID())
        guard case .begun = start else { return #expect(Bool(false), "not begun") }
        bench.wait(Self.day * 3)
        let lately = try #require(orders["changed lately"])
        try await bench.store.learn([try bench.completed("capture", id: "capture")], about: lately.execution)
        #expect(try await bench.store.countOutlived(limits(bench)).checkouts == 1)
        #expect(try await bench.store.retain(limits(bench)).checkouts == 1)
        for name in names {
            let checkout = try await bench.store.readCheckout(try #require(orders[name]).checkout)?.checkout
            #expect(checkout?.holderReference == (name == "closed" ? "" : "\(Self.canary) \(name)"), "\(name)")
        }
        await bench.stop()
    }

    // MARK: events

    @Test("an event that the shop still has to take stays: not queued yet, pending, or dead")
    func untakenEvents() async throws {
        let bench = try await EventDeliveryBench()
        let delivered = try await bench.write(UUID())
        let dead = try await bench.write(UUID())
        let pending = try await bench.write(UUID())
        try await bench.queue(3)
        let claimed = try await bench.claim()
        for delivery in claimed where delivery.event.id == delivered { try await bench.accept(delivery) }
        for delivery in claimed where delivery.event.id == dead { try await bench.refuse(delivery, .dead) }
        let notQueued = try await bench.write(UUID())
        let future = Timestamp.systemNow + Self.day
        let limits = RetentionLimits(notifications: future, personalData: future, events: future)
        #expect(try await bench.store.countOutlived(limits).events == 1)
        #expect(try await bench.store.retain(limits).events == 1)
        #expect(Set(try await bench.feed()) == [dead, pending, notQueued])
        await bench.stop()
    }
}
