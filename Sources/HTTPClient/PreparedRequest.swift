import Basics
import Foundation

/// A request that passed every check, in the form that libcurl takes.
struct PreparedRequest: Sendable {
    let method: String
    let url: String
    /// `Name: value`, or `Name;` for an empty value, which is how libcurl wants it spelled.
    let headerLines: [String]
    /// Nil sends none and says no length; for `POST`, `PUT` and `PATCH` it is never nil.
    let body: Data?
    let maximumResponseBytes: Int
    /// Whether the same request may reach the server twice without harm: see ``Transfer/mayBegin()``.
    let isRepeatable: Bool
    /// What no error may repeat.
    let secrets: [String]

    init(_ request: HTTPClientRequest, _ configuration: HTTPClientConfiguration) throws(HTTPClientError) {
        guard request.method.utf8.count <= 32, request.method.isHTTPToken, request.method != "CONNECT" else {
            throw HTTPClientError(.invalidRequest, detail: "the method is not one to send")
        }
        if request.method == "HEAD" && request.body != nil {
            throw HTTPClientError(.invalidRequest, detail: "HEAD has no body")
        }
        let target = try TargetURL(request.url)
        if target.scheme == "http" && !configuration.allowsPlainHTTP && !target.isLoopback {
            throw HTTPClientError(.plainHTTPRefused, detail: "plain http is refused, except to this machine")
        }
        method = request.method
        url = target.text
        headerLines = try Self.lines(request.headers)
        body = request.body ?? (["POST", "PUT", "PATCH"].contains(request.method) ? Data() : nil)
        maximumResponseBytes = max(0, request.maximumResponseBytes ?? configuration.maximumResponseBytes)
        isRepeatable =
            ["GET", "HEAD", "OPTIONS", "PUT", "DELETE"].contains(request.method)
            || request.headers["Idempotency-Key"] != nil || request.headers["X-Idempotency-Key"] != nil
        secrets = ([target.query].compactMap { $0 } + request.headers.fields.map(\.value)).filter { $0.utf8.count > 3 }
    }

    /// Fields that say how long the message is or how the connection goes on. Two opinions about those are how
    /// requests are smuggled, so there is one: libcurl's.
    private static let framingFields = [
        "connection", "content-length", "expect", "keep-alive", "proxy-connection", "te", "trailer",
        "transfer-encoding", "upgrade",
    ]

    private static func lines(_ headers: HTTPHeaders) throws(HTTPClientError) -> [String] {
        var lines: [String] = []
        for field in headers.fields {
            guard field.name.isHTTPToken else {
                throw HTTPClientError(.invalidRequest, detail: "a header's name has a character that names can't have")
            }
            if framingFields.contains(where: field.name.equalsIgnoringASCIICase) {
                throw HTTPClientError(.invalidRequest, detail: "\(field.name) is set by the client itself")
            }
            guard field.value.isHTTPFieldValue else {
                throw HTTPClientError(.invalidRequest, detail: "the value of \(field.name) has a control character")
            }
            let isBlank = field.value.utf8.allSatisfy { $0 == 0x20 || $0 == 0x09 }
            lines.append(isBlank ? "\(field.name);" : "\(field.name): \(field.value)")
        }
        // A name and a colon alone take away what libcurl would add: the wait for "100 Continue", and a form's type.
        lines.append("Expect:")
        if headers["Content-Type"] == nil { lines.append("Content-Type:") }
        return lines
    }
}

extension String {
    /// RFC 9110, 5.6.2.
    fileprivate var isHTTPToken: Bool {
        !isEmpty
            && utf8.allSatisfy { byte in
                switch byte {
                case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "a")...UInt8(ascii: "z"),
                    UInt8(ascii: "A")...UInt8(ascii: "Z"):
                    true
                default: "!#$%&'*+-.^_`|~".utf8.contains(byte)
                }
            }
    }

    /// RFC 9110, 5.5: no control characters but the tab.
    fileprivate var isHTTPFieldValue: Bool { utf8.allSatisfy { ($0 >= 0x20 && $0 != 0x7F) || $0 == 0x09 } }
}
