import Basics
import Foundation
import HTTPClient
import Lockstep
import Testing

@testable import Payrails

/// The client over libcurl and a real socket: what a network really does to a refund.
@Suite("Over a real socket")
struct SocketTests {
    private let execution: ExecutionReference
    private let key: IdempotencyKey

    init() throws {
        execution = try #require(Samples.reference)
        key = try #require(Samples.key)
    }

    private func refund(
        at baseURL: String, _ change: (inout PayrailsConfiguration) -> Void = { _ in }
    ) async throws -> Outcome<Acknowledgement> {
        let http = try HTTPClient(HTTPClientConfiguration())
        let configuration = PayrailsConfiguration.test {
            $0.baseURL = baseURL
            change(&$0)
        }
        let outcome = await PayrailsClient(configuration, transport: http).refund(execution, RefundRequest(), key: key)
        await http.shutdown()
        return outcome
    }

    private func server(_ answer: String?) throws -> RawServer {
        try RawServer { request in
            request.hasPrefix("POST /auth/token/") ? RawServer.http("200 OK", Samples.token("t-1")) : answer
        }
    }

    typealias Expected = OutcomeTableTests.Expected

    @Test(
        "what the wire gives becomes what the table says",
        arguments: [
            (RawServer.http("202 Accepted", Samples.acknowledgement("refund")), Expected.done),
            (
                RawServer.http("202 Accepted", Samples.acknowledgement("refund"), length: 5000),
                .unknown(.connectionLost)
            ),
            (RawServer.http("200 OK", "<html></html>"), .unknown(.unreadable)),
            (RawServer.http("204 No Content", "", length: 0), .unknown(.unreadable)),
            (RawServer.http("403 Forbidden", "<html></html>"), .refused(.rejected)),
            (RawServer.http("503 Service Unavailable", Samples.error("service.unavailable")), .unknown(.serverError)),
            (RawServer.http("302 Found\r\nLocation: http://127.0.0.1:1/", ""), .unknown(.unreadable)),
            ("", .unknown(.connectionLost)), ("SSH-2.0-OpenSSH_9.2\r\n", .unknown(.unreadable)),
            ("HTTP/1.1 202 Accepted\r\nContent-Le", .unknown(.unreadable)),
        ])
    func wire(_ answer: String, _ expected: Expected) async throws {
        let server = try server(answer)
        let outcome = try await refund(at: server.baseURL)
        #expect(OutcomeTableTests.kind(outcome) == expected)
        #expect(server.requests.count == 2, "the token, and the refund once")
        server.stop()
    }

    @Test("an answer that doesn't come in time is a doubt")
    func silence() async throws {
        let server = try server(nil)
        let http = try HTTPClient(HTTPClientConfiguration())
        let configuration = PayrailsConfiguration.test {
            $0.baseURL = server.baseURL
            $0.changeTimeout = .seconds(2)
        }
        let client = PayrailsClient(configuration, transport: http)
        // With the token at hand, all of the time is for the answer.
        #expect(await client.checkCredentials().value != nil)
        #expect(await client.refund(execution, RefundRequest(), key: key).doubt?.kind == .timedOut)
        await http.shutdown()
        server.stop()
    }

    @Test("a port where nobody listens is certain: nothing was sent")
    func nobody() async throws {
        let server = try server(nil)
        server.stop()
        // The port is free once the thread has let go of it.
        let deadline = ContinuousClock.now + .seconds(30)
        var outcome = try await refund(at: server.baseURL)
        while outcome.refusal == nil, ContinuousClock.now < deadline { outcome = try await refund(at: server.baseURL) }
        #expect(outcome.refusal?.kind == .notSent)
    }

    @Test("plain HTTP to another machine is refused before anything is sent")
    func plainHTTP() async throws {
        #expect(try await refund(at: "http://192.0.2.1").refusal?.kind == .notSent)
    }

    @Test("the request on the wire has the path, the key and the body")
    func request() async throws {
        let server = try server(RawServer.http("202 Accepted", Samples.acknowledgement("refund")))
        _ = try await refund(at: server.baseURL)
        let token = try #require(server.requests.first)
        #expect(token.hasPrefix("POST /auth/token/client-1 HTTP/1.1\r\n"))
        #expect(token.contains("x-api-key: $ecret!^*@\r\n"))
        #expect(!token.lowercased().contains("content-type"))
        #expect(!token.lowercased().contains("x-idempotency-key"))
        let refund = try #require(server.requests.last)
        #expect(
            refund.hasPrefix(
                "POST /merchant/workflows/payment-acceptance/executions/\(Samples.executionID)/refund HTTP/1.1\r\n"))
        #expect(refund.contains("x-idempotency-key: \(key)\r\n"))
        #expect(refund.contains("Authorization: Bearer t-1\r\n"))
        #expect(refund.hasSuffix("\r\n\r\n{}"))
        server.stop()
    }

    @Test("a long poll's brackets and colons arrive encoded")
    func longPoll() async throws {
        let server = try server(RawServer.http("200 OK", Samples.pending3DS))
        let http = try HTTPClient(HTTPClientConfiguration())
        let client = PayrailsClient(.test { $0.baseURL = server.baseURL }, transport: http)
        let newerThan = try #require(Timestamp(rfc3339: "2026-09-01T10:00:00.45Z"))
        let outcome = await client.readExecution(
            execution, wait: ExecutionWait(newerThan: newerThan, patience: .seconds(60)))
        #expect(outcome.value?.facts.count == 3)
        #expect(
            server.requests.last?.contains("?waitWhile%5BlastStatusTime%5D=2026-09-01T10%3A00%3A00.450Z HTTP") == true)
        await http.shutdown()
        server.stop()
    }
}
