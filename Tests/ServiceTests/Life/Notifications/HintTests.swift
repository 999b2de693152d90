import Basics
import Foundation
import Lockstep
import PayrailsSandbox
import TestKit
import Testing

@testable import Service

@Suite("A notification that says nothing that can be used is a reason to read")
struct HintTests {
    /// Without a reason, nobody reads an execution that nobody has touched for hours.
    private static let shared = Task {
        try await ServiceHarness.shared(["LOCKSTEP_HEAL_PENDING": "300ms,1h,1h", "LOCKSTEP_HEAL_UNKNOWN": "300ms,1h"])
    }
    private let lockstep: ServiceHarness
    init() async throws { lockstep = try await Self.shared.value }

    /// An order that was paid without a word of it.
    private func silentlyPaid() async throws -> Order {
        let order = try await lockstep.order("50.00")
        lockstep.sandbox.add(SandboxNotificationFault(.lost, executionID: order.execution, times: nil))
        try lockstep.pay(order.execution)
        #expect(await lockstep.sandbox.becomesQuiet())
        return order
    }

    private func notify(_ event: String, _ details: JSON) async throws {
        let body: JSON = ["event": .string(event), "time": .string(Timestamp.systemNow.rfc3339), "details": details]
        #expect(try await SignedNotification(body.text).send(to: lockstep.stranger).status == 200)
    }

    @Test("one that names only the reference isn't believed: the execution of that reference is read")
    func referenceOnly() async throws {
        let order = try await silentlyPaid()
        // It says more than is true; only Payrails' own word counts.
        try await notify(
            "executionActionCompleted",
            [
                "action": "capture", "actionId": "a-1", "success": true,
                "execution": ["merchantReference": .string(order.reference)],
                "paymentComposition": [["success": true, "amount": lockstep.money("50.00")]],
            ])
        #expect(try await lockstep.becomes("paid", order))
        #expect(try await lockstep.execution(order.execution)["state"] == "authorized")
        // Nobody's reference is nobody's trouble.
        try await notify(
            "executionActionCompleted",
            ["action": "authorize", "success": true, "execution": ["merchantReference": "nobody-s"]])
    }

    @Test("an event that nobody knows, or a result that isn't one, has its execution read")
    func unknown() async throws {
        let cases: [(String, JSON)] = [
            ("somethingNew", [:]), ("ruleEngineExecuted", [:]),
            ("executionActionCompleted", ["action": "authorize", "actionId": "a-2", "success": "yes"]),
        ]
        for (event, details) in cases {
            let order = try await silentlyPaid()
            var members = details.object ?? [:]
            members["execution"] = ["id": .string(order.execution)]
            try await notify(event, .object(members))
            #expect(try await lockstep.becomes("paid", order), "\(event)")
            let stored = try await lockstep.books.query(
                "SELECT state FROM notification_states WHERE execution_id = \(UUID(canonical: order.execution))")
            #expect(try stored.first?.decode("state", as: String.self) == "ignored")
        }
    }

    @Test("a capture and a refund whose amounts nobody told are asked for")
    func figures() async throws {
        let order = try await silentlyPaid()
        try await notify("somethingNew", ["execution": ["id": .string(order.execution)]])
        #expect(try await lockstep.becomes("paid", order))
        let euro = { (value: String) in try Money(value: value, currencyCode: "EUR") }
        let steps: [(SandboxOutcomeRule.Action, Money, String)] = [
            (.capture, try euro("20.00"), "captured"), (.refund, try euro("5.00"), "refunded"),
        ]
        for (action, amount, member) in steps {
            let answer = lockstep.sandbox.actInPortal(
                order.execution, action, amount: amount, isFinal: action == .capture ? false : nil)
            #expect(answer.isAccepted)
            #expect(await lockstep.sandbox.becomesQuiet())
            try await notify(
                "executionActionCompleted",
                [
                    "action": .string(action.rawValue), "actionId": .string("portal-\(member)"), "success": true,
                    "execution": ["id": .string(order.execution)],
                ])
            #expect(
                try await waitUntil {
                    try await lockstep.execution(order.execution)["amounts"]?[member] == amount.json
                }, "\(member)")
        }
    }

    @Test("a payment, its capture and its whole refund that are learned together are told one after the other")
    func allAtOnce() async throws {
        let order = try await silentlyPaid()
        for action in [SandboxOutcomeRule.Action.capture, .refund] {
            #expect(lockstep.sandbox.actInPortal(order.execution, action).isAccepted)
            #expect(await lockstep.sandbox.becomesQuiet())
        }
        #expect(try await lockstep.status(order) == "open")
        #expect(try await lockstep.session(order).outcome == "409 already-paid")
        #expect(try await lockstep.becomes("refunded", order))
        let events = try await lockstep.events(order, atLeast: 5)
        #expect(
            events.filter { $0.hasPrefix("checkout") } == ["checkout.created", "checkout.paid", "checkout.refunded"])
        #expect(
            events.filter { $0.hasPrefix("execution") }.sorted() == ["execution.captured", "execution.refunded"])
        #expect(lockstep.money(of: order) == .init(authorizations: 1, refunded: 5000))
    }

    @Test("while a success of unknown amount is looked into the amount stands still: it may be a payment (L5)")
    func amountOfASuccess() async throws {
        let order = try await silentlyPaid()
        lockstep.sandbox.add(
            SandboxFault(.errorBefore(status: 503), on: .getExecution, times: nil, containing: order.execution))
        try await notify(
            "executionActionCompleted",
            [
                "action": "authorize", "actionId": "a-3", "success": true,
                "execution": ["id": .string(order.execution)],
            ])
        #expect(try await lockstep.becomes("authorized", execution: order.execution))
        #expect(try await lockstep.status(order) == "processing")
        let change = try await lockstep.shop.put(
            "\(order.path)/amount", ["amount": lockstep.money("60.00")], version: 1)
        #expect(change.outcome == "409 payment-in-progress")
        #expect(try await lockstep.checkout(order)["amount"] == lockstep.money("50.00"))
    }
}
