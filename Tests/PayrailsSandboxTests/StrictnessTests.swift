import Basics
import Foundation
import Testing

@testable import PayrailsSandbox

@Suite("What Payrails would refuse is refused")
struct StrictnessTests {
    @Test("a call without its idempotency key, or with one that isn't a UUID, is refused and does nothing")
    func keys() async throws {
        let caller = try await Caller()
        let missing = await caller.call("POST", "/merchant/client/init", caller.initBody(), key: nil)
        #expect(missing.status == 400)
        #expect(missing.code == "request.header.missing")
        let composite = await caller.call("POST", "/merchant/client/init", caller.initBody(), key: "order-1_attempt-2")
        #expect(composite.status == 400)
        #expect(composite.code == "request.header.invalid")
        #expect(caller.sandbox.executionIDs(merchantReference: "order_1").isEmpty)
    }

    struct Case: Sendable, CustomTestStringConvertible {
        let name: String
        let status: Int
        let code: String
        let change: @Sendable (inout [String: JSON]) -> Void
        var testDescription: String { name }
    }

    static let examples: [Case] = [
        Case(name: "amount as a number", status: 400, code: "request.param.invalid") {
            $0["amount"] = ["value": 49, "currency": "EUR"]
        },
        Case(name: "amount with too many decimals", status: 400, code: "request.param.invalid") {
            $0["amount"] = ["value": "49.999", "currency": "EUR"]
        },
        Case(name: "decimals of a currency that has none", status: 400, code: "request.param.invalid") {
            $0["amount"] = ["value": "500.00", "currency": "JPY"]
        },
        Case(name: "zero", status: 400, code: "request.param.invalid") {
            $0["amount"] = ["value": "0.00", "currency": "EUR"]
        },
        Case(name: "a sign", status: 400, code: "request.param.invalid") {
            $0["amount"] = ["value": "-1.00", "currency": "EUR"]
        },
        Case(name: "an exponent", status: 400, code: "request.param.invalid") {
            $0["amount"] = ["value": "1e2", "currency": "EUR"]
        },
        Case(name: "a currency in lower case", status: 400, code: "request.param.invalid") {
            $0["amount"] = ["value": "1.00", "currency": "eur"]
        },
        Case(name: "amount missing", status: 400, code: "request.param.missing") { $0["amount"] = nil },
        Case(name: "reference as a number", status: 400, code: "request.param.invalid") {
            $0["merchantReference"] = 12
        },
        Case(name: "no reference", status: 400, code: "request.param.missing") { $0["merchantReference"] = nil },
        Case(name: "a misspelt member", status: 400, code: "request.param.invalid") { $0["holderRef"] = "x" },
        Case(name: "an unknown type", status: 400, code: "request.param.invalid") { $0["type"] = "dropin" },
        Case(name: "an unknown workflow", status: 404, code: "request.not-found") { $0["workflowCode"] = "other" },
        Case(name: "no workspace", status: 401, code: "request.unauthorized") { $0["workspaceId"] = nil },
        Case(name: "another workspace", status: 404, code: "request.not-found") {
            $0["workspaceId"] = "aaaaaaaa-8a3e-4b43-9a53-6a1f0c9e7b11"
        },
        Case(name: "a workspace that isn't a UUID", status: 400, code: "request.param.invalid") {
            $0["workspaceId"] = "main"
        },
        Case(name: "a workspace with a digit that is none", status: 400, code: "request.param.invalid") {
            $0["workspaceId"] = "aaaaaaaa-8a3e-4b43-9a53-6a1f0c9e7b1g"
        },
        Case(name: "lines that don't add up", status: 400, code: "request.param.invalid") {
            $0["meta"] = [
                "order": ["lines": [["name": "a", "quantity": 2, "unitPrice": ["value": "20.00", "currency": "EUR"]]]]
            ]
        },
        Case(name: "a quantity as text", status: 400, code: "request.param.invalid") {
            $0["meta"] = ["order": ["lines": [["quantity": "2"]]]]
        },
        Case(name: "an origin by number", status: 403, code: "request.forbidden") {
            $0["meta"] = ["clientContext": ["origin": "http://192.168.0.7:3000"]]
        },
        Case(name: "tags that aren't text", status: 400, code: "request.param.invalid") {
            $0["meta"] = ["tags": ["a": 1]]
        },
    ]

    @Test("an init is checked member by member", arguments: examples)
    func inits(_ example: Case) async throws {
        let caller = try await Caller()
        var members = try #require(caller.initBody().object)
        example.change(&members)
        let reply = await caller.call("POST", "/merchant/client/init", .object(members))
        #expect(reply.status == example.status, "\(reply.detail ?? "")")
        #expect(reply.code == example.code)
        #expect(caller.sandbox.executionIDs(merchantReference: "order_1").isEmpty)
    }

    @Test("lines that add up are taken")
    func lines() async throws {
        let caller = try await Caller()
        var members = try #require(caller.initBody(value: "49.99").object)
        members["meta"] = [
            "order": [
                "lines": [
                    ["quantity": 2, "unitPrice": ["value": "20.00", "currency": "EUR"]],
                    ["quantity": 1, "unitPrice": ["value": "9.99", "currency": "EUR"]],
                ]
            ]
        ]
        #expect(await caller.call("POST", "/merchant/client/init", .object(members)).status == 200)
    }

    @Test("creating an execution takes no amount of its own, and not two delayed modes")
    func creating() async throws {
        let caller = try await Caller()
        let body: [String: JSON] = [
            "merchantReference": "o", "holderReference": "h", "workspaceId": .string(caller.sandbox.workspaceID),
        ]
        let path = "/merchant/workflows/payment-acceptance/executions"
        let plain = await caller.call("POST", path, .object(body))
        #expect(plain.status == 201)
        #expect(plain.json["amount"] == nil)
        let amount = body.merging(["amount": ["value": "1.00", "currency": "EUR"]]) { $1 }
        #expect(await caller.call("POST", path, .object(amount)).code == "request.param.invalid")
        let modes = body.merging([
            "workflowConfigOverride": ["captureMode": "Delayed", "cancelMode": "Delayed"]
        ]) { $1 }
        #expect(await caller.call("POST", path, .object(modes)).code == "request.param.invalid")
    }

    @Test("tokens: a wrong secret, no token, a made-up one and an expired one are 401")
    func tokens() async throws {
        let hand = HandClock()
        let caller = try await Caller { $0.clock = hand.clock }
        let path = "/auth/token/\(caller.sandbox.clientID)"
        #expect(await caller.call("POST", path, headers: ["x-api-key": "wrong"]).status == 401)
        let other = await caller.call(
            "POST", "/auth/token/other", headers: ["x-api-key": caller.sandbox.clientSecret])
        #expect(other.code == "request.unauthorized")
        #expect(await caller.call("GET", "/payment/payments", headers: ["Authorization": nil]).status == 401)
        #expect(await caller.call("GET", "/payment/payments", token: "eyJ.a.b").status == 401)
        #expect(await caller.call("GET", "/payment/payments").status == 200)
        hand.advance(by: .seconds(3600))
        #expect(await caller.call("GET", "/payment/payments").status == 401)
    }

    @Test("an unknown path is 404, a known one with another method 405 with Allow")
    func methods() async throws {
        let caller = try await Caller()
        #expect(await caller.call("GET", "/v2/anything").status == 404)
        let reply = await caller.call("PUT", "/payment/instruments/\(UUID().lowercased)", [:])
        #expect(reply.status == 405)
        #expect(reply.code == "request.method-not-allowed")
        #expect(reply.headers["Allow"]?.contains("PATCH") == true)
    }

    @Test("a body that isn't JSON is malformed, one without its type lacks a header")
    func bodies() async throws {
        let caller = try await Caller()
        let answer = await caller.sandbox.respond(
            to: APIRequest(
                method: "POST", path: "/merchant/client/init",
                headers: [
                    "Accept": "application/json", "Authorization": "Bearer \(caller.token)",
                    "Content-Type": "application/json", "x-idempotency-key": UUID().uuidString,
                ], body: Data("{".utf8)))
        #expect(answer.status == 400)
        #expect(String(decoding: answer.body, as: UTF8.self).contains("request.malformed"))
        let untyped = await caller.call(
            "POST", "/merchant/client/init", caller.initBody(), headers: ["Content-Type": nil])
        #expect(untyped.code == "request.header.missing")
    }

    @Test("a filter that the list doesn't have is refused")
    func filters() async throws {
        let caller = try await Caller()
        let path = "/merchant/workflows/payment-acceptance/executions"
        #expect(await caller.call("GET", path + "?filter[createdAt]=x").code == "request.param.invalid")
        #expect(await caller.call("GET", "/payment/payments?filter%5BcreatedAt%5D=yesterday").status == 400)
        #expect(await caller.call("GET", "/payment/payments?page[size]=101").status == 400)
    }
}
