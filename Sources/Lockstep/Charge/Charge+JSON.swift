import Basics

extension Charge {
    /// The object of the contract.
    public var json: JSON {
        .compact([
            "id": .string(id.description),
            "state": .string(state.rawValue),
            "merchantReference": .string(merchantReference),
            "holderReference": .string(holderReference),
            "instrumentId": .string(instrument.description),
            "amount": amount.json,
            "subscriptionId": subscription.map { .string($0.description) },
            "period": period.map {
                [
                    "index": JSON($0.index), "start": .string($0.start.description), "end": .string($0.end.description),
                ]
            },
            "attempts": .array(attempts.sorted { $0.number < $1.number }.map(\.json)),
            "nextAttemptAt": nextAttemptAt.map { .string($0.rfc3339) },
            "reason": reason.map { .string(DeclinePolicy.result(of: $0)) },
        ])
    }
}

extension ChargeAttempt {
    var json: JSON {
        .compact([
            "number": JSON(number),
            "at": .string(begunAt.rfc3339),
            "executionId": execution.map { .string($0.description) },
            "outcome": .string(outcome.rawValue),
            "reason": reason.map { .string(DeclinePolicy.result(of: $0)) },
        ])
    }
}
