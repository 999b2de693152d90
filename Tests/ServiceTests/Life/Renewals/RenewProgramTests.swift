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
