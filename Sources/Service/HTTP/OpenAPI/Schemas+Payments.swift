import Basics

extension Schemas {
    static let payments: [String: JSON] = [
        "Execution": object(
            "One attempt, or one series of attempts, to pay.",
            [
                "id": uuid, "checkoutId?": uuid, "chargeId?": uuid, "merchantReference": word,
                "state": executionState, "amount": money, "amounts": ref("Amounts"), "paymentMethodCode?": word,
                "paymentIds": list(of: word), "facts": list(of: ref("Fact")),
            ]),
        "Amounts": object(
            "What happened to the money so far. One that isn't known yet is left out; it is never a guess.",
            ["authorized?": money, "captured?": money, "refunded?": money]),
        "Fact": object(
            "Something that is known about an execution, since when, and from where.",
            [
                "kind": word, "code?": word, "action?": word, "success?": flag, "amount?": money, "reason?": word,
                "dispute?": ref("Dispute"), "at": time, "learnedAt": time,
                "source": words(["notification", "read", "answer", "report"]),
            ]),
        "Operation": object(
            "A capture, cancellation or refund. `reason` says why it failed, or why nobody knows.",
            [
                "id": uuid, "kind": words(["capture", "cancel", "refund"]),
                "state": words(["pending", "succeeded", "failed", "unknown"]), "amount?": money, "executionId": uuid,
                "reason?": word, "createdAt": time,
            ],
            example: [
                "id": "0197c0de-0000-7000-8000-000000000003", "kind": "capture", "state": "pending",
                "amount": ["value": "49.90", "currency": "EUR"],
                "executionId": "0197c0de-0000-7000-8000-000000000002", "createdAt": "2026-12-31T10:05:00Z",
            ]),
        "CaptureRequest": object(
            "Nothing captures all of it. `final: false` keeps the rest for later captures.",
            ["amount?": money, "final?": flag, "reason?": lifecycleReason],
            example: ["amount": ["value": "20.00", "currency": "EUR"], "final": false]),
        "CancelRequest": object(
            "A cancel is always of the whole: `amount` may be that, and `final` may be true.",
            ["amount?": money, "final?": ["const": true], "reason?": lifecycleReason],
            example: ["reason": "CustomerDontNeed"]),
        "RefundRequest": object(
            "Nothing refunds all of it. `final` changes nothing.",
            ["amount?": money, "final?": flag, "reason?": lifecycleReason],
            example: ["amount": ["value": "20.00", "currency": "EUR"]]),
    ]

    /// Why something is captured, cancelled or refunded (reference 2.5).
    private static let lifecycleReason: JSON = [
        "type": "string", "minLength": 1, "maxLength": 1000,
        "description": """
        Why, in the shop's own words, or one of Payrails': BetterPrice, CustomerDontNeed, DamagedProduct, Duplicate, \
        FraudulentProduct, LateDelivery, NoReason, ProductMismatchDescription, WrongProduct, WrongProductSpecification.
        """,
    ]
}
