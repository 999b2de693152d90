import Basics
import Foundation
import Synchronization
import TestKit
import Testing

@testable import PayrailsSandbox

/// Calls the stand-in as a back end does, without a socket.
struct Caller {
    struct Reply {
        let status: Int
        let headers: HTTPHeaders
        let bytes: Data
        let breaks: APIResponse.Break?
        var json: JSON { (try? JSON(parsing: bytes)) ?? .null }
        var code: String? { json["errors"]?[0]?["code"]?.string }
        var detail: String? { json["errors"]?[0]?["detail"]?.string }
    }

    let sandbox: PayrailsSandbox
    let token: String

    init(_ change: (inout SandboxConfiguration) -> Void = { _ in }) async throws {
        var configuration = SandboxConfiguration()
        configuration.seed = 7
        configuration.authorizeDelay = .zero
        configuration.actionDelay = .zero
        change(&configuration)
        sandbox = try PayrailsSandbox(configuration)
        let answer = await sandbox.respond(
            to: APIRequest(
                method: "POST", path: "/auth/token/\(configuration.clientID)",
                headers: ["x-api-key": configuration.clientSecret, "Accept": "application/json"]))
        token = try #require(JSON(parsing: answer.body)["access_token"]?.string)
    }

    @discardableResult
    func call(
        _ method: String, _ path: String, _ body: JSON? = nil, key: String? = UUID().uuidString,
        token: String? = nil, headers: [String: String?] = [:]
    ) async -> Reply {
        var fields: HTTPHeaders = ["Accept": "application/json", "Authorization": "Bearer \(token ?? self.token)"]
        if body != nil { fields["Content-Type"] = "application/json" }
        if method != "GET" { fields["x-idempotency-key"] = key }
        for (name, value) in headers { fields[name] = value }
        let parts = path.split(separator: "?", maxSplits: 1)
        let answer = await sandbox.respond(
            to: APIRequest(
                method: method, path: String(parts[0]), query: parts.count > 1 ? String(parts[1]) : nil,
                headers: fields, body: body?.bytes ?? Data()))
        return Reply(status: answer.status, headers: answer.headers, bytes: answer.body, breaks: answer.breaks)
    }

    func initBody(_ reference: String = "order_1", value: String = "49.99", currency: String = "EUR") -> JSON {
        [
            "type": "dropIn", "workflowCode": "payment-acceptance", "merchantReference": .string(reference),
            "holderReference": "cust_77", "workspaceId": .string(sandbox.workspaceID),
            "amount": ["value": .string(value), "currency": .string(currency)],
        ]
    }

    /// A new execution, ready to be paid.
    func execution(_ reference: String = "order_1", value: String = "49.99", currency: String = "EUR") async throws
        -> String
    {
        let reply = await call(
            "POST", "/merchant/client/init", initBody(reference, value: value, currency: currency))
        try #require(reply.status == 200)
        return try #require(decoded(reply)["execution"]?["id"]?.string)
    }

    /// What is inside an init payload's `data`.
    func decoded(_ reply: Reply) throws -> JSON {
        let data = try #require(reply.json["data"]?.string.flatMap { Data(base64Encoded: $0) })
        return try JSON(parsing: data)
    }

    /// An execution whose money is set aside.
    func authorized(_ reference: String = "order_1", value: String = "49.99") async throws -> String {
        let id = try await execution(reference, value: value)
        try #require(sandbox.pay(id).status == 202)
        try #require(await waitUntil { sandbox.statusCodes(id).contains("authorizeSuccessful") })
        return id
    }

    func path(_ id: String, _ action: String = "") -> String {
        "/merchant/workflows/payment-acceptance/executions/\(id)" + (action.isEmpty ? "" : "/\(action)")
    }
}

/// A clock that a test moves.
final class HandClock: Sendable {
    private let time: Mutex<Timestamp>
    init(_ start: Timestamp = Timestamp(seconds: 1_790_000_000)) { time = Mutex(start) }
    var clock: WallClock { WallClock { self.time.withLock { $0 } } }
    func advance(by duration: Duration) { time.withLock { $0 = $0 + duration } }
}
