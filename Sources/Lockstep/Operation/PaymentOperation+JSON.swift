import Basics

extension PaymentOperation {
    /// The Operation object of the contract.
    public var json: JSON {
        .compact([
            "id": .string(id.description),
            "kind": .string(kind.rawValue),
            "state": .string(state.name),
            "amount": amount?.json,
            "executionId": execution.map { .string($0.id.description) },
            "reason": reason.map { .string(DeclinePolicy.result(of: $0)) },
            "createdAt": .string(createdAt.rfc3339),
        ])
    }
}
