import Basics
import Foundation

/// A request that the server itself turns down, before any handler sees it or because none answered.
public struct HTTPServerRefusal: Sendable {
    public enum Kind: String, Error, Sendable, CaseIterable {
        /// 400: where the body ends can be read in two ways, or `Host` is missing or doubled; the connection is closed.
        case badFraming
        /// 400: not HTTP/1.x by RFC 9112.
        case malformedRequest
        /// 408: the request took longer than `requestTimeout` from its first byte to its last.
        case timeout
        /// 413: longer than `maximumBodyBytes`.
        case bodyTooLarge
        /// 414
        case uriTooLong
        /// 415: a `Content-Encoding`.
        case unsupportedEncoding
        /// 431: longer than `maximumHeaderBytes`.
        case headersTooLarge
        /// 503: too many connections, requests or buffered bytes; or the handler didn't answer in time.
        case overloaded
        /// 503: the request came after `drain` had begun.
        case draining
    }

    public let kind: Kind
    /// The raw path, where the request got as far as having one.
    public let path: String?
    /// Its fields, where its head was read; else none.
    public let headers: HTTPHeaders
    /// The status that the answer should have.
    public var status: Int { kind.status }

    public init(kind: Kind, path: String? = nil, headers: HTTPHeaders = HTTPHeaders()) {
        self.kind = kind
        self.path = path
        self.headers = headers
    }

    /// A plain-text answer with the refusal's name: what is sent unless the configuration words it.
    public static func plainResponse(_ refusal: HTTPServerRefusal) -> HTTPServerResponse {
        HTTPServerResponse(
            status: refusal.status, headers: ["Content-Type": "text/plain; charset=utf-8"],
            body: Data((refusal.kind.rawValue + "\n").utf8))
    }
}

extension HTTPServerRefusal.Kind {
    var status: Int {
        switch self {
        case .badFraming, .malformedRequest: 400
        case .timeout: 408
        case .bodyTooLarge: 413
        case .uriTooLong: 414
        case .unsupportedEncoding: 415
        case .headersTooLarge: 431
        case .overloaded, .draining: 503
        }
    }

    /// The kind that says what a status of the library's own means.
    init(libraryStatus: Int) {
        switch libraryStatus {
        case 413: self = .bodyTooLarge
        case 414: self = .uriTooLong
        case 431: self = .headersTooLarge
        case 500: self = .overloaded
        default: self = .malformedRequest
        }
    }
}
