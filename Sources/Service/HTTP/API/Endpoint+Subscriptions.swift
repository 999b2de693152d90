extension Endpoint {
    public static let createSubscription = Endpoint(
        "createSubscription", "POST", "/v1/subscriptions", access: .scope(.subscriptions),
        body: .json(optional: false), idempotency: .required,
        summary: "Charges a saved instrument again and again, by a calendar.", request: "NewSubscription",
        responses: [.json(201, "Subscription", "The subscription.").located()],
        problems: [.instrumentOfAnotherHolder, .referenceExists, .providerRefused, .providerUnreadable])

    public static let getSubscription = Endpoint(
        "getSubscription", "GET", "/v1/subscriptions/{id}", access: .scope(.subscriptions),
        summary: "Shows a subscription.", responses: [.json(200, "Subscription", "The subscription.")],
        problems: [.notFound])

    public static let listSubscriptions = Endpoint(
        "listSubscriptions", "GET", "/v1/subscriptions", access: .scope(.subscriptions),
        summary: "Lists a holder's subscriptions, newest first.",
        query: [.reference("holderReference", "The holder.", required: true), .limit(), .after],
        responses: [.json(200, "SubscriptionList", "A page of subscriptions.")])

    public static let changeSubscription = Endpoint(
        "changeSubscription", "PATCH", "/v1/subscriptions/{id}", access: .scope(.subscriptions),
        body: .json(optional: false),
        summary: "Changes amount or anchor from the next period on or at once; a new instrument counts at once.",
        request: "SubscriptionChange", responses: [.json(200, "Subscription", "The subscription.")],
        problems: [.notFound, .conflict, .instrumentOfAnotherHolder, .providerRefused, .providerUnreadable])

    public static let pauseSubscription = step("pause", "Stops charging until it is resumed.")
    public static let resumeSubscription = step("resume", "Goes on charging.")
    public static let cancelSubscription = step("cancel", "Ends the subscription for good.")

    private static func step(_ verb: String, _ summary: String) -> Endpoint {
        Endpoint(
            "\(verb)Subscription", "POST", PathPattern(stringLiteral: "/v1/subscriptions/{id}/\(verb)"),
            access: .scope(.subscriptions), body: .json(optional: true), idempotency: .understood, summary: summary,
            request: "Nothing", responses: [.json(200, "Subscription", "The subscription, again too.")],
            problems: [.notFound, .conflict])
    }

    public static let listSubscriptionCharges = Endpoint(
        "listSubscriptionCharges", "GET", "/v1/subscriptions/{id}/charges", access: .scope(.subscriptions),
        summary: "Lists a subscription's charges, one per period, newest first.", query: [.limit(), .after],
        responses: [.json(200, "ChargeList", "A page of charges.")], problems: [.notFound])
}
