import Basics
import Foundation
import PayrailsSandbox
import TestKit
import Testing

@testable import Service

@Suite("Merchant keys, by the program and against a running service")
struct KeyTests {
    private func keys(_ lockstep: ServiceHarness, _ arguments: String...) async throws -> BuiltProgram.End {
        try await BuiltProgram.run("lockstep", ["keys"] + arguments, environment: lockstep.environment)
    }

    @Test(
        "a key that is revoked is worth nothing from that moment on, on any process and at the gate",
        arguments: [true, false])
    func revoked(byName: Bool) async throws {
        let lockstep = try await ServiceHarness.start()
        let services = [try lockstep.service, try await lockstep.startService(.api)]
        let order = try await lockstep.order()
        let name = freshWord("till")
        let created = try await keys(lockstep, "create", "--name", name, "--scopes", "checkouts")
        let key = try #require(created.output.firstMatch(of: /lsk_[A-Za-z0-9_-]{43}/)).output
        let id = try #require(try await lockstep.store.listKeys().first { $0.name == name }).id.description
        let callers = services.map { lockstep.caller(of: $0).with(token: String(key)) }
        let question: JSON = ["executionId": .string(order.execution), "paymentMethodCode": "card"]
        for caller in callers {
            #expect(try await caller.get(order.path).status == 200)
            #expect(try await caller.post("/v1/pre-payment", question).json["decision"] == "proceed")
        }
        let end = try await keys(lockstep, "revoke", byName ? name : id)
        #expect(end.status == 0)
        // Not within a second: at once.
        for caller in callers {
            #expect(try await caller.get(order.path).outcome == "401 unauthorized")
            #expect(try await caller.post("/v1/pre-payment", question).outcome == "401 unauthorized")
        }
        #expect(try await keys(lockstep, "revoke", "nobody").status == 1)
        #expect(try await lockstep.shop.get(order.path).status == 200)
        await lockstep.stop()
    }

    @Test("--json with every subcommand; a taken name is nothing done, and for a person to see to")
    func machines() async throws {
        let lockstep = try await ServiceHarness.start()
        let name = freshWord("till")
        func json(_ end: BuiltProgram.End) throws -> JSON {
            let line = try #require(end.output.split(separator: "\n").first { $0.hasPrefix("{") })
            return try JSON(parsing: Data(line.utf8))
        }
        let arguments = ["create", "--name", name, "--scopes", "payments,checkouts", "--json"]
        let created = try await BuiltProgram.run("lockstep", ["keys"] + arguments, environment: lockstep.environment)
        let key = try json(created)
        #expect(created.status == 0 && key["name"]?.string == name)
        #expect(key["scopes"] == ["checkouts", "payments"])
        let token = try #require(key["key"]?.string)
        #expect(try await lockstep.stranger.with(token: token).get("/v1/checkouts/\(UUID())").status == 404)
        let taken = try await keys(lockstep, "create", "--name", name, "--scopes", "checkouts")
        #expect(taken.status == 1 && !taken.output.contains("lsk_"))
        let revoked = try await keys(lockstep, "revoke", name, "--json")
        #expect(revoked.status == 0)
        #expect(try json(revoked) == ["revoked": .string(name)])
        await lockstep.stop()
    }

    @Test("a name may be as long as the database takes, and one that is longer is bad usage")
    func names() async throws {
        let lockstep = try await ServiceHarness.start(parts: nil)
        // A letter of two code points, once composed and once not.
        let (composed, parted) = ("\u{E9}", "e\u{301}")
        for (name, status) in [
            (String(repeating: composed, count: 128), Int32(0)), (String(repeating: parted, count: 64), 0),
            (String(repeating: composed, count: 129), 64), (String(repeating: parted, count: 65), 64), ("", 64),
        ] {
            let end = try await keys(lockstep, "create", "--name", name, "--scopes", "checkouts")
            #expect(end.status == status, "\(end.output)")
        }
        await lockstep.stop()
    }

    @Test("when a key was last used is written down, at the latest when the process ends")
    func lastUse() async throws {
        let lockstep = try await ServiceHarness.start()
        let order = try await lockstep.order()
        for (name, isGate) in [("reads", false), ("asks", true), ("idle", false)] {
            let created = try await keys(lockstep, "create", "--name", name, "--scopes", "checkouts")
            let key = String(try #require(created.output.firstMatch(of: /lsk_[A-Za-z0-9_-]{43}/)).output)
            if isGate {
                #expect(try await lockstep.gate(order.execution, as: key) == "proceed")
            } else if name == "reads" {
                #expect(try await lockstep.stranger.with(token: key).get(order.path).status == 200)
            }
        }
        let began = Timestamp.systemNow
        await lockstep.stopServices()
        let list = try await keys(lockstep, "list", "--json")
        let all = try JSON(parsing: Data(list.output.utf8)).array ?? []
        for name in ["reads", "asks"] {
            let used = all.first { $0["name"]?.string == name }?["lastUsedAt"]?.string
            let at = try #require(used.flatMap { Timestamp(rfc3339: $0) })
            #expect(at <= began && began - at < .seconds(600))
        }
        #expect(all.first { $0["name"] == "idle" }?["lastUsedAt"] == nil)
        await lockstep.stop()
    }
}
