import Basics
import Lockstep

/// What an authorization leads to, and what the customer does in between.
extension World {
    /// Takes one step of an authorization whose time has come.
    mutating func decideAuthorization(_ id: String, action: String) {
        guard let execution = executions[id], let attempt = execution.attempt, attempt.actionID == action,
            attempt.waitsFor == nil
        else { return }
        switch attempt.outcome {
        case .success: succeed(id, pendingFirst: random.chance(configuration.pendingBeforeSuccess))
        case .decline(let result, let detail):
            fail(id, result: result, detail: detail)
            if random.chance(configuration.pendingAfterFailure) { addStatus("authorizePending", to: id) }
        case .threeDS: waitForCustomer(id, .threeDS)
        case .redirect: waitForCustomer(id, .redirect)
        case .confirm: waitForCustomer(id, .confirm)
        case .pending:
            addStatus("authorizePending", to: id)
            movePayment(of: id, to: .pending)
            expireLater(id, action: action)
        case .timeout(let charged):
            if charged { setMoneyAside(id) }
            fail(id, result: "ProviderTimeout", detail: nil, payment: .unknown)
        case .cascade(let result):
            if attempt.hasFailedOnce {
                succeed(id, pendingFirst: false)
            } else {
                fail(id, result: result, detail: nil, isLast: false)
                executions[id]?.attempt?.hasFailedOnce = true
                schedule.add(.authorizationOutcome(execution: id, action: action), due: now + attempt.delay)
            }
        }
    }

    /// The customer comes back from 3-D Secure or from a page: the result follows at once.
    mutating func finishCustomerAction(_ id: String, success: Bool, result: String = "PayerAuthenticationFailed") {
        guard executions[id]?.attempt?.waitsFor != nil else { return }
        executions[id]?.attempt?.waitsFor = nil
        if success {
            succeed(id, pendingFirst: false)
        } else {
            fail(id, result: result, detail: nil)
        }
    }

    private mutating func waitForCustomer(_ id: String, _ action: CustomerAction) {
        executions[id]?.attempt?.waitsFor = action
        addStatus("authorizePending", to: id)
        movePayment(of: id, to: .pending)
        guard let execution = executions[id], let attempt = execution.attempt else { return }
        notifyPending(execution)
        expireLater(id, action: attempt.actionID)
    }

    /// Section 2.1: `meta.order.pendingStateDuration` cancels what stays pending too long.
    private mutating func expireLater(_ id: String, action: String) {
        let text = executions[id]?.meta["order"]?["pendingStateDuration"]?.string
        guard let patience = text.flatMap(ISODuration.parse) else { return }
        schedule.add(.pendingExpiry(execution: id, action: action), due: now + patience)
    }

    mutating func expirePending(_ id: String, action: String) {
        guard let execution = executions[id], execution.attempt?.actionID == action else { return }
        cancelAttempt(id)
        addStatus("cancelSuccessful", to: id)
        notifyCompleted("cancel", random.uuid(), execution: id, success: true, trigger: "action")
    }

    /// Drops an authorization that has no result yet; no money was involved.
    mutating func cancelAttempt(_ id: String) {
        executions[id]?.attempt = nil
        movePayment(of: id, to: .canceled)
    }

    mutating func succeed(_ id: String, pendingFirst: Bool, event: String = "executionActionCompleted") {
        if pendingFirst { addStatus("authorizePending", to: id) }
        setMoneyAside(id)
        executions[id]?.attempt = nil
        addStatus("authorizeSuccessful", to: id)
        keepInstrument(of: id)
        guard let execution = executions[id], let action = execution.authorizeActionID else { return }
        switch execution.captureMode {
        case .manual:
            notifyCompleted("authorize", action, execution: id, success: true, event: event)
        case .instant:
            // Section 2.6: one step, and one notification, when it is captured.
            guard let paymentID = execution.paymentID, var payment = payments[paymentID] else { return }
            capture(payment.capturable, of: &payment, final: true)
            payments[paymentID] = payment
            addStatus("captureSuccessful", to: id)
            notifyCompleted("capture", action, execution: id, success: true, amount: execution.amount)
        case .delayed:
            addStatus("captureScheduled", to: id)
            executions[id]?.captureScheduled = true
            notifyCompleted("authorize", action, execution: id, success: true, event: event)
            schedule.add(.delayedCapture(execution: id), due: now + execution.captureDelay)
        }
        if execution.cancelMode == .delayed, execution.captureMode == .manual {
            addStatus("cancelScheduled", to: id)
            executions[id]?.cancelScheduled = true
            schedule.add(.delayedCancel(execution: id, action: action), due: now + execution.cancelDelay)
        }
    }

    mutating func fail(
        _ id: String, result: String, detail: String?, payment status: Payment.Status = .failed, isLast: Bool = true,
        event: String = "executionActionCompleted"
    ) {
        let errors = [failure(result: result, detail: detail)]
        addStatus("authorizeFailed", to: id, errors: errors)
        if isLast {
            executions[id]?.attempt = nil
            movePayment(of: id, to: status)
        }
        guard let execution = executions[id], let action = execution.authorizeActionID else { return }
        if let paymentID = execution.paymentID { payments[paymentID]?.failureResult = result }
        notifyCompleted(
            "authorize", action, execution: id, success: false, result: result, detail: detail, errors: errors,
            event: event)
    }

    private mutating func setMoneyAside(_ id: String) {
        guard let paymentID = executions[id]?.paymentID, var payment = payments[paymentID] else { return }
        payment.move(to: .authorized, at: stamp())
        if !payment.isAuthorized { ledger.record(.authorization, payment.amount, payment: payment, at: stamp()) }
        payment.isAuthorized = true
        payments[paymentID] = payment
    }

    mutating func movePayment(of id: String, to status: Payment.Status) {
        guard let paymentID = executions[id]?.paymentID else { return }
        let time = stamp()
        payments[paymentID]?.move(to: status, at: time)
    }

    /// The instrument was used: it becomes a saved one if that was asked for, and the network names the transaction.
    private mutating func keepInstrument(of id: String) {
        guard let paymentID = executions[id]?.paymentID, let payment = payments[paymentID],
            let instrumentID = payment.instrumentID, var instrument = instruments[instrumentID]
        else { return }
        if payment.storeInstrument, instrument.status == "transient" { instrument.status = "enabled" }
        if instrument.networkTransactionReference == nil {
            instrument.networkTransactionReference = String(random.next() % 1_000_000_000_000)
        }
        instrument.updatedAt = stamp()
        instruments[instrumentID] = instrument
    }

    /// An error with the reason of section 6.6.
    mutating func failure(result: String, detail: String?) -> JSON {
        let (category, source) = ResultCategory.of(result)
        return [
            "id": .string(random.uuid()), "code": "workflow.action.failed", "detail": "action failed",
            "docUrl": "https://docs.payrails.com/docs/error-codes",
            "reason": .compact([
                "category": .string(category), "result": .string(result), "source": .string(source),
                "detail": detail.map(JSON.string),
            ]),
        ]
    }
}
