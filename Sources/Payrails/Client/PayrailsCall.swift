import Basics
import Foundation
import Lockstep

/// One call, before it has a host, a token and a place in the queue.
struct PayrailsCall: Sendable {
    enum Method: String, Sendable { case post = "POST", patch = "PATCH", delete = "DELETE" }

    let method: String
    /// Encoded, with a slash in front.
    let path: String
    /// Encoded, without the question mark.
    let query: String
    let body: JSON?
    /// Nil exactly for calls that only read.
    let key: IdempotencyKey?
    let timeout: Duration

    var changesSomething: Bool { key != nil }

    private init(method: String, path: String, query: String, body: JSON?, key: IdempotencyKey?, timeout: Duration) {
        self.method = method
        self.path = path
        self.query = query
        self.body = body
        self.key = key
        self.timeout = timeout
    }

    static func read(_ path: String, query: String = "", timeout: Duration) -> PayrailsCall {
        PayrailsCall(method: "GET", path: path, query: query, body: nil, key: nil, timeout: timeout)
    }

    static func change(
        _ method: Method, _ path: String, body: JSON?, key: IdempotencyKey, timeout: Duration
    ) -> PayrailsCall {
        PayrailsCall(method: method.rawValue, path: path, query: "", body: body, key: key, timeout: timeout)
    }

    /// The headers of section 1.4, and the trace of the request that the call is made for, where there is one.
    func headers(token: AccessToken) -> HTTPHeaders {
        var headers: HTTPHeaders = ["Authorization": "Bearer \(token.value.reveal)", "Accept": "application/json"]
        if body != nil { headers.add("Content-Type", "application/json") }
        if let key { headers.add("x-idempotency-key", key.description) }
        if let trace = TraceParent.current { headers.add("traceparent", trace.text) }
        return headers
    }
}

/// Paths and queries by RFC 3986.
enum Address {
    /// Everything but unreserved characters as `%XX`, brackets and JSON included.
    static func encode(_ text: some StringProtocol) -> String { encode(text, keeping: isUnreserved) }

    /// Only what a query can't hold, such as brackets and blanks; `%XX` and `+` stay what they are.
    static func encodeQuery(_ text: some StringProtocol) -> String {
        let allowed = Set("%+=:,;@!$'()*/?".utf8)
        return encode(text) { isUnreserved($0) || allowed.contains($0) }
    }

    private static func encode(_ text: some StringProtocol, keeping isKept: (UInt8) -> Bool) -> String {
        var out: [UInt8] = []
        for byte in text.utf8 {
            if isKept(byte) {
                out.append(byte)
            } else {
                out.append(UInt8(ascii: "%"))
                out.append(contentsOf: [byte].hexadecimal.uppercased().utf8)
            }
        }
        return String(decoding: out, as: UTF8.self)
    }

    static func query(_ parameters: KeyValuePairs<String, String?>) -> String {
        parameters.compactMap { name, value in value.map { "\(encode(name))=\(encode($0))" } }.joined(separator: "&")
    }

    /// Fills `{name}` in a template with encoded values.
    static func fill(_ template: String, _ values: KeyValuePairs<String, String>) -> String {
        values.reduce(template) { $0.replacing("{\($1.key)}", with: encode($1.value)) }
    }

    static func execution(_ reference: ExecutionReference, action: String? = nil) -> String {
        executions(reference.workflowCode) + "/\(reference.id)" + (action.map { "/" + encode($0) } ?? "")
    }

    static func executions(_ workflowCode: String) -> String {
        "/merchant/workflows/\(encode(workflowCode))/executions"
    }

    private static func isUnreserved(_ byte: UInt8) -> Bool {
        switch byte {
        case 0x30...0x39, 0x41...0x5A, 0x61...0x7A: true
        case UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"), UInt8(ascii: "~"): true
        default: false
        }
    }
}
