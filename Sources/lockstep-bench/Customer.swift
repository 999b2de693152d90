import Basics
import Foundation
import HTTPClient

/// One customer's way through a checkout, as shop, app and SDK would make it. Whatever answer is not the one that the
/// contract gives is a failure, by name.
struct Customer: Sendable {
    let rig: Rig
    let figures: Figures
    let watcher: FeedWatcher
    let number: Int

    struct Unexpected: Error { let what: String }

    func buy() async {
        do {
            try await walk()
        } catch let error as Unexpected {
            figures.fail(error.what)
        } catch let error as HTTPClientError {
            figures.fail("transport: \(error.code)")
        } catch {
            figures.fail("\(type(of: error))")
        }
        figures.finish()
    }

    private func walk() async throws {
        let reference = "bench-\(getpid())-\(number)"
        let created = try await call(
            "create", "POST", "/v1/checkouts", status: 201,
            headers: ["Idempotency-Key": reference],
            body: [
                "merchantReference": .string(reference), "holderReference": .string("customer-\(number % 1000)"),
                "amount": ["value": "49.99", "currency": "EUR"],
            ])
        guard let checkout = created["id"]?.string, var execution = created["executionId"]?.string else {
            throw Unexpected(what: "create: no id")
        }
        var amount = "49.99"
        if number % 10 < 7 {
            amount = "5\(number % 10).50"
            _ = try await call(
                "amount", "PUT", "/v1/checkouts/\(checkout)/amount", status: 200, headers: ["If-Match": "\"1\""],
                body: ["amount": ["value": .string(amount), "currency": "EUR"]])
        }
        if number % 3 == 0 { _ = try await call("read", "GET", "/v1/checkouts/\(checkout)", status: 200) }
        if number % 20 == 19 {
            _ = try await call("cancel", "POST", "/v1/checkouts/\(checkout)/cancel", status: 200, body: [:])
            return
        }
        if number % 10 == 3 {
            try await ask(execution, amount)
            try await pay(execution, ["outcome": "decline", "reason": "InsufficientBalance"])
            try await waitForDecline(execution)
            let session = try await call(
                "session", "POST", "/v1/checkouts/\(checkout)/session", status: 200, body: ["reason": "expired"])
            execution = session["executionId"]?.string ?? execution
        }
        try await ask(execution, amount)
        let isChallenged = number % 10 == 5
        let payingAt = ContinuousClock.now
        try await pay(execution, ["card": isChallenged ? "3220" : "4242"])
        if isChallenged { try await passChallenge(execution) }
        guard await watcher.wait(for: checkout, atMost: .seconds(20)) else { throw Unexpected(what: "paid: not told") }
        figures.record("paid (from paying to the feed)", .now - payingAt)
        if number % 5 == 0 { try await settle(execution, "capture") }
        if number % 10 == 0 { try await settle(execution, "refund") }
    }

    private func ask(_ execution: String, _ amount: String) async throws {
        let answer = try await call(
            "gate", "POST", "/v1/pre-payment", status: 200,
            body: [
                "executionId": .string(execution), "paymentMethodCode": "card",
                "amount": ["value": .string(amount), "currency": "EUR"],
            ])
        guard answer["decision"]?.string == "proceed" else {
            throw Unexpected(what: "gate: \(answer["reason"]?.string ?? "?")")
        }
    }

    /// A capture or refund, until it is known to have worked.
    private func settle(_ execution: String, _ action: String) async throws {
        let operation = try await call(
            action, "POST", "/v1/executions/\(execution)/\(action)", status: 202,
            headers: ["Idempotency-Key": "\(execution)-\(action)"], body: [:])
        let began = ContinuousClock.now
        while ContinuousClock.now - began < .seconds(20) {
            let state = try await call(
                "operation", "GET", "/v1/operations/\(operation["id"]?.string ?? "")", status: 200)["state"]?.string
            if state == "succeeded" {
                figures.record("\(action) (until it is known)", .now - began)
                return
            }
            guard state == "pending" else { throw Unexpected(what: "\(action): \(state ?? "?")") }
            try await Task.sleep(for: .milliseconds(20))
        }
        throw Unexpected(what: "\(action): never known")
    }

    private func waitForDecline(_ execution: String) async throws {
        for _ in 0..<1000 {
            let state = try await call("execution", "GET", "/v1/executions/\(execution)", status: 200)["state"]?.string
            if state == "failed" { return }
            try await Task.sleep(for: .milliseconds(10))
        }
        throw Unexpected(what: "decline: never known")
    }

    private func pay(_ execution: String, _ body: JSON) async throws {
        _ = try await send("POST", "\(rig.sandbox.baseURL)/sandbox/executions/\(execution)/pay", [:], body)
    }

    /// The challenge is there once the authorization waits for it.
    private func passChallenge(_ execution: String) async throws {
        for _ in 0..<500 {
            let answer = try await send(
                "POST", "\(rig.sandbox.baseURL)/sandbox/executions/\(execution)/3ds", [:], ["result": "success"])
            if (200...299).contains(answer.status) { return }
            try await Task.sleep(for: .milliseconds(10))
        }
        throw Unexpected(what: "3ds: no challenge")
    }

    private func call(
        _ step: String, _ method: String, _ path: String, status: Int, headers: HTTPHeaders = [:], body: JSON? = nil
    ) async throws -> JSON {
        var headers = headers
        headers["Authorization"] = "Bearer \(rig.key)"
        let began = ContinuousClock.now
        let answer = try await send(method, rig.service.url + path, headers, body)
        figures.record(step, .now - began)
        guard answer.status == status else {
            let problem = (try? JSON(parsing: answer.body))?["type"]?.string ?? ""
            throw Unexpected(what: "\(step): \(answer.status) \(problem)")
        }
        return try JSON(parsing: answer.body)
    }

    private func send(
        _ method: String, _ url: String, _ headers: HTTPHeaders, _ body: JSON?
    ) async throws -> HTTPClientResponse {
        var headers = headers
        if body != nil { headers["Content-Type"] = "application/json" }
        return try await rig.client.send(
            HTTPClientRequest(method: method, url: url, headers: headers, body: body?.bytes, timeout: .seconds(20)))
    }
}
