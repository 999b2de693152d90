import Basics
import Foundation
import Testing

@testable import Lockstep

@Suite("The contract's objects and ids")
struct ObjectsTests {
    typealias S = Sample

    @Test("an id is a UUID of 36 characters, written in lower case")
    func identifiers() throws {
        let id = try #require(CheckoutID("9B1D0A52-2A41-4F0C-8C0E-3F7F5D0E1C01"))
        #expect(id.description == "9b1d0a52-2a41-4f0c-8c0e-3f7f5d0e1c01")
        #expect(CheckoutID(id.description) == id)
        for text in [
            "", "9b1d0a52-2a41-4f0c-8c0e-3f7f5d0e1c0", "9b1d0a52-2a41-4f0c-8c0e-3f7f5d0e1c011",
            "9b1d0a522a414f0c8c0e3f7f5d0e1c01", "{9b1d0a52-2a41-4f0c-8c0e-3f7f5d0e1c01}",
            "9b1d0a52-2a41-4f0c-8c0e-3f7f5d0e1c0g", " 9b1d0a52-2a41-4f0c-8c0e-3f7f5d0e1c0",
            "9b1d0a52+2a41-4f0c-8c0e-3f7f5d0e1c01", "９b1d0a52-2a41-4f0c-8c0e-3f7f5d0e1",
        ] {
            #expect(CheckoutID(text) == nil)
        }
        let ids = (0..<50).map { S.execution($0) }
        #expect(ids.shuffled().sorted() == ids)
    }

    @Test("fresh ids are of version 7 and all different")
    func fresh() {
        let source = IdentifierSource.system(clock: WallClock { Timestamp(seconds: 1_788_256_805) })
        let drawn = Set((0..<1000).map { _ in source.next() })
        #expect(drawn.count == 1000)
        #expect(
            drawn.allSatisfy {
                $0.lowercased.hasPrefix("01a05c84-") || $0.lowercased.split(separator: "-")[2].hasPrefix("7")
            })
    }

    @Test("a checkout as the contract shows it, without a secret")
    func checkout() throws {
        var checkout = S.checkout(status: .processing, current: 2, basketVersion: "b7")
        checkout.lease = GateLease(execution: S.execution(2), until: S.at(9))
        let json = checkout.json(executions: [S.execution(2, .processing), S.execution(1, .failed, failedAt: 3)])
        #expect(json["status"] == "processing" && json["amountState"] == "inStep" && json["amountVersion"] == 3)
        #expect(json["amount"] == ["value": "57.49", "currency": "EUR"])
        #expect(json["executionId"]?.string == S.execution(2).description)
        #expect(
            json["executions"]?.array?.compactMap { $0["id"]?.string } == [1, 2].map { S.execution($0).description })
        #expect(json["executions"]?.array?.compactMap { $0["current"]?.bool } == [false, true])
        #expect(json["executions"]?[0]?["state"] == "failed")
        #expect(json["createdAt"]?.string.flatMap(Timestamp.init(rfc3339:)) == S.at(0))
        #expect(
            json.object?.keys.sorted() == [
                "amount", "amountState", "amountVersion", "basketVersion", "createdAt", "executionId", "executions",
                "expiresAt", "holderReference", "id", "merchantReference", "status",
            ])
    }

    @Test("an execution as the contract shows it: amounts with all decimals, facts by their time")
    func execution() {
        let facts = [
            S.completed("capture", 10, minor: 2000, id: "c1"), S.status("authorizeFailed", 3, reason: "LimitExceeded"),
            S.completed("authorize", 4, minor: 5749), S.dispute("DisputeOpened", 20, minor: 100),
        ]
        let execution = CheckoutExecution(
            reference: ExecutionReference(id: S.execution(1), workflowCode: "w"), ordinal: 1,
            merchantReference: "order-1", amount: S.money(5749), picture: ExecutionPicture(of: facts),
            createdAt: S.at(0))
        let json = execution.json(
            of: .checkout(S.checkoutID()), facts: facts.map { LearnedFact(fact: $0, learnedAt: S.at(30)) })
        #expect(json["state"] == "partiallyCaptured")
        #expect(json["amounts"]?["authorized"]?["value"] == "57.49")
        #expect(json["amounts"]?["captured"]?["value"] == "20.00")
        #expect(json["amounts"]?["refunded"] == ["value": "0.00", "currency": "EUR"])
        let shown = json["facts"]?.array ?? []
        #expect(shown.compactMap { $0["kind"]?.string } == ["status", "action", "action", "dispute"])
        #expect(shown[0]["code"] == "authorizeFailed" && shown[0]["reason"] == "LimitExceeded")
        #expect(shown[1]["success"] == true && shown[1]["source"] == "notification")
        #expect(shown[1]["at"]?.string == S.at(4).rfc3339 && shown[1]["learnedAt"]?.string == S.at(30).rfc3339)
        #expect(
            shown[3]["dispute"] == [
                "id": "d_1", "executionId": .string(S.execution(1).description), "status": "DisputeOpened",
                "reason": "fraud", "amount": ["value": "1.00", "currency": "EUR"], "at": .string(S.at(20).rfc3339),
            ])
    }

    @Test("what was captured is shown as authorized too, while only the capture is known")
    func authorizedAtLeastCaptured() {
        let picture = ExecutionPicture(of: [S.completed("capture", 10, minor: 5749)])
        var execution = S.execution(1, .created)
        execution.picture = picture
        let json = execution.json(of: .checkout(S.checkoutID()), facts: [])
        #expect(json["amounts"]?["authorized"]?["value"] == "57.49")
    }

    @Test("an init payload gives its secret only to the answer")
    func payload() {
        let payload = InitPayload(version: "6.0.3", data: Secret("c2VjcmV0"))
        #expect(payload.json == ["version": "6.0.3", "data": "c2VjcmV0"])
        #expect(!"\(payload)".contains("c2VjcmV0"))
    }

    @Test("events go to the scope of their object")
    func events() {
        #expect(EventType.checkoutPaid.scope == .checkouts && EventType.checkoutPaid.subject == "checkout")
        for type in EventType.allCases {
            switch type.subject {
            case "checkout": #expect(type.scope == .checkouts)
            case "execution", "operation", "charge", "dispute": #expect(type.scope == .payments)
            case "subscription": #expect(type.scope == .subscriptions)
            case "instrument": #expect(type.scope == .instruments)
            case "discrepancy": #expect(type.scope == .ops)
            default: Issue.record("\(type.rawValue) belongs to nobody")
            }
        }
    }

    @Test("a fact is the same one wherever it was learned, and another one when anything else differs")
    func identity() {
        let read = S.status("authorizeSuccessful", 4, amount: 5749)
        let answer = Fact(
            kind: .status, code: "authorizeSuccessful", amount: S.money(5749), at: S.at(4), source: .answer)
        #expect(read.identity == answer.identity)
        var identities: Set<String> = [read.identity]
        let others = [
            S.status("authorizeSuccessful", 4), S.status("authorizeSuccessful", 4, amount: 5748),
            S.status("authorizeSuccessful", 4.000_000_001, amount: 5749), S.status("authorizeFailed", 4, amount: 5749),
            S.status("authorizeSuccessful", 4, amount: 5749, reason: "x"),
            Fact(kind: .payment, code: "authorizeSuccessful", amount: S.money(5749), at: S.at(4), source: .read),
            Fact(kind: .status, code: "authorizeSuccessful", captured: S.money(5749), at: S.at(4), source: .read),
            Fact(kind: .status, code: "authorizeSuccessful", refunded: S.money(5749), at: S.at(4), source: .read),
            Fact(kind: .status, code: "authorizeSuccessful", amount: S.money(5749, "USD"), at: S.at(4), source: .read),
            // What would run together without the lengths.
            Fact(kind: .status, code: "a|1:b", at: S.at(4), source: .read),
            Fact(kind: .status, code: "a", action: "b", at: S.at(4), source: .read),
            Fact(kind: .status, code: "-", at: S.at(4), source: .read), Fact(kind: .status, at: S.at(4), source: .read),
            Fact(kind: .status, code: "", at: S.at(4), source: .read),
            Fact(kind: .status, action: "a", at: S.at(4), source: .read),
            Fact(kind: .status, actionID: "a", at: S.at(4), source: .read),
            Fact(kind: .status, actionRequired: "a", at: S.at(4), source: .read),
            Fact(kind: .status, paymentID: "a", at: S.at(4), source: .read),
            Fact(kind: .status, paymentMethodCode: "a", at: S.at(4), source: .read),
            Fact(kind: .status, instrumentID: "a", at: S.at(4), source: .read),
            Fact(kind: .status, disputeID: "a", at: S.at(4), source: .read),
        ]
        for other in others { #expect(identities.insert(other.identity).inserted, "\(other)") }
    }

    @Test("an outcome's value is changed only where it is done")
    func outcome() {
        let doubt = Doubt(kind: .timedOut, detail: "no answer")
        let refusal = Refusal(kind: .conflict, detail: "x")
        if case .done(let value) = Outcome.done(2).map({ $0 * 3 }) { #expect(value == 6) } else { Issue.record("lost") }
        if case .refused(let kept) = Outcome<Int>.refused(refusal).map({ $0 * 3 }) {
            #expect(kept == refusal)
        } else {
            Issue.record("lost")
        }
        if case .unknown(let kept) = Outcome<Int>.unknown(doubt).map({ $0 * 3 }) {
            #expect(kept == doubt)
        } else {
            Issue.record("lost")
        }
    }
}
