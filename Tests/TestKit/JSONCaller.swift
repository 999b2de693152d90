import Basics
import Foundation
import HTTPClient

/// Calls an API that speaks JSON, over real sockets.
public struct JSONCaller: Sendable {
    /// What came back.
    public struct Reply: Sendable {
        public let status: Int
        public let headers: HTTPHeaders
        public let body: Data
        public var json: JSON { (try? JSON(parsing: body)) ?? .null }
        public var text: String { String(decoding: body, as: UTF8.self) }
        /// The last part of a problem's type: `checkout-exists`.
        public var problem: String? { json["type"]?.string?.split(separator: ":").last.map(String.init) }
        /// `412 stale`, `200`: what a table of expectations holds.
        public var outcome: String { problem.map { "\(status) \($0)" } ?? "\(status)" }
    }

    // Tests ask for many things at once; no connection should wait for another.
    private static let client = Result {
        var configuration = HTTPClientConfiguration()
        configuration.maximumConnections = 512
        configuration.maximumConnectionsPerHost = 256
        return try HTTPClient(configuration)
    }

    public let baseURL: String
    /// Sent as the bearer; nil sends no `Authorization`.
    public var token: String?

    public init(baseURL: String, token: String? = nil) {
        self.baseURL = baseURL
        self.token = token
    }

    public func with(token: String?) -> JSONCaller { JSONCaller(baseURL: baseURL, token: token) }

    /// - Parameter headers: added to, or in place of, what the others give; a doubled name is sent twice.
    public func call(
        _ method: String, _ path: String, body: Data? = nil, headers: HTTPHeaders = [:],
        timeout: Duration = .seconds(30)
    ) async throws -> Reply {
        var fields = headers
        if let token, fields["Authorization"] == nil { fields["Authorization"] = "Bearer \(token)" }
        if body != nil, fields["Content-Type"] == nil { fields["Content-Type"] = "application/json" }
        let response = try await Self.client.get().send(
            HTTPClientRequest(method: method, url: baseURL + path, headers: fields, body: body, timeout: timeout))
        return Reply(status: response.status, headers: response.headers, body: response.body)
    }

    public func get(_ path: String, headers: HTTPHeaders = [:]) async throws -> Reply {
        try await call("GET", path, headers: headers)
    }

    /// - Parameter key: the `Idempotency-Key`; nil sends none.
    public func post(
        _ path: String, _ body: JSON? = [:], key: String? = nil, headers: HTTPHeaders = [:]
    ) async throws -> Reply {
        var fields = headers
        if let key { fields["Idempotency-Key"] = key }
        return try await call("POST", path, body: body?.bytes, headers: fields)
    }

    /// - Parameter version: sent as `If-Match`; nil sends none.
    public func put(
        _ path: String, _ body: JSON, version: Int64? = nil, headers: HTTPHeaders = [:]
    ) async throws -> Reply {
        var fields = headers
        if let version { fields["If-Match"] = "\"\(version)\"" }
        return try await call("PUT", path, body: body.bytes, headers: fields)
    }
}
