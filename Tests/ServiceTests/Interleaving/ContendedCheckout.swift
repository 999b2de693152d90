import Basics
import Foundation
import Lockstep
import Payrails
import PayrailsSandbox
import Store
import Synchronization
import TestKit
import Testing

@testable import Service

/// A checkout that four want something of at once: two the amount, one the gate's word, and one pays.
final class ContendedCheckout: Sendable {
    private let lockstep: InterleavingHarness
    private let checkout: CheckoutID
    private let execution: String
    private let found = Mutex<[String]>([])

    init(_ lockstep: InterleavingHarness) async throws {
        self.lockstep = lockstep
        let answer = await lockstep.call(
            "POST", "/v1/checkouts",
            [
                "merchantReference": .string(freshWord("order")), "holderReference": "cust_77",
                "amount": ["value": "49.99", "currency": "EUR"],
            ], key: freshWord("key"))
        let json = try JSON(parsing: answer.body)
        checkout = try #require(CheckoutID(json["id"]?.string ?? ""), "\(json.text)")
        execution = try #require(json["executionId"]?.string)
    }

    /// What was wrong so far.
    var faults: [String] { found.withLock { $0 } }

    private func check(_ holds: Bool, _ words: @autoclosure () -> String) {
        if !holds { found.withLock { $0.append(words()) } }
    }

    /// What the party does from its beginning to its end.
    func run(_ party: Int, paying amount: Money?) async throws {
        switch party {
        case 0, 1: try await move(to: party == 0 ? "60.00" : "70.00")
        case 2: try await askGate()
        default: try await pay(amount)
        }
    }

    private func move(to value: String) async throws {
        let answer = await lockstep.call(
            "PUT", "/v1/checkouts/\(checkout)/amount", ["amount": ["value": .string(value), "currency": "EUR"]],
            version: 1)
        check([200, 409, 412].contains(answer.status), String(decoding: answer.body, as: UTF8.self))
        if answer.status == 200 { try await checkInStep(at: value) }
    }

    private func askGate() async throws {
        let answer = await lockstep.call(
            "POST", "/v1/pre-payment", ["executionId": .string(execution), "paymentMethodCode": "card"])
        let decision = try JSON(parsing: answer.body)
        check(answer.status == 200 && decision["reason"]?.string != "internal", decision.text)
        if decision["decision"]?.string == "proceed" { try await checkInStep(at: nil) }
    }

    /// The customer pays, and Payrails tells.
    private func pay(_ amount: Money?) async throws {
        await StepPoint.hold?(.transaction)
        var payment = PayrailsSandbox.Payment()
        payment.amount = amount
        payment.outcome = .success
        guard lockstep.sandbox.pay(execution, payment).isAccepted else { return }
        let paid = lockstep.sandbox.execution(execution)?["amount"] ?? .null
        let body: JSON = [
            "event": "executionActionCompleted", "time": .string(Timestamp.systemNow.rfc3339),
            "details": [
                "action": "authorize", "actionId": .string(UUID().lowercased), "success": true, "amount": paid,
                "execution": ["id": .string(execution), "workflowCode": "payment-acceptance"],
                "paymentComposition": [
                    ["operationType": "Authorize", "operationResult": "Success", "success": true, "amount": paid]
                ],
            ],
        ]
        _ = try await lockstep.store.insertNotifications([
            IncomingNotification(endpoint: "try", body: body.bytes, receivedAt: .systemNow)
        ])
        _ = try await lockstep.workers.applyNotifications()
    }

    /// The amount here and there is one (M5). Nobody else moves while this is asked.
    private func checkInStep(at value: String?) async throws {
        try await StepPoint.$hold.withValue(nil) {
            let books = try #require(try await lockstep.store.readCheckout(checkout)?.checkout)
            let there = lockstep.sandbox.execution(execution)?["amount"]?["value"]?.string
            check(
                books.amountState == .inStep && there == books.amount.value && (value ?? there) == there,
                "told to be in step: \(value ?? "-"), here \(books.amount) \(books.amountState), there \(there ?? "-")")
        }
    }

    /// After everything has been found out, nothing contradicts anything.
    func judge() async throws {
        check(try await lockstep.settle(checkout), "it never came to rest")
        let order = try #require(try await lockstep.store.readCheckout(checkout)).checkout
        let there = lockstep.sandbox.execution(execution)?["amount"]?["value"]?.string
        let totals = lockstep.sandbox.ledgerTotals(order.merchantReference)
        check(there == order.amount.value, "here \(order.amount), there \(there ?? "-")")
        switch order.status {
        case .paid:
            check(totals?.authorizations == 1 && totals?.heldMinor == order.amount.minor, "paid by \(totals as Any)")
        case .open: check((totals?.heldMinor ?? 0) == 0, "open, and the customer's money is held: \(totals as Any)")
        default: check(false, "it ended as \(order.status)")
        }
        let events = try await lockstep.books.query("SELECT type FROM events WHERE checkout_id = \(checkout.uuid)")
            .map { try $0.decode("type", as: String.self) }
        check(events.count { $0 == "checkout.paid" } == (order.status == .paid ? 1 : 0), "\(events)")
        check(events.count { $0 == "checkout.amount_changed" } == Int(order.amountVersion) - 1, "\(events)")
    }
}
