import Basics

extension Money {
    /// As the contract writes it, always with exactly the currency's decimals.
    public var json: JSON { ["value": .string(value), "currency": .string(currency.code)] }
}

extension Checkout {
    /// The object of the contract, as the feed shows it: without the init payload and without a token.
    public func json(executions: [CheckoutExecution]) -> JSON {
        .compact([
            "id": .string(id.description),
            "merchantReference": .string(merchantReference),
            "holderReference": .string(holderReference),
            "status": .string(status.rawValue),
            "amount": amount.json,
            "amountVersion": JSON(amountVersion),
            "amountState": .string(amountState.rawValue),
            "basketVersion": basketVersion.map(JSON.string),
            "executionId": currentExecution.map { .string($0.description) },
            "executions": .array(
                executions.sorted { $0.ordinal < $1.ordinal }.map { execution in
                    [
                        "id": .string(execution.id.description),
                        "state": .string(execution.state.rawValue),
                        "current": .bool(execution.id == currentExecution),
                        "createdAt": .string(execution.createdAt.rfc3339),
                    ]
                }),
            "createdAt": .string(createdAt.rfc3339),
            "expiresAt": .string(expiresAt.rfc3339),
        ])
    }
}

extension InitPayload {
    /// The two strings that the SDK is started with. A secret: for the answer to the app or shop, never for a log.
    public var json: JSON { ["version": .string(version), "data": .string(data.reveal)] }
}
