import Basics
import Lockstep
import PayrailsSandbox
import TestKit
import Testing

@testable import Service

/// A checkout as the shop that created it knows it.
struct Order: Sendable {
    let reference: String
    let checkout: String
    /// The first execution.
    let execution: String
    /// The client token that the app got.
    let token: String
    /// The answer to the creation.
    let answer: JSONCaller.Reply

    var path: String { "/v1/checkouts/\(checkout)" }
}

extension JSONCaller {
    /// Sends a request again, under its key, while the answer is to come later, as a shop does.
    func insist(_ path: String, _ body: JSON, key: String) async throws -> Reply {
        for _ in 0..<40 {
            let reply = try await post(path, body, key: key)
            guard reply.status == 503 else { return reply }
            try await Task.sleep(for: .milliseconds(50))
        }
        return try await post(path, body, key: key)
    }
}

extension ServiceHarness {
    /// A body of `POST /v1/checkouts`.
    func newCheckout(
        _ reference: String, _ value: String = "49.99", currency: String = "EUR", _ more: [String: JSON] = [:]
    ) -> JSON {
        .object(
            more.merging([
                "merchantReference": .string(reference), "holderReference": "cust_77",
                "amount": ["value": .string(value), "currency": .string(currency)],
            ]) { given, _ in given })
    }

    /// Creates a checkout as the shop does.
    func order(
        _ value: String = "49.99", currency: String = "EUR", _ more: [String: JSON] = [:]
    ) async throws -> Order {
        let reference = freshWord("order")
        let answer = try await shop.insist(
            "/v1/checkouts", newCheckout(reference, value, currency: currency, more), key: freshWord("create"))
        return try order(reference, answer)
    }

    func order(_ reference: String, _ answer: JSONCaller.Reply) throws -> Order {
        try #require(answer.status == 201, "\(answer.text)")
        return Order(
            reference: reference, checkout: try #require(answer.json["id"]?.string),
            execution: try #require(answer.json["executionId"]?.string),
            token: try #require(answer.json["clientToken"]?.string), answer: answer)
    }

    /// A policy that lets the app move the amount.
    static let mayUpdate: [String: JSON] = ["amountPolicy": ["clientMayUpdate": true]]

    func checkout(_ order: Order) async throws -> JSON { try await shop.get(order.path).json }
    func status(_ order: Order) async throws -> String? { try await checkout(order)["status"]?.string }
    func execution(_ id: String) async throws -> JSON { try await shop.get("/v1/executions/\(id)").json }

    /// Whether the checkout comes to this status.
    func becomes(_ status: String, _ order: Order) async throws -> Bool {
        try await waitUntil { try await self.status(order) == status }
    }

    /// Whether the execution comes to this state.
    func becomes(_ state: String, execution id: String) async throws -> Bool {
        try await waitUntil { try await execution(id)["state"]?.string == state }
    }

    /// Whether the operation comes to this state.
    func becomes(_ state: String, operation id: String) async throws -> Bool {
        try await waitUntil { try await shop.get("/v1/operations/\(id)").json["state"]?.string == state }
    }

    /// The pre-payment check: `proceed`, or the reason against it.
    func gate(
        _ execution: String, _ more: [String: JSON] = [:], as token: String? = nil
    ) async throws -> String {
        let answer = try await gateAnswer(execution, more, as: token).json
        return try #require(answer["reason"]?.string ?? answer["decision"]?.string)
    }

    /// The whole answer of the pre-payment check, which is always of one form.
    func gateAnswer(
        _ execution: String, _ more: [String: JSON] = [:], as token: String? = nil, language: String? = nil,
        of service: LockstepService? = nil
    ) async throws -> JSONCaller.Reply {
        let body: JSON = .object(
            more.merging(["executionId": .string(execution), "paymentMethodCode": "card"]) { given, _ in given })
        var headers: HTTPHeaders = [:]
        headers["Accept-Language"] = language
        let reply = try await caller(of: service ?? self.service).with(token: token ?? key).post(
            "/v1/pre-payment", body, headers: headers)
        try #require(reply.status == 200, "\(reply.text)")
        let mayPay = reply.json["decision"] == "proceed"
        #expect(mayPay || reply.json["decision"] == "refuse")
        #expect(reply.json["valid"]?.bool == mayPay && reply.json["executionId"]?.string == execution)
        let members = Set((reply.json.object ?? [:]).keys)
        #expect(members == Set(["decision", "valid", "executionId"] + (mayPay ? [] : ["reason", "message"])))
        return reply
    }

    /// A new session, as the app asks for it.
    func session(_ order: Order, expired: Bool = true) async throws -> JSONCaller.Reply {
        try await app(order).post("\(order.path)/session", expired ? ["reason": "expired"] : [:])
    }

    /// Pays as the SDK does, and requires that Payrails took it on.
    func pay(_ execution: String, _ payment: PayrailsSandbox.Payment = .init()) throws {
        let answer = sandbox.pay(execution, payment)
        try #require(answer.isAccepted, "\(answer.body)")
    }

    /// Pays with a certain outcome.
    func pay(_ execution: String, _ outcome: SandboxOutcome) throws {
        var payment = PayrailsSandbox.Payment()
        payment.outcome = outcome
        try pay(execution, payment)
    }

    /// An order that is paid, here and there.
    func paidOrder(_ value: String = "49.99") async throws -> Order {
        let order = try await order(value)
        try pay(order.execution)
        try #require(try await becomes("paid", order))
        return order
    }

    func money(_ value: String, _ currency: String = "EUR") -> JSON {
        ["value": .string(value), "currency": .string(currency)]
    }
}
