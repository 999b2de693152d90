import Basics

extension Schemas {
    static let charges: [String: JSON] = [
        "NewCharge": object(
            "One charge of a saved instrument, without the customer.",
            [
                "merchantReference": reference, "holderReference": reference, "instrumentId": uuid, "amount": money,
                "expiryPolicy?": expiryPolicy, "meta?": meta,
            ],
            example: [
                "merchantReference": "topup-7", "holderReference": "customer-17",
                "instrumentId": "0197c0de-0000-7000-8000-000000000004",
                "amount": ["value": "10.00", "currency": "EUR"],
            ]),
        "Charge": object(
            "A charge without the customer, with its attempts. One per period of a subscription.",
            [
                "id": uuid,
                "state": words([
                    "scheduled", "processing", "succeeded", "failed", "unknown", "needsCustomer", "skipped",
                ]),
                "merchantReference": word, "holderReference": word, "instrumentId": uuid, "amount": money,
                "subscriptionId?": uuid, "period?": ref("Period"), "attempts": list(of: ref("Attempt")),
                "nextAttemptAt?": time, "reason?": word,
            ]),
        "ChargeList": page(of: "Charge"),
        "Period": object(
            "A subscription's period: counted from 1, from its first day to the day after its last.",
            ["index": integer(1...Int(Int32.max)), "start": date, "end": date],
            example: ["index": 1, "start": "2026-12-31", "end": "2027-01-31"]),
        "Attempt": object(
            "One try, which is one execution.",
            [
                "number": integer(1...1000), "at": time, "executionId?": uuid, "outcome": word, "reason?": word,
            ]),
    ]

    static let expiryPolicy = words(["block", "allow", "allowWithNetworkToken"])
}
