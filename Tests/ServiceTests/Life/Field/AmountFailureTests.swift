import Basics
import Foundation
import Lockstep
import PayrailsSandbox
import Postgres
import TestKit
import Testing

@testable import Service

@Suite("Amounts that went wrong for others")
struct AmountFailureTests {
    private static let shared = Task { try await ServiceHarness.shared(["LOCKSTEP_HEAL_PENDING": "1h"]) }
    private let lockstep: ServiceHarness
    init() async throws { lockstep = try await Self.shared.value }

    /// The amount in the payload that the app starts from, untouched.
    private func initAmount(_ reply: JSON) throws -> JSON? {
        let data = try #require(reply["init"]?["data"]?.string.flatMap { Data(base64Encoded: $0) })
        return try JSON(parsing: data)["amount"]
    }

    @Test(
        "M1, M2, M3: an amount is the same in the order, in the execution, in the init, in Payrails' notification and here",
        arguments: [
            ("10000", "JPY", "10000", 10_000), ("80", "JPY", "80", 80), ("1.25", "KWD", "1.250", 1250),
            ("0.001", "KWD", "0.001", 1), ("19.99", "USD", "19.99", 1999), ("8.2", "EUR", "8.20", 820),
            ("0.01", "EUR", "0.01", 1), ("12345678901.23", "EUR", "12345678901.23", 1_234_567_890_123),
        ] as [(String, String, String, Int64)])
    func everywhere(_ value: String, _ currency: String, _ shown: String, _ minor: Int64) async throws {
        let order = try await lockstep.order(value, currency: currency)
        let exact = lockstep.money(shown, currency)
        #expect(order.answer.json["amount"] == exact)
        #expect(lockstep.sandbox.execution(order.execution)?["amount"] == exact)
        #expect(try initAmount(order.answer.json) == exact)
        // Nobody reads: what is known comes from the notification.
        try lockstep.pay(order.execution)
        #expect(try await lockstep.becomes("paid", order))
        let execution = try await lockstep.execution(order.execution)
        #expect(execution["amounts"]?["authorized"] == exact)
        let totals = lockstep.sandbox.ledgerTotals(order.reference, currency: currency)
        #expect(totals?.authorizedMinor == minor)
        let stored = try await lockstep.books.query(
            "SELECT authorized_minor FROM executions WHERE id = \(UUID(canonical: order.execution))")
        #expect(try stored.first?.decode("authorized_minor", as: Int64?.self) == minor)
        let capture = try await lockstep.shop.post("/v1/executions/\(order.execution)/capture", key: freshWord("key"))
        #expect(capture.json["amount"] == exact)
        #expect(try await lockstep.becomes("captured", execution: order.execution))
        #expect(lockstep.money(of: order, currency: currency) == .init(authorizations: 1, net: minor))
    }

    @Test("M3: after a change the next init is made from the confirmed amount, not from the first")
    func initAfterChange() async throws {
        let order = try await lockstep.order("1000", currency: "JPY")
        let changed = try await lockstep.shop.put(
            "\(order.path)/amount", ["amount": lockstep.money("1234", "JPY")], version: 1)
        #expect(changed.json["amount"] == lockstep.money("1234", "JPY"))
        let session = try await lockstep.session(order)
        #expect(try initAmount(session.json) == lockstep.money("1234", "JPY"))
        #expect(session.json["amount"] == lockstep.money("1234", "JPY"))
    }

    @Test("L2: two orders never share an execution, and one order's execution settles no other")
    func oneToOne() async throws {
        let (cheap, dear) = (try await lockstep.order("1.00"), try await lockstep.order("100.00"))
        #expect(cheap.execution != dear.execution)
        // Not even by hand.
        let refusal = await #expect(throws: PostgresError.self) {
            _ = try await lockstep.books.query(
                """
                INSERT INTO executions (id, checkout_id, ordinal, workflow_code, merchant_reference, state,
                    amount_minor, currency, created_at, changed_at)
                VALUES (\(UUID(canonical: cheap.execution)), \(UUID(canonical: dear.checkout)), 2,
                    'payment-acceptance', 'another', 'created', 100, 'EUR', now(), now())
                """)
        }
        #expect(refusal?.isUniqueViolation(constraint: "executions_pkey") == true)
        try lockstep.pay(cheap.execution)
        #expect(try await lockstep.becomes("paid", cheap))
        #expect(try await lockstep.status(dear) == "open")
        #expect(lockstep.money(of: dear) == .init())
    }

    @Test("L4: who pays the cheap basket can't settle the dear order, by any id or amount that an app can send")
    func cheapForDear() async throws {
        let (cheap, dear) = (
            try await lockstep.order("1.00", ServiceHarness.mayUpdate),
            try await lockstep.order("100.00", ServiceHarness.mayUpdate)
        )
        // The cheap order's token reaches nothing of the dear one.
        let app = try lockstep.app(cheap)
        #expect(try await app.post("/v1/executions/\(dear.execution)/update", lockstep.money("1.00")).status == 404)
        #expect(
            try await app.put("\(dear.path)/amount", ["amount": lockstep.money("1.00")], version: 1).status == 404)
        #expect(try await lockstep.gate(dear.execution, as: cheap.token) == "unknown-execution")
        // An amount in a question is compared, never taken over.
        #expect(
            try await lockstep.gate(dear.execution, ["amount": lockstep.money("1.00")], as: dear.token)
                == "amount-mismatch")
        #expect(
            try await lockstep.gate(dear.execution, ["amount": lockstep.money("100.00", "USD")], as: dear.token)
                == "amount-mismatch")
        // A success for another amount, however it came about, pays nothing.
        let other = try Money(value: "1.00", currencyCode: "EUR")
        #expect(lockstep.sandbox.moveAmount(dear.execution, to: other).isAccepted)
        try lockstep.pay(dear.execution)
        #expect(try await lockstep.tells("checkout.mismatch_cancelled", dear))
        #expect(try await lockstep.status(dear) == "open")
        #expect(lockstep.money(of: dear) == .init(authorizations: 1, voided: 100))
        #expect(try await lockstep.tally(dear)["checkout.paid"] == nil)
    }

    @Test("L4: digits of another currency are another amount")
    func otherCurrency() async throws {
        let order = try await lockstep.order("100.00")
        let yen = try Money(value: "100", currencyCode: "JPY")
        #expect(lockstep.sandbox.moveAmount(order.execution, to: yen).isAccepted)
        try lockstep.pay(order.execution)
        #expect(try await lockstep.tells("checkout.mismatch_cancelled", order))
        #expect(try await lockstep.status(order) == "open")
    }
}
