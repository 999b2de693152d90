import Basics
import Lockstep

/// What an error answer says (section 1.8): `errors[]`, one error at the top level, or OAuth's `error`.
struct ProviderProblem: Hashable, Sendable {
    /// `request.param.invalid`; in older answers it is called `title`, in the token call's `error`.
    let code: String?
    /// Scrubbed.
    let detail: String?
    /// `reason.result` with `reason.detail`, e.g. `InsufficientBalance`.
    let reason: String?
    /// Set when one of the errors leaves open whether the request took effect.
    let doubt: Doubt.Kind?

    /// Nil unless the body is an object; one that holds nothing known is a problem without a code.
    init?(_ body: JSON) {
        guard body.object != nil else { return nil }
        let listed = body["errors"]?.array ?? body["errors"].map { [$0] } ?? []
        let errors = listed.isEmpty ? [body] : listed
        let first = errors.first ?? body
        code = ProviderProblem.code(of: first)
        detail = (first["detail"] ?? first["error_description"] ?? first["message"])?.string.map(Scrubber.scrub)
        reason = ProviderProblem.reason(of: first)
        doubt = errors.lazy.compactMap(ProviderProblem.doubt(of:)).first
    }

    static func code(of error: JSON) -> String? {
        error["code"]?.code ?? error["title"]?.code ?? error["error"]?.code
    }

    /// `reason.result` with `reason.detail`; in older errors `meta.operationResult`.
    static func reason(of error: JSON) -> String? {
        result(of: error).map { DeclinePolicy.reason($0, detail: error["reason"]?["detail"]?.code) }
    }

    private static func result(of error: JSON) -> String? {
        error["reason"]?["result"]?.code ?? error["meta"]?["operationResult"]?.code
    }

    private static func doubt(of error: JSON) -> Doubt.Kind? {
        switch code(of: error) {
        case "request.timeout": .timedOut
        case "request.canceled": .cancelled
        case "internal", "service.unavailable": .serverError
        // `workflow.action.failed`, and what older answers call it.
        default: isInDoubt(error) ? .serverError : nil
        }
    }

    /// Results behind which a charge can hide (section 6.6, and 9 of section 10). Whatever is among them isn't a decline
    /// in `config/declines.json` either.
    static let resultsInDoubt: Set = [
        "Timeout", "ProviderTimeout", "UnexpectedProviderResponse", "ProviderUnknownError", "UnexpectedProviderError",
        "InternalServerError", "DuplicateOperation", "Unknown", "Pending", "Accepted",
    ]

    private static func isInDoubt(_ error: JSON) -> Bool {
        error["reason"]?["category"]?.word == "Unknown" || result(of: error).map(resultsInDoubt.contains) ?? false
    }
}
