import Basics

/// What becomes of an action at the provider (section 6.6 for the results).
public enum SandboxOutcome: Hashable, Sendable {
    case success
    /// Fails with this result and detail, e.g. `BlockedInstrument` and `LostInstrument`.
    case decline(result: String, detail: String? = nil)
    /// Waits until the customer has authenticated.
    case threeDS
    /// Waits until the customer comes back from a page of the payment method.
    case redirect
    /// Waits until somebody confirms.
    case confirm
    /// Stays pending until it is told otherwise.
    case pending
    /// Fails with `ProviderTimeout`; with `charged` the money was set aside all the same, and the ledger says so.
    case timeout(charged: Bool)
    /// A first provider declines with this result, another one succeeds in the same execution.
    case cascade(result: String)

    /// The result when it isn't a success.
    var result: String? {
        switch self {
        case .success: nil
        case .decline(let result, _), .cascade(let result): result
        case .timeout: "ProviderTimeout"
        case .threeDS, .redirect, .confirm, .pending: "Pending"
        }
    }

    var detail: String? { if case .decline(_, let detail) = self { detail } else { nil } }
}

extension SandboxOutcome {
    /// Reads `{outcome, reason?, detail?, charged?}` of the controls; nil when the word is unknown.
    init?(_ json: JSON) {
        let reason = json["reason"]?.string
        switch json["outcome"]?.string {
        case "success": self = .success
        case "decline": self = .decline(result: reason ?? "GenericRejection", detail: json["detail"]?.string)
        case "3ds": self = .threeDS
        case "redirect": self = .redirect
        case "confirm": self = .confirm
        case "pending": self = .pending
        case "timeout": self = .timeout(charged: json["charged"]?.bool ?? true)
        case "cascade": self = .cascade(result: reason ?? "GenericRejection")
        default: return nil
        }
    }
}

/// Which outcome an action gets. The first rule that matches and isn't used up counts; without one: success.
public struct SandboxOutcomeRule: Hashable, Sendable {
    public enum Action: String, Hashable, Sendable { case authorize, capture, cancel, refund }
    public var action: Action
    /// The last four digits of the card.
    public var suffix: String?
    /// The last two digits of the amount in minor units, 0 to 99.
    public var cents: Int?
    public var merchantReference: String?
    public var holderReference: String?
    public var instrumentID: String?
    public var outcome: SandboxOutcome
    /// How often it counts; nil: always.
    public var times: Int?
    /// Instead of the configured delay.
    public var delay: Duration?

    public init(
        _ outcome: SandboxOutcome, action: Action = .authorize, suffix: String? = nil, cents: Int? = nil,
        merchantReference: String? = nil, holderReference: String? = nil, instrumentID: String? = nil,
        times: Int? = nil, delay: Duration? = nil
    ) {
        self.outcome = outcome
        self.action = action
        self.suffix = suffix
        self.cents = cents
        self.merchantReference = merchantReference
        self.holderReference = holderReference
        self.instrumentID = instrumentID
        self.times = times
        self.delay = delay
    }

    /// The suffixes that section 9 suggests; they are nobody's facts.
    public static let suggested: [SandboxOutcomeRule] = [
        .init(.threeDS, suffix: "3220"),
        .init(.decline(result: "GenericRejection"), suffix: "0002"),
        .init(.decline(result: "InsufficientBalance"), suffix: "9995"),
        .init(.decline(result: "ExpiredInstrument"), suffix: "0069"),
        .init(.decline(result: "BlockedInstrument", detail: "LostInstrument"), suffix: "9987"),
        .init(.timeout(charged: true), suffix: "0119"),
    ]
}

/// Section 6.6: the category that a result belongs to, and who is to blame.
enum ResultCategory {
    static func of(_ result: String) -> (category: String, source: String) {
        switch result {
        case "ProviderConnectionError", "Timeout", "ProviderTimeout": ("Connection", "Provider")
        case "UnexpectedProviderResponse", "ProviderUnknownError", "UnexpectedProviderError": ("Unknown", "Provider")
        case "InsufficientBalance": ("InsufficientBalance", "Customer")
        case "ExpiredInstrument", "InvalidInstrument", "InstrumentNotAllowed", "BlockedInstrument":
            ("Instrument", "Customer")
        case "BlockList", "Score", "Rule", "Security", "SuspectedFraud": ("FraudRisk", "Customer")
        case "ValidationError", "ParamsError", "ProviderConfigError", "InvalidSignature", "AuthenticationError",
            "PaymentMethodNotSupported", "InternalServerError":
            ("Configuration", "Merchant")
        case "PayerAuthenticationRequired", "PayerAuthenticationFailed": ("PayerAuthentication", "Customer")
        case "Pending", "HTTPRedirectRequired", "FormRedirectRequired": ("Pending", "Customer")
        default: ("Operation", "Customer")
        }
    }
}
