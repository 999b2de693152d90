import Basics

/// The controls' bodies as values.
extension SandboxFault {
    /// `{kind, route?, times?, probability?, containing?, ms?, status?, stored?, effect?, retryAfter?}`.
    init(control json: JSON) throws(APIError) {
        let milliseconds = Int(json["ms"]?.integer ?? 100)
        let status = Int(json["status"]?.integer ?? 500)
        guard (200...599).contains(status) else { throw .invalid("status must be 200 to 599") }
        let kind: Kind
        switch json["kind"]?.string {
        case "delay": kind = .delay(milliseconds: milliseconds)
        case "delayAfter": kind = .delayAfter(milliseconds: milliseconds)
        case "errorBefore": kind = .errorBefore(status: status, stored: json["stored"]?.bool ?? false)
        case "errorAfter": kind = .errorAfter(status: status)
        case "lateEffect": kind = .lateEffect(status: status, milliseconds: milliseconds)
        case "closeBefore": kind = .closeBefore
        case "closeAfter": kind = .closeAfter
        case "html": kind = .html(status: status, effect: json["effect"]?.bool ?? false)
        case "halfBody": kind = .halfBody
        case "rateLimited": kind = .rateLimited(retryAfterSeconds: json["retryAfter"]?.integer.map { Int($0) })
        case "expiredToken": kind = .expiredToken
        case "lowercaseHeaders": kind = .lowercaseHeaders
        case "amountIgnored": kind = .amountIgnored
        default:
            throw .invalid(
                "kind must be one of delay, delayAfter, errorBefore, errorAfter, lateEffect, closeBefore, closeAfter, html, "
                    + "halfBody, rateLimited, expiredToken, lowercaseHeaders, amountIgnored")
        }
        var route: SandboxRoute?
        if let name = json["route"]?.string {
            guard let known = SandboxRoute(rawValue: name) else {
                let names = SandboxRoute.allCases.map(\.rawValue).joined(separator: ", ")
                throw .invalid("route must be one of \(names)")
            }
            route = known
        }
        self.init(
            kind, on: route, times: try json.times, probability: try json.probability,
            containing: json["containing"]?.string)
    }
}

extension SandboxNotificationFault {
    /// `{kind, event?, action?, executionId?, merchantReference?, success?, times?, probability?, ms?}`.
    init(control json: JSON) throws(APIError) {
        let milliseconds = Int(json["ms"]?.integer ?? 500)
        let kind: Kind
        switch json["kind"]?.string {
        case "late": kind = .late(milliseconds: milliseconds)
        case "twice": kind = .twice
        case "shuffled": kind = .shuffled(milliseconds: milliseconds)
        case "lost": kind = .lost
        case "wrongSignature": kind = .wrongSignature
        case "bare": kind = .bare
        default: throw .invalid("kind must be one of late, twice, shuffled, lost, wrongSignature, bare")
        }
        self.init(
            kind, event: json["event"]?.string, action: json["action"]?.string,
            executionID: json["executionId"]?.string, merchantReference: json["merchantReference"]?.string,
            success: json["success"]?.bool, times: try json.times, probability: try json.probability)
    }
}

extension SandboxOutcomeRule {
    /// `{outcome, reason?, detail?, charged?, action?, card?, cents?, merchantReference?, holderReference?,
    /// instrumentId?, times?, ms?}`.
    init(control json: JSON) throws(APIError) {
        guard let outcome = SandboxOutcome(json),
            let action = Action(rawValue: json["action"]?.string ?? "authorize")
        else { throw .invalid("outcome and action must be known ones") }
        self.init(
            outcome, action: action, suffix: json["card"]?.string, cents: json["cents"]?.integer.map { Int($0) },
            merchantReference: json["merchantReference"]?.string, holderReference: json["holderReference"]?.string,
            instrumentID: json["instrumentId"]?.string, times: try json.times,
            delay: json["ms"]?.integer.map { .milliseconds($0) })
    }
}

extension JSON {
    /// How often: 1 unless said; `"always"` is always.
    fileprivate var times: Int? {
        get throws(APIError) {
            guard let given = self["times"] else { return 1 }
            if given.string == "always" { return nil }
            guard let count = given.integer, count > 0 else { throw .invalid("times must be a count, or \"always\"") }
            return Int(count)
        }
    }

    fileprivate var probability: Double {
        get throws(APIError) {
            guard case .number(let digits)? = self["probability"] else { return 1 }
            guard let value = Double(digits), (0...1).contains(value) else {
                throw .invalid("probability must be 0 to 1")
            }
            return value
        }
    }
}
