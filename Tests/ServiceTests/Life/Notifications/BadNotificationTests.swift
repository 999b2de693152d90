import Basics
import Crypto
import Foundation
import PayrailsSandbox
import Postgres
import TestKit
import Testing

/// Signed with the right key, and wrong all the same.
@Suite("What a signed notification may not say is kept, and never applied wrongly")
struct BadNotificationTests {
    private static let shared = Task { try await ServiceHarness.shared() }
    private let lockstep: ServiceHarness
    init() async throws { lockstep = try await Self.shared.value }

    /// A success of an authorization of 49.99 EUR, with members replaced by their path.
    private func success(_ order: Order, _ changes: [[String]: JSON] = [:]) -> JSON {
        var json: JSON = [
            "event": "executionActionCompleted", "time": .string(Timestamp.systemNow.rfc3339),
            "workspaceId": .string(lockstep.sandbox.workspaceID), "eventTrigger": "api",
            "details": [
                "action": "authorize", "actionId": .string(UUID().uuidString.lowercased()), "success": true,
                "amount": lockstep.money("49.99"),
                "execution": [
                    "id": .string(order.execution), "merchantReference": .string(order.reference),
                    "workflowCode": "payment-acceptance", "holderReference": "cust_77",
                ],
                "paymentComposition": [
                    "success": true, "operationType": "Authorize", "operationResult": "Success",
                    "paymentMethodCode": "card", "paymentId": .string(UUID().uuidString.lowercased()),
                    "amount": lockstep.money("49.99"),
                ],
            ],
        ]
        for (path, value) in changes { json = json.replacing(path, with: value) }
        // The composition is a list of one.
        guard let composition = json["details"]?["paymentComposition"] else { return json }
        return json.replacing(["details", "paymentComposition"], with: [composition])
    }

    /// Sends it and returns what became of its row.
    private func outcome(_ body: Data) async throws -> String? {
        #expect(try await SignedNotification(body).send(to: lockstep.stranger).status == 200)
        var state: String?
        _ = try await waitUntil {
            state = try await lockstep.books.query(
                """
                SELECT state FROM notifications JOIN notification_states USING (id)
                WHERE body_hash = \(Crypto.sha256(body))
                """
            ).first?.decode("state", as: String.self)
            return state != "received"
        }
        return state
    }

    /// When what is known of an order's execution by notification happened, as it is kept.
    private func known(_ order: Order) async throws -> [Timestamp] {
        try await lockstep.books.query(
            """
            SELECT at_seconds, at_nanoseconds FROM facts
            WHERE kind = 'action' AND execution_id = \(UUID(uuidString: order.execution))
            """
        ).map { row in
            let (seconds, nanoseconds) = try row.decode((Int64, Int32).self)
            return Timestamp(seconds: seconds, nanoseconds: nanoseconds)
        }
    }

    @Test("as it should be, it pays: what follows is no accident of the sample")
    func asItShouldBe() async throws {
        let order = try await lockstep.order()
        #expect(try await outcome(success(order).bytes) == "applied")
        #expect(try await lockstep.becomes("paid", order))
    }

    @Test("a result, an action, an execution or an event of the wrong type is no payment")
    func wrongTypes() async throws {
        let order = try await lockstep.order()
        for (path, values) in [
            (["details", "success"], ["true", 1, "yes", .null, [], [:]]),
            (["details", "action"], [1, true, .null, ["authorize"], "authorise", "Authorize", ""]),
            (["details", "execution"], [.string(order.execution), .null, [.string(order.execution)], 7]),
            (["details", "execution", "id"], [1, .null, ["x"], "x", .string(order.execution + " ")]),
            (["event"], [1, .null, [], "executionActionComplete", "EXECUTIONACTIONCOMPLETED"]),
            (["details"], [1, .null, [], "authorize", true]),
        ] as [([String], [JSON])] {
            for value in values {
                let state = try await outcome(success(order, [path: value]).bytes)
                #expect(state == "ignored", "\(path) \(value.text)")
                #expect(try await lockstep.status(order) == "open", "\(path) \(value.text)")
            }
        }
    }

    @Test("S11: an amount that isn't exact money pays nothing; asking shows what was paid")
    func amounts() async throws {
        let amount = ["details", "paymentComposition", "amount"]
        let values: [JSON] = [
            .number("49.99"), .number("4999"), "49.99", .null, [],
            ["value": .number("49.99"), "currency": "EUR"],
            ["value": .number("49.990000000000001"), "currency": "EUR"],
            ["value": "49.991", "currency": "EUR"], ["value": "4.999e1", "currency": "EUR"],
            ["value": " 49.99", "currency": "EUR"], ["value": "49,99", "currency": "EUR"],
            ["value": "+49.99", "currency": "EUR"], ["value": "49.99", "currency": "eur"], ["value": "49.99"],
            ["value": "0x31", "currency": "EUR"], ["value": "NaN", "currency": "EUR"],
        ]
        for value in values {
            let order = try await lockstep.order()
            #expect(try await outcome(success(order, [amount: value]).bytes) == "applied")
            #expect(try await lockstep.status(order) != "paid", "\(value.text)")
            #expect(try await lockstep.tally(order)["checkout.paid"] == nil, "\(value.text)")
        }
        let order = try await lockstep.order()
        lockstep.sandbox.add(SandboxNotificationFault(.lost, executionID: order.execution, times: nil))
        try lockstep.pay(order.execution)
        #expect(await lockstep.sandbox.becomesQuiet())
        #expect(try await outcome(success(order, [amount: .number("4999")]).bytes) == "applied")
        #expect(try await lockstep.becomes("paid", order))
        #expect(try await lockstep.execution(order.execution)["amounts"]?["authorized"] == lockstep.money("49.99"))
    }

    @Test("another amount, or another currency, than the order's is no payment of it")
    func otherAmount() async throws {
        for money in [lockstep.money("49.98"), lockstep.money("4999.00"), lockstep.money("49.99", "USD")] {
            let order = try await lockstep.order()
            let body = success(order, [["details", "paymentComposition", "amount"]: money]).bytes
            #expect(try await outcome(body) == "applied")
            #expect(try await lockstep.tally(order)["checkout.paid"] == nil, "\(money.text)")
            #expect(try await lockstep.status(order) != "paid")
        }
    }

    @Test("times keep nine digits, and a zone is reckoned with; without a zone the time is when it came")
    func times() async throws {
        for (text, expected) in [
            ("2026-11-30T08:00:00.123456789Z", Timestamp(seconds: 1_796_025_600, nanoseconds: 123_456_789)),
            ("2026-11-30T10:00:00.000000001+02:00", Timestamp(seconds: 1_796_025_600, nanoseconds: 1)),
            ("2026-11-29T22:30:00-09:30", Timestamp(seconds: 1_796_025_600)),
        ] {
            let order = try await lockstep.order()
            #expect(try await outcome(success(order, [["time"]: .string(text)]).bytes) == "applied")
            #expect(try await known(order) == [expected], "\(text)")
        }
        for value in [
            "2026-11-30T08:00:00", "2026-11-30T08:00:00.1234567890Z", "2026-11-30", "2026-02-30T08:00:00Z", "soon",
            .number("1796025600"), .null, [],
        ] as [JSON] {
            let order = try await lockstep.order()
            let before = Timestamp.systemNow
            #expect(try await outcome(success(order, [["time"]: value]).bytes) == "applied")
            let times = try await known(order)
            // Kept to the microsecond.
            #expect(
                times.count == 1
                    && times.allSatisfy { $0 >= before - .milliseconds(1) && $0 <= Timestamp.systemNow },
                "\(value.text)")
        }
    }

    @Test("nesting as deep as the body allows is kept, and takes no stack with it")
    func nesting() async throws {
        let order = try await lockstep.order()
        for count in [65, 1000, 100_000, 500_000] {
            let deep = String(repeating: "[", count: count) + String(repeating: "]", count: count)
            let text = success(order).text.replacing(#""eventTrigger":"api""#, with: #""x":\#(deep)"#)
            let bodies = [Data(deep.utf8), Data(String(repeating: #"{"a":"#, count: count / 5).utf8)]
            for body in bodies + (count > 65 ? [Data(text.utf8)] : []) where body.count <= 1_048_576 {
                #expect(try await outcome(body) == "ignored", "\(count)")
            }
        }
        #expect(try await lockstep.status(order) == "open")
    }

    @Test("an execution of somebody else's, with our reference on it, is kept apart from our order")
    func somebodyElses() async throws {
        let order = try await lockstep.order()
        let stranger = UUID().uuidString.lowercased()
        let body = success(
            order, [["details", "execution", "id"]: .string(stranger), ["workspaceId"]: .string(UUID().uuidString)]
        ).bytes
        #expect(try await outcome(body) == "parked")
        let byReference = success(order, [["details", "execution", "id"]: .null]).bytes
        #expect(try await outcome(byReference) == "ignored")
        #expect(try await lockstep.status(order) == "open")
        #expect(try await known(order) == [])
        #expect(try await lockstep.shop.get("/v1/executions/\(stranger)").status == 404)
        #expect(try await lockstep.events(order, atLeast: 1) == ["checkout.created"])
        // How many wait for their execution is a metric, so that a wrong address is seen.
        let standing = try await lockstep.store.notificationStanding()[.parked]
        #expect(standing?.count ?? 0 >= 1 && standing?.oldest != nil)
    }
}

extension JSON {
    /// The same with the member at this path set, or taken away by null.
    fileprivate func replacing(_ path: [String], with value: JSON) -> JSON {
        guard let name = path.first else { return value }
        var members = object ?? [:]
        let rest = Array(path.dropFirst())
        members[name] = rest.isEmpty && value.isNull ? nil : (members[name] ?? [:]).replacing(rest, with: value)
        return .object(members)
    }
}
