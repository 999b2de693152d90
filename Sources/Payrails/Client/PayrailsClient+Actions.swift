import Basics
import Lockstep

/// The actions on an execution (sections 2.5, 2.6 and 4). All are acknowledged; their results come later.
extension PayrailsClient {
    /// The lookup action with the new amount (section 4).
    public func moveAmount(
        _ execution: ExecutionReference, to amount: Money, key: IdempotencyKey
    ) async -> Outcome<Money?> {
        let path = Address.fill(
            configuration.lookupPath,
            ["workflowCode": execution.workflowCode, "executionId": execution.id.description])
        return await change(
            path, body: ["amount": amount.json], key: key, what: "a lookup's answer",
            read: AcknowledgementReading.movedAmount)
    }

    public func authorize(
        _ execution: ExecutionReference, _ request: AuthorizeRequest, key: IdempotencyKey
    ) async -> Outcome<Acknowledgement> {
        var meta = MetaBuilder(nil)
        if configuration.sendsOrderProcessingType {
            meta.set(["order", "processingType"], .string(request.processing.rawValue))
        }
        if configuration.sendsCIT { meta.set(["CIT"], false) }
        let composition: JSON = [
            "paymentInstrumentId": .string(request.instrumentID.description),
            "paymentMethodCode": .string(request.paymentMethodCode),
            "integrationType": "api",
            "amount": request.amount.json,
            "storeInstrument": false,
            "paymentProcessingType": .string(request.processing.rawValue),
        ]
        let body = JSON.compact([
            "amount": request.amount.json,
            // Required by the schema, also where nobody will return (section 6.2).
            "returnInfo": ["success": .string(request.returnURL)],
            "paymentComposition": [composition],
            "meta": meta.json,
        ])
        return await act("authorize", on: execution, body: body, key: key)
    }

    public func capture(
        _ execution: ExecutionReference, _ request: CaptureRequest, key: IdempotencyKey
    ) async -> Outcome<Acknowledgement> {
        let body = JSON.compact([
            "amount": request.amount?.json,
            "final": request.isFinal.map { .bool($0) },
            "reason": ActionReason.code(request.reason),
            "reasonDescription": ActionReason.description(request.reason),
        ])
        return await act("capture", on: execution, body: body, key: key)
    }

    public func cancel(
        _ execution: ExecutionReference, reason: String?, key: IdempotencyKey
    ) async -> Outcome<Acknowledgement> {
        let body = JSON.compact([
            "reason": ActionReason.code(reason), "reasonDescription": ActionReason.description(reason),
        ])
        return await act("cancel", on: execution, body: body, key: key)
    }

    public func refund(
        _ execution: ExecutionReference, _ request: RefundRequest, key: IdempotencyKey
    ) async -> Outcome<Acknowledgement> {
        let body = JSON.compact([
            "amount": request.amount?.json,
            "reason": ActionReason.code(request.reason),
            "reasonDescription": ActionReason.description(request.reason),
        ])
        return await act("refund", on: execution, body: body, key: key)
    }

    private func act(
        _ action: String, on execution: ExecutionReference, body: JSON, key: IdempotencyKey
    ) async -> Outcome<Acknowledgement> {
        let path = Address.execution(execution, action: action)
        return await change(path, body: body, key: key, what: "the answer to \(action)") { json in
            AcknowledgementReading.acknowledgement(json, action: action)
        }
    }
}

/// `reason` is one of ten words; what a shop says in its own words goes beside it.
enum ActionReason {
    static func code(_ reason: String?) -> JSON? {
        reason.flatMap { words.contains($0) ? .string($0) : nil }
    }

    static func description(_ reason: String?) -> JSON? {
        reason.flatMap { words.contains($0) || $0.isEmpty ? nil : .string($0) }
    }

    private static let words: Set = [
        "BetterPrice", "CustomerDontNeed", "DamagedProduct", "Duplicate", "FraudulentProduct", "LateDelivery",
        "NoReason", "ProductMismatchDescription", "WrongProduct", "WrongProductSpecification",
    ]
}
