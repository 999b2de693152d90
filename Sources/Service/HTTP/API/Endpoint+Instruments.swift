import Basics

extension Endpoint {
    public static let createTokenization = Endpoint(
        "createTokenization", "POST", "/v1/tokenizations", access: .scope(.instruments), body: .json(optional: false),
        idempotency: .required,
        summary: "Gives an init to save a card without a charge, or to collect a security code again.",
        request: "NewTokenization", responses: [.json(201, "Tokenization", "What the SDK starts from.")],
        problems: [.instrumentOfAnotherHolder, .creationRefused, .providerRefused, .providerUnreadable])

    public static let saveInstrument = Endpoint(
        "saveInstrument", "POST", "/v1/holders/{holderReference}/instruments", access: .scope(.instruments),
        body: .json(optional: false), idempotency: .required,
        summary: "Takes over an instrument that the app got by tokenizing, read from Payrails.",
        request: "SavedInstrument", responses: [.json(201, "Instrument", "The instrument.")],
        problems: [.notFound, .instrumentOfAnotherHolder, .providerRefused, .providerUnreadable])

    public static let listInstruments = Endpoint(
        "listInstruments", "GET", "/v1/holders/{holderReference}/instruments", access: .scope(.instruments),
        summary: "Lists a holder's saved instruments, read from Payrails.",
        query: [
            QueryParameter(
                "includeExpired", ["type": "string", "enum": ["true", "false"], "default": "true"],
                "Whether cards whose month has passed are shown too. An expiry that nobody knows is no reason."),
            .limit(), .after,
        ], responses: [.json(200, "InstrumentList", "The instruments.")],
        problems: [.providerRefused, .providerUnreadable])

    public static let changeInstrument = Endpoint(
        "changeInstrument", "PATCH", "/v1/instruments/{id}", access: .scope(.instruments),
        body: .json(optional: false), summary: "Makes an instrument the default one, enables or disables it.",
        request: "InstrumentChange", responses: [.json(200, "Instrument", "The instrument.")],
        problems: [.notFound, .providerRefused, .providerUnreadable])

    public static let deleteInstrument = Endpoint(
        "deleteInstrument", "DELETE", "/v1/instruments/{id}", access: .scope(.instruments),
        summary: "Deletes an instrument; said again, the same answer.",
        responses: [.empty(204, "It is deleted.")], problems: [.notFound, .providerRefused, .providerUnreadable])
}
