import Basics
import Lockstep

/// The results of captures, cancels and refunds, when their time has come.
extension World {
    mutating func perform(_ event: Schedule.Event) {
        switch event {
        case .authorizationRequested(let id, let action): requestAuthorization(id, action: action)
        case .authorizationOutcome(let id, let action): decideAuthorization(id, action: action)
        case .captureOutcome(let id, let action): decideCapture(id, action: action)
        case .refundOutcome(let id, let action): decideRefund(id, action: action)
        case .cancelOutcome(let id, let action): decideCancel(id, action: action)
        case .delayedCapture(let id): captureAsScheduled(id)
        case .delayedCancel(let id, let action): cancelAsScheduled(id, action: action)
        case .pendingExpiry(let id, let action): expirePending(id, action: action)
        }
    }

    /// Takes money that is set aside; after a final capture the rest is let go.
    mutating func capture(_ minor: Int64, of payment: inout Payment, final isFinal: Bool) {
        guard minor > 0 else { return }
        payment.captured += minor
        record(.capture, minor, payment)
        payment.move(to: .captured, at: stamp())
        guard isFinal else { return }
        payment.isClosed = true
        letGo(of: &payment)
    }

    /// Lets go of what is neither captured nor about to be.
    private mutating func letGo(of payment: inout Payment) {
        let rest = payment.amount.minor - payment.voided - payment.captured - payment.capturing
        guard rest > 0 else { return }
        payment.voided += rest
        record(.void, rest, payment)
    }

    mutating func record(_ kind: SandboxLedgerEntry.Kind, _ minor: Int64, _ payment: Payment) {
        guard let amount = Money(minor: minor, currency: payment.amount.currency) else { return }
        ledger.record(kind, amount, payment: payment, at: stamp())
    }

    private mutating func takeRunning(_ id: String, _ action: String) -> (RunningAction, Payment)? {
        guard let execution = executions[id], let running = execution.running[action],
            let paymentID = execution.paymentID, let payment = payments[paymentID]
        else { return nil }
        executions[id]?.running[action] = nil
        return (running, payment)
    }

    private mutating func decideCapture(_ id: String, action: String) {
        guard let (running, taken) = takeRunning(id, action), let amount = running.amount else { return }
        var payment = taken
        payment.capturing -= amount.minor
        guard running.outcome.result == nil else {
            if running.isFinal { payment.isClosed = false }
            payments[payment.id] = payment
            tellFailure("capture", id, running)
            return
        }
        capture(amount.minor, of: &payment, final: running.isFinal)
        payments[payment.id] = payment
        addStatus("captureSuccessful", to: id)
        notifyCompleted("capture", action, execution: id, success: true, amount: amount)
    }

    private mutating func decideRefund(_ id: String, action: String) {
        if let execution = executions[id], let payment = execution.paymentID.flatMap({ payments[$0] }),
            payment.capturing > 0, let amount = execution.running[action]?.amount,
            amount.minor > payment.captured - payment.refunded
        {
            // It waits for the capture that it gives back.
            schedule.add(.refundOutcome(execution: id, action: action), due: now + configuration.actionDelay)
            return
        }
        guard let (running, taken) = takeRunning(id, action), let amount = running.amount else { return }
        var payment = taken
        payment.refunding -= amount.minor
        guard running.outcome.result == nil, amount.minor <= payment.captured - payment.refunded else {
            payments[payment.id] = payment
            tellFailure("refund", id, running)
            return
        }
        giveBack(amount.minor, of: &payment)
        payments[payment.id] = payment
        addStatus("refundSuccessful", to: id)
        notifyCompleted("refund", action, execution: id, success: true, amount: amount)
    }

    private mutating func giveBack(_ minor: Int64, of payment: inout Payment) {
        guard minor > 0 else { return }
        payment.refunded += minor
        record(.refund, minor, payment)
        if payment.refunded == payment.captured { payment.move(to: .refunded, at: stamp()) }
    }

    /// Voids what isn't captured, otherwise gives back what is; never a part (section 2.6).
    private mutating func decideCancel(_ id: String, action: String) {
        if let payment = executions[id]?.paymentID.flatMap({ payments[$0] }),
            payment.capturing > 0 || payment.refunding > 0
        {
            schedule.add(.cancelOutcome(execution: id, action: action), due: now + configuration.actionDelay)
            return
        }
        guard let (running, taken) = takeRunning(id, action) else { return }
        var payment = taken
        payment.isCancelling = false
        guard running.outcome.result == nil,
            payment.isAuthorized ? payment.isCancellable : executions[id]?.attempt != nil
        else {
            payments[payment.id] = payment
            tellFailure("cancel", id, running)
            return
        }
        if payment.isAuthorized {
            if executions[id]?.captureScheduled == true {
                executions[id]?.captureScheduled = false
                addStatus("captureUnscheduled", to: id)
            }
            if payment.captured > payment.refunded {
                giveBack(payment.captured - payment.refunded, of: &payment)
            }
            letGo(of: &payment)
            payment.isCancelled = true
            payment.move(to: payment.captured == 0 ? .canceled : .refunded, at: stamp())
            payments[payment.id] = payment
        } else {
            cancelAttempt(id)
        }
        addStatus("cancelSuccessful", to: id)
        notifyCompleted("cancel", action, execution: id, success: true, amount: payment.amount)
    }

    private mutating func tellFailure(_ name: String, _ id: String, _ running: RunningAction) {
        let result = running.outcome.result ?? "OperationNotAllowed"
        let errors = [failure(result: result, detail: running.outcome.detail)]
        addStatus("\(name)Failed", to: id, errors: errors)
        notifyCompleted(
            name, running.id, execution: id, success: false, result: result, detail: running.outcome.detail,
            errors: errors, amount: running.amount)
    }

    private mutating func captureAsScheduled(_ id: String) {
        guard let execution = executions[id], execution.captureScheduled, let paymentID = execution.paymentID,
            var payment = payments[paymentID], payment.capturable > 0
        else { return }
        executions[id]?.captureScheduled = false
        addStatus("captureRequested", to: id)
        let amount = Money(minor: payment.capturable, currency: payment.amount.currency)
        capture(payment.capturable, of: &payment, final: true)
        payments[paymentID] = payment
        addStatus("captureSuccessful", to: id)
        notifyCompleted("capture", random.uuid(), execution: id, success: true, amount: amount, trigger: "action")
    }

    private mutating func cancelAsScheduled(_ id: String, action: String) {
        guard let execution = executions[id], execution.cancelScheduled, let paymentID = execution.paymentID,
            let payment = payments[paymentID]
        else { return }
        executions[id]?.cancelScheduled = false
        guard payment.captured == 0, payment.capturing == 0, payment.isCancellable else {
            addStatus("cancelUnscheduled", to: id)
            return
        }
        payments[paymentID]?.isCancelling = true
        let record = Execution.ActionRecord(id: random.uuid(), name: "cancel", time: stamp(), amount: nil)
        executions[id]?.running[record.id] = RunningAction(
            id: record.id, amount: nil, isFinal: false, outcome: .success)
        addStatus("cancelRequested", to: id)
        decideCancel(id, action: record.id)
    }
}
