import Basics
import Foundation

/// One request, to be answered in full or not at all.
public struct HTTPClientRequest: Sendable {
    /// An HTTP token in its exact spelling: `GET`, `PATCH`.
    public var method: String
    /// Absolute, `https` or `http`, percent-encoded ASCII, without a user name.
    public var url: String
    /// Sent as they are. Framing fields (`Content-Length`, `Transfer-Encoding`, …) are the client's and refused here.
    public var headers: HTTPHeaders
    /// Nil and empty differ only for methods that have no body of their own: `DELETE` with an empty body says
    /// `Content-Length: 0`.
    public var body: Data?
    /// From the call of ``HTTPClient/send(_:)`` to the last byte of the answer, waiting for a connection included;
    /// a day at most.
    public var timeout: Duration
    /// Replaces ``HTTPClientConfiguration/maximumResponseBytes`` for this request.
    public var maximumResponseBytes: Int?

    public init(
        method: String, url: String, headers: HTTPHeaders = HTTPHeaders(), body: Data? = nil,
        timeout: Duration = .seconds(30)
    ) {
        self.method = method
        self.url = url
        self.headers = headers
        self.body = body
        self.timeout = timeout
    }
}

/// A final response; interim (1xx) ones and trailers are not kept.
public struct HTTPClientResponse: Sendable {
    /// 200 to 999, as the server said. A redirect is a response like any other.
    public let status: Int
    public let headers: HTTPHeaders
    /// As it came: no content coding is asked for, and none is undone.
    public let body: Data
    /// `1.0`, `1.1` or `2`.
    public let httpVersion: String
    /// The connection that it first went out on ended without an answer, so it was sent again: the server may have
    /// acted on the first sending, whatever this answer to the second one says.
    public var wasResent: Bool

    public init(status: Int, headers: HTTPHeaders, body: Data, httpVersion: String, wasResent: Bool = false) {
        self.status = status
        self.headers = headers
        self.body = body
        self.httpVersion = httpVersion
        self.wasResent = wasResent
    }
}

// Both carry tokens, keys and personal data; a stray interpolation in a log must not.

extension HTTPClientRequest: CustomStringConvertible, CustomReflectable {
    public var description: String { "\(method) request, \(body?.count ?? 0) bytes" }
    public var customMirror: Mirror { Mirror(self, children: []) }
}

extension HTTPClientResponse: CustomStringConvertible, CustomReflectable {
    public var description: String { "HTTP/\(httpVersion) \(status), \(body.count) bytes" }
    public var customMirror: Mirror { Mirror(self, children: []) }
}
