import Basics

extension Endpoint {
    public static let readEvents = Endpoint(
        "readEvents", "GET", "/v1/events", access: .anyKey, lane: .feed,
        summary: "The feed of everything that changed. A key sees what its scopes reach.",
        query: [
            .after, .limit(maximum: 500),
            QueryParameter(
                "wait", ["type": "integer", "minimum": 0, "maximum": 30, "default": 0],
                "Seconds to wait for an event if there is none."),
        ], responses: [.json(200, "EventPage", "Events in order, and where to go on.")])

    public static let createReconciliation = Endpoint(
        "createReconciliation", "POST", "/v1/reconciliations", access: .scope(.ops), body: .json(optional: false),
        idempotency: .required, summary: "Compares everything at Payrails in a period with everything here.",
        request: "NewReconciliation", responses: [.json(202, "Reconciliation", "The run has begun.")])

    public static let getReconciliation = Endpoint(
        "getReconciliation", "GET", "/v1/reconciliations/{id}", access: .scope(.ops), summary: "Shows a run.",
        responses: [.json(200, "Reconciliation", "The run.")], problems: [.notFound])

    public static let listDiscrepancies = Endpoint(
        "listDiscrepancies", "GET", "/v1/discrepancies", access: .scope(.ops),
        summary: "Lists what doesn't add up, oldest first.",
        query: [
            QueryParameter("state", Schemas.words(["open", "resolved"]), "Only those in this state."),
            QueryParameter("class", Schemas.words(Schemas.discrepancyClasses), "Only those of this class."),
            .limit(), .after,
        ], responses: [.json(200, "DiscrepancyList", "A page of discrepancies.")])

    public static let resolveDiscrepancy = Endpoint(
        "resolveDiscrepancy", "POST", "/v1/discrepancies/{id}/resolve", access: .scope(.ops),
        body: .json(optional: false), idempotency: .understood, summary: "Marks a discrepancy as dealt with.",
        request: "Resolution", responses: [.json(200, "Discrepancy", "The discrepancy.")], problems: [.notFound])
}

/// What stands beside the API: notifications, probes, the document.
extension Endpoint {
    /// Bodies of notifications are at most this long: 1 MiB.
    public static let maximumNotificationBytes = 1_048_576

    public static let receiveNotification = notification("receiveNotification", "/webhooks/payrails")
    public static let receiveNotificationAtEndpoint = notification(
        "receiveNotificationAtEndpoint", "/webhooks/payrails/{endpoint}")

    private static func notification(_ name: String, _ pattern: PathPattern) -> Endpoint {
        Endpoint(
            name, "POST", pattern, access: .open, body: .raw(maximumBytes: maximumNotificationBytes),
            lane: .notifications, summary: "Takes a notification of Payrails, proven by X-Signature over its bytes.",
            responses: [.json(200, "Nothing", "It is on disk.")],
            problems: [.badSignature, .tooLarge, .notFound, .unavailable])
    }

    public static let health = Endpoint(
        "health", "GET", "/healthz", access: .open, lane: .probes, summary: "Whether the process is alive.",
        responses: [.json(200, "Health", "It is.")])

    public static let readiness = Endpoint(
        "readiness", "GET", "/readyz", access: .open, lane: .probes,
        summary: "Whether it can serve: the database is there and has this version's tables.",
        responses: [.json(200, "Health", "It can.")], problems: [.unavailable])

    public static let metrics = Endpoint(
        "metrics", "GET", "/metrics", access: .open, lane: .probes, summary: "Numbers for Prometheus.",
        responses: [
            Response(status: 200, schema: "Text", contentType: Metrics.contentType, description: "The numbers.")
        ])

    public static let openAPI = Endpoint(
        "openAPI", "GET", "/openapi.json", access: .open, lane: .probes, summary: "This document.",
        responses: [.json(200, "Document", "The document.")])
}
