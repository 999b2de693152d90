import Basics
import Foundation
import TestKit
import Testing

@testable import PayrailsSandbox

@Suite("Instruments, and charges without the customer")
struct InstrumentTests {
    @Test("an instrument is created, read, changed and deleted")
    func lifecycle() async throws {
        let caller = try await Caller()
        let created = await caller.call(
            "POST", "/payment/instruments",
            [
                "holderReference": "cust_77", "paymentMethod": "card", "futureUsage": "CardOnFile",
                "provisionNetworkToken": true,
                "data": ["suffix": "1111", "expiryMonth": "02", "expiryYear": "2027"],
            ])
        #expect(created.status == 201)
        let path = "/payment/instruments/\(try #require(created.json["id"]?.string))"
        let read = await caller.call("GET", path + "?includeTokens=true&includeHolderReference=true").json
        #expect(read["data"]?["expiryMonth"] == "02")
        #expect(read["holderReference"] == "cust_77")
        #expect(read["tokens"]?[0]?["type"] == "network")
        #expect(await caller.call("GET", path).json["tokens"] == nil)
        #expect(await caller.call("PATCH", path, ["default": true]).json["default"] == true)
        #expect(await caller.call("PATCH", path, ["status": "disabled"]).json["status"] == "disabled")
        let expiry = await caller.call("PATCH", path, ["data": ["expiryYear": "2030"]])
        #expect(expiry.status == 400, "expiry can't be patched")
        #expect(await caller.call("DELETE", path, key: nil).code == "request.header.missing")
        #expect(await caller.call("DELETE", path).json["success"] == true)
        #expect(await caller.call("GET", path).status == 404)
    }

    @Test("a holder has one default")
    func defaults() async throws {
        let caller = try await Caller()
        let ids = (0..<3).compactMap { _ in caller.sandbox.tokenize(holderReference: "h").body["id"]?.string }
        for id in ids { await caller.call("PATCH", "/payment/instruments/\(id)", ["default": true]) }
        let list = await caller.call("GET", "/payment/instruments?filter[holderReference]=h").json["results"]?.array
        #expect(list?.filter { $0["default"] == true }.compactMap { $0["id"]?.string } == [ids[2]])
    }

    @Test(
        "a saved card is charged: the suffix decides",
        arguments: [
            ("4242", "authorizeSuccessful"), ("9995", "authorizeFailed"), ("9987", "authorizeFailed"),
            ("3220", "authorizePending"),
        ])
    func charges(_ suffix: String, _ code: String) async throws {
        let caller = try await Caller()
        let instrument = try #require(
            caller.sandbox.tokenize(holderReference: "h", card: suffix).body["id"]?.string)
        let body: JSON = [
            "merchantReference": "inv_901~1~1", "holderReference": "h",
            "workspaceId": .string(caller.sandbox.workspaceID),
            "meta": ["subscription": ["chargeFrequency": "P1M"], "risk": ["threeDSMode": "Skip"]],
            "initialActions": [
                [
                    "action": "authorize", "method": "POST",
                    "body": MoneyTests.authorizeBody(
                        value: "14.99", instrument: instrument, processing: "Subscription"),
                ]
            ],
        ]
        let reply = await caller.call("POST", "/merchant/workflows/payment-acceptance/executions", body)
        #expect(reply.status == 201)
        let id = try #require(reply.json["id"]?.string)
        #expect(await waitUntil { caller.sandbox.statusCodes(id).contains(code) })
        #expect((caller.sandbox.ledgerTotals("inv_901~1~1") != nil) == (suffix == "4242"))
    }

    @Test("a rule counts as often as it says, then the next one does")
    func rules() async throws {
        let caller = try await Caller()
        let instrument = try #require(caller.sandbox.tokenize(holderReference: "h").body["id"]?.string)
        caller.sandbox.add(
            SandboxOutcomeRule(.decline(result: "InsufficientBalance"), instrumentID: instrument, times: 1))
        var last: [String] = []
        for number in 1...2 {
            let created = await caller.call(
                "POST", "/merchant/workflows/payment-acceptance/executions",
                [
                    "merchantReference": .string("r\(number)"), "holderReference": "h",
                    "workspaceId": .string(caller.sandbox.workspaceID),
                ])
            let id = try #require(created.json["id"]?.string)
            let body = MoneyTests.authorizeBody(value: "5.00", instrument: instrument)
            #expect(await caller.call("POST", caller.path(id, "authorize"), body).status == 202)
            #expect(await caller.sandbox.becomesQuiet(within: .seconds(20)))
            last.append(caller.sandbox.statusCodes(id).first { $0.hasSuffix("Failed") || $0.hasSuffix("ful") } ?? "")
        }
        #expect(last == ["authorizeFailed", "authorizeSuccessful"])
    }

    @Test("a wallet's token that is charged as if the customer were there is declined")
    func wallet() async throws {
        let caller = try await Caller()
        let instrument = try #require(
            caller.sandbox.tokenize(holderReference: "h", method: "applePay").body["id"]?.string)
        for (processing, code) in [("Regular", "authorizeFailed"), ("Subscription", "authorizeSuccessful")] {
            let created = await caller.call(
                "POST", "/merchant/workflows/payment-acceptance/executions",
                [
                    "merchantReference": .string(processing), "holderReference": "h",
                    "workspaceId": .string(caller.sandbox.workspaceID),
                ])
            let id = try #require(created.json["id"]?.string)
            let body = MoneyTests.authorizeBody(value: "5.00", instrument: instrument, processing: processing)
            #expect(await caller.call("POST", caller.path(id, "authorize"), body).status == 202)
            #expect(await waitUntil { caller.sandbox.statusCodes(id).contains(code) })
        }
    }

    @Test("another holder's instrument, and one that never was, are unknown")
    func foreign() async throws {
        let caller = try await Caller()
        let other = try #require(caller.sandbox.tokenize(holderReference: "other").body["id"]?.string)
        let id = try await caller.execution()
        for instrument in [other, UUID().lowercased] {
            let body = MoneyTests.authorizeBody(value: "49.99", instrument: instrument)
            #expect(await caller.call("POST", caller.path(id, "authorize"), body).status == 404)
        }
        #expect(caller.sandbox.statusCodes(id) == ["created"])
    }
}
