import Basics
import Lockstep

/// Capture, cancel and refund (section 2.6). What is asked for is reserved at once, so that no two can share it.
extension World {
    mutating func capture(_ id: String, body: JSON) throws(APIError) -> Answer {
        try check(body, against: Schema.capture)
        let execution = try execution(id)
        guard let paymentID = execution.paymentID, var payment = payments[paymentID], payment.isAuthorized,
            payment.status != .unknown, !execution.captureScheduled
        else { return try refuse("capture", execution, "Payment can't be captured", body) }
        let amount = try requested(body, left: payment.capturable, currency: payment.amount.currency)
        guard payment.capturable > 0 else {
            return try refuse("capture", execution, "Payment is already captured or canceled", body)
        }
        guard let amount else { return try refuse("capture", execution, "Capture currency differs", body) }
        guard amount.minor <= payment.capturable else {
            return try refuse("capture", execution, "Capture amount exceeds the authorized amount", body)
        }
        let isFinal = body["final"]?.bool ?? true
        payment.capturing += amount.minor
        if isFinal { payment.isClosed = true }
        payments[paymentID] = payment
        return start(.capture, execution, amount: amount, isFinal: isFinal, body: body)
    }

    mutating func refund(_ id: String, body: JSON) throws(APIError) -> Answer {
        try check(body, against: Schema.refund)
        let execution = try execution(id)
        guard let paymentID = execution.paymentID, var payment = payments[paymentID], payment.isAuthorized else {
            return try refuse("refund", execution, "Payment can't be refunded", body)
        }
        if let wanted = body["paymentId"]?.string, wanted.lowercased() != paymentID {
            throw .notFound("no such payment")
        }
        let amount = try requested(body, left: payment.refundable, currency: payment.amount.currency)
        guard payment.refundable > 0 else {
            return try refuse("refund", execution, "Payment has nothing to refund", body)
        }
        guard let amount else { return try refuse("refund", execution, "Refund currency differs", body) }
        guard amount.minor <= payment.refundable else {
            return try refuse("refund", execution, "Refund amount exceeds the captured amount", body)
        }
        payment.refunding += amount.minor
        payments[paymentID] = payment
        return start(.refund, execution, amount: amount, isFinal: false, body: body)
    }

    mutating func cancel(_ id: String, body: JSON) throws(APIError) -> Answer {
        try check(body, against: Schema.cancel)
        let execution = try execution(id)
        let isRunning = execution.attempt != nil && !execution.running.values.contains { $0.amount == nil }
        if let paymentID = execution.paymentID, let payment = payments[paymentID], payment.isCancellable {
            payments[paymentID]?.isCancelling = true
        } else if !isRunning {
            return try refuse("cancel", execution, "Payment can't be canceled", body)
        }
        return start(.cancel, execution, amount: nil, isFinal: false, body: body)
    }

    /// What is asked for: all that is left when the body names no amount; nil when it is of another currency.
    private func requested(_ body: JSON, left: Int64, currency: Currency) throws(APIError) -> Money? {
        guard let wanted = body["amount"] else { return Money(minor: max(0, left), currency: currency) }
        let amount = try money(wanted)
        return amount.currency == currency ? amount : nil
    }

    private mutating func start(
        _ action: SandboxOutcomeRule.Action, _ execution: Execution, amount: Money?, isFinal: Bool, body: JSON
    ) -> Answer {
        let name = action.rawValue
        let record = Execution.ActionRecord(id: random.uuid(), name: name, time: stamp(), amount: amount)
        let (outcome, delay) = outcome(action, execution: execution, amount: amount ?? execution.amount)
        executions[execution.id]?.actions.append(record)
        executions[execution.id]?.running[record.id] = RunningAction(
            id: record.id, amount: amount, isFinal: isFinal, outcome: outcome)
        addStatus("\(name)Requested", to: execution.id)
        notifyRequested(name, record.id, execution: execution.id, amount: amount ?? execution.amount)
        let event: Schedule.Event =
            switch action {
            case .capture: .captureOutcome(execution: execution.id, action: record.id)
            case .refund: .refundOutcome(execution: execution.id, action: record.id)
            case .cancel, .authorize: .cancelOutcome(execution: execution.id, action: record.id)
            }
        schedule.add(event, due: now + (delay ?? configuration.actionDelay))
        return Answer(202, actionAcknowledgement(record, of: execution, body: body))
    }

    private func actionAcknowledgement(_ record: Execution.ActionRecord, of execution: Execution, body: JSON) -> JSON {
        var links: [String: JSON] = ["execution": .string(merchantLink(execution))]
        if record.name == "capture" { links["refund"] = link(merchantLink(execution) + "/refund") }
        return .compact([
            "name": .string(record.name), "actionId": .string(record.id), "executedAt": .string(record.time.rfc3339),
            "reason": body["reason"], "reasonDescription": body["reasonDescription"], "links": .object(links),
        ])
    }

    /// The state doesn't allow it: said at once, or acknowledged and told as a failure, by the setting.
    private mutating func refuse(
        _ name: String, _ execution: Execution, _ detail: String, _ body: JSON
    ) throws(APIError) -> Answer {
        guard configuration.refusalStyle == .notified, execution.paymentID != nil else { throw .notAllowed(detail) }
        let record = Execution.ActionRecord(id: random.uuid(), name: name, time: stamp(), amount: nil)
        executions[execution.id]?.actions.append(record)
        let error: JSON = [
            "id": .string(random.uuid()), "title": "action.not-allowed", "detail": .string(detail),
        ]
        addStatus("\(name)Failed", to: execution.id, errors: [error])
        notifyNotAllowed(name, record.id, execution: execution.id, error: error)
        return Answer(202, actionAcknowledgement(record, of: execution, body: body))
    }
}
