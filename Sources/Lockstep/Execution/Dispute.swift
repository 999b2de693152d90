import Basics

/// A dispute as the provider last told of it: a customer, or a bank, wants money back. It changes no state and no amount
/// of its execution.
public struct Dispute: Hashable, Sendable {
    public let id: String
    public let execution: ExecutionID
    public let paymentID: String?
    /// As the provider names it: `DisputeOpened`, `DisputeLost`, …
    public let status: String
    public let reason: String?
    public let amount: Money?
    /// When it came to this status, by the provider's clock.
    public let at: Timestamp

    /// - Returns: nil for a fact that is about something else.
    init?(_ fact: Fact, of execution: ExecutionID) {
        guard fact.kind == .dispute, let id = fact.disputeID, let status = fact.code else { return nil }
        self.id = id
        self.execution = execution
        paymentID = fact.paymentID
        self.status = status
        reason = fact.reason
        amount = fact.amount
        at = fact.at
    }

    /// The disputes about an execution, each as it stands, by id. Which facts there are decides, not when they came.
    public static func standing(_ facts: [Fact], of execution: ExecutionID) -> [Dispute] {
        var newest: [String: Fact] = [:]
        for fact in facts where fact.kind == .dispute {
            guard let id = fact.disputeID else { continue }
            if let known = newest[id], (known.at, known.identity) >= (fact.at, fact.identity) { continue }
            newest[id] = fact
        }
        return newest.values.compactMap { Dispute($0, of: execution) }.sorted { $0.id < $1.id }
    }

    /// The Dispute object of the contract.
    public var json: JSON {
        .compact([
            "id": .string(id), "executionId": .string(execution.description), "paymentId": paymentID.map(JSON.string),
            "status": .string(status), "reason": reason.map(JSON.string), "amount": amount?.json,
            "at": .string(at.rfc3339),
        ])
    }
}
