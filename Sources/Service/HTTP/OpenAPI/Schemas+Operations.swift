import Basics

extension Schemas {
    static let operations: [String: JSON] = [
        "Event": object(
            "Something that changed. `data` holds the object by the name of the type's first part, as its GET shows it.",
            ["id": uuid, "cursor": word, "type": words(eventTypes), "time": time, "data": ["type": "object"]]),
        "EventPage": object(
            "Events in order; `next` is always there.", ["events": list(of: ref("Event")), "next": word],
            example: ["events": [], "next": "0"]),
        "NewReconciliation": object(
            "The period, at most 31 days.", ["from": time, "to": time],
            example: ["from": "2026-12-01T00:00:00Z", "to": "2026-12-31T00:00:00Z"]),
        "Reconciliation": object(
            "A comparison of a period.",
            [
                "id": uuid, "state": words(["running", "done", "failed"]), "from": time, "to": time,
                "compared": count, "opened": count, "resolved": count, "stillOpen": count,
            ]),
        "Discrepancy": object(
            "Something that doesn't add up.",
            [
                "id": uuid, "class": words(discrepancyClasses), "state": words(["open", "resolved"]),
                "merchantReference?": word, "executionId?": uuid, "paymentId?": word, "amount?": money, "here?": word,
                "there?": word, "firstSeenAt": time, "lastSeenAt": time, "resolvedAt?": time, "note?": word,
            ]),
        "DiscrepancyList": page(of: "Discrepancy"),
        "Resolution": object(
            "What was done about it.", ["note": ["type": "string", "minLength": 1, "maxLength": 1000]],
            example: ["note": "refunded by hand"]),
        "Dispute": object(
            "A dispute, its status as Payrails names it. Stands in `dispute.changed` and in an execution's facts.",
            [
                "id": word, "executionId": uuid, "paymentId?": word, "status": word, "reason?": word,
                "amount?": money, "at": time,
            ]),
    ]

    /// Every type of event, in the contract's order.
    static let eventTypes = [
        "checkout.created", "checkout.amount_changed", "checkout.paid", "checkout.failed", "checkout.expired",
        "checkout.cancelled", "checkout.refunded", "checkout.duplicate_cancelled", "checkout.mismatch_cancelled",
        "execution.captured", "execution.cancelled", "execution.refunded", "operation.failed", "charge.succeeded",
        "charge.failed", "charge.needs_customer", "charge.skipped", "subscription.past_due",
        "subscription.needs_instrument", "subscription.recovered", "subscription.cancelled", "subscription.ended",
        "instrument.expiring", "instrument.changed", "dispute.changed", "discrepancy.opened", "discrepancy.resolved",
    ]

    private static let count = integer(0...Int(Int32.max))
}
