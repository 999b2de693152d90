import Basics
import Foundation

/// What Lockstep needs of a payment provider, in the field's words. Payrails is one; Purse comes later.
///
/// Every call that changes something takes its ``IdempotencyKey`` as a parameter, so that none can forget it, and
/// returns an ``Outcome``, so that none can ignore that nobody knows. No method throws: what went wrong is an outcome.
public protocol PaymentProvider: Sendable {
    /// Creates an execution and the payload that the app's SDK starts from.
    func createSession(_ request: SessionRequest, key: IdempotencyKey) async -> Outcome<Session>

    /// Creates a payload that saves a card without a charge, or collects a security code again.
    func createTokenization(_ request: TokenizationRequest, key: IdempotencyKey) async -> Outcome<InitPayload>

    /// Moves the amount of an execution that nobody has paid yet.
    /// The amount that the provider's answer shows, nil where it shows none; then read the execution.
    func moveAmount(_ execution: ExecutionReference, to amount: Money, key: IdempotencyKey) async -> Outcome<Money?>

    func capture(_ execution: ExecutionReference, _ request: CaptureRequest, key: IdempotencyKey) async -> Outcome<
        Acknowledgement
    >
    func cancel(_ execution: ExecutionReference, reason: String?, key: IdempotencyKey) async -> Outcome<Acknowledgement>
    func refund(_ execution: ExecutionReference, _ request: RefundRequest, key: IdempotencyKey) async -> Outcome<
        Acknowledgement
    >
    /// Creates an execution without the customer, one for each attempt of a charge; ``authorize(_:_:key:)`` charges it.
    func createExecution(_ request: ExecutionRequest, key: IdempotencyKey) async -> Outcome<ExecutionSnapshot>
    /// Charges a saved instrument without the customer.
    func authorize(_ execution: ExecutionReference, _ request: AuthorizeRequest, key: IdempotencyKey) async -> Outcome<
        Acknowledgement
    >

    /// What the provider knows about one execution now. `wait`: return early only when its status changed.
    func readExecution(_ execution: ExecutionReference, wait: ExecutionWait?) async -> Outcome<ExecutionSnapshot>
    /// The executions that carry this reference, newest first.
    ///
    /// - Parameter workflowCode: the workflow that they run in; nil: the one that is usual here.
    func findExecutions(merchantReference: String, workflowCode: String?) async -> Outcome<[ExecutionSnapshot]>
    /// One page of payment records; follow ``PaymentPage/next``.
    func listPayments(_ filter: PaymentFilter, after: String?) async -> Outcome<PaymentPage>

    func listInstruments(holderReference: String) async -> Outcome<[InstrumentSnapshot]>
    func readInstrument(_ id: InstrumentID) async -> Outcome<InstrumentSnapshot>
    func updateInstrument(_ id: InstrumentID, _ change: InstrumentChange, key: IdempotencyKey) async -> Outcome<
        InstrumentSnapshot
    >
    func deleteInstrument(_ id: InstrumentID, key: IdempotencyKey) async -> Outcome<Void>

    /// Whether the provider lets us in: a fresh token, nothing else. For `lockstep doctor`.
    func checkCredentials() async -> Outcome<Void>
}

extension PaymentProvider {
    /// Those of the workflow that is usual here.
    public func findExecutions(merchantReference: String) async -> Outcome<[ExecutionSnapshot]> {
        await findExecutions(merchantReference: merchantReference, workflowCode: nil)
    }
}

/// An execution and the workflow that it belongs to; both are in the provider's addresses.
public struct ExecutionReference: Hashable, Sendable {
    public let id: ExecutionID
    public let workflowCode: String
    public init(id: ExecutionID, workflowCode: String) {
        self.id = id
        self.workflowCode = workflowCode
    }
}

public struct SessionRequest: Hashable, Sendable {
    public let workflowCode: String
    public let merchantReference: String
    public let holderReference: String
    public let amount: Money
    /// Method codes that the shop allows; nil: all.
    public let allowedPaymentMethods: [String]?
    /// The shop's own `meta`, passed through.
    public let meta: JSON?

    public init(
        workflowCode: String, merchantReference: String, holderReference: String, amount: Money,
        allowedPaymentMethods: [String]? = nil, meta: JSON? = nil
    ) {
        self.workflowCode = workflowCode
        self.merchantReference = merchantReference
        self.holderReference = holderReference
        self.amount = amount
        self.allowedPaymentMethods = allowedPaymentMethods
        self.meta = meta
    }
}

public struct TokenizationRequest: Hashable, Sendable {
    public enum Kind: String, Sendable, CaseIterable { case tokenization, secureFields }
    public let kind: Kind
    public let holderReference: String
    /// The saved instrument whose security code is collected again (`secureFields`).
    public let instrumentID: InstrumentID?
    public init(kind: Kind, holderReference: String, instrumentID: InstrumentID? = nil) {
        self.kind = kind
        self.holderReference = holderReference
        self.instrumentID = instrumentID
    }
}

/// What the SDK is started with; handed to the app untouched. Holds a client token, so it is a secret.
public struct InitPayload: Hashable, Sendable {
    /// The SDK version string of the answer.
    public let version: String
    /// Base64 of a JSON object.
    public let data: Secret<String>
    public init(version: String, data: Secret<String>) {
        self.version = version
        self.data = data
    }
}

public struct Session: Sendable {
    public let payload: InitPayload
    /// The execution that was created, as the payload shows it.
    public let execution: ExecutionSnapshot
    public init(payload: InitPayload, execution: ExecutionSnapshot) {
        self.payload = payload
        self.execution = execution
    }
}

public struct CaptureRequest: Hashable, Sendable {
    /// Nil: all of it.
    public let amount: Money?
    /// False keeps the rest of the authorization for later captures; nil leaves it to the provider (final).
    public let isFinal: Bool?
    public let reason: String?
    public init(amount: Money? = nil, isFinal: Bool? = nil, reason: String? = nil) {
        self.amount = amount
        self.isFinal = isFinal
        self.reason = reason
    }
}

public struct RefundRequest: Hashable, Sendable {
    /// Nil: all that is captured.
    public let amount: Money?
    public let reason: String?
    public init(amount: Money? = nil, reason: String? = nil) {
        self.amount = amount
        self.reason = reason
    }
}

/// An execution that is charged without the customer: one for each attempt (reference 6.2).
public struct ExecutionRequest: Hashable, Sendable {
    public let workflowCode: String
    public let merchantReference: String
    public let holderReference: String
    /// Only used where the configuration says that `meta` repeats it.
    public let processing: AuthorizeRequest.Processing?
    public let meta: JSON?

    public init(
        workflowCode: String, merchantReference: String, holderReference: String,
        processing: AuthorizeRequest.Processing? = nil, meta: JSON? = nil
    ) {
        self.workflowCode = workflowCode
        self.merchantReference = merchantReference
        self.holderReference = holderReference
        self.processing = processing
        self.meta = meta
    }
}

public struct AuthorizeRequest: Hashable, Sendable {
    public enum Processing: String, Sendable {
        case subscription = "Subscription"
        case unscheduled = "UnscheduledCardOnFile"
    }
    public let amount: Money
    public let instrumentID: InstrumentID
    public let paymentMethodCode: String
    public let processing: Processing
    public let returnURL: String
    public init(
        amount: Money, instrumentID: InstrumentID, paymentMethodCode: String, processing: Processing, returnURL: String
    ) {
        self.amount = amount
        self.instrumentID = instrumentID
        self.paymentMethodCode = paymentMethodCode
        self.processing = processing
        self.returnURL = returnURL
    }
}

/// The provider took an action on; its result comes later, by notification or by reading.
public struct Acknowledgement: Hashable, Sendable {
    public let actionID: String?
    public let executedAt: Timestamp?
    public init(actionID: String?, executedAt: Timestamp?) {
        self.actionID = actionID
        self.executedAt = executedAt
    }
}

public struct ExecutionWait: Hashable, Sendable {
    /// Return when a status newer than this one is there.
    public let newerThan: Timestamp
    /// How long we wait at most before asking again.
    public let patience: Duration
    public init(newerThan: Timestamp, patience: Duration) {
        self.newerThan = newerThan
        self.patience = patience
    }
}

/// One reading of an execution. Everything that may be missing is optional.
public struct ExecutionSnapshot: Hashable, Sendable {
    public let reference: ExecutionReference
    public let merchantReference: String?
    public let holderReference: String?
    public let workspaceID: String?
    /// Nil until an action has set one, and where it can't be read exactly.
    public let amount: Money?
    public let createdAt: Timestamp?
    /// What this reading says happened.
    public let facts: [Fact]
    public init(
        reference: ExecutionReference, merchantReference: String?, holderReference: String?, workspaceID: String?,
        amount: Money?, createdAt: Timestamp?, facts: [Fact]
    ) {
        self.reference = reference
        self.merchantReference = merchantReference
        self.holderReference = holderReference
        self.workspaceID = workspaceID
        self.amount = amount
        self.createdAt = createdAt
        self.facts = facts
    }
}

public struct PaymentFilter: Hashable, Sendable {
    public let merchantReference: String?
    /// Created in `[from, to)`.
    public let createdFrom: Timestamp?
    public let createdTo: Timestamp?
    public init(merchantReference: String? = nil, createdFrom: Timestamp? = nil, createdTo: Timestamp? = nil) {
        self.merchantReference = merchantReference
        self.createdFrom = createdFrom
        self.createdTo = createdTo
    }
}

public struct PaymentRecord: Hashable, Sendable {
    public let id: String
    /// As the provider names it: `Authorized`, `Captured`, …
    public let status: String
    public let merchantReference: String?
    public let amount: Money?
    public let capturedAmount: Money?
    public let refundedAmount: Money?
    public let createdAt: Timestamp?
    public init(
        id: String, status: String, merchantReference: String?, amount: Money?, capturedAmount: Money?,
        refundedAmount: Money?, createdAt: Timestamp?
    ) {
        self.id = id
        self.status = status
        self.merchantReference = merchantReference
        self.amount = amount
        self.capturedAmount = capturedAmount
        self.refundedAmount = refundedAmount
        self.createdAt = createdAt
    }
}

public struct PaymentPage: Hashable, Sendable {
    public let records: [PaymentRecord]
    public let next: String?
    public init(records: [PaymentRecord], next: String?) {
        self.records = records
        self.next = next
    }
}

/// A saved instrument as the provider shows it.
public struct InstrumentSnapshot: Hashable, Sendable {
    public let id: InstrumentID
    public let holderReference: String?
    public let paymentMethod: String
    public let status: String
    public let isDefault: Bool
    public let displayName: String?
    public let network: String?
    public let suffix: String?
    /// 1 to 12; nil when missing or unreadable, which is not the same as expired.
    public let expiryMonth: Int?
    public let expiryYear: Int?
    /// Nil where the reading doesn't tell, as lists don't.
    public let hasNetworkToken: Bool?
    public let futureUsage: String?
    public init(
        id: InstrumentID, holderReference: String?, paymentMethod: String, status: String, isDefault: Bool,
        displayName: String?, network: String?, suffix: String?, expiryMonth: Int?, expiryYear: Int?,
        hasNetworkToken: Bool?, futureUsage: String?
    ) {
        self.id = id
        self.holderReference = holderReference
        self.paymentMethod = paymentMethod
        self.status = status
        self.isDefault = isDefault
        self.displayName = displayName
        self.network = network
        self.suffix = suffix
        self.expiryMonth = expiryMonth
        self.expiryYear = expiryYear
        self.hasNetworkToken = hasNetworkToken
        self.futureUsage = futureUsage
    }
}

public struct InstrumentChange: Hashable, Sendable {
    public let makeDefault: Bool
    public let isEnabled: Bool?
    public init(makeDefault: Bool = false, isEnabled: Bool? = nil) {
        self.makeDefault = makeDefault
        self.isEnabled = isEnabled
    }
}
