import Basics
import Testing

@testable import Lockstep

@Suite("A charge as it is shown")
struct ChargeJSONTests {
    typealias S = Sample

    @Test("with its period, its attempts in order, and what is to come")
    func whole() throws {
        var charge = S.charge(.scheduled, S.attempt(2, execution: nil), S.attempt(1, .failed, execution: 7), next: 60)
        charge.attempts[1].reason = "InsufficientBalance"
        let json = charge.json
        #expect(json["state"] == "scheduled" && json["amount"]?["value"] == "14.99")
        #expect(json["nextAttemptAt"]?.string == S.at(60).rfc3339)
        #expect(json["subscriptionId"] == nil && json["period"] == nil && json["reason"] == nil)
        let attempts = try #require(json["attempts"]?.array)
        #expect(attempts.map { $0["number"]?.integer } == [1, 2])
        #expect(attempts[0]["outcome"] == "failed" && attempts[0]["reason"] == "InsufficientBalance")
        #expect(attempts[0]["executionId"]?.string == S.execution(7).description)
        #expect(attempts[1]["executionId"] == nil)
        let day = { CivilDate(year: 2026, month: $0, day: 28) }
        let periodic = Charge(
            id: charge.id, subscription: SubscriptionID(S.execution(3).uuid),
            period: Charge.Period(index: 2, start: day(2), end: day(3)), merchantReference: "sub-1",
            holderReference: "cust-1", instrument: charge.instrument, workflowCode: "payment-acceptance",
            amount: charge.amount, nextAttemptAt: nil, createdAt: S.at(0))
        #expect(periodic.json["period"] == ["index": 2, "start": "2026-02-28", "end": "2026-03-28"])
        #expect(periodic.reference(ofAttempt: 3, by: PaymentReference()) == "sub-1~2~3")
        #expect(charge.reference(ofAttempt: 1, by: PaymentReference()) == "topup-1")
    }
}
