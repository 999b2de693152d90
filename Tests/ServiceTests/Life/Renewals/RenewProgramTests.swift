import Basics
import Foundation
import PayrailsSandbox
import TestKit
import Testing

@testable import Service

@Suite("lockstep renew, as a program")
struct RenewProgramTests {
    @Test("what it says, and what it exits with")
    func talk() async throws {
        let lockstep = try await ServiceHarness.start(parts: .api)
        let subscription = try await lockstep.subscription(try lockstep.card())
        func run(_ arguments: String..., settings: [String: String] = [:]) async throws -> BuiltProgram.End {
            try await BuiltProgram.run(
                "lockstep", arguments, environment: lockstep.environment.merging(settings) { _, new in new })
        }
        let dry = try await run("renew", "--dry-run", "--as-of", "2027-01-31")
        #expect(dry.status == 0 && dry.output.contains("charge period 1 from 2027-01-31"), "\(dry.output)")
        #expect(try await lockstep.charges(subscription).isEmpty)
        let explained = try await run("forecast", "--explain", subscription.id)
        #expect(explained.status == 0)
        #expect(explained.output.contains("2027-02-28\tperiod 2\tdue 2027-02-27T23:00:00Z"), "\(explained.output)")
        #expect(explained.output.contains("the month has no day 31"))
        let forecast = try await run("forecast", "--until", "2027-03-31")
        #expect(forecast.output.contains("total\t3\t29.70 EUR"), "\(forecast.output)")
        let early = try await run("renew", "--as-of", "2027-01-30", "--json")
        #expect(early.status == 0 && early.output.contains(#""subscriptions":0"#), "\(early.output)")
        let due = try await run("renew", "--as-of", "2027-01-31", "--json")
        #expect(due.status == 0 && due.output.contains(#""subscriptions":1"#), "\(due.output)")
        #expect(lockstep.successes(subscription.reference) == [1: 1])
        for arguments in [["--as-of", "soon"], ["--limit", "0"], ["--nonsense"]] {
            #expect(
                try await BuiltProgram.run(
                    "lockstep", ["renew"] + arguments, environment: lockstep.environment
                ).status == 64)
        }
        let table = try await run("renew", settings: ["LOCKSTEP_DUNNING_SCHEDULE": #"{"attempts": []}"#])
        #expect(table.status == 78 && table.output.contains("LOCKSTEP_DUNNING_SCHEDULE"), "\(table.output)")
        lockstep.sandbox.add(SandboxFault(.errorBefore(status: 503), times: nil))
        let down = try await run("renew", "--as-of", "2027-02-28")
        #expect(down.status == 75, "\(down.output)")
        await lockstep.stop()
    }

    @Test("--limit: exit 75 while more is due, and 0 when that was all")
    func limit() async throws {
        let lockstep = try await ServiceHarness.start(parts: .api)
        for _ in 0..<2 { _ = try await lockstep.subscription(try lockstep.card()) }
        var ends: [BuiltProgram.End] = []
        for _ in 0..<2 {
            ends.append(
                try await BuiltProgram.run(
                    "lockstep", ["renew", "--as-of", "2027-01-31", "--limit", "1"], environment: lockstep.environment))
        }
        #expect(ends[0].status == 75 && ends[0].output.contains("more is due"), "\(ends[0].output)")
        #expect(ends[1].status == 0 && !ends[1].output.contains("more is due"), "\(ends[1].output)")
        await lockstep.stop()
    }

    @Test("the forecast: what is charged, what isn't and why, what is tried again, and which cards will have expired")
    func forecast() async throws {
        let lockstep = try await ServiceHarness.start(["LOCKSTEP_FAILURE_SETTLE_SECONDS": "0"])
        func card(_ suffix: String = "4242", year: String = "2060") throws -> SavedCard {
            try lockstep.card(suffix, month: "02", year: year)
        }
        let expired = try card(year: "2047")
        // So far ahead that nothing is late by the real clock.
        func subscription(_ card: SavedCard, _ policy: JSON = "block") async throws -> AskedSubscription {
            try await lockstep.subscription(card, ["startsOn": "2047-01-31", "expiryPolicy": policy])
        }
        let blocked = try await subscription(expired)
        let allowed = try await subscription(expired, "allow")
        let disabled = try await subscription(try card())
        let declined = try await subscription(try card("9987"))
        let poor = try await subscription(try card("9995"))
        try await lockstep.renew("2047-01-31T06:00:00Z")
        for subscription in [blocked, allowed, disabled] {
            #expect(try await lockstep.come(to: ["succeeded"], subscription))
        }
        #expect(try await lockstep.come(to: ["failed BlockedInstrument"], declined))
        #expect(try await lockstep.come(to: ["scheduled InsufficientBalance"], poor))
        _ = try await lockstep.patch(poor, ["amount": lockstep.money("20.00")])
        let change: JSON = ["status": "disabled"]
        let reply = try await lockstep.shop.call(
            "PATCH", "/v1/instruments/\(disabled.card.id)", body: change.bytes)
        #expect(reply.status == 200, "\(reply.text)")

        let end = try await BuiltProgram.run(
            "lockstep", ["forecast", "--until", "2047-03-31", "--json"], environment: lockstep.environment)
        #expect(end.status == 0)
        let json = try JSON(parsing: Data(end.output.utf8))
        func day(_ day: String) -> JSON? { json["days"]?.array?.first { $0["day"]?.string == day } }
        // The period that is tried again keeps its amount; the later ones have the new one.
        #expect(day("2047-02-03")?["charges"] == 1 && day("2047-02-03")?["total"] == "9.90")
        // In February the card is valid still, in March only one of its two is charged.
        #expect(day("2047-02-28")?["charges"] == 3 && day("2047-02-28")?["total"] == "39.80", "\(end.output)")
        #expect(
            day("2047-02-28")?["notCharged"] == ["instrument-disabled": 1, "instrument-declined": 1], "\(end.output)")
        #expect(day("2047-03-31")?["charges"] == 2 && day("2047-03-31")?["total"] == "29.90")
        #expect(
            day("2047-03-31")?["notCharged"]
                == ["instrument-disabled": 1, "instrument-declined": 1, "instrument-expired": 1])
        #expect(json["totals"]?["EUR"] == ["charges": 6, "total": "79.60"])
        #expect(json["expiredCards"] == 1)
        let listed = try #require(json["cards"]?[0])
        #expect(listed["instrumentId"]?.string == expired.id && listed["suffix"] == "4242")
        #expect(listed["expiry"] == ["month": 2, "year": 2047] && listed["subscriptionCount"] == 2)
        let uses = listed["subscriptions"]?.array ?? []
        func use(_ asked: AskedSubscription) -> JSON? { uses.first { $0["id"]?.string == asked.id } }
        #expect(uses.count == 2 && use(allowed)?["isCharged"] == true)
        #expect(use(blocked)?["isCharged"] == false && use(blocked)?["reason"] == "instrument-expired")

        let text = try await BuiltProgram.run(
            "lockstep", ["forecast", "--until", "2047-03-31"], environment: lockstep.environment)
        #expect(text.output.contains("card\t\(expired.id)\t"), "\(text.output)")
        #expect(text.output.contains("expires 2047-02"), "\(text.output)")
        #expect(text.output.contains("\(allowed.reference) \(allowed.id) (charged all the same)"))
        await lockstep.stop()
    }

    @Test("R6: a run that can't take its claims charges nothing, and is to be tried again")
    func noBooks() async throws {
        let lockstep = try await ServiceHarness.start(parts: .api)
        let subscription = try await lockstep.subscription(try lockstep.card())
        var environment = lockstep.environment
        environment["LOCKSTEP_DATABASE_URL"] = "postgresql://lockstep@127.0.0.1:1/lockstep"
        let end = try await BuiltProgram.run("lockstep", ["renew", "--as-of", "2027-02-01"], environment: environment)
        #expect(end.status == 75, "\(end.output)")
        #expect(lockstep.executions(subscription, period: 1, attempt: 1).isEmpty)
        await lockstep.stop()
    }
}

/// Everything goes wrong at once: `LOCKSTEP_TEST_RENEWALS` says how many subscriptions there are, and
/// `LOCKSTEP_TEST_RENEWAL_KILLS` how many rounds of four runs are killed.
@Suite(.serialized) struct RenewalKillTests {
    private static func number(_ name: String) -> Int? {
        ProcessInfo.processInfo.environment["LOCKSTEP_TEST_\(name)"].flatMap { Int($0) }
    }

    /// Every fault that the stand-in has.
    private static let faults: [SandboxFault.Kind] = [
        .delay(milliseconds: 30), .delayAfter(milliseconds: 30), .errorBefore(status: 503),
        .errorBefore(status: 500, stored: true), .errorAfter(status: 500), .closeBefore, .closeAfter,
        .html(status: 502), .html(status: 200, effect: true), .halfBody, .rateLimited(retryAfterSeconds: nil),
        .expiredToken, .lowercaseHeaders,
    ]
    private static let notificationFaults: [SandboxNotificationFault.Kind] = [
        .lost, .twice, .late(milliseconds: 200), .shuffled(milliseconds: 100), .wrongSignature, .bare,
    ]

    @Test("four at once, killed at random and started again, while everything goes wrong: a period is paid once")
    func killed() async throws {
        let lockstep = try await ServiceHarness.start([
            "LOCKSTEP_LEASE_SECONDS": "10", "PAYRAILS_TOKEN_TIMEOUT_MS": "1000", "PAYRAILS_CALL_TIMEOUT_MS": "3000",
            "PAYRAILS_READ_TIMEOUT_MS": "3000", "LOCKSTEP_FAILURE_SETTLE_SECONDS": "0",
            "LOCKSTEP_UNRESOLVED_AFTER": "1h", "PAYRAILS_RATE_LIMIT_PAUSE_MS": "10",
        ])
        // Cards, and what becomes of a period that is charged to them.
        let cards = ["4242": "succeeded", "9995": "scheduled InsufficientBalance", "9987": "failed BlockedInstrument"]
        var expected: [(subscription: AskedSubscription, fate: String)] = []
        for number in 0..<(Self.number("RENEWALS") ?? 60) {
            let suffix = number % 10 == 0 ? "9995" : number % 10 == 1 ? "9987" : "4242"
            let subscription = try await lockstep.subscription(try lockstep.card(suffix))
            expected.append((subscription, cards[suffix] ?? ""))
        }
        for kind in Self.faults { lockstep.sandbox.add(SandboxFault(kind, times: nil, probability: 0.02)) }
        for kind in Self.notificationFaults {
            lockstep.sandbox.add(SandboxNotificationFault(kind, times: nil, probability: 0.1))
        }
        let began = ContinuousClock.now
        var killed = 0
        for _ in 0..<(Self.number("RENEWAL_KILLS") ?? 6) { killed += try await killFour(lockstep) }
        let calls = lockstep.sandbox.calls.count
        tell("\(killed) runs killed in \(ContinuousClock.now - began), after \(calls) calls to Payrails")
        lockstep.sandbox.clearFaults()
        var last: RenewalSummary?
        let isSettled = try await waitUntil(.seconds(300)) {
            last = try await lockstep.renew("2027-01-31T06:00:00Z")
            tell("\(ContinuousClock.now - began): \(last?.json.text ?? "")")
            for (subscription, fate) in expected where try await lockstep.fates(subscription) != [fate] {
                return false
            }
            return true
        }
        #expect(isSettled, "the last run: \(last?.json.text ?? "none")")
        for (subscription, fate) in expected where !isSettled {
            #expect(try await lockstep.fates(subscription) == [fate], "\(subscription.reference)")
        }
        for (subscription, fate) in expected {
            #expect(lockstep.successes(subscription.reference) == (fate == "succeeded" ? [1: 1] : [:]))
        }
        await lockstep.stop()
    }

    /// A long round's figures, for whoever asked for one.
    private func tell(_ line: String) {
        if Self.number("RENEWALS") != nil { print(line) }
    }

    /// Each is killed after so many more calls of all of them, or when it has ended. How many were killed.
    private func killFour(_ lockstep: ServiceHarness) async throws -> Int {
        let programs = try (0..<4).map { _ in
            try BuiltProgram("lockstep", ["renew", "--as-of", "2027-01-31"], environment: lockstep.environment)
        }
        let start = lockstep.sandbox.calls.count
        var target = start
        for program in programs {
            target += Int.random(in: 0...40)
            _ = await waitUntil(.seconds(2)) { lockstep.sandbox.calls.count >= target }
            program.signal(SIGKILL)
        }
        var killed = 0
        for program in programs where await program.ended().status == 128 + SIGKILL { killed += 1 }
        return killed
    }
}
