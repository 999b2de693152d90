import Basics
import Foundation
import Lockstep

/// Client init (section 3) and creating an execution without a customer (section 2.1).
extension PayrailsClient {
    /// `POST /merchant/client/init` of type `dropIn`.
    public func createSession(_ request: SessionRequest, key: IdempotencyKey) async -> Outcome<Session> {
        let body = JSON.compact([
            "type": "dropIn",
            "workflowCode": .string(request.workflowCode),
            "workflowVersion": configuration.workflowVersion.map { JSON($0) },
            "merchantReference": .string(request.merchantReference),
            "holderReference": .string(request.holderReference),
            "workspaceId": configuration.workspaceID.map { .string($0) },
            "amount": request.amount.json,
            "workflowConfigOverride": configuration.sendsCaptureModeOnInit ? captureOverride : nil,
            "meta": sessionMeta(request),
        ])
        return await change("/merchant/client/init", body: body, key: key, what: "an init with an execution") { json in
            guard let (payload, decoded) = PayrailsClient.initPayload(json, workflowCode: request.workflowCode),
                let execution = decoded.execution,
                execution.belongs(to: request.merchantReference, of: request.holderReference)
            else { return nil }
            return Session(payload: payload, execution: execution)
        }
    }

    /// `POST /merchant/client/init` of type `tokenization` or `secureFields`.
    public func createTokenization(_ request: TokenizationRequest, key: IdempotencyKey) async -> Outcome<InitPayload> {
        let body = JSON.compact([
            "type": .string(request.kind.rawValue),
            "holderReference": .string(request.holderReference),
            "instrumentId": request.instrumentID.map { .string($0.description) },
            "workflowCode": request.kind == .secureFields ? .string(configuration.workflowCode) : nil,
            "workspaceId": configuration.workspaceID.map { .string($0) },
        ])
        return await change("/merchant/client/init", body: body, key: key, what: "an init") { json in
            PayrailsClient.initPayload(json, workflowCode: configuration.workflowCode)?.0
        }
    }

    /// `POST /merchant/workflows/{code}/executions`: an execution for a charge without a customer, which
    /// ``authorize(_:_:key:)`` then charges.
    public func createExecution(_ request: ExecutionRequest, key: IdempotencyKey) async -> Outcome<ExecutionSnapshot> {
        let body = JSON.compact([
            "merchantReference": .string(request.merchantReference),
            "holderReference": .string(request.holderReference),
            "workspaceId": configuration.workspaceID.map { .string($0) },
            "workflowVersion": configuration.workflowVersion.map { JSON($0) },
            "workflowConfigOverride": captureOverride,
            "meta": chargeMeta(request),
        ])
        let path = Address.executions(request.workflowCode)
        return await change(path, body: body, key: key, what: "an execution") { json in
            let execution = ExecutionReading.snapshot(json, workflowCode: request.workflowCode, source: .answer)
            let isOurs = execution?.belongs(to: request.merchantReference, of: request.holderReference) ?? false
            return isOurs ? execution : nil
        }
    }

    private var captureOverride: JSON? {
        configuration.captureMode.map { ["captureMode": .string($0.rawValue)] }
    }

    private func sessionMeta(_ request: SessionRequest) -> JSON? {
        var meta = MetaBuilder(request.meta)
        if let methods = request.allowedPaymentMethods {
            meta.set(["allowedPaymentMethods"], .array(methods.map { .string($0) }))
        }
        if configuration.sendsCIT { meta.setIfAbsent(["CIT"], true) }
        return meta.json
    }

    private func chargeMeta(_ request: ExecutionRequest) -> JSON? {
        var meta = MetaBuilder(request.meta)
        if configuration.sendsOrderProcessingType, let processing = request.processing {
            meta.setIfAbsent(["order", "processingType"], .string(processing.rawValue))
        }
        if configuration.skipsThreeDSForCharges { meta.setIfAbsent(["risk", "threeDSMode"], "Skip") }
        if configuration.sendsCIT { meta.setIfAbsent(["CIT"], false) }
        return meta.json
    }

    /// `{version, data}`, both as they came, and what is inside.
    private static func initPayload(_ json: JSON, workflowCode: String) -> (InitPayload, DecodedInit)? {
        guard let version = json["version"]?.string, let data = json["data"]?.string,
            let decoded = DecodedInit(data: data, workflowCode: workflowCode)
        else { return nil }
        return (InitPayload(version: version, data: Secret(data)), decoded)
    }
}

extension ExecutionSnapshot {
    /// Payrails replays the first answer of a key whatever is asked under it (section 1.5): an execution that names
    /// somebody else's order or holder is not the one that was asked for. One that names none may be.
    fileprivate func belongs(to merchantReference: String, of holderReference: String) -> Bool {
        (self.merchantReference ?? merchantReference) == merchantReference
            && (self.holderReference ?? holderReference) == holderReference
    }
}
