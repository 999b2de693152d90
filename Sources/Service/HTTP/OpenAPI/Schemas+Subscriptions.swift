import Basics

extension Schemas {
    static let subscriptions: [String: JSON] = [
        "NewSubscription": object("A charge that repeats.", newSubscription, example: newSubscriptionExample),
        "Subscription": object(
            "A charge that repeats.",
            [
                "id": uuid, "merchantReference": word, "holderReference": word, "instrumentId": uuid, "amount": money,
                "interval": interval, "startsOn": date, "timezone": word, "endsOn?": date, "maxCharges?": count,
                "expiryPolicy": expiryPolicy,
                "status": words(["active", "paused", "pastDue", "needsInstrument", "cancelled", "ended"]),
                "nextChargeOn?": date, "meta?": meta,
            ]),
        "SubscriptionList": page(of: "Subscription"),
        "SubscriptionChange": object(
            "What changes. `null` takes `endsOn` or `maxCharges` away. `effective` counts for amount and anchor.",
            [
                "amount?": money, "instrumentId?": uuid, "startsOn?": date, "endsOn?": orNull(date),
                "maxCharges?": orNull(count), "expiryPolicy?": expiryPolicy, "meta?": meta,
                "effective?": words(["nextPeriod", "now"]),
            ], example: ["amount": ["value": "12.00", "currency": "EUR"], "effective": "nextPeriod"]),
    ]

    private static let newSubscription: Members = [
        "merchantReference": reference, "holderReference": reference, "instrumentId": uuid, "amount": money,
        "interval": interval, "startsOn": firstDay, "timezone": ["type": "string", "description": "A zone of IANA."],
        "endsOn?": date, "maxCharges?": count, "expiryPolicy?": expiryPolicy, "meta?": meta,
    ]

    private static let firstDay: JSON = [
        "type": "string", "format": "date",
        "description":
            "The first period's first day, not more than 366 days ago. Periods that are past are due at once.",
    ]

    private static let newSubscriptionExample: JSON = [
        "merchantReference": "membership-3", "holderReference": "customer-17",
        "instrumentId": "0197c0de-0000-7000-8000-000000000004", "amount": ["value": "9.90", "currency": "EUR"],
        "interval": "P1M", "startsOn": "2026-12-31", "timezone": "Europe/Berlin",
    ]

    private static let interval: JSON = [
        "type": "string", "pattern": "^P[1-9][0-9]{0,2}[DWMY]$",
        "description": "ISO 8601, one unit: P1D to P365D, P1W to P52W, P1M to P36M, P1Y to P5Y.",
    ]
    private static let count = integer(1...100_000)
    private static func orNull(_ schema: JSON) -> JSON { ["anyOf": [schema, ["type": "null"]]] }
}
