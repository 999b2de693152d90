import Basics
import Foundation
import Lockstep

/// The notifications of section 5, as bytes.
extension World {
    mutating func notifyCreated(_ execution: Execution) {
        send("executionCreated", execution, trigger: "api", details: ["execution": reference(execution)])
    }

    mutating func notifyRequested(_ action: String, _ actionID: String, execution id: String, amount: Money?) {
        guard let execution = executions[id] else { return }
        send(
            "executionActionRequested", execution, action: action, trigger: "api",
            details: .compact([
                "action": .string(action), "actionId": .string(actionID), "execution": reference(execution),
                "amount": amount?.wire,
            ]))
    }

    mutating func notifyPending(_ execution: Execution) {
        guard configuration.sendsPendingEvents, let attempt = execution.attempt else { return }
        send(
            "executionActionPending", execution, action: "authorize", trigger: "action",
            details: .compact([
                "action": "authorize", "actionId": .string(attempt.actionID), "execution": reference(execution),
                "actionRequired": attempt.waitsFor.map { .string($0.rawValue) },
                "requiredAction": requiredAction(execution),
            ]))
    }

    /// A result: of success or of failure, both have the same event (section 10, item 6).
    mutating func notifyCompleted(
        _ action: String, _ actionID: String, execution id: String, success: Bool, result: String? = nil,
        detail: String? = nil, errors: [JSON] = [], amount: Money? = nil, trigger: String = "api",
        event: String = "executionActionCompleted", dispute: JSON? = nil
    ) {
        guard let execution = executions[id] else { return }
        let part = part(
            of: execution, action: action, success: success, result: result, detail: detail, errors: errors,
            amount: amount, dispute: dispute)
        send(
            event, execution, action: action, success: success, trigger: trigger,
            details: .compact([
                "action": .string(action), "actionId": .string(actionID), "actionMeta": [:],
                "success": .bool(success), "amount": (execution.amount ?? amount)?.wire,
                "errors": errors.isEmpty ? nil : .array(errors), "execution": reference(execution),
                "paymentComposition": part.map { [$0] },
            ]))
    }

    /// Section 5.3: no composition, an amount of nothing, and the older error shape.
    mutating func notifyNotAllowed(_ action: String, _ actionID: String, execution id: String, error: JSON) {
        guard let execution = executions[id] else { return }
        let nothing = execution.amount.flatMap { Money(minor: 0, currency: $0.currency) }
        send(
            "executionActionCompleted", execution, action: action, success: false, trigger: "api",
            details: .compact([
                "action": .string(action), "actionId": .string(actionID), "success": false,
                "amount": nothing?.wire, "errors": [error], "execution": reference(execution),
            ]))
    }

    private mutating func part(
        of execution: Execution, action: String, success: Bool, result: String?, detail: String?, errors: [JSON],
        amount: Money?, dispute: JSON?
    ) -> JSON? {
        guard let paymentID = execution.paymentID, var payment = payments[paymentID] else { return nil }
        let type = dispute == nil ? action.prefix(1).uppercased() + action.dropFirst() : "ChargebackNotification"
        let operation = Payment.Operation(
            id: random.uuid(), type: type, result: success ? "Success" : result ?? "Failed",
            amount: amount ?? payment.amount, time: stamp())
        payment.operations.append(operation)
        payments[paymentID] = payment
        let instrument = payment.instrumentID.flatMap { instruments[$0] }
        return .compact([
            "success": .bool(success), "errors": errors.isEmpty ? nil : .array(errors),
            "operationType": .string(type), "operationResult": .string(operation.result),
            "operationResultDetail": detail.map(JSON.string), "integrationType": .string(payment.integrationType),
            "paymentMethodCode": .string(payment.methodCode),
            "captureMode": .string(execution.captureMode.rawValue), "paymentId": .string(paymentID),
            "paymentInstrumentId": payment.instrumentID.map(JSON.string),
            "storeInstrument": .bool(payment.storeInstrument), "amount": operation.amount.wire,
            "providerId": "aa000000-0000-4d10-8000-000000000009",
            "providerConfigId": "bb000000-0000-4d10-8000-000000000009",
            "providerReference": .string(payment.providerReference),
            "operationProviderReference": .string(payment.providerReference), "dispute": dispute,
            "paymentInstrument": instrument.map {
                .compact([
                    "id": .string($0.id), "status": .string($0.status),
                    "futureUsage": $0.futureUsage.map(JSON.string),
                    "networkTransactionReference": $0.networkTransactionReference.map(JSON.string),
                    "data": data(of: $0),
                ])
            },
        ])
    }

    private func reference(_ execution: Execution) -> JSON {
        [
            "id": .string(execution.id), "workflowCode": .string(execution.workflowCode),
            "merchantReference": .string(execution.merchantReference),
            "holderReference": .string(execution.holderReference), "holderId": .string(execution.holderID),
            "meta": execution.meta,
        ]
    }

    private mutating func send(
        _ event: String, _ execution: Execution, action: String? = nil, success: Bool? = nil, trigger: String,
        details: JSON
    ) {
        guard !execution.targets.isEmpty, !configuration.mutedEvents.contains(event) else { return }
        let details = details.amounts(withDecimals: configuration.minimumDecimals)
        let envelope: JSON = [
            "event": .string(event), "time": .string(stamp().rfc3339),
            "workspaceId": .string(execution.workspaceID), "eventTrigger": .string(trigger), "details": details,
        ]
        effects.notifications.append(
            OutgoingNotification(
                id: random.uuid(), event: event, action: action, isSuccess: success, executionID: execution.id,
                merchantReference: execution.merchantReference, body: spaced(envelope.bytes),
                details: details.bytes, targets: execution.targets))
    }

    /// Now and then the bytes have spaces and a newline that a parser doesn't see and a signature does.
    private mutating func spaced(_ bytes: Data) -> Data {
        guard random.chance(configuration.oddNotificationSpacing), let first = bytes.first else { return bytes }
        return Data([first, 0x20, 0x0A, 0x20]) + bytes.dropFirst() + Data([0x0A])
    }
}
