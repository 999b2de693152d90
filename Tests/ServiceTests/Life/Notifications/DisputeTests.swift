import Basics
import Foundation
import Lockstep
import PayrailsSandbox
import TestKit
import Testing

@testable import Service

@Suite("Disputes")
struct DisputeTests {
    private static let shared = Task { try await ServiceHarness.shared() }
    private let lockstep: ServiceHarness
    init() async throws { lockstep = try await Self.shared.value }

    private func paid() async throws -> Order {
        let order = try await lockstep.order()
        try lockstep.pay(order.execution)
        #expect(try await lockstep.becomes("paid", order))
        return order
    }

    /// What the feed tells of an execution's disputes, in its order.
    private func told(_ execution: String) async throws -> [JSON] {
        try await lockstep.feed().filter { $0["type"] == "dispute.changed" }.compactMap { $0["data"]?["dispute"] }
            .filter { $0["executionId"]?.string == execution }
    }

    private func tells(_ statuses: [String], _ execution: String) async throws -> Bool {
        try await waitUntil { try await told(execution).compactMap { $0["status"]?.string } == statuses }
    }

    /// One as Payrails sends it (reference 5.3), of any execution.
    private func notification(_ execution: String, _ status: String, at: String) -> SignedNotification {
        SignedNotification(
            """
            {"event":"executionActionCompleted","time":"\(at)","details":{"action":"dispute","actionId":"\(UUID())",
            "success":true,"execution":{"id":"\(execution)"},"paymentComposition":[{"paymentId":"pay_1","dispute":
            {"id":"d_1","status":"\(status)","reason":"fraud","amount":{"value":"10.00","currency":"EUR"},
            "paymentId":"pay_1","createdAt":"2026-09-02T00:00:00Z"}}]}}
            """)
    }

    @Test("each change of a dispute is told once, as the contract's object, and moves neither state nor amount")
    func change() async throws {
        let order = try await paid()
        let before = try await lockstep.execution(order.execution)
        _ = lockstep.sandbox.dispute(order.execution, disputeID: "d_7")
        #expect(try await tells(["DisputeOpened"], order.execution))
        _ = lockstep.sandbox.dispute(order.execution, status: "DisputeChallenged", disputeID: "d_7")
        #expect(try await tells(["DisputeOpened", "DisputeChallenged"], order.execution))
        for dispute in try await told(order.execution) {
            #expect(SchemaCheck.faults(dispute, ["$ref": "#/components/schemas/Dispute"]) == [])
            #expect(dispute["id"] == "d_7" && dispute["amount"]?["value"] == "49.99" && dispute["reason"] == "fraud")
        }
        let after = try await lockstep.execution(order.execution)
        #expect(SchemaCheck.faults(after, ["$ref": "#/components/schemas/Execution"]) == [])
        #expect(after["state"] == before["state"] && after["amounts"] == before["amounts"])
        let shown = (after["facts"]?.array ?? []).compactMap { $0["dispute"]?["status"]?.string }
        #expect(shown == ["DisputeOpened", "DisputeChallenged"])
        #expect(try await lockstep.status(order) == "paid")
    }

    @Test("told twice is told once; what comes late and is older changes nothing; two disputes are two")
    func order() async throws {
        let order = try await paid()
        let opened = notification(order.execution, "DisputeOpened", at: "2026-11-30T10:00:00Z")
        let lost = notification(order.execution, "DisputeLost", at: "2026-11-30T12:00:00Z")
        let challenged = notification(order.execution, "DisputeChallenged", at: "2026-11-30T11:00:00Z")
        for notification in [lost, lost, opened, challenged, lost] {
            #expect(try await notification.send(to: lockstep.stranger).status == 200)
        }
        #expect(
            try await waitUntil {
                let facts = try await lockstep.execution(order.execution)["facts"]?.array ?? []
                return facts.filter { $0["dispute"] != nil }.count == 3
            })
        #expect(try await tells(["DisputeLost"], order.execution))
        _ = lockstep.sandbox.dispute(order.execution, disputeID: "d_2")
        #expect(try await tells(["DisputeLost", "DisputeOpened"], order.execution))
    }

    @Test("only keys with the scope payments hear of it")
    func scope() async throws {
        let order = try await paid()
        _ = lockstep.sandbox.dispute(order.execution, disputeID: "d_9")
        #expect(try await tells(["DisputeOpened"], order.execution))
        for scope in Scope.allCases {
            let key = try #require(try await lockstep.store.createKey(name: freshWord("key"), scopes: [scope])).1.reveal
            let types = try await lockstep.feed(as: key).compactMap { $0["type"]?.string }
            #expect(types.contains("dispute.changed") == (scope == .payments), "\(scope)")
        }
    }
}
