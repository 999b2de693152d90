import Basics
import HTTPClient

/// Where notifications go, and what signs them: each address has its own key (section 5.1).
public struct NotificationTarget: Hashable, Sendable {
    public let url: String
    /// The key as the portal shows it; its UTF-8 bytes sign.
    public let key: String
    public init(url: String, key: String) {
        self.url = url
        self.key = key
    }
}

/// Everything about the stand-in that can be set. The defaults are quick, for tests; the program has slower ones.
public struct SandboxConfiguration: Sendable {
    /// Where capture, cancel and refund that the state doesn't allow are refused (section 2.6 leaves both open).
    public enum RefusalStyle: String, Sendable {
        /// 409 `workflow.action.not-allowed`.
        case answered
        /// 202, then a failed status and a notification with the older error shape.
        case notified
    }
    /// How lists name the next page (section 1.7).
    public enum PagingShape: String, Sendable { case links, paging, mixed }

    public var host = "127.0.0.1"
    /// 0: any free port.
    public var port: UInt16 = 0
    public var clientID = "5d2f3c1a-4b8e-4c61-9d0a-2f6f3b1c7e01"
    public var clientSecret = "sandbox-secret-not-for-production"
    public var workspaceID = "0f2d6a10-8a3e-4b43-9a53-6a1f0c9e7b11"
    /// Creating without `workspaceId` is 401 (section 10, item 10).
    public var requiresWorkspace = true
    /// Other workflow codes are 404.
    public var workflowCodes: Set<String> = ["payment-acceptance", "payout"]
    public var workflowVersion = 12
    /// Nil: different ids each time.
    public var seed: UInt64?
    public var clock: WallClock = .system
    /// What delays, holds and repetitions are waited for by. Whoever moves ``clock`` moves this one with it.
    public var pacing: SteadyClock = .system
    /// Brings a notification to its address, instead of HTTP over a socket. What is thrown is a delivery without an answer.
    public var courier: (@Sendable (HTTPClientRequest) async throws -> HTTPClientResponse)?

    /// How long an access token lives; `expires_in` says so.
    public var tokenLifetime: Duration = .seconds(3600)
    /// How long the token inside an init payload lives; afterwards the SDK reports an expired session.
    public var sessionLifetime: Duration = .seconds(3300)
    /// How long an idempotency key is kept.
    public var idempotencyRetention: Duration = .seconds(24 * 3600)
    /// How long a `waitWhile` read is held at most.
    public var longPollHold: Duration = .seconds(25)
    /// Added to every answer of the API.
    public var latency: Duration = .zero

    /// More calls than that in a second are 429; nil: no limit (section 1.6).
    public var requestsPerSecond: Double?

    /// From the acknowledgement of an authorize to `authorizeRequested`: 0.4 s were seen (section 9).
    public var requestedDelay: Duration = .zero
    /// From `authorizeRequested` to the result.
    public var authorizeDelay: Duration = .milliseconds(20)
    /// From a capture, cancel or refund to its result.
    public var actionDelay: Duration = .milliseconds(20)
    public var captureMode = "Manual"
    /// Amounts in answers and notifications have at least so many decimals, also where the currency has fewer: Payrails
    /// writes `"100"` as `"100.00"` (section 4), and for which currencies isn't said.
    public var minimumDecimals = 0
    /// 200 or 202; clients must take either (section 12, 5).
    public var authorizeStatus = 202
    public var clientInitStatus = 200
    public var outcomeRules = SandboxOutcomeRule.suggested
    /// The member of `meta.tags` that carries an operation result for the built-in test provider (section 9).
    public var operationResultTag = "operationResult"
    public var refusalStyle = RefusalStyle.answered
    public var pagingShape = PagingShape.mixed
    /// Items on a page when the caller doesn't say.
    public var pageSize = 20
    /// Members that no schema knows are refused, so that a misspelt one shows.
    public var refusesUnknownFields = true
    /// `authorizePending` before `authorizeSuccessful` on cards without a challenge, 0 to 1.
    public var pendingBeforeSuccess = 0.3
    /// `authorizePending` stamped after `authorizeFailed`, 0 to 1.
    public var pendingAfterFailure = 0.3

    public var notificationTargets: [NotificationTarget] = []
    /// `executionActionPending` is sent only by workflows that have such a step (section 5.2).
    public var sendsPendingEvents = false
    /// Events that aren't sent at all, like those that a workflow has no Notify step for.
    public var mutedEvents: Set<String> = []
    /// The wait before the first repetition; it doubles each time.
    public var notificationBackoff: Duration = .milliseconds(50)
    /// How often a delivery is repeated after the first attempt.
    public var notificationRetries = 10
    public var notificationTimeout: Duration = .seconds(5)
    public var notificationConcurrency = 32
    /// Spaces and newlines that a parser doesn't see but a signature does, 0 to 1.
    public var oddNotificationSpacing = 0.5

    /// How many calls and finished deliveries are remembered.
    public var recordLimit = 200_000

    public init() {}
}
