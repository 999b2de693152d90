import Basics
import Lockstep

/// The bodies that the API takes, by their section in the reference.
enum Schema {
    static let reasons = [
        "BetterPrice", "CustomerDontNeed", "DamagedProduct", "Duplicate", "FraudulentProduct", "LateDelivery",
        "NoReason", "ProductMismatchDescription", "WrongProduct", "WrongProductSpecification",
    ]
    static let integrationTypes = ["api", "hpp", "inperson"]
    static let futureUsages = ["CardOnFile", "Subscription", "UnscheduledCardOnFile"]
    static let processingTypes = ["Regular", "MOTO", "CardOnFile", "Subscription", "UnscheduledCardOnFile"]

    /// Section 2.1: `meta` may be extended, but what is known of it has its type.
    static let meta = Shape.open([
        "order": .open([
            "reference": .text, "description": .text, "softDescriptor": .text,
            "placement": .open(["country": .open(["code": .text])]),
            "lines": .list(.open(["quantity": .integer])), "total": .anything,
            "processingType": .oneOf(processingTypes + ["InPerson"]), "pendingStateDuration": .duration,
        ]),
        "customer": .open([
            "reference": .text, "name": .text, "lastName": .text, "email": .text,
            "phone": .open(["countryCode": .text, "number": .text]), "country": .open(["code": .text]),
        ]),
        "clientContext": .open([
            "ipAddress": .text, "userAgent": .text, "clientType": .oneOf(["desktop", "mobile", "app"]),
            "osType": .oneOf(["ios", "android"]), "origin": .text, "returnUrl": .text,
        ]),
        "risk": .open(["threeDSMode": .oneOf(["Skip", "Force", "Default"]), "allowNative3DS": .boolean]),
        "subscription": .open([
            "chargeFrequency": .duration, "expiration": .date, "startDate": .date, "scheduledDate": .date,
            "amountType": .oneOf(["fixed", "variable"]),
        ]),
        "tags": .map(.text), "CIT": .boolean, "allowedPaymentMethods": .list(.text),
    ])

    /// Section 2.1.
    static let createExecution = Shape.closed(
        required: ["merchantReference": .text, "holderReference": .text],
        [
            "workspaceId": .uuid, "workflowVersion": .integer, "meta": meta, "applePayConfigId": .text,
            "workflowConfigOverride": .closed([
                "captureMode": .oneOf(["Instant", "Delayed", "Manual"]), "captureDelay": .duration,
                "cancelMode": .oneOf(["Delayed", "Manual"]), "cancelDelay": .duration,
            ]),
            "initialActions": .list(
                .closed(
                    required: [
                        "action": .oneOf(["lookup", "startPaymentSession", "authorize"]), "method": .oneOf(["POST"]),
                    ], ["body": .anything])),
        ])

    /// Section 2.5.
    static let lookup = Shape.closed(["amount": .money, "meta": meta])
    static let startPaymentSession = Shape.closed(
        required: ["integrationType": .oneOf(integrationTypes), "amount": .money],
        ["paymentMethodCode": .text, "returnInfo": returnInfo, "meta": meta])
    static let returnInfo = Shape.closed(
        required: ["success": .address], ["cancel": .address, "error": .address, "pending": .address])
    static let authorize = Shape.closed(
        required: ["amount": .money, "returnInfo": returnInfo, "paymentComposition": .list(composition)],
        ["meta": meta, "paymentSplits": .list(.anything)])
    static let composition = Shape.closed(
        required: ["integrationType": .oneOf(integrationTypes), "amount": .money],
        [
            "paymentMethodCode": .text, "paymentInstrumentId": .uuid,
            "paymentInstrumentData": .open(["futureUsage": .oneOf(futureUsages), "encryptedData": .text]),
            "storeInstrument": .boolean, "enrollInstrumentToNetworkOffers": .boolean,
            "installments": .closed(required: ["count": .integer]), "paymentProcessingType": .oneOf(processingTypes),
        ])
    static let confirm = Shape.closed(required: ["data": .map(.anything)], ["actionId": .uuid, "meta": meta])
    static let capture = Shape.closed([
        "amount": .money, "reason": .oneOf(reasons), "reasonDescription": .text, "meta": meta, "final": .boolean,
    ])
    static let cancel = Shape.closed(["reason": .oneOf(reasons), "reasonDescription": .text, "meta": meta])
    static let refund = Shape.closed([
        "amount": .money, "reason": .oneOf(reasons), "reasonDescription": .text, "paymentId": .uuid, "meta": meta,
    ])

    /// Section 3.1.
    static func clientInit(_ type: String) -> Shape? {
        switch type {
        case "dropIn":
            return .closed(
                required: [
                    "type": .text, "workflowCode": .text, "merchantReference": .text, "amount": .money,
                ],
                [
                    "holderReference": .text, "workflowVersion": .integer, "workspaceId": .uuid, "meta": meta,
                    "applePayConfigId": .text,
                ])
        case "tokenization":
            return .closed(
                required: ["type": .text],
                [
                    "holderReference": .text, "merchantReference": .text, "amount": .money, "meta": meta,
                    "workspaceId": .uuid, "applePayConfigId": .text,
                ])
        case "secureFields":
            return .closed(
                required: ["type": .text],
                ["holderReference": .text, "instrumentId": .uuid, "workflowCode": .text, "workspaceId": .uuid])
        default: return nil
        }
    }

    /// Section 6.3.
    static let createInstrument = Shape.closed(
        required: ["paymentMethod": .text],
        [
            "holderId": .uuid, "holderReference": .text, "futureUsage": .oneOf(futureUsages),
            "storeInstrument": .boolean, "default": .boolean, "networkTransactionReference": .text,
            "merchantReference": .text, "provisionNetworkToken": .boolean,
            "data": .open([
                "network": .text, "bin": .text, "suffix": .text, "expiryMonth": .text, "expiryYear": .text,
                "holderName": .text, "email": .text, "encryptedData": .text,
            ]),
        ])
    static let updateInstrument = Shape.closed([
        "status": .oneOf(["enabled", "disabled"]), "networkTransactionReference": .text, "merchantReference": .text,
        "paymentMethod": .text, "default": .boolean,
    ])
    static let createHolder = Shape.closed(required: ["reference": .text], ["meta": .anything])
}
