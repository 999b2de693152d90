import Basics
import Lockstep

/// What happens from outside: disputes, and results that turn out otherwise.
extension World {
    mutating func dispute(
        _ id: String, status: String, reason: String, amount: Money?, disputeID: String?
    ) throws(APIError) -> Answer {
        guard let paymentID = try execution(id).paymentID, var payment = payments[paymentID], payment.isAuthorized
        else { throw .notAllowed("there is no payment to dispute") }
        let disputed = amount ?? payment.amount
        guard disputed.currency == payment.amount.currency, disputed.minor <= payment.amount.minor else {
            throw .invalid("amount is more than was paid")
        }
        if status == "DisputeLost" {
            ledger.record(.chargeback, disputed, payment: payment, at: stamp())
            payment.move(to: .chargeback, at: stamp())
            payments[paymentID] = payment
        }
        let dispute: JSON = [
            "id": .string(disputeID ?? random.uuid()), "status": .string(status), "reason": .string(reason),
            "amount": disputed.wire, "paymentId": .string(paymentID), "createdAt": .string(stamp().rfc3339),
        ]
        notifyCompleted(
            "dispute", random.uuid(), execution: id, success: true, amount: disputed, trigger: "external",
            dispute: dispute)
        return Answer(200, dispute)
    }

    mutating func updateResult(
        _ id: String, action: SandboxOutcomeRule.Action, success: Bool, result: String
    ) throws(APIError) -> Answer {
        guard let paymentID = try execution(id).paymentID, let payment = payments[paymentID] else {
            throw .notAllowed("there is no result to update")
        }
        let event = "executionActionUpdated"
        switch (action, success) {
        case (.authorize, true):
            guard !payment.isCancelled, [.failed, .unknown, .pending].contains(payment.status) else {
                throw .notAllowed("it is a success already, or over")
            }
            executions[id]?.attempt = nil
            succeed(id, pendingFirst: false, event: event)
        case (.authorize, false):
            guard payment.captured == 0, payment.capturing == 0, !payment.isCancelled else {
                throw .notAllowed("it is captured or cancelled")
            }
            if payment.isAuthorized {
                record(.void, payment.amount.minor - payment.voided, payment)
                payments[paymentID]?.voided = payment.amount.minor
                payments[paymentID]?.isCancelled = true
            }
            fail(id, result: result, detail: nil, event: event)
        case (.capture, false):
            guard payment.captured > 0, payment.refunded == 0 else { throw .notAllowed("there is no such capture") }
            record(.captureReversal, payment.captured, payment)
            payments[paymentID]?.captured = 0
            try turn("capture", id, payment: payment, minor: payment.captured, result: result, back: .authorized)
        case (.refund, false):
            guard payment.refunded > 0 else { throw .notAllowed("there is no such refund") }
            record(.refundReversal, payment.refunded, payment)
            payments[paymentID]?.refunded = 0
            try turn("refund", id, payment: payment, minor: payment.refunded, result: result, back: .captured)
        default: throw .invalid("this result can't be updated so")
        }
        return Answer(200, json(of: try execution(id)))
    }

    private mutating func turn(
        _ name: String, _ id: String, payment: Payment, minor: Int64, result: String, back: Payment.Status
    ) throws(APIError) {
        let errors = [failure(result: result, detail: nil)]
        let time = stamp()
        payments[payment.id]?.move(to: back, at: time)
        addStatus("\(name)Failed", to: id, errors: errors)
        let action = try execution(id).actions.last { $0.name == name }?.id ?? random.uuid()
        notifyCompleted(
            name, action, execution: id, success: false, result: result, errors: errors,
            amount: Money(minor: minor, currency: payment.amount.currency), trigger: "external",
            event: "executionActionUpdated")
    }
}
