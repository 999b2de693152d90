import Basics
import Lockstep

/// A payment at the provider: what was asked for, what is set aside, taken and given back, in minor units.
struct Payment: Sendable {
    /// Section 2.7, "payment record statuses".
    enum Status: String, Sendable {
        case created = "Created"
        case pending = "Pending"
        case unknown = "Unknown"
        case failed = "Failed"
        case authorized = "Authorized"
        case canceled = "Canceled"
        case captured = "Captured"
        case refunded = "Refunded"
        case chargeback = "Chargeback"
    }

    let id: String
    /// Position in the order of creation; cursors are made of it.
    let sequence: Int
    let executionID: String
    let merchantReference: String
    let holderID: String
    let holderReference: String
    let amount: Money
    let methodCode: String
    let integrationType: String
    let createdAt: Timestamp
    let providerReference: String
    var instrumentID: String?
    var storeInstrument: Bool
    var processingType: String?
    var status: Status = .created
    var failureResult: String?
    var history: [(status: Status, time: Timestamp)] = []
    var operations: [Operation] = []

    /// Money was set aside, even if nobody was told.
    var isAuthorized = false
    var voided: Int64 = 0
    var captured: Int64 = 0
    var refunded: Int64 = 0
    var capturing: Int64 = 0
    var refunding: Int64 = 0
    /// A final capture is running or done: no more captures.
    var isClosed = false
    var isCancelling = false
    var isCancelled = false

    struct Operation: Sendable {
        let id: String
        let type: String
        let result: String
        let amount: Money
        let time: Timestamp
    }

    /// What may still be captured, less what is in flight.
    var capturable: Int64 {
        guard isAuthorized, !isClosed, !isCancelling, !isCancelled else { return 0 }
        return amount.minor - voided - captured - capturing
    }

    /// What may still be refunded, counting captures in progress (section 2.6), less what is in flight.
    var refundable: Int64 {
        guard isAuthorized, !isCancelling, !isCancelled else { return 0 }
        return captured + capturing - refunded - refunding
    }

    var isCancellable: Bool {
        guard isAuthorized, !isCancelling, !isCancelled else { return false }
        let isUncaptured = captured == 0 && capturing == 0 && voided < amount.minor
        return isUncaptured || captured + capturing > refunded + refunding
    }

    mutating func move(to next: Status, at time: Timestamp) {
        guard next != status else { return }
        status = next
        history.append((next, time))
    }
}
