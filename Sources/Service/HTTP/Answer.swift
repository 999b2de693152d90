import Basics
import Foundation
import Lockstep

/// What a handler gives back: a status, fields, and a body that is JSON unless it says otherwise.
///
/// ```swift
/// return .created(checkout.json, location: "/v1/checkouts/\(checkout.id)").tagged(checkout.amountVersion)
/// ```
public struct Answer: Sendable, Equatable {
    public var status: Int
    public var headers: HTTPHeaders
    public var body: Data
    /// Top-level members of the body that are given to the caller and never kept under an idempotency key.
    public var unstoredMembers: Set<String> = []
    /// What the request was about, for the log, where its path doesn't say.
    var touched: ExecutionID?

    public init(status: Int, headers: HTTPHeaders = [:], body: Data = Data()) {
        self.status = status
        self.headers = headers
        self.body = body
    }

    /// JSON with any status.
    public static func json(_ status: Int, _ value: JSON) -> Answer {
        Answer(status: status, headers: ["Content-Type": "application/json"], body: value.bytes)
    }

    /// 200 with a body.
    public static func ok(_ value: JSON) -> Answer { json(200, value) }

    /// 201 with a body, and with where it is from now on.
    public static func created(_ value: JSON, location: String? = nil) -> Answer {
        var answer = json(201, value)
        answer.headers["Location"] = location
        return answer
    }

    /// 202: taken on, the result comes later.
    public static func accepted(_ value: JSON, location: String? = nil) -> Answer {
        var answer = json(202, value)
        answer.headers["Location"] = location
        return answer
    }

    /// 204: done, nothing to show.
    public static let noContent = Answer(status: 204)

    /// 200 with plain text, e.g. `text/plain; version=0.0.4` for Prometheus.
    public static func text(_ text: String, contentType: String = "text/plain; charset=utf-8") -> Answer {
        Answer(status: 200, headers: ["Content-Type": contentType], body: Data(text.utf8))
    }

    /// The same answer with `ETag: "<version>"`.
    public func tagged(_ version: Int) -> Answer {
        var copy = self
        copy.headers["ETag"] = "\"\(version)\""
        return copy
    }

    /// The same answer; these members of its body (a `clientToken`) are not kept for replays. The route's
    /// ``Route/refreshingReplays(_:)`` puts new ones in their place.
    public func neverStoring(_ members: String...) -> Answer {
        var copy = self
        copy.unstoredMembers.formUnion(members)
        return copy
    }

    /// The body read back as JSON; nil where it isn't JSON.
    public var json: JSON? { try? JSON(parsing: body) }

    /// What may be kept under an idempotency key: the body without ``unstoredMembers``.
    var storable: StoredAnswer {
        var kept = body
        if !unstoredMembers.isEmpty, case .object(let members) = json {
            kept = JSON.object(members.filter { !unstoredMembers.contains($0.key) }).bytes
        }
        return StoredAnswer(status: status, headers: headers, body: kept)
    }
}
