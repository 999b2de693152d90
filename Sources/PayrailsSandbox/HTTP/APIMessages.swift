import Basics
import Foundation

/// A request, apart from how it came.
struct APIRequest: Sendable {
    let method: String
    let path: String
    var query: String?
    var headers = HTTPHeaders()
    var body = Data()
}

/// A response, apart from how it goes.
struct APIResponse: Sendable {
    /// Where the connection breaks instead of a whole answer.
    enum Break: Sendable { case beforeAnything, inTheBody }

    var status: Int
    var headers = HTTPHeaders()
    var body = Data()
    var breaks: Break?

    static func json(_ status: Int, _ body: Data, isPrivate: Bool = false) -> APIResponse {
        var response = APIResponse(status: status, headers: ["Content-Type": "application/json"], body: body)
        if isPrivate {
            response.headers["Cache-Control"] = "no-store"
            response.headers["Pragma"] = "no-cache"
        }
        return response
    }

    static func html(_ status: Int, _ text: String) -> APIResponse {
        APIResponse(status: status, headers: ["Content-Type": "text/html; charset=UTF-8"], body: Data(text.utf8))
    }
}

/// One call of the API, as the record keeps it.
public struct SandboxCall: Sendable {
    /// From 1, in the order in which calls began.
    public let sequence: Int
    public let time: Timestamp
    /// Nil for a path or method that isn't there.
    public let route: SandboxRoute?
    public let method: String
    public let path: String
    public let query: String?
    /// The idempotency key as it was sent.
    public let key: String?
    /// The `traceparent` as it was sent.
    public let trace: String?
    public let body: JSON?
    /// Nil while the call is running.
    public internal(set) var status: Int?
    /// The answer came out of the idempotency store.
    public internal(set) var isReplay = false
    /// The faults that it met, by name.
    public internal(set) var faults: [String] = []
}
