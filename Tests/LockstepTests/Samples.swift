import Basics
import Foundation
import Testing

@testable import Lockstep

/// Amounts and times for tests, short to write.
enum Sample {
    static let start = Timestamp(seconds: 1_788_256_800)

    /// Seconds after the start.
    static func at(_ seconds: Double) -> Timestamp { start + .nanoseconds(Int64((seconds * 1_000_000_000).rounded())) }

    static func money(_ minor: Int64, _ code: String = "EUR") -> Money {
        guard let currency = Currency(code: code), let money = Money(minor: minor, currency: currency) else {
            preconditionFailure("not an amount: \(minor) \(code)")
        }
        return money
    }

    static func status(
        _ code: String, _ seconds: Double, amount: Int64? = nil, reason: String? = nil
    ) -> Fact {
        Fact(
            kind: .status, code: code, amount: amount.map { money($0) }, reason: reason, at: at(seconds), source: .read)
    }

    static func completed(
        _ action: String, _ seconds: Double, success: Bool? = true, amount: Money? = nil, id: String? = nil,
        reason: String? = nil
    ) -> Fact {
        Fact(
            kind: .action, action: action, actionID: id, phase: .completed, success: success, amount: amount,
            reason: reason, at: at(seconds), source: .notification)
    }

    static func completed(
        _ action: String, _ seconds: Double, success: Bool? = true, minor: Int64, id: String? = nil
    ) -> Fact {
        completed(action, seconds, success: success, amount: money(minor), id: id)
    }

    static func requested(_ action: String, _ seconds: Double, minor: Int64? = nil, id: String? = nil) -> Fact {
        Fact(
            kind: .action, action: action, actionID: id, phase: .requested, amount: minor.map { money($0) },
            at: at(seconds), source: .answer)
    }

    static func pending(_ action: String, _ seconds: Double, id: String? = nil) -> Fact {
        Fact(
            kind: .action, action: action, actionID: id, phase: .pending, actionRequired: "3ds", at: at(seconds),
            source: .notification)
    }

    static func payment(
        _ status: String?, _ seconds: Double, amount: Int64? = nil, captured: Int64? = nil, refunded: Int64? = nil,
        id: String = "pay_1"
    ) -> Fact {
        Fact(
            kind: .payment, code: status, amount: amount.map { money($0) }, captured: captured.map { money($0) },
            refunded: refunded.map { money($0) }, paymentID: id, at: at(seconds), source: .read)
    }

    static func dispute(_ status: String, _ seconds: Double, minor: Int64) -> Fact {
        Fact(
            kind: .dispute, code: status, action: "dispute", amount: money(minor), reason: "fraud", disputeID: "d_1",
            at: at(seconds), source: .notification)
    }

    static func execution(_ number: Int) -> ExecutionID {
        let text = String(number, radix: 16)
        let padded = String(repeating: "0", count: 12 - text.count) + text
        guard let id = ExecutionID("9b1d0a52-2a41-4f0c-8c0e-\(padded)") else { preconditionFailure("no id") }
        return id
    }

    static func checkoutID(_ number: Int = 1) -> CheckoutID { CheckoutID(execution(number).uuid) }
}

extension Fact {
    /// The same told without a time: what is known is when it was heard.
    func heard(after delay: Duration) -> Fact {
        Fact(
            kind: kind, code: code, action: action, actionID: actionID, phase: phase, success: success, amount: amount,
            captured: captured, refunded: refunded, reason: reason, actionRequired: actionRequired,
            paymentID: paymentID, paymentMethodCode: paymentMethodCode, instrumentID: instrumentID,
            disputeID: disputeID, at: at + delay, isDated: false, source: source)
    }
}

/// The picture of facts, checked to be the same in other orders and with every fact doubled (invariant M6).
func picture(_ facts: Fact..., sourceLocation: SourceLocation = #_sourceLocation) -> ExecutionPicture {
    let picture = ExecutionPicture(of: facts)
    var generator = Seeded(seed: UInt64(facts.count))
    for _ in 0..<6 {
        let shuffled = ExecutionPicture(of: (facts + facts).shuffled(using: &generator))
        #expect(shuffled == picture, "another order, another picture", sourceLocation: sourceLocation)
    }
    return picture
}
