import Basics
import Foundation

/// A call that changes something at the provider: its intent, its key and its state, written before it is sent
/// (invariant M12). Requests, workers and restarts go through the same steps, so a crash between any two lines leaves
/// something that says what to do next.
public struct PaymentOperation: Hashable, Sendable {
    public enum Kind: String, Hashable, Sendable, CaseIterable {
        case createSession, moveAmount, capture, cancel, refund
        /// The two calls of a charge's attempt.
        case createExecution, authorize
        case tokenization, changeInstrument, deleteInstrument
    }

    /// `prepared → sent → acknowledged → succeeded | failed`, with `unknown` beside `sent` until somebody has looked.
    public enum State: String, Hashable, Sendable, CaseIterable {
        /// Written down, not sent by anyone.
        case prepared
        /// Being sent, or its sender died.
        case sent
        /// The provider took it on; its result comes as a fact.
        case acknowledged
        case succeeded
        /// Certainly did not happen.
        case failed
        /// May have happened (invariant M7).
        case unknown

        public var isFinal: Bool { self == .succeeded || self == .failed }

        /// As the contract shows it: `pending, succeeded, failed, unknown`.
        public var name: String {
            switch self {
            case .prepared, .sent, .acknowledged: "pending"
            case .succeeded, .failed, .unknown: rawValue
            }
        }
    }

    public let id: OperationID
    public let kind: Kind
    /// What it is for: a checkout, a charge, or neither.
    public let owner: ExecutionOwner?
    /// Whose change it is, or whose security code is collected again.
    public let instrument: InstrumentID?
    /// Nil while it is being created, and where there is none.
    public var execution: ExecutionReference?
    /// The provider's key for this intent.
    public var key: IdempotencyKey
    public var state: State
    public let amount: Money?
    public let isFinalCapture: Bool?
    /// The basket's version that a change of the amount brings with it; nil: it stays as it is.
    public let basketVersion: String?
    /// Why it is wanted: what the shop said, or why Lockstep decided it. ``shopReason`` is the shop's alone.
    public let intentReason: String?
    /// The provider's id of the action, once it took it on.
    public var actionID: String?
    /// Why it failed, or why nobody knows.
    public var reason: String?
    /// How often it was sent.
    public var attempts: Int
    public let createdAt: Timestamp
    public var sentAt: Timestamp?

    public init(
        id: OperationID, kind: Kind, owner: ExecutionOwner?, execution: ExecutionReference?, key: IdempotencyKey,
        instrument: InstrumentID? = nil, state: State = .prepared, amount: Money? = nil, isFinalCapture: Bool? = nil,
        basketVersion: String? = nil, intentReason: String? = nil,
        actionID: String? = nil, reason: String? = nil, attempts: Int = 0, createdAt: Timestamp,
        sentAt: Timestamp? = nil
    ) {
        self.id = id
        self.kind = kind
        self.owner = owner
        self.instrument = instrument
        self.execution = execution
        self.key = key
        self.state = state
        self.amount = amount
        self.isFinalCapture = isFinalCapture
        self.basketVersion = basketVersion
        self.intentReason = intentReason
        self.actionID = actionID
        self.reason = reason
        self.attempts = attempts
        self.createdAt = createdAt
        self.sentAt = sentAt
    }

    public var checkout: CheckoutID? { if case .checkout(let id) = owner { id } else { nil } }
    public var charge: ChargeID? { if case .charge(let id) = owner { id } else { nil } }

    /// Whether somebody else took it up since it was claimed, because that claim's lease was over. What the slower one
    /// heard then decides nothing, unless it is what certainly happened.
    public func wasTaken(since claimed: PaymentOperation) -> Bool { attempts != claimed.attempts || key != claimed.key }
}

extension PaymentOperation.Kind {
    /// What the shop can ask for and look up: it moves money that an execution holds.
    public var isLifecycle: Bool { self == .capture || self == .cancel || self == .refund }
}
