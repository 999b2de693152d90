import Basics

/// A fact with the time at which it was learned here.
public struct LearnedFact: Hashable, Sendable {
    public let fact: Fact
    public let learnedAt: Timestamp

    public init(fact: Fact, learnedAt: Timestamp) {
        self.fact = fact
        self.learnedAt = learnedAt
    }

    func json(of execution: ExecutionID) -> JSON {
        .compact([
            "kind": .string(fact.kind.rawValue),
            "code": fact.code.map(JSON.string),
            "action": fact.action.map(JSON.string),
            "success": fact.success.map(JSON.bool),
            "amount": fact.amount?.json,
            // A dispute's is whatever somebody wrote.
            "reason": fact.reason.map { .string(fact.kind == .dispute ? $0 : DeclinePolicy.result(of: $0)) },
            "dispute": Dispute(fact, of: execution)?.json,
            "at": .string(fact.at.rfc3339),
            "learnedAt": .string(learnedAt.rfc3339),
            "source": .string(fact.source.rawValue),
        ])
    }
}

extension CheckoutExecution {
    /// The Execution object of the contract.
    public func json(of owner: ExecutionOwner, facts: [LearnedFact]) -> JSON {
        var checkout: CheckoutID?
        var charge: ChargeID?
        switch owner {
        case .checkout(let id): checkout = id
        case .charge(let id): charge = id
        }
        let zero = Money(minor: 0, currency: amount.currency)
        // Nothing happened is zero; that something happened and nobody knows how much is no figure.
        func money(_ known: Money?, _ happened: Bool) -> JSON? { (known ?? (happened ? nil : zero))?.json }
        // What was captured had been authorized, also where only the capture is known yet.
        let authorized = picture.authorized ?? picture.captured
        return .compact([
            "id": .string(id.description),
            "checkoutId": checkout.map { .string($0.description) },
            "chargeId": charge.map { .string($0.description) },
            "merchantReference": .string(merchantReference),
            "state": .string(state.rawValue),
            "amount": amount.json,
            "amounts": .compact([
                "authorized": money(authorized, state.holdsMoney || state == .refunded || picture.hidesCharge),
                "captured": money(picture.captured, state.wasCaptured),
                "refunded": money(picture.refunded, state == .partiallyRefunded || state == .refunded),
            ]),
            "paymentMethodCode": picture.paymentMethodCode.map(JSON.string),
            "paymentIds": .array(picture.paymentIDs.map(JSON.string)),
            "facts": .array(
                facts.sorted { ($0.fact.at, $0.fact.identity) < ($1.fact.at, $1.fact.identity) }
                    .map { $0.json(of: id) }),
        ])
    }
}
