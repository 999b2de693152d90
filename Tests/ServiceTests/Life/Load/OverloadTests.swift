import Basics
import Foundation
import PayrailsSandbox
import Postgres
import TestKit
import Testing

@testable import Service

/// What fills the service stays until the others have been answered; so it is nothing that passes by itself that they
/// were answered by.
@Suite("More than can be served")
struct OverloadTests {
    /// Nothing but the door turns anybody away: every other wait is longer than the callers'.
    private static let patient = [
        "LOCKSTEP_DATABASE_STATEMENT_TIMEOUT_MS": "600000", "LOCKSTEP_DATABASE_ACQUIRE_TIMEOUT_MS": "60000",
    ]

    private func gauge(_ lockstep: ServiceHarness, _ series: String) async throws -> Int {
        let text = try await lockstep.stranger.get("/metrics").text
        let line = text.split(separator: "\n").first { $0.hasPrefix(series + " ") }
        return try #require(line.flatMap { Int($0.dropFirst(series.count + 1)) }, "\(series)")
    }

    /// Sessions that wait for a row of somebody else's.
    private func blocked(_ lockstep: ServiceHarness) async throws -> Int64? {
        try await lockstep.books.query(
            """
            SELECT count(*) AS sessions FROM pg_stat_activity
            WHERE datname = current_database() AND wait_event_type = 'Lock'
            """
        ).first?.decode("sessions", as: Int64.self)
    }

    @Test("with the pool full and as many waiting as may, others get 503 at once, and the gate answers as ever")
    func fullPool() async throws {
        let lockstep = try await ServiceHarness.start(
            Self.patient.merging([
                "LOCKSTEP_DATABASE_POOL_SIZE": "3", "LOCKSTEP_DATABASE_MAX_WAITING": "4",
            ]) { $1 }, parts: .api)
        let (held, other) = (try await lockstep.order(), try await lockstep.order())
        let change: JSON = ["amount": lockstep.money("60.00")]
        let waiting = "lockstep_database_waiting{pool=\"main\"}"
        try await withThrowingTaskGroup(of: String.self) { group in
            try await lockstep.books.withTransaction { connection in
                _ = try await connection.query(
                    "SELECT 1 AS one FROM checkouts WHERE id = \(UUID(uuidString: held.checkout)) FOR UPDATE")
                let move: @Sendable () async throws -> String = {
                    try await lockstep.shop.put("\(held.path)/amount", change, version: 1).outcome
                }
                // Three take the connections and wait for the row with them; only then do four wait for a connection.
                for _ in 0..<3 { group.addTask(operation: move) }
                #expect(try await waitUntil { try await blocked(lockstep) == 3 })
                for _ in 0..<4 { group.addTask(operation: move) }
                #expect(try await waitUntil { try await gauge(lockstep, waiting) == 4 })
                for _ in 0..<20 {
                    let reply = try await lockstep.shop.get(other.path)
                    #expect(reply.outcome == "503 unavailable")
                    #expect(reply.headers["Retry-After"].flatMap { Int($0) } ?? 0 > 0)
                }
                #expect(try await lockstep.gate(other.execution) == "proceed")
                #expect(try await lockstep.gate(other.execution, as: other.token) == "proceed")
                #expect(try await lockstep.gate(held.execution, ["amount": lockstep.money("1")]) == "amount-mismatch")
                #expect(try await lockstep.stranger.get("/healthz").status == 200)
                #expect(
                    try await gauge(lockstep, "lockstep_http_turned_away_total{lane=\"ordinary\",by=\"database\"}")
                        >= 20)
            }
            // Those who were let in are served, each by what it asked for.
            var outcomes: [String: Int] = [:]
            for try await outcome in group { outcomes[outcome, default: 0] += 1 }
            #expect(outcomes["200"] == 1, "\(outcomes)")
            let known = ["200", "409 amount-moving", "412 stale", "503 unavailable"]
            #expect(Set(outcomes.keys).subtracting(known) == [], "\(outcomes)")
        }
        // The rush is over, and nothing of it is left.
        #expect(try await waitUntil { try await lockstep.shop.get(other.path).status == 200 })
        #expect(try await gauge(lockstep, waiting) == 0)
        await lockstep.stop()
    }

    @Test("beyond what may be served at once the answer is 503 at once, though Payrails is what is slow")
    func slowPayrails() async throws {
        let lockstep = try await ServiceHarness.start(
            Self.patient.merging(["LOCKSTEP_MAX_REQUESTS": "2"]) { $1 }, parts: .api)
        let order = try await lockstep.order()
        let slow = freshWord("slow")
        lockstep.sandbox.add(SandboxFault(.delayAfter(milliseconds: 3000), on: .clientInit, containing: slow))
        lockstep.sandbox.add(SandboxFault(.delayAfter(milliseconds: 3000), on: .clientInit, containing: slow))
        try await withThrowingTaskGroup(of: Int.self) { group in
            for number in 0..<2 {
                let body = lockstep.newCheckout("\(slow)-\(number)")
                group.addTask { try await lockstep.shop.post("/v1/checkouts", body, key: freshWord("key")).status }
            }
            let served = "lockstep_http_served{lane=\"ordinary\"}"
            #expect(try await waitUntil { try await gauge(lockstep, served) == 2 })
            let reply = try await lockstep.shop.get(order.path)
            if try await gauge(lockstep, served) == 2 { #expect(reply.outcome == "503 unavailable") }
            #expect(try await lockstep.gate(order.execution) == "proceed")
            for try await status in group { #expect(status == 201) }
        }
        #expect(try await lockstep.shop.get(order.path).status == 200)
        await lockstep.stop()
    }

    @Test("notifications beyond what may wait are told 503 at once; those that wait are on disk once they are told 200")
    func fullInbox() async throws {
        let lockstep = try await ServiceHarness.start(
            Self.patient.merging(["LOCKSTEP_MAX_WAITING_NOTIFICATIONS": "5"]) { $1 }, parts: .api)
        let word = freshWord("rush")
        @Sendable func send(_ number: Int) async throws -> String {
            try await SignedNotification(#"{"event":"x","note":"\#(word)-\#(number)"}"#)
                .send(to: lockstep.stranger).outcome
        }
        let waiting = "lockstep_notifications_waiting"
        try await withThrowingTaskGroup(of: String.self) { group in
            try await lockstep.books.withTransaction { connection in
                _ = try await connection.query("LOCK TABLE notifications IN ACCESS EXCLUSIVE MODE")
                // The first is being written, the others wait for it.
                group.addTask { try await send(0) }
                #expect(
                    try await waitUntil {
                        try await connection.query(
                            """
                            SELECT FROM pg_locks WHERE relation = 'notifications'::regclass
                                AND mode = 'RowExclusiveLock' AND NOT granted
                            """
                        ).count == 1
                    })
                for number in 1...5 { group.addTask { try await send(number) } }
                #expect(try await waitUntil { try await gauge(lockstep, waiting) == 5 })
                for number in 6..<12 { #expect(try await send(number) == "503 unavailable") }
            }
            for try await outcome in group { #expect(outcome == "200") }
        }
        let stored = try await lockstep.books.query(
            "SELECT count(*) AS rows FROM notifications WHERE position(\(word) IN encode(body, 'escape')) > 0"
        ).first?.decode("rows", as: Int64.self)
        #expect(stored == 6)
        #expect(try await send(6) == "200")
        await lockstep.stop()
    }

    @Test("a client token beyond its quota is told 429; its payment, and everybody else, goes on")
    func rateLimit() async throws {
        let lockstep = try await ServiceHarness.start(["LOCKSTEP_RATE_LIMIT_CLIENT_PER_MINUTE": "3"])
        let (order, other) = (try await lockstep.order(), try await lockstep.order())
        let app = try lockstep.app(order)
        for left in [2, 1, 0] {
            let reply = try await app.get(order.path)
            #expect(reply.status == 200 && reply.headers["RateLimit-Policy"] == #""client";q=3;w=60"#)
            #expect(reply.headers["RateLimit"]?.hasPrefix("\"client\";r=\(left);t=") == true)
        }
        let refused = try await app.post("\(order.path)/session")
        #expect(refused.outcome == "429 too-many-requests")
        let wait = try #require(refused.headers["Retry-After"].flatMap { Int($0) })
        #expect((1...20).contains(wait))
        for _ in 0..<10 { #expect(try await lockstep.gate(order.execution, as: order.token) == "proceed") }
        #expect(try await lockstep.app(other).get(other.path).status == 200)
        let shop = try await lockstep.shop.get(order.path)
        #expect(shop.status == 200 && shop.headers["RateLimit"] == nil, "the tests' own settings have no limit for it")
        await lockstep.stop()
    }
}
