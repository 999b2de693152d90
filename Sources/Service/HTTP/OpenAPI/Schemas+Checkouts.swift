import Basics
import Lockstep

extension Schemas {
    static let checkouts: [String: JSON] = [
        "NewCheckout": object(
            "A checkout for an order.",
            [
                "merchantReference": reference, "holderReference": reference, "amount": money,
                "workflowCode?": ["type": "string", "pattern": "^[a-z][A-Za-z0-9-]{0,127}$"],
                "basketVersion?": text(upTo: 128),
                "amountPolicy?": ref("AmountPolicy"), "expiresInSeconds?": integer(60...604_800),
                "allowedPaymentMethods?": paymentMethods, "meta?": meta,
            ],
            example: [
                "merchantReference": "order-1001", "holderReference": "customer-17",
                "amount": ["value": "49.90", "currency": "EUR"],
            ]),
        "AmountPolicy": object(
            "Whether a client token may move the amount, and between which bounds, both inclusive.",
            ["clientMayUpdate": flag, "min?": decimal, "max?": decimal],
            example: ["clientMayUpdate": true, "min": "40.00", "max": "80.00"]),
        "Checkout": object("An order's checkout.", checkoutMembers, example: checkoutExample),
        "CheckoutExecution": object(
            "One of the checkout's executions.",
            ["id": uuid, "state": executionState, "current": flag, "createdAt": time]),
        "CheckoutList": page(of: "Checkout"),
        "SessionRequest": object(
            "Why a session is asked for.", ["reason?": words(["expired"])], example: ["reason": "expired"]),
        "Session": object(
            "What the SDK starts from, and at which amount.",
            [
                "init": ref("Init"), "executionId": uuid, "amount": money, "amountVersion": integer(1...Int(Int32.max)),
                "status": checkoutStatus,
            ]),
        "AmountChange": object(
            "The amount that the basket has now.", ["amount": money, "basketVersion?": text(upTo: 128)],
            example: ["amount": ["value": "57.40", "currency": "EUR"]]),
        "AmountAnswer": object(
            "The confirmed amount.",
            ["amount": money, "amountVersion": integer(1...Int(Int32.max)), "amountState": words(["inStep"])],
            example: ["amount": ["value": "57.40", "currency": "EUR"], "amountVersion": 2, "amountState": "inStep"]),
        "PrePayment": prePayment,
        "GateDecision": object(
            "Proceed, or refuse. `message` is fit for a customer.",
            [
                "decision": words(["proceed", "refuse"]), "valid": flag, "reason?": words(gateReasons),
                "message?": text(upTo: GateMessages.maximumCharacters), "executionId": word,
            ],
            example: [
                "decision": "proceed", "valid": true, "executionId": "0197c0de-0000-7000-8000-000000000002",
            ]),
    ]

    static let checkoutStatus = words(["open", "processing", "paid", "failed", "expired", "cancelled", "refunded"])

    static let executionState = words([
        "created", "processing", "needsCustomer", "authorized", "partiallyCaptured", "captured", "partiallyRefunded",
        "refunded", "cancelled", "failed", "unknown",
    ])

    static let gateReasons = [
        "unknown-execution", "already-paid", "superseded-execution", "checkout-cancelled", "checkout-expired",
        "payment-in-progress", "amount-not-in-step", "amount-mismatch", "basket-changed", "method-not-allowed",
        "validator-refused", "validator-unavailable", "internal",
    ]

    private static let paymentMethods: JSON = ["type": "array", "items": code, "minItems": 1, "maxItems": 50]

    private static let prePayment = object(
        "The customer is about to pay.",
        [
            "executionId": uuid, "paymentMethodCode": code, "action?": code, "amount?": money,
            "basketVersion?": text(upTo: 128),
        ],
        example: ["executionId": "0197c0de-0000-7000-8000-000000000002", "paymentMethodCode": "card"])

    private static let checkoutMembers: Members = [
        "id": uuid, "merchantReference": reference, "holderReference": reference, "status": checkoutStatus,
        "amount": money, "amountVersion": integer(1...Int(Int32.max)),
        "amountState": words(["inStep", "moving", "unknown"]), "basketVersion?": text(upTo: 128),
        "executionId?": uuid, "executions": list(of: ref("CheckoutExecution")), "init?": ref("Init"),
        "clientToken?": ["type": "string", "pattern": "^lsc_[A-Za-z0-9_-]{43}$"], "createdAt": time, "expiresAt": time,
    ]

    private static let checkoutExample: JSON = [
        "id": "0197c0de-0000-7000-8000-000000000001", "merchantReference": "order-1001",
        "holderReference": "customer-17", "status": "open", "amount": ["value": "49.90", "currency": "EUR"],
        "amountVersion": 1, "amountState": "inStep", "executionId": "0197c0de-0000-7000-8000-000000000002",
        "executions": [
            [
                "id": "0197c0de-0000-7000-8000-000000000002", "state": "created", "current": true,
                "createdAt": "2026-12-31T10:00:00Z",
            ]
        ],
        "createdAt": "2026-12-31T10:00:00Z", "expiresAt": "2026-12-31T11:00:00Z",
    ]
}
