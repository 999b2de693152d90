import Basics
import Foundation
import TestKit
import Testing

@Suite("lockstep retain")
struct RetainProgramTests {
    @Test("it counts without deleting, deletes once, and finds nothing afterwards; the order stays paid")
    func retain() async throws {
        let settings = [
            "LOCKSTEP_RETAIN_NOTIFICATIONS_DAYS": "1", "LOCKSTEP_RETAIN_EVENTS_DAYS": "1",
            "LOCKSTEP_RETAIN_PERSONAL_DATA_DAYS": "1", "LOCKSTEP_HEAL_PENDING": "1h",
        ]
        let lockstep = try await ServiceHarness.start(settings)
        let order = try await lockstep.paidOrder()
        #expect(await lockstep.sandbox.becomesQuiet())
        #expect(
            try await waitUntil { try await lockstep.store.notificationStanding()[.received]?.count == 0 })
        func run(_ arguments: String...) async throws -> JSON {
            let end = try await BuiltProgram.run(
                "lockstep", ["retain", "--json"] + arguments, environment: lockstep.environment)
            #expect(end.status == 0, "\(end.output)")
            return try JSON(parsing: Data(end.output.utf8))
        }
        let nothing: JSON = [
            "dryRun": false, "notificationBodies": 0, "checkouts": 0, "charges": 0, "subscriptions": 0,
            "instruments": 0, "events": 0,
        ]
        #expect(try await run() == nothing, "nothing is old enough")

        // Two days pass.
        let interval = "interval '2 days'"
        for change in [
            "notifications SET received_at = received_at - \(interval)", "events SET time = time - \(interval)",
            "checkouts SET expires_at = expires_at - \(interval)",
            "executions SET changed_at = changed_at - \(interval), check_at = NULL",
        ] {
            _ = try await lockstep.books.query("UPDATE \(unescaped: change)")
        }
        let bodies = try await lockstep.books.query("SELECT 1 AS one FROM notifications").count
        let events = try await lockstep.feed().count
        let expected: JSON = [
            "dryRun": true, "notificationBodies": JSON(bodies), "checkouts": 1, "charges": 0, "subscriptions": 0,
            "instruments": 0, "events": JSON(events),
        ]
        #expect(bodies > 1 && events > 1)
        #expect(try await run("--dry-run") == expected)
        #expect(try await run("--dry-run") == expected)
        #expect(try await run() == expected.without("dryRun").adding("dryRun", false))
        #expect(try await run() == nothing)
        #expect(try await lockstep.books.query("SELECT 1 AS one FROM notifications WHERE body IS NOT NULL").isEmpty)
        let checkout = try await lockstep.checkout(order)
        #expect(checkout["status"] == "paid" && checkout["holderReference"] == "")
        #expect(checkout["amount"] == lockstep.money("49.99"))
        #expect(try await lockstep.feed() == [])
        await lockstep.stop()
    }
}

extension JSON {
    fileprivate func adding(_ name: String, _ value: JSON) -> JSON {
        var members = object ?? [:]
        members[name] = value
        return .object(members)
    }
}
