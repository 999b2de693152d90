import Basics

extension Subscription {
    /// The object of the contract.
    public var json: JSON {
        .compact([
            "id": .string(id.description),
            "merchantReference": .string(merchantReference),
            "holderReference": .string(holderReference),
            "instrumentId": .string(instrument.description),
            "amount": amount.json,
            "interval": .string(interval.description),
            "startsOn": .string(startsOn.description),
            "timezone": .string(timezone.identifier),
            "endsOn": endsOn.map { .string($0.description) },
            "maxCharges": maxCharges.map { JSON($0) },
            "expiryPolicy": .string(expiryPolicy.rawValue),
            "status": .string(status.rawValue),
            "nextChargeOn": nextChargeOn.map { .string($0.description) },
            "meta": meta,
        ])
    }
}
