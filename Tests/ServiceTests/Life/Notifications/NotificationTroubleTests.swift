import Basics
import Foundation
import PayrailsSandbox
import Postgres
import Store
import TestKit
import Testing

@testable import Service

@Suite("Notifications when something of ours is broken")
struct NotificationTroubleTests {
    /// A notification that an execution's capture has failed: it changes nothing, and is known once it is applied.
    private func notification(_ order: Order) -> SignedNotification {
        SignedNotification(
            """
            {"event":"executionActionCompleted","time":"2026-11-30T08:00:00Z","details":{"action":"capture",\
            "actionId":"\(UUID())","success":false,"execution":{"id":"\(order.execution)"}}}
            """)
    }

    @Test("a reading that fails is made again, also of an order of which nothing else is to come")
    func failedReading() async throws {
        let lockstep = try await ServiceHarness.start()
        let order = try await lockstep.paidOrder()
        let id = UUID(uuidString: order.execution)
        func checkAt() async throws -> PostgresTimestamp? {
            try await lockstep.books.query("SELECT check_at FROM executions WHERE id = \(id)").first?
                .decode("check_at", as: PostgresTimestamp?.self) ?? nil
        }
        // So long ago that it is left alone, and then somebody wants to know.
        lockstep.sandbox.add(
            SandboxFault(.errorBefore(status: 503), on: .getExecution, times: 2, containing: order.execution))
        let before = lockstep.sandbox.calls(to: .getExecution).count
        _ = try await lockstep.books.query(
            """
            UPDATE executions SET check_at = now(), changed_at = now() - interval '3 days', checks = 0 WHERE id = \(id)
            """)
        #expect(await waitUntil { lockstep.sandbox.calls(to: .getExecution).count >= before + 3 })
        #expect(try await waitUntil { try await checkAt() == nil })
        await lockstep.stop()
    }

    @Test("W15: an error that nobody foresaw is 503 with Retry-After, and what comes again is taken")
    func internalError() async throws {
        let lockstep = try await ServiceHarness.start()
        let order = try await lockstep.order()
        let one = notification(order)
        _ = try await lockstep.books.query("ALTER TABLE notifications RENAME COLUMN endpoint TO elsewhere")
        let refused = try await one.send(to: lockstep.stranger)
        #expect(refused.outcome == "503 unavailable")
        #expect(refused.headers["Retry-After"] != nil)
        _ = try await lockstep.books.query("ALTER TABLE notifications RENAME COLUMN elsewhere TO endpoint")
        #expect(try await one.send(to: lockstep.stranger).status == 200)
        #expect(
            try await waitUntil {
                try await lockstep.books.query("SELECT 1 AS one FROM facts WHERE action = 'capture'").count == 1
            })
        await lockstep.stop()
    }

    @Test("W18, S7: what can't be applied is a row with its age in the metrics; once mended, a person replays it")
    func setAside() async throws {
        let lockstep = try await ServiceHarness.start(["LOCKSTEP_HEAL_PENDING": "1h", "LOCKSTEP_HEAL_UNKNOWN": "1h"])
        let order = try await lockstep.order()
        let others = try await lockstep.order()
        _ = try await lockstep.books.query(
            """
            ALTER TABLE facts ADD CONSTRAINT poison CHECK (execution_id <> \(unescaped: "'\(order.execution)'")) NOT VALID
            """)
        try lockstep.pay(order.execution)
        try lockstep.pay(others.execution)
        #expect(try await lockstep.becomes("paid", others))
        #expect(await lockstep.sandbox.becomesQuiet())
        #expect(
            try await waitUntil { try await lockstep.store.notificationStanding()[.received]?.count == 0 })
        #expect(try await lockstep.status(order) == "open")
        let dead = try await lockstep.store.readNotifications([.dead], limit: 10).count
        #expect(dead >= 1)

        // Another process tells, too, by its own clock.
        let later = WallClock { Timestamp.systemNow + .seconds(1000) }
        let watching = lockstep.caller(of: try await lockstep.startService(.api, clock: later))
        #expect(
            try await waitUntil {
                try await watching.metric(#"lockstep_notifications{state="dead"}"#) == Double(dead)
            })
        let age = try await watching.metric(#"lockstep_notifications_oldest_age_seconds{state="dead"}"#) ?? 0
        #expect(age >= 1000 && age < 1060)

        let listed = try await BuiltProgram.run(
            "lockstep", ["notifications", "--state", "dead", "--json"], environment: lockstep.environment)
        #expect(listed.status == 1)
        let json = try JSON(parsing: Data(listed.output.utf8))
        #expect(json.array?.count == dead)
        #expect(json[0]?["error"]?.string?.isEmpty == false && json[0]?["attempts"]?.integer == 1)
        #expect(!listed.output.contains("cust_77"), "a body is never listed")

        // While it isn't mended, it dies again.
        let number = try #require(json[0]?["number"]?.integer)
        let replayed = try await BuiltProgram.run(
            "lockstep", ["replay", "\(number)"], environment: lockstep.environment)
        #expect(replayed.status == 0 && replayed.output.contains("a notification is applied again"))
        #expect(
            try await waitUntil {
                try await lockstep.store.readNotifications([.dead], limit: 10).contains {
                    $0.number == number && $0.attempts == 2
                }
            })
        let machine = try await BuiltProgram.run(
            "lockstep", ["replay", "\(number)", "--json"], environment: lockstep.environment)
        #expect(machine.output.contains(#"{"notifications":[\#(number)],"toBeApplied":1}"#), "\(machine.output)")
        #expect(
            try await waitUntil {
                try await lockstep.store.readNotifications([.dead], limit: 10).count == dead
            })
        _ = try await lockstep.books.query("ALTER TABLE facts DROP CONSTRAINT poison")
        let all = try await BuiltProgram.run(
            "lockstep", ["replay", "--state", "dead"], environment: lockstep.environment)
        #expect(all.status == 0 && all.output.contains("\(dead) to be applied again"))
        #expect(try await lockstep.becomes("paid", order))
        #expect(try await lockstep.tells("checkout.paid", order))
        await lockstep.stop()
    }

    @Test("C3: how long ago the last verified notification came is told by every process, whoever it came to")
    func lastVerified() async throws {
        let lockstep = try await ServiceHarness.start(parts: .api) { $0.mutedEvents = ["executionCreated"] }
        let age = "lockstep_notification_last_verified_age_seconds"
        #expect(try await lockstep.stranger.metric(age) == -1)
        let order = try await lockstep.order()
        #expect(try await SignedNotification("{}", key: "wrong").send(to: lockstep.stranger).status == 401)
        #expect(try await lockstep.stranger.metric(age) == -1, "a forged one is none")
        #expect(try await notification(order).send(to: lockstep.stranger).status == 200)
        let own = try await lockstep.stranger.metric(age) ?? -1
        #expect(own >= 0 && own < 60)
        let later = WallClock { Timestamp.systemNow + .seconds(1000) }
        let other = lockstep.caller(of: try await lockstep.startService(.api, clock: later))
        #expect(try await waitUntil { try await other.metric(age) ?? -1 >= 0 })
        let seen = try await other.metric(age) ?? -1
        #expect(seen >= 1000 && seen < 1060)
        await lockstep.stop()
    }

    @Test("while the database is slow, more than may wait are turned away at once, and those that wait are stored")
    func noPileUp() async throws {
        let lockstep = try await ServiceHarness.start(parts: nil)
        let log = Log(minimum: .error, clock: .system, writer: lockstep.log.writer())
        let inbox = Inbox(store: lockstep.store, log: log, bell: Bell(), maximumWaiting: 10, maximumBatch: 4)
        @Sendable func add(_ number: Int) async -> Bool {
            let receipt = await inbox.add(
                IncomingNotification(endpoint: "try", body: Data("\(number)".utf8), receivedAt: .systemNow))
            return if case .stored = receipt { true } else { false }
        }
        // Nobody can write to the table until this ends.
        let waiting = try await lockstep.books.withTransaction { connection in
            _ = try await connection.query("LOCK TABLE notifications IN ACCESS EXCLUSIVE MODE")
            let first = Task { await add(0) }
            #expect(await waitUntil { inbox.backlog == 0 && inbox.isWriting })
            let rest = (1...10).map { number in Task { await add(number) } }
            #expect(await waitUntil { inbox.backlog == 10 })
            for number in 11...20 { #expect(await !add(number)) }
            #expect(inbox.backlog == 10)
            return [first] + rest
        }
        for task in waiting { #expect(await task.value) }
        let stored = try await lockstep.books.query("SELECT 1 AS one FROM notifications").count
        #expect(stored == 11)
        await lockstep.stop()
    }
}
