import Basics

/// A call's place among those of all processes.
public struct SharedPlace: Sendable, Equatable {
    /// From its answer to the place.
    public let wait: Duration
    /// How long after that the place is still good. A call that missed it takes another.
    public let margin: Duration

    public init(wait: Duration, margin: Duration) {
        self.wait = wait
        self.margin = margin
    }
}

/// How to reach Payrails, and a setting for every guess in section 12 of the reference that a call depends on.
public struct PayrailsConfiguration: Sendable {
    /// `https://api.staging.payrails.io`, without a slash at its end; a path is kept in front of every call's path.
    public var baseURL: String
    public var clientID: String
    /// Sent only in `x-api-key` of the token call.
    public var clientSecret: Secret<String>
    /// Needed with credentials that are scoped to a workspace: without it they get 401 (section 10, 10).
    public var workspaceID: String?

    /// The workflow of payments by customers and of charges without them.
    public var workflowCode = "payment-acceptance"
    /// Pins a version of the workflow; nil: the one that is current at Payrails.
    public var workflowVersion: Int?
    /// Where the amount is moved (section 12, 6). `{workflowCode}` and `{executionId}` are filled in.
    public var lookupPath = "/merchant/workflows/{workflowCode}/executions/{executionId}/lookup"

    /// How long before its end a token is replaced; at most half of the token's life.
    public var tokenRefreshMargin = Duration.seconds(60)
    /// The life of a token whose answer doesn't tell it: the shorter of the two that the documents name.
    public var assumedTokenLifetime = Duration.seconds(600)
    public var tokenTimeout = Duration.seconds(10)

    /// From the call to its answer, with waiting for the limiter and for a token inside.
    public var readTimeout = Duration.seconds(10)
    /// The same for calls that change something.
    public var changeTimeout = Duration.seconds(30)
    /// The longest single `waitWhile` (section 12, 3); a longer wait is asked for again.
    public var waitTimeout = Duration.seconds(30)
    /// The pause between two `waitWhile` that came back early with nothing new.
    public var waitPause = Duration.seconds(1)

    /// `page[size]` (section 12, 18).
    public var pageSize = 100
    /// More pages than this of executions or instruments are a broken answer.
    public var maximumPages = 50
    /// Whether payments are also filtered by ``workspaceID``.
    public var filtersPaymentsByWorkspace = true
    public var maximumResponseBytes = 4 * 1024 * 1024

    /// Requests a second for all calls together, 0 for no limit (section 12, 2).
    public var requestsPerSecond = 8
    /// How many may go at once after a quiet time.
    public var requestBurst = 5
    /// Takes a place among the calls of all processes together; nil where it can't be asked, and then nothing is sent. No
    /// closure: each process has only its own limit.
    public var sharedPace: (@Sendable () async -> SharedPlace?)?
    /// The pause of all calls after a 429 without `Retry-After`.
    public var rateLimitPause = Duration.seconds(1)
    /// The longest pause that a `Retry-After` may impose on all calls.
    public var maximumRateLimitPause = Duration.seconds(60)

    public enum CaptureMode: String, Sendable { case instant = "Instant", manual = "Manual", delayed = "Delayed" }
    /// Sent as `workflowConfigOverride.captureMode`; nil leaves it to the workflow (section 12, 15).
    public var captureMode: CaptureMode?
    /// Whether client init carries it too; the reference shows it only for creating an execution.
    public var sendsCaptureModeOnInit = false
    /// Whether charges also carry `meta.order.processingType` (section 12, 14).
    public var sendsOrderProcessingType = false
    /// Whether `meta.CIT` is sent: true with a customer, false without one (section 12, 14).
    public var sendsCIT = false
    /// Whether charges carry `meta.risk.threeDSMode: Skip`, as nobody is there to answer a challenge.
    public var skipsThreeDSForCharges = true

    public init(baseURL: String, clientID: String, clientSecret: Secret<String>, workspaceID: String? = nil) {
        self.baseURL = baseURL
        self.clientID = clientID
        self.clientSecret = clientSecret
        self.workspaceID = workspaceID
    }
}
