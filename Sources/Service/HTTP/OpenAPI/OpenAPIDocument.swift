import Basics

/// The OpenAPI 3.1 document, made from the endpoints and the schemas, so that it can't say anything else than they do.
public enum OpenAPIDocument {
    /// - Parameter server: where the service is reached from outside (`LOCKSTEP_PUBLIC_URL`), if that is known.
    public static func make(_ endpoints: [Endpoint], version: String, server: String? = nil) -> JSON {
        var paths: [String: JSON] = [:]
        for (path, group) in Dictionary(grouping: endpoints, by: \.pattern.description) {
            var item: [String: JSON] = [:]
            for endpoint in group { item[endpoint.method.lowercased()] = operation(endpoint) }
            paths[path] = .object(item)
        }
        return .compact([
            "openapi": "3.1.0",
            "info": [
                "title": "Lockstep", "version": .string(version),
                "description": "The payment back end between a merchant's shop and Payrails.",
            ],
            "servers": server.map { [["url": .string($0)]] },
            "paths": .object(paths),
            "components": [
                "schemas": .object(Schemas.all), "securitySchemes": securitySchemes, "responses": problemResponses,
                "headers": headers,
            ],
        ])
    }

    private static func operation(_ endpoint: Endpoint) -> JSON {
        var responses: [String: JSON] = [:]
        for response in endpoint.responses { responses[String(response.status)] = answer(response, endpoint) }
        for (status, kinds) in Dictionary(grouping: problems(of: endpoint), by: \.status) {
            responses[String(status)] = problemAnswer(status, kinds)
        }
        return .compact([
            "operationId": .string(endpoint.name), "summary": .string(endpoint.summary),
            "tags": [.string(tag(endpoint))], "security": security(endpoint),
            "description": scopeSentence(endpoint).map { .string($0) },
            "parameters": parameters(endpoint), "requestBody": requestBody(endpoint), "responses": .object(responses),
        ])
    }

    private static func tag(_ endpoint: Endpoint) -> String {
        let first = endpoint.pattern.description.split(separator: "/")
        return first.first == "v1" ? String(first[1]) : "service"
    }
}

/// Who may call.
extension OpenAPIDocument {
    private static let securitySchemes: JSON = [
        "merchantKey": [
            "type": "http", "scheme": "bearer", "bearerFormat": "lsk_…",
            "description": "A merchant key, made with `lockstep keys create`.",
        ],
        "clientToken": [
            "type": "http", "scheme": "bearer", "bearerFormat": "lsc_…",
            "description": "A client token of one checkout, from creating it.",
        ],
        "payrailsSignature": [
            "type": "apiKey", "in": "header", "name": "X-Signature",
            "description": "HMAC-SHA-256 over the body's bytes, by the key of the URL.",
        ],
    ]

    private static func security(_ endpoint: Endpoint) -> JSON {
        switch endpoint.access {
        case .open:
            if case .raw = endpoint.body { [["payrailsSignature": []]] } else { [] }
        case .anyKey, .scope: [["merchantKey": []]]
        case .scopeOrClient: [["merchantKey": []], ["clientToken": []]]
        }
    }

    private static func scopeSentence(_ endpoint: Endpoint) -> String? {
        switch endpoint.access {
        case .open: nil
        case .anyKey: "For every merchant key; it sees what its scopes reach."
        case .scope(let scope): "For merchant keys with the scope `\(scope.rawValue)`."
        case .scopeOrClient(let scope, _):
            "For merchant keys with the scope `\(scope.rawValue)`, and for client tokens of the checkout."
        }
    }
}

/// What goes in.
extension OpenAPIDocument {
    private static func parameters(_ endpoint: Endpoint) -> JSON? {
        var all: [JSON] = endpoint.pattern.parameterNames.map { name in
            let isReference = name == "holderReference" || name == "endpoint"
            return [
                "name": .string(name), "in": "path", "required": true,
                "schema": isReference ? Schemas.reference : Schemas.uuid,
            ]
        }
        for parameter in endpoint.query {
            all.append([
                "name": .string(parameter.name), "in": "query", "required": .bool(parameter.required),
                "description": .string(parameter.description), "schema": parameter.schema,
            ])
        }
        func header(_ name: String, _ description: String, required: Bool, _ schema: JSON) {
            all.append([
                "name": .string(name), "in": "header", "required": .bool(required),
                "description": .string(description), "schema": schema,
            ])
        }
        if endpoint.idempotency != .none {
            header(
                "Idempotency-Key",
                "The same request under the same key is answered the same, for at least 24 hours.",
                required: endpoint.idempotency == .required,
                ["type": "string", "minLength": 1, "maxLength": 255, "pattern": "^[!-~]+$"])
        }
        if endpoint.needsIfMatch {
            header(
                "If-Match", "The amountVersion that the change is based on.", required: true,
                ["type": "string", "pattern": "^\"(0|[1-9][0-9]*)\"$"])
        }
        if endpoint.lane == .gate {
            header(
                "Accept-Language", "What the customer reads; a message comes in the best of the table's languages.",
                required: false, ["type": "string"])
        }
        header(
            "X-Request-Id", "Comes back in the answer, and stands in every line of the log.", required: false,
            ["type": "string", "pattern": "^[A-Za-z0-9._-]{1,128}$"])
        return .array(all)
    }

    private static func requestBody(_ endpoint: Endpoint) -> JSON? {
        switch endpoint.body {
        case .none: nil
        case .json(let optional):
            endpoint.request.map { name in
                [
                    "required": .bool(!optional),
                    "content": ["application/json": ["schema": Schemas.ref(name)]],
                ]
            }
        case .raw:
            ["required": true, "content": ["application/json": ["schema": ["type": "object"]]]]
        }
    }
}

/// What comes out.
extension OpenAPIDocument {
    private static let headers: JSON = [
        "X-Request-Id": ["description": "The caller's, or a new one.", "schema": ["type": "string"]],
        "ETag": ["description": "The amountVersion, in quotes.", "schema": ["type": "string"]],
        "Location": ["description": "Where it is from now on.", "schema": ["type": "string"]],
        "Idempotent-Replayed": [
            "description": "`true` where the answer was given before.", "schema": ["type": "string", "enum": ["true"]],
        ],
        "Retry-After": ["description": "Seconds.", "schema": ["type": "integer", "minimum": 0]],
        "Content-Language": [
            "description": "The message's, unless the shop's own check has worded it.", "schema": ["type": "string"],
        ],
        "RateLimit": [
            "description": "`\"client\";r=119;t=1`: what is left of the quota, and the seconds until all of it is.",
            "schema": ["type": "string"],
        ],
        "RateLimit-Policy": [
            "description": "`\"client\";q=120;w=60`: the quota and its seconds (draft-ietf-httpapi-ratelimit-headers).",
            "schema": ["type": "string"],
        ],
        "WWW-Authenticate": ["description": "`Bearer`.", "schema": ["type": "string"]],
        "Allow": ["description": "The methods that the path knows.", "schema": ["type": "string"]],
    ]

    /// The schemas of answers that hold an amount's version.
    private static let versioned: Set<String> = ["Checkout", "Session", "AmountAnswer"]

    private static func header(_ name: String) -> (String, JSON) {
        (name, ["$ref": .string("#/components/headers/\(name)")])
    }

    private static func answer(_ response: Endpoint.Response, _ endpoint: Endpoint) -> JSON {
        var fields = [header("X-Request-Id")]
        if endpoint.idempotency != .none { fields.append(header("Idempotent-Replayed")) }
        if endpoint.lane == .gate { fields.append(header("Content-Language")) }
        if let schema = response.schema, versioned.contains(schema) { fields.append(header("ETag")) }
        if response.hasLocation { fields.append(header("Location")) }
        if endpoint.isRateLimited { fields += [header("RateLimit"), header("RateLimit-Policy")] }
        return .compact([
            "description": .string(response.description),
            "headers": .object(Dictionary(fields, uniquingKeysWith: { first, _ in first })),
            "content": response.schema.map { [response.contentType: ["schema": Schemas.ref($0)]] },
        ])
    }

    /// Those of the call itself, and those that its kind always can have.
    static func problems(of endpoint: Endpoint) -> [ProblemKind] {
        var kinds = endpoint.problems + [.malformedRequest]
        // The gate answers 200 whatever is broken.
        if endpoint.lane != .gate { kinds += [.internalError, .unavailable] }
        if endpoint.access != .open { kinds += [.unauthorized, .forbidden, .invalid, .cardNumber] }
        if endpoint.isRateLimited { kinds.append(.tooManyRequests) }
        if !endpoint.pattern.parameterNames.isEmpty { kinds.append(.notFound) }
        if case .json = endpoint.body { kinds += [.notJSON, .tooLarge, .unsupportedMediaType] }
        switch endpoint.idempotency {
        case .none: break
        case .required:
            kinds += [.idempotencyKeyMissing, .idempotencyKeyInvalid, .idempotencyKeyReused, .idempotencyKeyInUse]
        case .understood: kinds += [.idempotencyKeyInvalid, .idempotencyKeyReused, .idempotencyKeyInUse]
        }
        return ProblemKind.allCases.filter(kinds.contains)
    }

    private static func problemAnswer(_ status: Int, _ kinds: [ProblemKind]) -> JSON {
        let slugs = kinds.map { "`\($0.rawValue)`" }.joined(separator: ", ")
        return ["$ref": .string("#/components/responses/\(responseName(kinds))"), "description": .string(slugs)]
    }

    private static func responseName(_ kinds: [ProblemKind]) -> String { "Problem\(kinds.first?.status ?? 0)" }

    /// One response for each status that a problem can have.
    private static let problemResponses: JSON = .object(
        Dictionary(grouping: ProblemKind.allCases, by: \.status).reduce(into: [:]) { all, entry in
            var fields = [header("X-Request-Id")]
            if entry.value.contains(where: { $0.usualRetryAfterSeconds != nil }) {
                fields.append(header("Retry-After"))
            }
            if entry.key == 429 { fields += [header("RateLimit"), header("RateLimit-Policy")] }
            if entry.key == 401 { fields.append(header("WWW-Authenticate")) }
            if entry.key == 412 { fields.append(header("ETag")) }
            if entry.key == 405 { fields.append(header("Allow")) }
            all["Problem\(entry.key)"] = [
                "description": .string(entry.value.map(\.title).joined(separator: "; ")),
                "headers": .object(Dictionary(fields, uniquingKeysWith: { first, _ in first })),
                "content": ["application/problem+json": ["schema": Schemas.ref("Problem")]],
            ]
        })
}
