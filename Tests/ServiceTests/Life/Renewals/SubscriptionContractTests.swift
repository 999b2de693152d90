import Basics
import Foundation
import Lockstep
import PayrailsSandbox
import TestKit
import Testing

@testable import Service

@Suite("Subscriptions by the contract")
struct SubscriptionContractTests {
    private static let shared = Task { try await ServiceHarness.shared() }
    private let lockstep: ServiceHarness
    init() async throws { lockstep = try await Self.shared.value }

    @Test("created, read and listed alike; the same request again is the same answer")
    func creation() async throws {
        let card = try lockstep.card()
        let reference = freshWord("member")
        let body = lockstep.newSubscription(
            reference, card, ["endsOn": "2028-01-31", "maxCharges": 12, "meta": ["plan": "gold"]])
        let first = try await lockstep.shop.post("/v1/subscriptions", body, key: reference)
        #expect(first.status == 201)
        #expect(first.json["status"] == "active")
        #expect(first.json["expiryPolicy"] == "block")
        #expect(first.json["nextChargeOn"] == "2027-01-31")
        #expect(first.json["timezone"] == "Europe/Berlin")
        let again = try await lockstep.shop.post("/v1/subscriptions", body, key: reference)
        #expect(again.json == first.json && again.headers["Idempotent-Replayed"] == "true")
        let id = try #require(first.json["id"]?.string)
        #expect(try await lockstep.shop.get("/v1/subscriptions/\(id)").json == first.json)
        let list = try await lockstep.shop.get("/v1/subscriptions?holderReference=\(card.holder)").json
        #expect(list["items"] == [first.json])
        #expect(try await lockstep.shop.get("/v1/subscriptions/\(id)/charges").json == ["items": []])
    }

    @Test("all that is wrong with a request is told at once, each by its member's name")
    func badInput() async throws {
        let card = try lockstep.card()
        let other = try lockstep.card()
        func outcome(_ more: [String: JSON]) async throws -> (String, [String]) {
            let reference = freshWord("bad")
            let reply = try await lockstep.shop.post(
                "/v1/subscriptions", lockstep.newSubscription(reference, card, more), key: reference)
            return (reply.outcome, reply.json["errors"]?.array?.compactMap { $0["pointer"]?.string } ?? [])
        }
        for (more, pointers) in [
            (["timezone": "Mars/Olympus"], ["/timezone"]), (["timezone": "CET"], ["/timezone"]),
            (["interval": "P0M"], ["/interval"]), (["interval": "P1M1D"], ["/interval"]),
            (["interval": "monthly"], ["/interval"]), (["interval": "P37M"], ["/interval"]),
            (["startsOn": "2027-02-29"], ["/startsOn"]), (["endsOn": "2027-01-30"], ["/endsOn"]),
            (["maxCharges": 0], ["/maxCharges"]),
            (["amount": ["value": "9.999", "currency": "EUR"]], ["/amount/value"]),
            (["amount": ["value": "0", "currency": "EUR"]], ["/amount/value"]), (["nonsense": 1], ["/nonsense"]),
            (["merchantReference": "a~b"], ["/merchantReference"]),
            (["interval": "P0D", "timezone": "nowhere"], ["/interval", "/timezone"]),
        ] as [([String: JSON], [String])] {
            let found = try await outcome(more)
            #expect(found.0 == "422 invalid" && found.1 == pointers, "\(more): \(found)")
        }
        #expect(try await outcome(["instrumentId": .string(other.id)]).0 == "422 instrument-of-another-holder")
        #expect(
            try await outcome(["instrumentId": "0197c0de-0000-7000-8000-00000000dead"]).1 == ["/instrumentId"])
        let subscription = try await lockstep.subscription(card)
        let second = try await lockstep.shop.post(
            "/v1/subscriptions", lockstep.newSubscription(subscription.reference, card), key: "another")
        #expect(second.outcome == "409 reference-exists")
        #expect(second.json["errors"]?[0]?["pointer"] == "/merchantReference")
    }

    @Test("a subscription may have begun within the last year, for shops that move here, and no earlier")
    func anchors() async throws {
        let card = try lockstep.card()
        let today = CivilDate(of: .systemNow, in: .gmt)
        for (days, isTaken) in [(0, true), (-365, true), (-368, false), (-7300, false)] {
            let reference = freshWord("anchor")
            let body = lockstep.newSubscription(
                reference, card, ["startsOn": .string(today.adding(days: days).description), "maxCharges": 1])
            let reply = try await lockstep.shop.post("/v1/subscriptions", body, key: reference)
            #expect(reply.outcome == (isTaken ? "201" : "422 invalid"), "\(days): \(reply.text)")
            let pointers = reply.json["errors"]?.array?.compactMap { $0["pointer"]?.string } ?? []
            #expect(pointers == (isTaken ? [] : ["/startsOn"]))
        }
    }

    @Test("changes: from the next period on, or now; what can't be changed is named")
    func changes() async throws {
        let card = try lockstep.card()
        let other = try lockstep.card()
        let subscription = try await lockstep.subscription(card)
        let amount = try await lockstep.patch(subscription, ["amount": lockstep.money("12.50")])
        #expect(amount.json["amount"] == lockstep.money("12.50"))
        let limits = try await lockstep.patch(subscription, ["endsOn": "2027-12-31", "maxCharges": 3])
        #expect(limits.json["endsOn"] == "2027-12-31" && limits.json["maxCharges"] == 3)
        let none = try await lockstep.patch(subscription, ["endsOn": .null, "maxCharges": .null])
        #expect(none.json["endsOn"] == nil && none.json["maxCharges"] == nil)
        for (body, pointer) in [
            (["amount": lockstep.money("12.50", "USD")], "/amount/currency"), (["startsOn": "2020-01-01"], "/startsOn"),
            (["endsOn": "2027-01-01"], "/endsOn"), (["interval": "P1Y"], "/interval"),
        ] as [(JSON, String)] {
            let reply = try await lockstep.patch(subscription, body)
            #expect(reply.outcome == "422 invalid", "\(body)")
            #expect(reply.json["errors"]?[0]?["pointer"]?.string == pointer, "\(reply.text)")
        }
        let foreign = try await lockstep.patch(subscription, ["instrumentId": .string(other.id)])
        #expect(foreign.outcome == "422 instrument-of-another-holder")
        _ = try await lockstep.shop.post("\(subscription.path)/cancel")
        #expect(try await lockstep.patch(subscription, ["amount": lockstep.money("1.00")]).outcome == "409 conflict")
        #expect(try await lockstep.shop.get("/v1/subscriptions/\(UUID())").status == 404)
    }
}
