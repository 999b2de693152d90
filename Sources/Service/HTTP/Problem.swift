import Basics

/// A problem by RFC 9457. Throw it from a handler; the router turns it into the answer.
///
/// ```swift
/// throw Problem(.alreadyPaid, "execution \(kept) pays this order")
/// throw Problem(.checkoutExists, members: ["checkoutId": .string(id.description)])
/// throw Problem(.invalid, faults: [Fault("/amount/value", "must be more than zero")])
/// ```
///
/// `detail` reaches the caller as it is: no secret, no personal detail, nothing of the input that wasn't checked.
public struct Problem: Error, Sendable, Equatable {
    public let kind: ProblemKind
    /// A sentence about this occurrence.
    public let detail: String?
    /// What is wrong with the input, all of it at once.
    public let faults: [Fault]
    /// Further members of the problem, e.g. `checkoutId`.
    public let members: [String: JSON]
    /// For `Retry-After`.
    public let retryAfterSeconds: Int?
    /// Further header fields, e.g. `Allow`.
    public let headers: HTTPHeaders

    public init(
        _ kind: ProblemKind, _ detail: String? = nil, faults: [Fault] = [], members: [String: JSON] = [:],
        retryAfterSeconds: Int? = nil, headers: HTTPHeaders = [:]
    ) {
        self.kind = kind
        self.detail = detail
        self.faults = faults
        self.members = members
        self.retryAfterSeconds = retryAfterSeconds ?? kind.usualRetryAfterSeconds
        self.headers = headers
    }

    /// Not there, or not yours: the two are told in the same words (invariant M10).
    public static let notFound = Problem(.notFound)

    /// 422 for one member.
    public static func invalid(_ pointer: String, _ detail: String) -> Problem {
        Problem(.invalid, faults: [Fault(pointer, detail)])
    }

    /// The answer that carries it.
    func answer(requestID: RequestID) -> Answer {
        var body = members
        body["type"] = .string(kind.type)
        body["title"] = .string(kind.title)
        body["status"] = JSON(kind.status)
        body["detail"] = .string(detail ?? faults.first.map { "\($0.pointer) \($0.detail)" } ?? kind.title)
        body["requestId"] = .string(requestID.text)
        if !faults.isEmpty { body["errors"] = .array(faults.map(\.json)) }
        var answer = Answer(status: kind.status, headers: headers, body: JSON.object(body).bytes)
        answer.headers["Content-Type"] = "application/problem+json"
        if let retryAfterSeconds { answer.headers["Retry-After"] = String(retryAfterSeconds) }
        if kind == .unauthorized { answer.headers["WWW-Authenticate"] = "Bearer" }
        return answer
    }
}

/// One thing that is wrong with the input, and where.
public struct Fault: Hashable, Sendable {
    /// A JSON Pointer (RFC 6901) into the body, empty for the body as a whole; `/name` for a parameter of the query.
    public let pointer: String
    /// How it must be, so that it reads after the name: "must be…".
    public let detail: String

    public init(_ pointer: String, _ detail: String) {
        self.pointer = pointer
        self.detail = detail
    }

    var json: JSON { ["pointer": .string(pointer), "detail": .string(detail)] }

    /// A pointer one step deeper, with `~` and `/` written as RFC 6901 wants them.
    static func pointer(_ base: String, _ member: String) -> String {
        "\(base)/\(member.replacing("~", with: "~0").replacing("/", with: "~1"))"
    }
}
