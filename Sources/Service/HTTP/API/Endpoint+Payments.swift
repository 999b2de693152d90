extension Endpoint {
    public static let getExecution = Endpoint(
        "getExecution", "GET", "/v1/executions/{id}", access: .scope(.payments),
        summary: "Shows an execution: its state, its amounts, and what is known about it from where.",
        responses: [.json(200, "Execution", "The execution.")], problems: [.notFound])

    public static let capture = operation(
        "capture", "Captures an authorized amount, all of it or a part.", request: "CaptureRequest",
        problems: [.notCapturable, .amountExceedsCapturable])

    public static let cancel = operation(
        "cancel", "Cancels a payment: the authorization is given back.", request: "CancelRequest",
        problems: [.notCancellable])

    public static let refund = operation(
        "refund", "Refunds a captured amount, all of it or a part.", request: "RefundRequest",
        problems: [.notRefundable, .amountExceedsRefundable])

    private static func operation(
        _ kind: String, _ summary: String, request: String, problems: [ProblemKind]
    ) -> Endpoint {
        Endpoint(
            "\(kind)Execution", "POST", PathPattern(stringLiteral: "/v1/executions/{id}/\(kind)"),
            access: .scope(.payments), body: .json(optional: true), idempotency: .required, summary: summary,
            request: request,
            responses: [.json(202, "Operation", "Taken on; its state tells what became of it.").located()],
            problems: [.notFound, .providerRefused, .providerUnreadable] + problems)
    }

    public static let getOperation = Endpoint(
        "getOperation", "GET", "/v1/operations/{id}", access: .scope(.payments),
        summary: "Shows a capture, cancellation or refund.", responses: [.json(200, "Operation", "The operation.")],
        problems: [.notFound])

    public static let createCharge = Endpoint(
        "createCharge", "POST", "/v1/charges", access: .scope(.payments), body: .json(optional: false),
        idempotency: .required, summary: "Charges a saved instrument once, without the customer.",
        request: "NewCharge", responses: [.json(202, "Charge", "Taken on.").located()],
        problems: [.instrumentOfAnotherHolder, .referenceExists, .providerRefused, .providerUnreadable])

    public static let getCharge = Endpoint(
        "getCharge", "GET", "/v1/charges/{id}", access: .scope(.payments),
        summary: "Shows a charge with its attempts.", responses: [.json(200, "Charge", "The charge.")],
        problems: [.notFound])
}
