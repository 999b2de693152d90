import Basics

extension Schemas {
    static let instruments: [String: JSON] = [
        "NewTokenization": object(
            "What is to be collected. `secureFields` with `instrumentId` collects a security code again.",
            [
                "holderReference": reference, "kind?": words(["tokenization", "secureFields"]), "instrumentId?": uuid,
            ], example: ["holderReference": "customer-17"]),
        "Tokenization": object("What the SDK starts from.", ["id": uuid, "init": ref("Init")]),
        "SavedInstrument": object(
            "The instrument that the app got.", ["instrumentId": uuid],
            example: ["instrumentId": "0197c0de-0000-7000-8000-000000000004"]),
        "Instrument": object(
            "A saved card, wallet or account.",
            [
                "id": uuid, "holderReference": word, "paymentMethod": word, "status": word, "default": flag,
                "displayName?": word, "network?": word, "suffix?": word, "expiry": ref("Expiry"),
                "hasNetworkToken": flag, "futureUsage?": word,
            ],
            example: [
                "id": "0197c0de-0000-7000-8000-000000000004", "holderReference": "customer-17",
                "paymentMethod": "card", "status": "enabled", "default": true, "network": "visa", "suffix": "1111",
                "expiry": ["month": 12, "year": 2027, "state": "valid"], "hasNetworkToken": false,
            ]),
        "Expiry": object(
            "Valid through the last day of its month. Unknown isn't expired.",
            [
                "month?": integer(1...12), "year?": integer(2000...2999),
                "state": words(["valid", "expired", "unknown"]),
            ], example: ["month": 12, "year": 2027, "state": "valid"]),
        "InstrumentList": page(of: "Instrument"),
        "InstrumentChange": object(
            "What changes; at least one of the two.",
            ["default?": ["const": true], "status?": words(["enabled", "disabled"])],
            example: ["default": true]),
    ]
}
