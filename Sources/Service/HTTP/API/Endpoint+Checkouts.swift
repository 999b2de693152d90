extension Endpoint {
    public static let createCheckout = Endpoint(
        "createCheckout", "POST", "/v1/checkouts", access: .scope(.checkouts), body: .json(optional: false),
        idempotency: .required,
        summary: "Creates the checkout of an order, with an execution at Payrails and what the app starts from.",
        request: "NewCheckout",
        responses: [.json(201, "Checkout", "The checkout, with init and clientToken.").located()],
        problems: [.checkoutExists, .referenceExists, .creationRefused, .providerUnreadable, .checkoutUnconfirmed])

    public static let getCheckout = Endpoint(
        "getCheckout", "GET", "/v1/checkouts/{id}", access: .scopeOrClient(.checkouts, checkout: "id"),
        summary: "Shows a checkout, without clientToken.", responses: [.json(200, "Checkout", "The checkout.")],
        problems: [.notFound])

    public static let listCheckouts = Endpoint(
        "listCheckouts", "GET", "/v1/checkouts", access: .scopeOrClient(.checkouts, checkout: nil),
        summary: "Finds the checkout of an order; a client token finds its own.",
        query: [.reference("merchantReference", "The order.", required: true), .limit(), .after],
        responses: [.json(200, "CheckoutList", "A page of checkouts.")])

    public static let openSession = Endpoint(
        "openSession", "POST", "/v1/checkouts/{id}/session", access: .scopeOrClient(.checkouts, checkout: "id"),
        body: .json(optional: true), idempotency: .understood,
        summary: "Gives the init to start the SDK from: the same one while it is fresh, else one of a new execution.",
        request: "SessionRequest", responses: [.json(200, "Session", "What the SDK starts from.")],
        problems: [
            .notFound, .alreadyPaid, .checkoutCancelled, .checkoutExpired, .paymentInProgress, .amountMoving,
            .creationRefused, .providerUnreadable, .checkoutUnconfirmed, .sessionUnconfirmed, .amountUnconfirmed,
        ])

    public static let changeAmount = Endpoint(
        "changeAmount", "PUT", "/v1/checkouts/{id}/amount", access: .scopeOrClient(.checkouts, checkout: "id"),
        body: .json(optional: false), needsIfMatch: true,
        summary: "Moves the amount, at Payrails and here, as one step.", request: "AmountChange",
        responses: [.json(200, "AmountAnswer", "The confirmed amount; give exactly this string to the SDK.")],
        problems: [
            .notFound, .stale, .ifMatchMissing, .paymentInProgress, .alreadyPaid, .amountMoving, .checkoutCancelled,
            .checkoutExpired, .amountOutsidePolicy, .amountRefused, .providerUnreadable, .amountUnconfirmed,
        ])

    public static let updateExecution = Endpoint(
        "updateExecution", "POST", "/v1/executions/{executionId}/update",
        access: .scopeOrClient(.checkouts, checkout: nil), body: .json(optional: false), idempotency: .understood,
        summary: "Moves the amount by the execution's id, in the shape that the SDK's guide shows.", request: "Money",
        responses: [.json(200, "AmountAnswer", "The confirmed amount; give exactly this string to the SDK.")],
        problems: [
            .notFound, .conflict, .paymentInProgress, .alreadyPaid, .amountMoving, .checkoutCancelled, .checkoutExpired,
            .amountOutsidePolicy, .amountRefused, .providerUnreadable, .amountUnconfirmed,
        ])

    public static let cancelCheckout = Endpoint(
        "cancelCheckout", "POST", "/v1/checkouts/{id}/cancel", access: .scope(.checkouts),
        body: .json(optional: true), idempotency: .understood,
        summary: "Gives the order up: open executions are cancelled, nothing can be paid any more.",
        request: "Nothing", responses: [.json(200, "Checkout", "The cancelled checkout.")],
        problems: [.notFound, .alreadyPaid])

    public static let prePayment = Endpoint(
        "prePayment", "POST", "/v1/pre-payment", access: .scopeOrClient(.checkouts, checkout: nil),
        body: .json(optional: false), lane: .gate,
        summary: "Says whether the customer may pay now. Always answers 200 to a request that is well formed.",
        request: "PrePayment", responses: [.json(200, "GateDecision", "Proceed, or refuse with a reason.")])
}
