import Basics

extension Schemas {
    static let common: [String: JSON] = [
        "Money": object(
            "An exact amount in major units. Answers carry exactly the currency's decimals; requests may carry fewer.",
            ["value": decimal, "currency": ["type": "string", "pattern": "^[A-Z]{3}$"]],
            example: ["value": "49.90", "currency": "EUR"]),
        "Init": object(
            "What the SDK is started with, as Payrails made it.", ["version": word, "data": word],
            example: ["version": "1.0.0", "data": "eyJ…"]),
        "Fault": object(
            "One thing that is wrong with the input.",
            [
                "pointer": ["type": "string", "description": "A JSON Pointer into the body, or /name of a parameter."],
                "detail": word,
            ], example: ["pointer": "/amount/value", "detail": "must be more than zero"]),
        "Problem": problem,
        "Nothing": object("No members.", [:], example: [:]),
        "Health": object("How it is.", ["status": word, "checks?": ["type": "object"]], example: ["status": "ok"]),
        "Text": ["type": "string"],
        "Document": ["type": "object", "description": "OpenAPI 3.1."],
    ]

    private static let problem: JSON = [
        "type": "object", "description": "RFC 9457. `checkoutId` stands in `checkout-exists`.",
        "properties": [
            "type": words(ProblemKind.allCases.map(\.type)), "title": word, "status": integer(400...599),
            "detail": word, "requestId": word, "errors": list(of: ref("Fault")), "checkoutId": uuid,
        ],
        "required": ["type", "title", "status", "detail", "requestId"],
        "examples": [
            [
                "type": "urn:lockstep:problem:already-paid", "title": "The order is paid already", "status": 409,
                "detail": "The order is paid already", "requestId": "0197c0de-0000-7000-8000-000000000001",
            ]
        ],
    ]
}
