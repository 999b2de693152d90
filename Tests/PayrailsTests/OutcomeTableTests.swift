import Basics
import Foundation
import Lockstep
import Testing

@testable import HTTPClient
@testable import Payrails

/// What a call that moves money makes of every kind of answer, through the whole client.
@Suite("The table of outcomes")
struct OutcomeTableTests {
    enum Expected: Sendable, Equatable {
        case done
        case refused(Refusal.Kind)
        case unknown(Doubt.Kind)
    }

    struct Row: Sendable, CustomTestStringConvertible {
        let status: Int
        let body: String
        let change: Expected
        let read: Expected
        var testDescription: String { "\(status) \(body.prefix(60))" }

        init(_ status: Int, _ body: String, change: Expected, read: Expected? = nil) {
            self.status = status
            self.body = body
            self.change = change
            self.read = read ?? change
        }
    }

    @Test(
        "R17: what an answer leaves open is no decline in the table either", arguments: ProviderProblem.resultsInDoubt)
    func oneMind(_ result: String) {
        let meaning = DeclinePolicy.standard.meaning(of: result)
        // A payment that waits for a customer who isn't there is known to wait.
        #expect(meaning == (result == "Pending" ? .customerNeeded : .unknown))
    }

    static let html = HTTPClientResponse.cloudflare

    static let rows: [Row] = [
        // 2xx that can be read by neither call, so that one row serves both.
        Row(200, html, change: .unknown(.unreadable)),
        Row(200, "", change: .unknown(.unreadable)),
        Row(202, #"{"name":"capture","actionId":"2f9b8d70-00"#, change: .unknown(.unreadable)),
        Row(200, "{}", change: .unknown(.unreadable)),
        Row(200, "[]", change: .unknown(.unreadable)),
        Row(200, "null", change: .unknown(.unreadable)),
        Row(200, "true", change: .unknown(.unreadable)),
        Row(200, "\"ok\"", change: .unknown(.unreadable)),
        Row(200, Samples.error, change: .unknown(.unreadable)),
        Row(201, #"{"id":"not-a-uuid"}"#, change: .unknown(.unreadable)),
        Row(202, Samples.acknowledgement("refund"), change: .unknown(.unreadable)),
        // Neither 2xx nor an error.
        Row(0, "", change: .unknown(.unreadable)),
        Row(100, "", change: .unknown(.unreadable)),
        Row(302, "", change: .unknown(.unreadable)),
        Row(304, "", change: .unknown(.unreadable)),
        Row(600, "{}", change: .unknown(.unreadable)),
        // Refusals.
        Row(400, Samples.error, change: .refused(.rejected)),
        Row(400, html, change: .refused(.rejected)),
        Row(400, #"{"errors":[]}"#, change: .refused(.rejected)),
        Row(400, #"{"errors":{"code":"request.malformed"}}"#, change: .refused(.rejected)),
        Row(401, Samples.error("request.unauthorized"), change: .refused(.unauthorized)),
        Row(401, html, change: .refused(.unauthorized)),
        Row(401, "", change: .refused(.unauthorized)),
        Row(403, Samples.error("request.forbidden"), change: .refused(.rejected)),
        Row(403, html, change: .refused(.rejected)),
        Row(404, Samples.error("request.not-found"), change: .refused(.notFound)),
        Row(404, html, change: .refused(.rejected)),
        Row(404, "404 page not found", change: .refused(.rejected)),
        Row(405, "", change: .refused(.rejected)),
        Row(413, html, change: .refused(.rejected)),
        Row(422, Samples.error("workflow.action.not-allowed"), change: .refused(.rejected)),
        Row(422, Samples.error("workflow.action.failed"), change: .refused(.rejected)),
        Row(
            422,
            Samples.error("workflow.action.failed", result: "InsufficientBalance", category: "InsufficientBalance"),
            change: .refused(.rejected)),
        Row(409, Samples.error("workflow.action.not-allowed"), change: .refused(.conflict)),
        Row(429, Samples.error("request.rate-limit"), change: .refused(.rateLimited)),
        Row(429, html, change: .refused(.rateLimited)),
        // Doubts.
        Row(408, Samples.error("request.timeout"), change: .unknown(.timedOut)),
        Row(408, html, change: .unknown(.timedOut)),
        Row(499, Samples.error("request.canceled"), change: .unknown(.cancelled)),
        Row(409, Samples.error("request.conflict"), change: .unknown(.timedOut), read: .refused(.conflict)),
        Row(409, html, change: .unknown(.timedOut), read: .refused(.conflict)),
        Row(400, Samples.error("request.timeout"), change: .unknown(.timedOut)),
        Row(400, Samples.error("internal"), change: .unknown(.serverError)),
        Row(422, Samples.error("service.unavailable"), change: .unknown(.serverError)),
        Row(422, Samples.error("workflow.action.failed", result: "ProviderTimeout"), change: .unknown(.serverError)),
        Row(
            422, Samples.error("workflow.action.failed", result: "DuplicateOperation", category: "Operation"),
            change: .unknown(.serverError)),
        Row(
            422, Samples.error("execution.payment-method.failed", result: "DuplicateOperation"),
            change: .unknown(.serverError)),
        Row(
            422, Samples.error("workflow.action.failed", result: "Timeout", category: "Connection"),
            change: .unknown(.serverError)),
        Row(
            400, #"{"errors":[{"code":"request.malformed"},{"code":"request.timeout"}]}"#, change: .unknown(.timedOut)),
        Row(500, Samples.error("internal"), change: .unknown(.serverError)),
        Row(500, html, change: .unknown(.connectionLost)),
        Row(502, html, change: .unknown(.connectionLost)),
        Row(503, Samples.error("service.unavailable"), change: .unknown(.serverError)),
        Row(504, "", change: .unknown(.connectionLost)),
        Row(520, html, change: .unknown(.connectionLost)),
        Row(599, "{}", change: .unknown(.serverError)),
    ]

    @Test("a refund and a read make of an answer what the table says", arguments: rows)
    func answers(_ row: Row) async throws {
        let reference = try #require(Samples.reference)
        let key = try #require(Samples.key)
        // The row for an acknowledgement of another action is about "capture" against "refund".
        let transport = ScriptedTransport([.json(row.status, row.body)])
        let client = PayrailsClient(.test, transport: transport)
        let change = await client.capture(reference, CaptureRequest(), key: key)
        #expect(OutcomeTableTests.kind(change) == row.change)
        let read = await client.readExecution(reference, wait: nil)
        #expect(OutcomeTableTests.kind(read) == row.read)
    }

    struct Failure: Sendable, CustomTestStringConvertible {
        let code: HTTPClientError.Code
        let sent: Bool
        let expected: Expected
        var testDescription: String { "\(code), sent: \(sent)" }
    }

    static let failures: [Failure] =
        [
            HTTPClientError.Code.invalidRequest, .plainHTTPRefused, .cannotResolve, .cannotConnect, .tls, .timedOut,
            .connectionLost, .responseTooLarge, .malformedResponse, .cancelled, .tooManyRequests, .shutDown, .other,
        ].map { Failure(code: $0, sent: false, expected: .refused(.notSent)) } + [
            Failure(code: .timedOut, sent: true, expected: .unknown(.timedOut)),
            Failure(code: .connectionLost, sent: true, expected: .unknown(.connectionLost)),
            Failure(code: .tls, sent: true, expected: .unknown(.connectionLost)),
            Failure(code: .cancelled, sent: true, expected: .unknown(.cancelled)),
            Failure(code: .responseTooLarge, sent: true, expected: .unknown(.unreadable)),
            Failure(code: .malformedResponse, sent: true, expected: .unknown(.unreadable)),
            Failure(code: .shutDown, sent: true, expected: .unknown(.connectionLost)),
            Failure(code: .other, sent: true, expected: .unknown(.connectionLost)),
            // Contradictions: doubt wins.
            Failure(code: .cannotConnect, sent: true, expected: .unknown(.connectionLost)),
            Failure(code: .invalidRequest, sent: true, expected: .unknown(.connectionLost)),
        ]

    @Test("no answer is a refusal only when nothing was sent", arguments: failures)
    func noAnswer(_ failure: Failure) async throws {
        let reference = try #require(Samples.reference)
        let key = try #require(Samples.key)
        let transport = ScriptedTransport { _, _ throws(HTTPClientError) in
            throw .failure(failure.code, sent: failure.sent)
        }
        let client = PayrailsClient(.test, transport: transport)
        #expect(OutcomeTableTests.kind(await client.refund(reference, RefundRequest(), key: key)) == failure.expected)
        #expect(OutcomeTableTests.kind(await client.readExecution(reference, wait: nil)) == failure.expected)
        #expect(transport.calls.count == 2, "the client never tries again by itself")
    }

    @Test(
        "W10: what is said to a second sending is no refusal of the first, unless Payrails looked at its key",
        arguments: [
            ([.json(429, Samples.error("request.rate-limit"))], .unknown(.connectionLost)),
            ([.json(403, "")], .unknown(.connectionLost)), ([.json(400, Samples.error)], .refused(.rejected)),
            // The token was refused the second time: whatever comes of the call with a fresh one, the first is open.
            ([.json(401, "{}"), .json(401, "{}")], .unknown(.connectionLost)),
            ([.json(401, "{}"), .json(429, Samples.error("request.rate-limit"))], .unknown(.connectionLost)),
            ([.json(401, "{}"), .html(403)], .unknown(.connectionLost)),
            ([.json(401, "{}"), .json(400, Samples.error)], .refused(.rejected)),
            ([.json(403, Samples.error("request.forbidden"))], .unknown(.connectionLost)),
        ] as [([HTTPClientResponse], Expected)])
    func secondSending(_ answers: [HTTPClientResponse], _ expected: Expected) async throws {
        let reference = try #require(Samples.reference)
        let key = try #require(Samples.key)
        let transport = ScriptedTransport { _, index throws(HTTPClientError) in
            var answer = answers[index]
            // Only the first request's connection ended and was made anew.
            answer.wasResent = index == 0
            return answer
        }
        let client = PayrailsClient(.test { $0.maximumRateLimitPause = .zero }, transport: transport)
        #expect(OutcomeTableTests.kind(await client.capture(reference, CaptureRequest(), key: key)) == expected)
        #expect(transport.calls.count == answers.count)
    }

    @Test("a second sending stays open where no other token comes, or nothing connects any more")
    func secondSendingAndNothingMore() async throws {
        let reference = try #require(Samples.reference)
        let key = try #require(Samples.key)
        func outcome(token: Int, fails: Bool) async -> Expected {
            let transport = ScriptedTransport(
                token: { _, index throws(HTTPClientError) in
                    index == token ? .html(502) : .json(200, Samples.token("token-\(index)"))
                },
                { _, index throws(HTTPClientError) in
                    if index == 1, fails { throw .failure(.cannotConnect, sent: false) }
                    var answer = HTTPClientResponse.json(index == 0 ? 401 : 202, Samples.acknowledgement("capture"))
                    answer.wasResent = index == 0
                    return answer
                })
            let client = PayrailsClient(.test, transport: transport)
            return OutcomeTableTests.kind(await client.capture(reference, CaptureRequest(), key: key))
        }
        #expect(await outcome(token: 1, fails: false) == .unknown(.connectionLost))
        #expect(await outcome(token: 9, fails: true) == .unknown(.connectionLost))
        #expect(await outcome(token: 9, fails: false) == .done)
    }

    @Test("a refusal carries the code, and Retry-After in seconds")
    func refusalDetails() async throws {
        let reference = try #require(Samples.reference)
        let key = try #require(Samples.key)
        let transport = ScriptedTransport { _, index throws(HTTPClientError) in
            index == 0
                ? .json(429, Samples.error("request.rate-limit"), headers: ["retry-after": "7"])
                : .json(400, Samples.error)
        }
        let client = PayrailsClient(.test { $0.maximumRateLimitPause = .zero }, transport: transport)
        let limited = await client.capture(reference, CaptureRequest(), key: key).refusal
        #expect(limited?.kind == .rateLimited)
        #expect(limited?.retryAfterSeconds == 7)
        #expect(limited?.code == "request.rate-limit")
        let rejected = await client.capture(reference, CaptureRequest(), key: key).refusal
        #expect(rejected?.code == "request.param.invalid")
        #expect(rejected?.detail == "HTTP 400, request.param.invalid, amount.value is not a decimal")
    }

    @Test(
        "the code is found in every error shape that was ever seen",
        arguments: [
            (#"{"errors":[{"code":"a.b"}]}"#, "a.b"),
            (#"{"errors":[{"title":"action.not-allowed"}]}"#, "action.not-allowed"),
            (#"{"code":"top.level","detail":"x"}"#, "top.level"), (#"{"title":"t"}"#, "t"),
            (#"{"error":"invalid_client","error_description":"x"}"#, "invalid_client"),
            (#"{"errors":{"code":"single"}}"#, "single"), (#"{"errors":[{"code":5}]}"#, nil), (#"{"errors":"x"}"#, nil),
            (#"{"errors":[null]}"#, nil), (#"{"errors":[{"code":"two words"}]}"#, nil),
        ] as [(String, String?)])
    func errorShapes(_ body: String, _ code: String?) throws {
        let problem = try #require(ProviderProblem(JSON(parsing: Data(body.utf8))))
        #expect(problem.code == code)
    }

    @Test("a body that is no object is no problem of Payrails")
    func notAProblem() throws {
        for body in ["[]", "1", "\"x\"", "null"] {
            #expect(try ProviderProblem(JSON(parsing: Data(body.utf8))) == nil)
        }
    }

    static func kind<Value>(_ outcome: Outcome<Value>) -> Expected {
        switch outcome {
        case .done: .done
        case .refused(let refusal): .refused(refusal.kind)
        case .unknown(let doubt): .unknown(doubt.kind)
        }
    }
}
