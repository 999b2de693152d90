import Basics
import Foundation

/// Something that doesn't add up, until facts or a person resolve it.
public struct Discrepancy: Hashable, Sendable {
    public enum Class: String, Hashable, Sendable, CaseIterable {
        case missingHere = "missing-here"
        case missingThere = "missing-there"
        case stateMismatch = "state-mismatch"
        case amountMismatch = "amount-mismatch"
        case capturedMismatch = "captured-mismatch"
        case refundedMismatch = "refunded-mismatch"
        case duplicatePayment = "duplicate-payment"
        case unresolvedOperation = "unresolved-operation"
        case overdueFinalState = "overdue-final-state"
    }

    public enum State: String, Hashable, Sendable, CaseIterable { case open, resolved }

    public let id: DiscrepancyID
    public let cause: DiscrepancyCause
    public var state: State
    public let firstSeenAt: Timestamp
    public var lastSeenAt: Timestamp
    public var resolvedAt: Timestamp?
    /// What a person did about it. One that facts resolved has none.
    public var note: String?

    public init(
        id: DiscrepancyID, cause: DiscrepancyCause, state: State = .open, firstSeenAt: Timestamp,
        lastSeenAt: Timestamp, resolvedAt: Timestamp? = nil, note: String? = nil
    ) {
        self.id = id
        self.cause = cause
        self.state = state
        self.firstSeenAt = firstSeenAt
        self.lastSeenAt = lastSeenAt
        self.resolvedAt = resolvedAt
        self.note = note
    }

    /// The Discrepancy object of the contract.
    public var json: JSON {
        .compact([
            "id": .string(id.description),
            "class": .string(cause.kind.rawValue),
            "state": .string(state.rawValue),
            "merchantReference": cause.merchantReference.map(JSON.string),
            "executionId": cause.execution.map { .string($0.description) },
            "paymentId": cause.paymentID.map(JSON.string),
            "amount": cause.amount?.json,
            "here": cause.here.map(JSON.string),
            "there": cause.there.map(JSON.string),
            "firstSeenAt": .string(firstSeenAt.rfc3339),
            "lastSeenAt": .string(lastSeenAt.rfc3339),
            "resolvedAt": resolvedAt.map { .string($0.rfc3339) },
            "note": note.map(JSON.string),
        ])
    }
}

/// What doesn't add up: of which class, about what, and both sides of it.
public struct DiscrepancyCause: Hashable, Sendable {
    public let kind: Discrepancy.Class
    /// The id of the execution or operation that it is about. One class is open about one subject once.
    public let subject: UUID
    public let merchantReference: String?
    public let execution: ExecutionID?
    public let paymentID: String?
    public let amount: Money?
    /// How it stands in the books, for a person.
    public let here: String?
    /// How it stands at the provider.
    public let there: String?

    public init(
        kind: Discrepancy.Class, subject: UUID, merchantReference: String? = nil, execution: ExecutionID? = nil,
        paymentID: String? = nil, amount: Money? = nil, here: String? = nil, there: String? = nil
    ) {
        self.kind = kind
        self.subject = subject
        self.merchantReference = merchantReference
        self.execution = execution
        self.paymentID = paymentID
        self.amount = amount
        self.here = here
        self.there = there
    }

    /// What makes two causes the same one.
    public struct Key: Hashable, Sendable {
        public let kind: Discrepancy.Class
        public let subject: UUID
    }
    public var key: Key { Key(kind: kind, subject: subject) }
}
