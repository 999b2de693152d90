import Basics
import Lockstep

/// One entry of `status[]`.
struct StatusEntry: Sendable {
    let code: String
    let time: Timestamp
    let errors: [JSON]
}

enum CaptureMode: String, Sendable { case instant = "Instant", delayed = "Delayed", manual = "Manual" }
enum CancelMode: String, Sendable { case delayed = "Delayed", manual = "Manual" }

/// An authorization that was asked for and has no final result yet.
struct AuthorizationAttempt: Sendable {
    let actionID: String
    var outcome: SandboxOutcome
    var delay: Duration
    /// A first provider has already declined (cascade).
    var hasFailedOnce = false
    /// Waits for the customer: 3-D Secure, a redirect, or a confirmation.
    var waitsFor: CustomerAction?
    var isAbandoned = false
}

enum CustomerAction: String, Sendable { case threeDS = "3ds", redirect, confirm }

/// A capture, cancel or refund that was acknowledged and has no result yet.
struct RunningAction: Sendable {
    let id: String
    /// Nil for a cancel, which is always of everything.
    let amount: Money?
    let isFinal: Bool
    let outcome: SandboxOutcome
}

/// Section 2: an execution of a workflow.
struct Execution: Sendable {
    let id: String
    let sequence: Int
    let workflowCode: String
    let workflowVersion: Int
    let merchantReference: String
    let holderReference: String
    let holderID: String
    let workspaceID: String
    let createdAt: Timestamp
    /// The addresses that were set when it was created; later changes don't touch it (section 5.1).
    let targets: [NotificationTarget]
    var meta: JSON
    var amount: Money?
    var captureMode: CaptureMode
    var captureDelay: Duration
    var cancelMode: CancelMode
    var cancelDelay: Duration
    var statuses: [StatusEntry] = []
    var initialResults: [JSON] = []
    var returnInfo: JSON?
    var composition: JSON?
    var attempt: AuthorizationAttempt?
    var authorizeActionID: String?
    var running: [String: RunningAction] = [:]
    var actions: [ActionRecord] = []
    var paymentID: String?
    var captureScheduled = false
    var cancelScheduled = false
    /// The bearer that the init's payload gave to the app.
    var clientToken: String?

    struct ActionRecord: Sendable {
        let id: String
        let name: String
        let time: Timestamp
        let amount: Money?
    }

    var lastStatus: StatusEntry? { statuses.max { $0.time < $1.time } }
    var lastStatusTime: Timestamp { lastStatus?.time ?? createdAt }
    var codes: Set<String> { Set(statuses.map(\.code)) }
    var actionRequired: CustomerAction? { attempt?.waitsFor }
}
