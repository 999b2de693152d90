import Basics
import Foundation
import HTTPClient
import TestKit
import Testing

@testable import PayrailsSandbox

@Suite("Over a real socket")
struct SocketTests {
    /// A listening stand-in and a client of it.
    struct Line {
        let sandbox: PayrailsSandbox
        let client: HTTPClient

        init(_ change: (inout SandboxConfiguration) -> Void = { _ in }) throws {
            var configuration = SandboxConfiguration()
            configuration.authorizeDelay = .zero
            configuration.actionDelay = .zero
            change(&configuration)
            sandbox = try PayrailsSandbox(configuration)
            try sandbox.start()
            client = try HTTPClient()
        }

        func send(
            _ method: String, _ path: String, _ body: JSON? = nil, headers: HTTPHeaders = HTTPHeaders()
        ) async throws -> (status: Int, json: JSON) {
            var headers = headers
            headers["Accept"] = "application/json"
            if body != nil { headers["Content-Type"] = "application/json" }
            let response = try await client.send(
                HTTPClientRequest(
                    method: method, url: sandbox.baseURL + path, headers: headers, body: body?.bytes,
                    timeout: .seconds(10)))
            return (response.status, (try? JSON(parsing: response.body)) ?? .null)
        }

        func token() async throws -> String {
            let answer = try await send(
                "POST", "/auth/token/\(sandbox.clientID)", headers: ["x-api-key": sandbox.clientSecret])
            return try #require(answer.json["access_token"]?.string)
        }

        func execution(_ reference: String = "order_1") async throws -> String {
            let answer = try await send(
                "POST", "/merchant/client/init",
                [
                    "type": "dropIn", "workflowCode": "payment-acceptance",
                    "merchantReference": .string(reference), "holderReference": "h",
                    "workspaceId": .string(sandbox.workspaceID), "amount": ["value": "10.00", "currency": "EUR"],
                ],
                headers: [
                    "Authorization": "Bearer \(try await token())", "x-idempotency-key": UUID().lowercased,
                ])
            try #require(answer.status == 200)
            return try #require(sandbox.executionIDs(merchantReference: reference).last)
        }

        func stop() async {
            await client.shutdown()
            await sandbox.stop()
        }
    }

    @Test("the whole way by the controls: init, pay, look, capture, ledger")
    func wholeWay() async throws {
        let line = try Line()
        let id = try await line.execution()
        let paid = try await line.send("POST", "/sandbox/executions/\(id)/pay", ["card": "3220"])
        #expect(paid.status == 202)
        #expect(await waitUntil { line.sandbox.statusCodes(id).contains("authorizePending") })
        #expect(try await line.send("GET", "/public/redirect/\(id)").status == 200)
        #expect(try await line.send("POST", "/sandbox/executions/\(id)/3ds", ["result": "success"]).status == 200)
        let seen = try await line.send("GET", "/sandbox/executions/\(id)").json
        #expect(seen["payment"]?["status"] == "Authorized")
        #expect(seen["ledger"]?[0]?["kind"] == "authorization")
        let captured = try await line.send(
            "POST", "/merchant/workflows/payment-acceptance/executions/\(id)/capture", [:],
            headers: ["Authorization": "Bearer \(try await line.token())", "x-idempotency-key": UUID().lowercased])
        #expect(captured.status == 202)
        #expect(try await line.send("POST", "/sandbox/settle").json["quiet"] == true)
        let totals = try await line.send("GET", "/sandbox/ledger?merchantReference=order_1").json["totals"]?[0]
        #expect(totals?["captured"] == "10.00")
        #expect(totals?["held"] == "0.00")
        let calls = try await line.send("GET", "/sandbox/calls?route=capture").json["calls"]
        #expect(calls?[0]?["status"] == 202)
        #expect(calls?[0]?["key"]?.string != nil)
        await line.stop()
    }

    @Test("links lead back to where it listens")
    func links() async throws {
        let line = try Line()
        let id = try await line.execution()
        let execution = try #require(line.sandbox.execution(id))
        let link = execution["links"]?["authorize"]
        let address = try #require(link?.string ?? link?["href"]?.string)
        #expect(address.hasPrefix(line.sandbox.baseURL + "/merchant/"))
        await line.stop()
    }

    @Test(
        "a broken connection is one for the client, and the effect is as asked for",
        arguments: [
            (SandboxFault.Kind.closeBefore, false), (.closeAfter, true), (.halfBody, true),
        ])
    func broken(_ kind: SandboxFault.Kind, _ hasEffect: Bool) async throws {
        let line = try Line()
        let id = try await line.execution()
        _ = try await line.send("POST", "/sandbox/executions/\(id)/pay", [:])
        #expect(await line.sandbox.becomesQuiet(within: .seconds(20)))
        line.sandbox.add(SandboxFault(kind, on: .capture))
        let token = try await line.token()
        // A connection of its own: on one that was used before, libcurl sends again by itself.
        let fresh = try HTTPClient()
        let error = await #expect(throws: HTTPClientError.self) {
            _ = try await fresh.send(
                HTTPClientRequest(
                    method: "POST",
                    url: line.sandbox.baseURL + "/merchant/workflows/payment-acceptance/executions/\(id)/capture",
                    headers: [
                        "Authorization": "Bearer \(token)", "x-idempotency-key": UUID().lowercased,
                        "Content-Type": "application/json", "Accept": "application/json",
                    ], body: Data("{}".utf8), timeout: .seconds(10)))
        }
        await fresh.shutdown()
        #expect(error?.code == .connectionLost)
        #expect(error?.mayHaveBeenSent == true)
        #expect(await line.sandbox.becomesQuiet(within: .seconds(20)))
        #expect((line.sandbox.ledgerTotals("order_1")?.capturedMinor == 1000) == hasEffect)
        await line.stop()
    }

    @Test("faults, outcomes and targets are set over HTTP; what can't be read is refused")
    func controls() async throws {
        let line = try Line()
        let fault: JSON = ["kind": "errorBefore", "route": "clientInit", "status": 503, "times": 1]
        #expect(try await line.send("POST", "/sandbox/faults", fault).status == 201)
        let token = try await line.token()
        let failing = try await line.send(
            "POST", "/merchant/client/init", [:],
            headers: ["Authorization": "Bearer \(token)", "x-idempotency-key": UUID().lowercased])
        #expect(failing.status == 503)
        let id = try await line.execution("fine")
        let outcome: JSON = ["outcome": "decline", "reason": "ExpiredInstrument", "merchantReference": "fine"]
        #expect(try await line.send("POST", "/sandbox/outcomes", outcome).status == 201)
        #expect(try await line.send("POST", "/sandbox/executions/\(id)/pay", [:]).status == 202)
        #expect(await waitUntil { line.sandbox.statusCodes(id).contains("authorizeFailed") })
        let wrong: [(String, JSON)] = [
            ("/sandbox/faults", ["kind": "explode"]), ("/sandbox/faults", ["kind": "delay", "route": "nowhere"]),
            ("/sandbox/faults", ["kind": "delay", "times": 0]),
            ("/sandbox/faults", ["kind": "delay", "probability": 2]),
            ("/sandbox/notification-faults", ["kind": "explode"]), ("/sandbox/outcomes", ["outcome": "maybe"]),
            ("/sandbox/notification-targets", ["targets": [["url": "nowhere", "key": "k"]]]),
            ("/sandbox/executions/\(id)/pay", ["outcome": "maybe"]),
            ("/sandbox/executions/\(id)/3ds", ["result": "maybe"]),
        ]
        for (path, body) in wrong { #expect(try await line.send("POST", path, body).status == 400, "\(path)") }
        #expect(try await line.send("POST", "/sandbox/executions/nope/pay", [:]).status == 404)
        #expect(try await line.send("GET", "/sandbox/nope").status == 404)
        #expect(try await line.send("GET", "/sandbox").json["help"]?.string?.contains("/pay") == true)
        await line.stop()
    }

    @Test("a reset forgets everything but goes on listening")
    func reset() async throws {
        let line = try Line()
        let id = try await line.execution()
        line.sandbox.add(SandboxFault(.errorBefore(status: 500), times: nil))
        #expect(try await line.send("POST", "/sandbox/reset").status == 200)
        #expect(try await line.send("GET", "/sandbox/executions/\(id)").status == 404)
        #expect(try await line.send("GET", "/sandbox/ledger").json["entries"]?.array?.isEmpty == true)
        let next = try await line.execution()
        #expect(next != id)
        await line.stop()
    }
}
