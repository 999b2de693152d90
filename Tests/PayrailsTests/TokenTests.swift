import Basics
import Foundation
import Lockstep
import Synchronization
import Testing

@testable import HTTPClient
@testable import Payrails

@Suite("The access token")
struct TokenTests {
    private let execution: ExecutionReference
    private let key: IdempotencyKey

    init() throws {
        execution = try #require(Samples.reference)
        key = try #require(Samples.key)
    }

    private func bearer(_ request: HTTPClientRequest) -> String? { request.headers["authorization"] }

    @Test("it is fetched as section 1.3 says: by POST, with the secret, without a body or an idempotency key")
    func tokenRequest() async throws {
        let transport = ScriptedTransport([.json(200, Samples.pending3DS)])
        let client = PayrailsClient(.test { $0.clientID = "id/with slash" }, transport: transport)
        _ = await client.readExecution(execution, wait: nil)
        let request = try #require(transport.tokenCalls.first)
        #expect(request.method == "POST")
        #expect(request.url == "https://api.example.test/auth/token/id%2Fwith%20slash")
        #expect(request.body == nil)
        #expect(request.headers["x-api-key"] == "$ecret!^*@")
        #expect(request.headers["accept"] == "application/json")
        #expect(request.headers.fields.count == 2)
    }

    @Test("it is kept until 60 seconds before its end, and not a second longer")
    func keptUntilMargin() async {
        let hand = HandClock()
        let transport = ScriptedTransport([.json(200, Samples.pending3DS)])
        let client = PayrailsClient(.test, transport: transport, clock: hand.clock)
        _ = await client.readExecution(execution, wait: nil)
        hand.advance(by: .seconds(3539))
        _ = await client.readExecution(execution, wait: nil)
        #expect(transport.tokenCalls.count == 1)
        hand.advance(by: .seconds(1))
        _ = await client.readExecution(execution, wait: nil)
        #expect(transport.tokenCalls.count == 2)
        #expect(transport.calls.map(bearer) == ["Bearer token-0", "Bearer token-0", "Bearer token-1"])
    }

    @Test(
        "a short, missing or odd life is neither trusted too long nor fetched for every call",
        arguments: [
            ("100", 49, 50), ("\"3600\"", 3539, 3540), ("null", 539, 540), ("\"soon\"", 539, 540), ("1e99", 539, 540),
            ("999999999999", 86_339, 86_340),
        ])
    func oddLives(_ expiresIn: String, _ good: Int, _ over: Int) async {
        let hand = HandClock()
        let transport = ScriptedTransport(
            token: { _, _ throws(HTTPClientError) in .json(200, Samples.token("t", expiresIn: expiresIn)) },
            { _, _ throws(HTTPClientError) in .json(200, Samples.pending3DS) })
        let client = PayrailsClient(.test, transport: transport, clock: hand.clock)
        _ = await client.readExecution(execution, wait: nil)
        hand.advance(by: .seconds(good))
        _ = await client.readExecution(execution, wait: nil)
        #expect(transport.tokenCalls.count == 1)
        hand.advance(by: .seconds(over - good))
        _ = await client.readExecution(execution, wait: nil)
        #expect(transport.tokenCalls.count == 2)
    }

    @Test("50 callers at once need one token")
    func fetchedOnce() async {
        let transport = ScriptedTransport([.json(200, Samples.pending3DS)])
        let client = PayrailsClient(.test, transport: transport)
        await withTaskGroup(of: Void.self) { group in
            for _ in 0..<50 { group.addTask { _ = await client.readExecution(execution, wait: nil) } }
        }
        #expect(transport.calls.count == 50)
        #expect(transport.tokenCalls.count == 1)
    }

    @Test("401 for 50 callers at once brings exactly one new token, and every call goes through with it")
    func replacedOnce() async {
        let gate = Gate(count: 50)
        let transport = ScriptedTransport { request, _ throws(HTTPClientError) in
            guard request.headers["authorization"] == "Bearer token-0" else { return .json(200, Samples.pending3DS) }
            // All hold the old token before the first of them learns that it is no good.
            await gate.pass()
            return .json(401, Samples.error("request.unauthorized"))
        }
        let client = PayrailsClient(.test, transport: transport)
        let done = await withTaskGroup(of: Bool.self) { group in
            for _ in 0..<50 { group.addTask { await client.readExecution(execution, wait: nil).value != nil } }
            return await group.reduce(0) { $0 + ($1 ? 1 : 0) }
        }
        #expect(done == 50)
        #expect(transport.tokenCalls.count == 2)
        #expect(transport.calls.count == 100)
    }

    @Test("a late 401 for an old token doesn't drop the one that replaced it")
    func lateRefusal() async throws {
        let transport = ScriptedTransport([.json(200, Samples.pending3DS)])
        let client = PayrailsClient(.test, transport: transport)
        let tokens = client.caller.tokens
        let old = try #require(await tokens.token(until: .seconds(1000)).value)
        let new = try #require(await tokens.token(insteadOf: old, until: .seconds(1000)).value)
        let again = try #require(await tokens.token(insteadOf: old, until: .seconds(1000)).value)
        #expect(new.generation == again.generation)
        #expect(old.generation != new.generation)
        #expect(transport.tokenCalls.count == 2)
    }

    @Test("M12: a 401 is tried once more under the same key with the same body, and then it is the answer")
    func unauthorizedTwice() async throws {
        let transport = ScriptedTransport([.json(401, Samples.error("request.unauthorized"))])
        let client = PayrailsClient(.test, transport: transport)
        let amount = try #require(Money.of("20.00"))
        let outcome = await client.capture(execution, CaptureRequest(amount: amount), key: key)
        #expect(outcome.refusal?.kind == .unauthorized)
        #expect(outcome.refusal?.code == "request.unauthorized")
        #expect(transport.calls.count == 2)
        #expect(Set(transport.calls.map { $0.headers["x-idempotency-key"] }) == [key.description])
        #expect(Set(transport.calls.map(\.body)).count == 1)
        #expect(transport.calls.map(bearer) == ["Bearer token-0", "Bearer token-1"])
        #expect(transport.tokenCalls.count == 2)
    }

    @Test("the doubt of the second try is not covered up by the 401 of the first")
    func unauthorizedThenTimeout() async throws {
        let transport = ScriptedTransport { _, index throws(HTTPClientError) in
            if index == 0 { return .json(401, "{}") }
            throw .failure(.timedOut, sent: true)
        }
        let client = PayrailsClient(.test, transport: transport)
        #expect(await client.refund(execution, RefundRequest(), key: key).doubt?.kind == .timedOut)
    }

    @Test(
        "without a token the call was certainly not sent, whatever the token call met",
        arguments: [
            HTTPClientResponse.json(401, Samples.error("request.unauthorized")),
            .json(400, #"{"error":"invalid_client","error_description":"no"}"#), .html(403), .html(502),
            .json(200, "{}"),
            .html(200), .json(200, #"{"access_token":""}"#), .json(200, #"{"access_token":"a\r\nX-Evil: 1"}"#),
            .json(429, "", headers: ["Retry-After": "1"]),
        ])
    func noToken(_ answer: HTTPClientResponse) async throws {
        let transport = ScriptedTransport(
            token: { _, _ throws(HTTPClientError) in answer },
            { _, _ throws(HTTPClientError) in .json(202, Samples.acknowledgement("capture")) })
        let client = PayrailsClient(.test, transport: transport)
        #expect(await client.capture(execution, CaptureRequest(), key: key).refusal?.kind == .notSent)
        #expect(transport.calls.isEmpty)
    }

    @Test("a token call that timed out leaves the call unsent, too")
    func tokenTimedOut() async throws {
        let transport = ScriptedTransport(
            token: { _, _ throws(HTTPClientError) in throw .failure(.timedOut, sent: true) },
            { _, _ throws(HTTPClientError) in .json(202, Samples.acknowledgement("capture")) })
        let client = PayrailsClient(.test, transport: transport)
        #expect(await client.capture(execution, CaptureRequest(), key: key).refusal?.kind == .notSent)
        #expect(await client.checkCredentials().doubt?.kind == .timedOut)
        #expect(transport.calls.isEmpty)
    }

    @Test("a failed fetch is not remembered: the next call asks again")
    func failureIsNotKept() async {
        let transport = ScriptedTransport(
            token: { _, index throws(HTTPClientError) in index == 0 ? .html(502) : .json(200, Samples.token("t")) },
            { _, _ throws(HTTPClientError) in .json(200, Samples.pending3DS) })
        let client = PayrailsClient(.test, transport: transport)
        #expect(await client.readExecution(execution, wait: nil).refusal?.kind == .notSent)
        #expect(await client.readExecution(execution, wait: nil).value != nil)
    }

    @Test("a token that was answered with 401 is never used again, also when no other one could be had")
    func refusedTokenIsDropped() async {
        let transport = ScriptedTransport(
            token: { _, index throws(HTTPClientError) in
                index == 1 ? .html(502) : .json(200, Samples.token("token-\(index)"))
            },
            { _, index throws(HTTPClientError) in index == 0 ? .json(401, "{}") : .json(200, Samples.pending3DS) })
        let client = PayrailsClient(.test, transport: transport)
        #expect(await client.readExecution(execution, wait: nil).refusal?.kind == .notSent)
        #expect(await client.readExecution(execution, wait: nil).value != nil)
        #expect(transport.calls.map(bearer) == ["Bearer token-0", "Bearer token-2"])
    }

    @Test("a call whose time the token used up is not sent")
    func tokenTookAllTheTime() async {
        let hand = HandClock()
        let transport = ScriptedTransport(
            token: { _, _ throws(HTTPClientError) in
                hand.advance(by: .seconds(60))
                return .json(200, Samples.token("t"))
            },
            { _, _ throws(HTTPClientError) in .json(202, Samples.acknowledgement("capture")) })
        let client = PayrailsClient(.test, transport: transport, clock: hand.clock)
        #expect(await client.capture(execution, CaptureRequest(), key: key).refusal?.kind == .notSent)
        #expect(transport.calls.isEmpty)
    }

    @Test("one caller's cancellation takes the token from nobody else")
    func cancellation() async throws {
        let gate = Gate(count: 2)
        let transport = ScriptedTransport(
            token: { _, _ throws(HTTPClientError) in
                await gate.pass()
                return .json(200, Samples.token("t"))
            },
            { _, _ throws(HTTPClientError) in .json(200, Samples.pending3DS) })
        let client = PayrailsClient(.test, transport: transport)
        let first = Task { await client.readExecution(execution, wait: nil) }
        while transport.tokenCalls.isEmpty { await Task.yield() }
        let second = Task { await client.readExecution(execution, wait: nil) }
        first.cancel()
        // The one that was cancelled leaves at once, while the fetch is still held up.
        #expect(await first.value.refusal?.kind == .notSent)
        await gate.pass()
        #expect(await second.value.value != nil)
        #expect(transport.tokenCalls.count == 1)
    }

    @Test("whoever has less time than the token needs leaves in its own time")
    func waiterTimesOut() async throws {
        let gate = Gate(count: 2)
        let transport = ScriptedTransport(
            token: { _, _ throws(HTTPClientError) in
                await gate.pass()
                return .json(200, Samples.token("t"))
            },
            { _, _ throws(HTTPClientError) in .json(200, Samples.pending3DS) })
        let client = PayrailsClient(.test { $0.readTimeout = .milliseconds(50) }, transport: transport)
        #expect(await client.readExecution(execution, wait: nil).refusal?.kind == .notSent)
        await gate.pass()
    }

    @Test("checkCredentials asks for a fresh token each time, and says what is wrong with them")
    func checkCredentials() async {
        let transport = ScriptedTransport(
            token: { _, index throws(HTTPClientError) in
                index < 2 ? .json(200, Samples.token("t")) : .json(401, Samples.error("request.unauthorized"))
            },
            { _, _ throws(HTTPClientError) in .html(500) })
        let client = PayrailsClient(.test, transport: transport)
        #expect(await client.checkCredentials().value != nil)
        #expect(await client.checkCredentials().value != nil)
        #expect(await client.checkCredentials().refusal?.kind == .unauthorized)
        #expect(transport.tokenCalls.count == 3)
        #expect(transport.calls.isEmpty)
    }
}
