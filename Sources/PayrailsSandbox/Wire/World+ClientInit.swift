import Basics
import Foundation
import Lockstep

/// Section 3: what the SDK starts from.
extension World {
    static let sdkVersion = "6.0.3"

    mutating func clientInit(_ body: JSON) throws(APIError) -> Answer {
        guard let type = body["type"] else {
            throw APIError(faults: [.init(detail: "type is required", isMissing: true)])
        }
        guard let name = type.string, let schema = Schema.clientInit(name) else {
            throw .invalid("type must be one of dropIn, tokenization, secureFields")
        }
        try check(body, against: schema)
        try checkWorkspace(body)
        try checkOrigins(meta: body["meta"], returnInfo: nil)
        let data = try name == "dropIn" ? dropIn(body) : tokenization(body, type: name)
        return Answer(
            configuration.clientInitStatus,
            ["version": .string(World.sdkVersion), "data": .string(data.bytes.base64EncodedString())])
    }

    /// Creates an execution and looks its payment options up.
    private mutating func dropIn(_ body: JSON) throws(APIError) -> JSON {
        let amount = try money(body["amount"] ?? .null)
        try checkLines(meta: body["meta"], amount: amount)
        let id = try addExecution(workflowCode: body["workflowCode"]?.string ?? "", body: body)
        let lookedUp = try lookup(id, body: ["amount": amount.wire])
        let execution = try execution(id)
        let token = newClientSession(executionID: id, holderReference: execution.holderReference)
        executions[id]?.clientToken = token
        let own = publicLink(execution)
        var result = lookedUp.body.object ?? [:]
        // The SDK reads `execution` as a string and `authorize` as an object here (section 3.2).
        result["links"] = [
            "execution": .string(own), "authorize": link(own + "/authorize"),
            "startPaymentSession": link(own + "/startPaymentSession"),
        ]
        return .object(
            envelope(token: token, type: "dropIn", holderReference: execution.holderReference).merging([
                "amount": amount.wire,
                "execution": [
                    "id": .string(id), "status": .array(execution.statuses.map { json(of: $0) }),
                    "createdAt": .string(execution.createdAt.rfc3339),
                    "merchantReference": .string(execution.merchantReference),
                    "holderReference": .string(execution.holderReference),
                    "holderId": .string(execution.holderID), "workspaceId": .string(execution.workspaceID),
                    "amount": amount.wire, "workflow": workflow(execution), "meta": execution.meta,
                    "links": [
                        "self": .string(own), "authorize": link(own + "/authorize"), "lookup": link(own + "/lookup"),
                        "startPaymentSession": link(own + "/startPaymentSession"),
                    ],
                    "initialResults": [["httpCode": 200, "body": .object(result)]],
                ],
            ]) { $1 })
    }

    private mutating func tokenization(_ body: JSON, type: String) throws(APIError) -> JSON {
        let reference = body["holderReference"]?.string ?? "guest-\(random.opaque())"
        if let id = body["instrumentId"]?.string {
            guard try instrument(id).holderReference == reference else { throw .notFound("no such instrument") }
        }
        _ = holder(reference: reference)
        let token = newClientSession(executionID: nil, holderReference: reference)
        var members = envelope(token: token, type: type, holderReference: reference)
        members["amount"] = body["amount"] ?? ["value": "0.00", "currency": "EUR"]
        return .object(members)
    }

    private mutating func envelope(token: String, type: String, holderReference: String) -> [String: JSON] {
        let instruments = "\(baseURL)/public/payment/instruments"
        return [
            "token": .string(token), "holderReference": .string(holderReference), "type": .string(type),
            "dataEncryptionId": .string(random.uuid()),
            "vaultConfiguration": [
                "vaultId": .string(random.uuid()), "vaultUrl": .string("\(baseURL)/public/vault"),
                "token": .string(random.opaque()), "status": "enabled", "vaultType": "Payrails",
                "providerId": "4d3c0000-0000-4d10-8000-000000000009",
                "providerConfigId": "8a7b0000-0000-4d10-8000-000000000009",
                "encryptionPublicKey": .string("MIIB\(random.opaque())"), "encryptionPublicKeyExpiresIn": 3300,
                "links": ["saveInstrument": link(instruments)],
            ],
            "links": [
                "binLookup": link("\(baseURL)/public/payment/binLookup"),
                "instrumentDelete": link("\(instruments)/:instrumentId", method: "DELETE"),
                "instrumentUpdate": link("\(instruments)/:instrumentId", method: "PATCH"),
                "clientUpdate": link("\(baseURL)/public/merchant/client/update"),
            ],
            "featureConfig": [
                "coBrandedCardsRollout": 0, "secureFieldsRollout": 0, "gpayIframeRollout": 0,
                "sdkVersion": .string(World.sdkVersion), "schemaVersion": 1,
            ],
        ]
    }

    private mutating func newClientSession(executionID: String?, holderReference: String) -> String {
        let token = jwt(["holderReference": .string(holderReference)], lifetime: configuration.sessionLifetime)
        clientSessions[token] = ClientSession(
            executionID: executionID, holderReference: holderReference,
            expiresAt: now + configuration.sessionLifetime)
        return token
    }

    /// A token for the merchant's calls (section 1.3).
    mutating func newAccessToken() -> Answer {
        let token = jwt(
            [
                "permissions": [
                    "sdk:read:config", "executions:create", "executions:list", "executions:read",
                    "executions:authorize", "executions:capture", "executions:cancel", "executions:refund",
                    "payments:read", "instruments:list", "instruments:create", "instruments:read",
                    "instruments:update", "instruments:delete", "holders:list", "holders:create",
                ]
            ], lifetime: configuration.tokenLifetime)
        let current = now
        if accessTokens.count > 1000 { accessTokens = accessTokens.filter { $0.value.expiresAt > current } }
        accessTokens[token] = AccessToken(expiresAt: current + configuration.tokenLifetime)
        return Answer(
            200,
            [
                "access_token": .string(token), "token_type": "Bearer",
                "expires_in": JSON(configuration.tokenLifetime.components.seconds),
            ])
    }

    /// Looks like a JWT; is only ever compared.
    private mutating func jwt(_ claims: [String: JSON], lifetime: Duration) -> String {
        var claims = claims
        claims["exp"] = JSON((now + lifetime).seconds)
        let header: JSON = ["alg": "HS256", "typ": "JWT"]
        return [header.bytes.base64URL, JSON.object(claims).bytes.base64URL, random.opaque()].joined(separator: ".")
    }
}
