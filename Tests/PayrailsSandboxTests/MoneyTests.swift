import Basics
import Foundation
import TestKit
import Testing

@testable import PayrailsSandbox

@Suite("The ledger never lies")
struct MoneyTests {
    @Test("a thousand captures at once, none of them done yet, take no more than was set aside")
    func captures() async throws {
        let hand = HandClock()
        let caller = try await Caller {
            $0.clock = hand.clock
            $0.actionDelay = .seconds(1)
        }
        let id = try await caller.authorized(value: "500.00")
        let body: JSON = ["amount": ["value": "1.00", "currency": "EUR"], "final": false]
        let accepted = await inParallel(1000) { await caller.call("POST", caller.path(id, "capture"), body).status }
        #expect(accepted.filter { $0 == 202 }.count == 500)
        #expect(accepted.filter { $0 == 409 }.count == 500)
        #expect(caller.sandbox.ledgerTotals("order_1")?.capturedMinor == 0)
        hand.advance(by: .seconds(1))
        #expect(await waitUntil { caller.sandbox.ledgerTotals("order_1")?.capturedMinor == 50_000 })
        #expect(caller.sandbox.ledgerTotals("order_1")?.heldMinor == 0)
    }

    @Test("a thousand refunds at once, none of them done yet, give back no more than was taken")
    func refunds() async throws {
        let hand = HandClock()
        let caller = try await Caller {
            $0.clock = hand.clock
            $0.actionDelay = .seconds(1)
        }
        let id = try await caller.authorized(value: "300.00")
        await caller.call("POST", caller.path(id, "capture"), [:])
        hand.advance(by: .seconds(1))
        #expect(caller.sandbox.ledgerTotals("order_1")?.capturedMinor == 30_000)
        let body: JSON = ["amount": ["value": "0.50", "currency": "EUR"]]
        let accepted = await inParallel(1000) { await caller.call("POST", caller.path(id, "refund"), body).status }
        #expect(accepted.filter { $0 == 202 }.count == 600)
        hand.advance(by: .seconds(1))
        #expect(await waitUntil { caller.sandbox.ledgerTotals("order_1")?.refundedMinor == 30_000 })
        #expect(caller.sandbox.ledgerTotals("order_1")?.netMinor == 0)
    }

    @Test("captures, refunds and cancels at once, with failures among them, leave sound books")
    func mixture() async throws {
        let caller = try await Caller()
        for _ in 0..<50 {
            caller.sandbox.add(
                SandboxOutcomeRule(.decline(result: "GenericRejection"), action: .capture, times: 1))
        }
        let id = try await caller.authorized(value: "200.00")
        _ = await inParallel(300) { index in
            switch index % 5 {
            case 4:
                await caller.call("POST", caller.path(id, "refund"), ["amount": ["value": "0.10", "currency": "EUR"]])
                    .status
            case 3 where index > 200: await caller.call("POST", caller.path(id, "cancel"), [:]).status
            default:
                await caller.call(
                    "POST", caller.path(id, "capture"),
                    ["amount": ["value": "1.00", "currency": "EUR"], "final": false]
                ).status
            }
        }
        #expect(await caller.sandbox.becomesQuiet(within: .seconds(20)))
        let totals = try #require(caller.sandbox.ledgerTotals("order_1"))
        #expect(totals.capturedMinor + totals.voidedMinor <= totals.authorizedMinor)
        #expect(totals.refundedMinor <= totals.capturedMinor)
        #expect(totals.netMinor == 0, "the cancel gave everything back")
        #expect(totals.heldMinor == 0)
    }

    @Test("a final partial capture lets the rest go; a second one is refused")
    func finalCapture() async throws {
        let caller = try await Caller()
        let id = try await caller.authorized(value: "50.00")
        let body: JSON = ["amount": ["value": "20.00", "currency": "EUR"], "reason": "NoReason"]
        let reply = await caller.call("POST", caller.path(id, "capture"), body)
        #expect(reply.status == 202)
        #expect(reply.json["name"] == "capture")
        #expect(reply.json["reason"] == "NoReason")
        #expect(await waitUntil { caller.sandbox.ledgerTotals("order_1")?.voidedMinor == 3000 })
        #expect(await caller.call("POST", caller.path(id, "capture"), body).code == "workflow.action.not-allowed")
        #expect(caller.sandbox.ledger.map(\.kind) == [.authorization, .capture, .void])
    }

    @Test("while a final capture is running, no other is taken; a refund of it waits for it; a cancel for both")
    func inFlight() async throws {
        let hand = HandClock()
        let caller = try await Caller {
            $0.clock = hand.clock
            $0.actionDelay = .seconds(2)
        }
        let id = try await caller.authorized(value: "50.00")
        let body: JSON = ["amount": ["value": "20.00", "currency": "EUR"]]
        #expect(await caller.call("POST", caller.path(id, "capture"), body).status == 202)
        #expect(await caller.call("POST", caller.path(id, "capture"), body).status == 409)
        hand.advance(by: .seconds(1))
        caller.sandbox.add(SandboxOutcomeRule(.success, action: .refund, times: 1, delay: .zero))
        let refund: JSON = ["amount": ["value": "5.00", "currency": "EUR"]]
        #expect(await caller.call("POST", caller.path(id, "refund"), refund).status == 202)
        caller.sandbox.add(SandboxOutcomeRule(.success, action: .cancel, times: 1, delay: .zero))
        #expect(await caller.call("POST", caller.path(id, "cancel"), [:]).status == 202)
        #expect(await caller.call("POST", caller.path(id, "cancel"), [:]).status == 409)
        #expect(caller.sandbox.ledger.map(\.kind) == [.authorization])
        for _ in 0..<5 {
            hand.advance(by: .seconds(2))
            caller.sandbox.settle()
        }
        #expect(caller.sandbox.ledger.map(\.kind) == [.authorization, .capture, .void, .refund, .refund])
        #expect(caller.sandbox.ledger.map(\.amount.value) == ["50.00", "20.00", "30.00", "5.00", "15.00"])
        #expect(caller.sandbox.statusCodes(id).last == "cancelSuccessful")
    }

    @Test("a failed final capture leaves the money to be captured again")
    func failedCapture() async throws {
        let caller = try await Caller()
        caller.sandbox.add(
            SandboxOutcomeRule(.decline(result: "ProviderConnectionError"), action: .capture, times: 1))
        let id = try await caller.authorized()
        await caller.call("POST", caller.path(id, "capture"), [:])
        #expect(await waitUntil { caller.sandbox.statusCodes(id).contains("captureFailed") })
        #expect(await caller.call("POST", caller.path(id, "capture"), [:]).status == 202)
        #expect(await waitUntil { caller.sandbox.ledgerTotals("order_1")?.capturedMinor == 4999 })
    }

    struct Refused: Sendable, CustomTestStringConvertible {
        let action: String
        let body: JSON
        let status: Int
        var testDescription: String { "\(action) \(body.text)" }
    }

    @Test(
        "what the money doesn't allow is refused and moves nothing",
        arguments: [
            Refused(action: "capture", body: ["amount": ["value": "50.00", "currency": "EUR"]], status: 409),
            Refused(action: "capture", body: ["amount": ["value": "10.00", "currency": "USD"]], status: 409),
            Refused(action: "capture", body: ["amount": ["value": "0", "currency": "EUR"]], status: 400),
            Refused(
                action: "capture", body: ["amount": ["value": "1.00", "currency": "EUR"], "final": "no"], status: 400),
            Refused(action: "refund", body: [:], status: 409),
            Refused(action: "refund", body: ["paymentId": "3f6a3c1e-5f0e-4f7c-9f57-2b8b5f1d1a01"], status: 404),
            Refused(action: "cancel", body: ["amount": ["value": "1.00", "currency": "EUR"]], status: 400),
            Refused(action: "cancel", body: ["reason": "Because"], status: 400),
            Refused(action: "confirm", body: ["data": [:]], status: 409),
            Refused(action: "lookup", body: ["amount": ["value": "1.00", "currency": "EUR"]], status: 409),
        ])
    func refused(_ example: Refused) async throws {
        let caller = try await Caller()
        let id = try await caller.authorized(value: "49.99")
        let reply = await caller.call("POST", caller.path(id, example.action), example.body)
        #expect(reply.status == example.status, "\(reply.detail ?? "")")
        #expect(await caller.sandbox.becomesQuiet(within: .seconds(20)))
        #expect(caller.sandbox.ledger.map(\.kind) == [.authorization])
    }

    @Test("a cancel voids what isn't captured and gives back what is; a second one is refused")
    func cancels() async throws {
        let caller = try await Caller()
        let held = try await caller.authorized("held")
        #expect(await caller.call("POST", caller.path(held, "cancel"), [:]).status == 202)
        #expect(await waitUntil { caller.sandbox.ledgerTotals("held")?.voidedMinor == 4999 })
        #expect(await caller.call("POST", caller.path(held, "cancel"), [:]).status == 409)
        let taken = try await caller.authorized("taken")
        await caller.call("POST", caller.path(taken, "capture"), [:])
        #expect(await waitUntil { caller.sandbox.ledgerTotals("taken")?.capturedMinor == 4999 })
        await caller.call("POST", caller.path(taken, "cancel"), [:])
        #expect(await waitUntil { caller.sandbox.ledgerTotals("taken")?.refundedMinor == 4999 })
        #expect(await caller.call("POST", caller.path(taken, "refund"), [:]).status == 409)
    }

    @Test("instant and delayed capture modes take the money by themselves")
    func modes() async throws {
        let hand = HandClock()
        let caller = try await Caller {
            $0.clock = hand.clock
            $0.captureMode = "Instant"
            $0.tokenLifetime = .seconds(7200)
        }
        let instant = try await caller.execution("instant")
        #expect(caller.sandbox.pay(instant).isAccepted)
        #expect(caller.sandbox.ledgerTotals("instant")?.capturedMinor == 4999)
        let created = await caller.call(
            "POST", "/merchant/workflows/payment-acceptance/executions",
            [
                "merchantReference": "delayed", "holderReference": "h",
                "workspaceId": .string(caller.sandbox.workspaceID),
                "workflowConfigOverride": ["captureMode": "Delayed", "captureDelay": "PT10M"],
                "initialActions": [
                    ["action": "authorize", "method": "POST", "body": Self.authorizeBody(value: "10.00")]
                ],
            ])
        #expect(created.status == 201)
        #expect(created.json["initialResults"]?[0]?["httpCode"] == 202)
        #expect(caller.sandbox.ledgerTotals("delayed")?.capturedMinor == 0)
        hand.advance(by: .seconds(600))
        #expect(caller.sandbox.ledgerTotals("delayed")?.capturedMinor == 1000)
    }

    static func authorizeBody(value: String, instrument: String? = nil, processing: String? = nil) -> JSON {
        let amount: JSON = ["value": .string(value), "currency": "EUR"]
        return [
            "amount": amount, "returnInfo": ["success": "https://shop.example/return"],
            "paymentComposition": [
                .compact([
                    "integrationType": "api", "paymentMethodCode": "card", "amount": amount,
                    "paymentInstrumentId": instrument.map(JSON.string),
                    "paymentInstrumentData": instrument == nil ? ["encryptedData": "card:4242:12:2031"] : nil,
                    "paymentProcessingType": processing.map(JSON.string),
                ])
            ],
        ]
    }
}

func inParallel(_ count: Int, _ work: @escaping @Sendable () async -> Int) async -> [Int] {
    await inParallel(count) { _ in await work() }
}

func inParallel(_ count: Int, _ work: @escaping @Sendable (Int) async -> Int) async -> [Int] {
    await withTaskGroup(of: Int.self) { group in
        for index in 0..<count { group.addTask { await work(index) } }
        return await group.reduce(into: [Int]()) { $0.append($1) }
    }
}
