import Basics
import Foundation
import TestKit
import Testing

@Suite("The same request again, under the same key")
struct RepeatedRequestTests {
    private static let shared = Task { try await ServiceHarness.shared() }
    private let lockstep: ServiceHarness
    init() async throws { lockstep = try await Self.shared.value }

    @Test("I9: a replay is the first answer with a client token of its own, and the first token goes on working")
    func replay() async throws {
        let reference = freshWord("order")
        let shop = try lockstep.shop
        let key = freshWord("key")
        let first = try await shop.post("/v1/checkouts", lockstep.newCheckout(reference), key: key)
        // The members in another order and the spaces between them make no other request.
        let spaced = Data(
            """
            {"amount" : {"currency":"EUR", "value":"49.99"},
             "holderReference":"cust_77",  "merchantReference":"\(reference)"}
            """.utf8)
        let again = try await shop.call(
            "POST", "/v1/checkouts", body: spaced, headers: ["Idempotency-Key": key])
        #expect(first.headers["Idempotent-Replayed"] == nil)
        #expect(again.headers["Idempotent-Replayed"] == "true")
        #expect(again.status == 201)
        #expect(again.headers["Location"] == first.headers["Location"])
        #expect(again.headers["ETag"] == first.headers["ETag"])
        let (one, two) = (try lockstep.order(reference, first), try lockstep.order(reference, again))
        #expect(one.token != two.token)
        #expect(first.json.without("clientToken") == again.json.without("clientToken"))
        for order in [one, two] { #expect(try await lockstep.app(order).get(order.path).status == 200) }
        #expect(lockstep.sandbox.executionIDs(merchantReference: reference).count == 1)
    }

    @Test("a session's replay is the first answer, with its init: another init would be another execution's")
    func sessionReplay() async throws {
        let order = try await lockstep.order()
        let (path, key) = ("\(order.path)/session", freshWord("key"))
        let first = try await lockstep.shop.insist(path, ["reason": "expired"], key: key)
        let again = try await lockstep.shop.post(path, ["reason": "expired"], key: key)
        #expect(first.status == 200 && first.json["init"] != nil, "\(first.text)")
        #expect(again.headers["Idempotent-Replayed"] == "true" && again.json == first.json)
    }

    @Test("I9: a key stands for one request: another body, another path or another method of paying is refused")
    func reused() async throws {
        let order = try await lockstep.order()
        let shop = try lockstep.shop
        let key = freshWord("key")
        let path = "/v1/checkouts"
        #expect(try await shop.post(path, lockstep.newCheckout(freshWord("order")), key: key).status == 201)
        let other = try await shop.post(path, lockstep.newCheckout(freshWord("order")), key: key)
        #expect(other.outcome == "422 idempotency-key-reused")
        let elsewhere = try await shop.post("/v1/executions/\(order.execution)/capture", key: key)
        #expect(elsewhere.outcome == "422 idempotency-key-reused")
        // Another credential's keys are its own.
        let second = shop.with(token: try await lockstep.makeKey([.checkouts]))
        #expect(try await second.post(path, lockstep.newCheckout(freshWord("order")), key: key).status == 201)
    }

    @Test("I9: a key is needed, and must be of the right form")
    func form() async throws {
        let shop = try lockstep.shop
        let body = lockstep.newCheckout(freshWord("order"))
        #expect(try await shop.post("/v1/checkouts", body).outcome == "400 idempotency-key-missing")
        for key in ["with blank", "ümlaut", String(repeating: "k", count: 256), "4242 4242 4242 4242"] {
            #expect(try await shop.post("/v1/checkouts", body, key: key).outcome == "400 idempotency-key-invalid")
        }
        let twice = HTTPHeaders([
            .init(name: "Idempotency-Key", value: "a"), .init(name: "Idempotency-Key", value: "a"),
        ])
        #expect(try await shop.post("/v1/checkouts", body, headers: twice).outcome == "400 idempotency-key-invalid")
        #expect(try await shop.post("/v1/checkouts", body, key: String(repeating: "~", count: 255)).status == 201)
    }

    @Test(
        "I9: thirty-two at once under one key create one execution, and whoever doesn't get it is told to come again")
    func storm() async throws {
        let reference = freshWord("order")
        let key = freshWord("key")
        let shop = try lockstep.shop
        let replies = try await atOnce(32) { _ in
            try await shop.post("/v1/checkouts", lockstep.newCheckout(reference), key: key)
        }
        let created = replies.filter { $0.status == 201 }
        #expect(!created.isEmpty)
        #expect(Set(created.compactMap { $0.json["id"]?.string }).count == 1)
        for reply in replies where reply.status != 201 {
            #expect(reply.outcome == "409 idempotency-key-in-use")
            #expect(reply.headers["Retry-After"] != nil)
        }
        let after = try await shop.post("/v1/checkouts", lockstep.newCheckout(reference), key: key)
        #expect(after.headers["Idempotent-Replayed"] == "true")
        #expect(lockstep.sandbox.executionIDs(merchantReference: reference).count == 1)
    }

    @Test("an order has one checkout, however many ask for it at once under keys of their own")
    func oneCheckout() async throws {
        let reference = freshWord("order")
        let shop = try lockstep.shop
        let replies = try await atOnce(16) { _ in
            try await shop.post("/v1/checkouts", lockstep.newCheckout(reference), key: freshWord("key"))
        }
        let created = replies.filter { $0.status == 201 }
        #expect(created.count == 1)
        let id = try #require(created.first?.json["id"])
        for reply in replies where reply.status != 201 {
            #expect(reply.outcome == "409 checkout-exists")
            #expect(reply.json["checkoutId"] == id)
        }
        #expect(lockstep.sandbox.executionIDs(merchantReference: reference).count == 1)
    }

    @Test("W8: a capture that is asked for many times at once under one key takes the money once")
    func oneCapture() async throws {
        let order = try await lockstep.paidOrder()
        let shop = try lockstep.shop
        let key = freshWord("capture")
        let body: JSON = ["amount": lockstep.money("10.00"), "final": false]
        let path = "/v1/executions/\(order.execution)/capture"
        let replies = try await atOnce(16) { _ in try await shop.post(path, body, key: key) }
        let ids = Set(replies.filter { $0.status == 202 }.compactMap { $0.json["id"]?.string })
        #expect(ids.count == 1)
        #expect(replies.allSatisfy { $0.status == 202 || $0.problem == "idempotency-key-in-use" })
        #expect(try await lockstep.becomes("succeeded", operation: try #require(ids.first)))
        #expect(lockstep.money(of: order) == .init(authorizations: 1, held: 3999, net: 1000))
    }
}

/// Runs so many at once.
func atOnce<Result: Sendable>(
    _ count: Int, _ work: @escaping @Sendable (Int) async throws -> Result
) async throws -> [Result] {
    try await withThrowingTaskGroup(of: Result.self) { group in
        for number in 0..<count { group.addTask { try await work(number) } }
        return try await group.reduce(into: []) { $0.append($1) }
    }
}

extension JSON {
    func without(_ name: String) -> JSON {
        guard case .object(var members) = self else { return self }
        members[name] = nil
        return .object(members)
    }
}
