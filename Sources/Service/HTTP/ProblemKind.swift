/// Every problem that the API can answer with: its slug, its status and its title. The contract's list, in one place,
/// so that none can be misspelt and the OpenAPI document knows them all.
public enum ProblemKind: String, Sendable, CaseIterable {
    // 400
    case malformedRequest = "malformed-request"
    case notJSON = "not-json"
    case idempotencyKeyMissing = "idempotency-key-missing"
    case idempotencyKeyInvalid = "idempotency-key-invalid"
    // 401, 403, 404, 405
    case unauthorized
    case badSignature = "bad-signature"
    case forbidden
    case amountOutsidePolicy = "amount-outside-policy"
    case notFound = "not-found"
    case methodNotAllowed = "method-not-allowed"
    // 409
    case conflict
    case checkoutExists = "checkout-exists"
    case checkoutCancelled = "checkout-cancelled"
    case checkoutExpired = "checkout-expired"
    case alreadyPaid = "already-paid"
    case paymentInProgress = "payment-in-progress"
    case amountMoving = "amount-moving"
    case idempotencyKeyInUse = "idempotency-key-in-use"
    case notCapturable = "not-capturable"
    case notCancellable = "not-cancellable"
    case notRefundable = "not-refundable"
    case referenceExists = "reference-exists"
    // 412, 413, 415, 428, 429
    case stale = "stale"
    case requestTimeout = "request-timeout"
    case tooLarge = "too-large"
    case uriTooLong = "uri-too-long"
    case headersTooLarge = "headers-too-large"
    case unsupportedMediaType = "unsupported-media-type"
    case ifMatchMissing = "if-match-missing"
    case tooManyRequests = "too-many-requests"
    // 422
    case invalid = "invalid"
    case cardNumber = "card-number"
    case idempotencyKeyReused = "idempotency-key-reused"
    case instrumentOfAnotherHolder = "instrument-of-another-holder"
    case amountExceedsCapturable = "amount-exceeds-capturable"
    case amountExceedsRefundable = "amount-exceeds-refundable"
    // 500, 502, 503
    case internalError = "internal"
    case creationRefused = "creation-refused"
    case amountRefused = "amount-refused"
    case providerRefused = "provider-refused"
    case providerUnreadable = "provider-unreadable"
    case checkoutUnconfirmed = "checkout-unconfirmed"
    case sessionUnconfirmed = "session-unconfirmed"
    case amountUnconfirmed = "amount-unconfirmed"
    case unavailable

    /// 400 to 503.
    public var status: Int { entry.status }
    /// A few words that stay the same from one occurrence to the next.
    public var title: String { entry.title }
    /// `urn:lockstep:problem:<slug>`.
    public var type: String { "urn:lockstep:problem:\(rawValue)" }

    private var entry: (status: Int, title: String) {
        switch self {
        case .malformedRequest: (400, "The request is malformed")
        case .notJSON: (400, "The body is not JSON")
        case .idempotencyKeyMissing: (400, "The Idempotency-Key is missing")
        case .idempotencyKeyInvalid: (400, "The Idempotency-Key is not of the right form")
        case .unauthorized: (401, "No or bad credentials")
        case .badSignature: (401, "The signature is wrong")
        case .forbidden: (403, "These credentials don't reach this")
        case .amountOutsidePolicy: (403, "The amount is outside what the client may set")
        case .notFound: (404, "There is no such thing here")
        case .methodNotAllowed: (405, "The method isn't allowed here")
        case .conflict: (409, "The state forbids it")
        case .checkoutExists: (409, "There is a checkout for this order already")
        case .checkoutCancelled: (409, "The checkout was cancelled")
        case .checkoutExpired: (409, "The checkout has expired")
        case .alreadyPaid: (409, "The order is paid already")
        case .paymentInProgress: (409, "A payment is in progress")
        case .amountMoving: (409, "The amount is being moved")
        case .idempotencyKeyInUse: (409, "A request with this Idempotency-Key is still running")
        case .notCapturable: (409, "There is nothing to capture")
        case .notCancellable: (409, "There is nothing to cancel")
        case .notRefundable: (409, "There is nothing to refund")
        case .referenceExists: (409, "The reference is taken already")
        case .stale: (412, "Somebody else changed it in the meantime")
        case .requestTimeout: (408, "The request took too long to arrive")
        case .tooLarge: (413, "The body is too large")
        case .uriTooLong: (414, "The address is too long")
        case .headersTooLarge: (431, "The header fields are too large")
        case .unsupportedMediaType: (415, "The body must be JSON")
        case .ifMatchMissing: (428, "If-Match is missing")
        case .tooManyRequests: (429, "Too many requests")
        case .invalid: (422, "The request was understood, and is wrong")
        case .cardNumber: (422, "The request holds a card number")
        case .idempotencyKeyReused: (422, "The Idempotency-Key was used for another request")
        case .instrumentOfAnotherHolder: (422, "The instrument belongs to another holder")
        case .amountExceedsCapturable: (422, "The amount is more than is left to capture")
        case .amountExceedsRefundable: (422, "The amount is more than is left to refund")
        case .internalError: (500, "Something is wrong here")
        case .creationRefused: (502, "Payrails refused to create it")
        case .amountRefused: (502, "Payrails refused the amount")
        case .providerRefused: (502, "Payrails refused")
        case .providerUnreadable: (502, "Payrails answered with something that can't be read")
        case .checkoutUnconfirmed: (503, "Whether the checkout exists at Payrails isn't known yet")
        case .sessionUnconfirmed: (503, "What became of the earlier session isn't known yet")
        case .amountUnconfirmed: (503, "Which amount Payrails has isn't known yet")
        case .unavailable: (503, "Not available at the moment")
        }
    }

    /// Seconds for `Retry-After` where the thrower gave none; nil for problems that waiting doesn't mend.
    var usualRetryAfterSeconds: Int? {
        switch self {
        case .amountMoving, .idempotencyKeyInUse: 1
        case .tooManyRequests: 1
        case .checkoutUnconfirmed, .sessionUnconfirmed, .amountUnconfirmed: 2
        case .unavailable: 5
        default: nil
        }
    }
}
