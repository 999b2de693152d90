import Basics
import Foundation

/// A request whose head and body have come in whole and within the limits.
public struct HTTPServerRequest: Sendable {
    /// The method as it was sent: `GET`, `POST`, …
    public let method: String
    /// The path, still percent-encoded, without the query; begins with `/` (or is `*` for `OPTIONS`).
    public let path: String
    /// What follows the first `?`, still percent-encoded; nil without one.
    public let query: String?
    public let headers: HTTPHeaders
    public let body: Data
    /// The peer's address without its port: the client's, or that of the proxy in front.
    public let remoteAddress: String
    /// When the head was complete.
    public let receivedAt: ContinuousClock.Instant

    public init(
        method: String, path: String, query: String? = nil, headers: HTTPHeaders = HTTPHeaders(), body: Data = Data(),
        remoteAddress: String = "127.0.0.1", receivedAt: ContinuousClock.Instant = .now
    ) {
        self.method = method
        self.path = path
        self.query = query
        self.headers = headers
        self.body = body
        self.remoteAddress = remoteAddress
        self.receivedAt = receivedAt
    }
}
