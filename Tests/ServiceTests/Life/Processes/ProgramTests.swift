import Basics
import Foundation
import PayrailsSandbox
import Postgres
import Store
import TestKit
import Testing

@testable import Service

@Suite("The program itself: starting, stopping, being killed")
struct ProgramTests {
    private func database(_ url: String) -> [String: String] { ["LOCKSTEP_DATABASE_URL": url] }

    @Test("migrations may be started many times at once, and again")
    func migrate() async throws {
        let url = try await PostgresCluster.shared().makeDatabase()
        let behind = try await BuiltProgram.run("lockstep", ["migrate", "--check"], environment: database(url))
        #expect(behind.status == 1)
        let ends = try await atOnce(4) { _ in
            try await BuiltProgram.run("lockstep", ["migrate"], environment: ["LOCKSTEP_DATABASE_URL": url])
        }
        #expect(ends.map(\.status) == [0, 0, 0, 0], "\(ends.map(\.output))")
        #expect(ends.filter { $0.output.contains(/applied 1\b/) }.count == 1, "\(ends.map(\.output))")
        let again = try await BuiltProgram.run("lockstep", ["migrate"], environment: database(url))
        #expect(again.status == 0)
        #expect(again.output.contains("nothing to do"))
        #expect(try await BuiltProgram.run("lockstep", ["migrate", "--check"], environment: database(url)).status == 0)
    }

    @Test("the states come as a table, a graph or JSON, without any setting")
    func states() async throws {
        let end = try await BuiltProgram.run("lockstep", ["states", "--json"], environment: [:])
        #expect(end.status == 0)
        let json = try JSON(parsing: Data(end.output.utf8))
        let created = json.array?.first { $0["state"] == "created" }
        #expect(created?["successors"]?.array?.contains("processing") == true, "\(end.output)")
        let table = try await BuiltProgram.run("lockstep", ["states"], environment: [:])
        #expect(table.output.split(separator: "\n").count == json.array?.count)
        let graph = try await BuiltProgram.run("lockstep", ["states", "--dot"], environment: [:])
        #expect(graph.output.contains("digraph"))
        #expect(try await BuiltProgram.run("lockstep", ["states", "--dot", "--json"], environment: [:]).status == 64)
    }

    @Test("a database that is behind or ahead is not served, and the way out is named")
    func wrongVersion() async throws {
        let lockstep = try await ServiceHarness.start(parts: nil)
        let empty = try await PostgresCluster.shared().makeDatabase()
        let behind = try await BuiltProgram.run(
            "lockstep", ["serve"], environment: lockstep.environment.merging(database(empty)) { _, new in new })
        #expect(behind.status == 78)
        #expect(behind.output.contains("lockstep migrate"))
        _ = try await lockstep.books.query(
            "INSERT INTO schema_migrations (version, name, applied_at) VALUES (9999, 'newer', now())")
        let ahead = try await BuiltProgram.run("lockstep", ["serve"], environment: lockstep.environment)
        #expect(ahead.status == 78)
        #expect(ahead.output.contains("9999"))
        for (name, value) in [("LOCKSTEP_NONSENSE", "1"), ("LOCKSTEP_POLL_MS", "soon")] {
            var environment = lockstep.environment
            environment[name] = value
            let wrong = try await BuiltProgram.run("lockstep", ["serve"], environment: environment)
            #expect(wrong.status == 78)
            #expect(wrong.output.contains(name))
        }
        await lockstep.stop()
    }

    @Test("SIGTERM lets the request in flight end, takes no other, and ends with 0")
    func drain() async throws {
        let lockstep = try await ServiceHarness.start(parts: nil)
        let serving = try await lockstep.startProgram()
        let shop = try lockstep.shop
        let reference = freshWord("last")
        lockstep.sandbox.add(SandboxFault(.delayAfter(milliseconds: 700), on: .clientInit, containing: reference))
        async let answer = shop.post("/v1/checkouts", lockstep.newCheckout(reference), key: freshWord("key"))
        #expect(await waitUntil { !lockstep.sandbox.executionIDs(merchantReference: reference).isEmpty })
        serving.signal(SIGTERM)
        #expect(try await answer.status == 201)
        let end = await serving.ended()
        #expect(end.status == 0, "\(end.output)")
        await #expect(throws: (any Error).self) { try await shop.get("/healthz") }
        await lockstep.stop()
    }

    @Test("Q3, I11: SIGKILL between an intent and its answer: another process finishes what was begun, once")
    func killed() async throws {
        let lockstep = try await ServiceHarness.start(
            [
                "LOCKSTEP_LEASE_SECONDS": "5", "PAYRAILS_TOKEN_TIMEOUT_MS": "500", "PAYRAILS_CALL_TIMEOUT_MS": "1500",
            ], parts: nil)
        let first = try await lockstep.startProgram()
        let caller = try lockstep.shop
        let paid = freshWord("paid")
        let created = try await caller.post("/v1/checkouts", lockstep.newCheckout(paid), key: "paid")
        let order = try lockstep.order(paid, created)
        try lockstep.pay(order.execution)
        #expect(try await waitUntil { try await caller.get(order.path).json["status"] == "paid" })
        // A creation and a capture have reached Payrails, and their answers are on the way.
        let reference = freshWord("killed")
        for route in [SandboxRoute.clientInit, .capture] {
            lockstep.sandbox.add(
                SandboxFault(
                    .delayAfter(milliseconds: 900), on: route,
                    containing: route == .capture ? order.execution : reference))
        }
        let body = lockstep.newCheckout(reference)
        async let creation = try? caller.post("/v1/checkouts", body, key: "killed")
        async let capture = try? caller.post(
            "/v1/executions/\(order.execution)/capture", ["amount": lockstep.money("20.00"), "final": false],
            key: "capture")
        #expect(
            await waitUntil {
                !lockstep.sandbox.executionIDs(merchantReference: reference).isEmpty
                    && !lockstep.sandbox.calls(to: .capture).isEmpty
            })
        #expect(await first.end(by: SIGKILL).status == 128 + SIGKILL)
        _ = await (creation, capture)

        let second = try await lockstep.startProgram()
        let next = try lockstep.shop
        #expect(
            try await waitUntil {
                try await next.get("/v1/checkouts?merchantReference=\(reference)").json["items"]?[0]?[
                    "executionId"] != nil
            })
        #expect(lockstep.sandbox.executionIDs(merchantReference: reference).count == 1)
        // The same requests, sent again by a shop that got no answer, find what they began.
        var replies: [JSONCaller.Reply] = []
        _ = try await waitUntil {
            replies = [
                try await next.post("/v1/checkouts", body, key: "killed"),
                try await next.post(
                    "/v1/executions/\(order.execution)/capture", ["amount": lockstep.money("20.00"), "final": false],
                    key: "capture"),
            ]
            return replies.allSatisfy { $0.status < 300 }
        }
        #expect(replies.map(\.status) == [201, 202])
        #expect(
            try await waitUntil {
                try await next.get("/v1/operations/\(replies[1].json["id"]?.string ?? "")").json["state"]
                    == "succeeded"
            })
        #expect(lockstep.sandbox.executionIDs(merchantReference: reference).count == 1)
        #expect(lockstep.money(of: order) == .init(authorizations: 1, held: 2999, net: 2000))
        #expect(await second.end(by: SIGTERM).status == 0)
        await lockstep.stop()
    }

    @Test("S8: SIGHUP takes on new webhook keys beside the old one without a restart, and never a broken file")
    func rotation() async throws {
        let lockstep = try await ServiceHarness.start(parts: nil)
        let file = FileManager.default.temporaryDirectory.appendingPathComponent("keys-\(UUID().uuidString)")
        defer { try? FileManager.default.removeItem(at: file) }
        func write(_ keys: String) throws { try Data(keys.utf8).write(to: file, options: .atomic) }
        var environment = lockstep.environment
        environment["PAYRAILS_WEBHOOK_KEYS"] = nil
        environment["PAYRAILS_WEBHOOK_KEYS_FILE"] = file.path
        try write("try=old-key")
        let program = try await ServedProgram(environment: environment)
        func outcome(_ key: String) async throws -> Int {
            try await SignedNotification(#"{"event":"x","note":"\#(freshWord("n"))"}"#, key: key)
                .send(to: program.stranger).status
        }
        #expect(try await outcome("old-key") == 200)
        #expect(try await outcome("new-key") == 401)

        try write("try=new-key,try=old-key\n")
        program.signal(SIGHUP)
        #expect(try await waitUntil { try await outcome("new-key") == 200 })
        #expect(try await outcome("old-key") == 200)
        // Which key still matches is told without telling the key.
        let metrics = try await program.stranger.get("/metrics").text
        let keys = metrics.matches(of: /lockstep_notifications_verified_total\{endpoint="try",key="([0-9a-f]{8})"\}/)
        #expect(Set(keys.map { String($0.1) }).count == 2)

        for broken in ["try=", "", "t/y=new-key"] {
            let before = program.log.count { $0 == "\n" }
            try write(broken)
            program.signal(SIGHUP)
            #expect(
                await waitUntil {
                    program.log.split(separator: "\n").dropFirst(before).contains {
                        $0.contains(#""level":"error""#) && $0.contains("webhook key")
                    }
                }, "\(broken)")
            #expect(try await outcome("new-key") == 200)
        }
        try write("try=new-key")
        program.signal(SIGHUP)
        #expect(try await waitUntil { try await outcome("old-key") == 401 })
        #expect(try await outcome("new-key") == 200)
        #expect(await program.end(by: SIGTERM).status == 0)
        await lockstep.stop()
    }
}
