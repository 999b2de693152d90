import Basics
import Foundation
import Lockstep
import Testing

@testable import HTTPClient
@testable import Payrails

@Suite("Reading executions")
struct ReadTests {
    private let execution: ExecutionReference

    init() throws { execution = try #require(Samples.reference) }

    private func read(_ body: String) async -> Outcome<ExecutionSnapshot> {
        await PayrailsClient(.test, transport: ScriptedTransport([.json(200, body)])).readExecution(
            execution, wait: nil)
    }

    private func time(_ text: String) throws -> Timestamp { try #require(Timestamp(rfc3339: text)) }

    @Test("the unordered status of the sample becomes facts in order, exact to the nanosecond")
    func sample() async throws {
        let snapshot = try #require(await read(Samples.pending3DS).value)
        #expect(snapshot.reference == execution)
        #expect(snapshot.merchantReference == "order_501")
        #expect(snapshot.holderReference == "cust_77")
        #expect(snapshot.workspaceID == "0f2d6a10-8a3e-4b43-9a53-6a1f0c9e7b11")
        #expect(snapshot.amount == .of("57.49"))
        #expect(snapshot.createdAt == Timestamp(rfc3339: "2026-09-01T10:00:00.000000001Z"))
        let amount = Money.of("57.49")
        #expect(
            snapshot.facts == [
                Fact(
                    kind: .status, code: "created", amount: amount, at: try time("2026-09-01T10:00:00.000000001Z"),
                    source: .read),
                Fact(
                    kind: .status, code: "authorizeRequested", amount: amount, at: try time("2026-09-01T10:00:00.45Z"),
                    source: .read),
                Fact(
                    kind: .status, code: "authorizePending", amount: amount, actionRequired: "3ds",
                    at: try time("2026-09-01T10:00:03.100200300Z"), source: .read),
            ])
    }

    @Test("times that differ in the last of nine digits keep their order")
    func nanoseconds() async throws {
        let body = Samples.execution(
            """
            {"code":"authorizePending","time":"2026-09-01T10:00:00.000000002Z"},
            {"code":"authorizeFailed","time":"2026-09-01T10:00:00.000000001Z"}
            """)
        #expect(await read(body).value?.facts.map(\.code) == ["authorizeFailed", "authorizePending"])
    }

    @Test("a decline tells its reason; what the customer must do belongs to the newest waiting state only")
    func decline() async throws {
        let body = Samples.execution(
            #"{"code":"authorizePending","time":"2026-09-01T10:00:03Z"},"# + Samples.declineEntry,
            extra: #","actionRequired":"3ds""#)
        let facts = try #require(await read(body).value?.facts)
        #expect(facts.map(\.code) == ["authorizePending", "authorizeFailed"])
        #expect(facts.map(\.reason) == [nil, "InsufficientBalance"])
        #expect(facts.map(\.actionRequired) == [nil, nil])
    }

    @Test("entries without a time, of a wrong type or said twice don't become facts of their own")
    func oddEntries() async throws {
        let body = Samples.execution(
            """
            {"code":"authorizeSuccessful"},{"code":"captureSuccessful","time":7},null,"authorizeSuccessful",[],
            {"code":"created","time":"2026-09-01T10:00:00Z"},{"code":"created","time":"2026-09-01T10:00:00Z"},
            {"code":"authorize Successful","time":"2026-09-01T10:00:01Z"},{"code":5,"time":"2026-09-01T10:00:02Z"},
            {"code":"neverSeenBefore","time":"2026-09-01T10:00:03Z","errors":{"reason":"x"}}
            """)
        #expect(
            await read(body).value?.facts.map(\.code) == ["created", "unreadable", "unreadable", "neverSeenBefore"])
    }

    @Test(
        "status that isn't a list is no status, and the rest is still read",
        arguments: ["{}", "null", "7", "\"created\""])
    func statusOfAnotherType(_ status: String) async throws {
        let body =
            #"{"id":"\#(Samples.executionID)","status":\#(status),"amount":{"value":"1","currency":"EUR"},"links":[]}"#
        let snapshot = try #require(await read(body).value)
        #expect(snapshot.facts.isEmpty)
        #expect(snapshot.amount == .of("1.00"))
        #expect(snapshot.reference.workflowCode == "payment-acceptance")
    }

    @Test("100, 100.00 and 100.000 are the same amount; a number or a digit too many is none")
    func amounts() async throws {
        for (text, expected) in [
            (#"{"value":"100","currency":"EUR"}"#, Money.of("100.00")),
            (#"{"value":"100.00","currency":"EUR"}"#, .of("100.00")), (#"{"value":100,"currency":"EUR"}"#, nil),
            (#"{"value":"100.001","currency":"EUR"}"#, nil), (#"{"value":"100.000","currency":"EUR"}"#, .of("100.00")),
        ] {
            let body = #"{"id":"\#(Samples.executionID)","status":[],"amount":\#(text)}"#
            let snapshot = try #require(await read(body).value)
            #expect(snapshot.amount == expected, "\(text)")
        }
    }

    @Test("a payment composition tells the payment's ids, without a status of its own")
    func paymentComposition() async throws {
        let body = Samples.execution(
            #"{"code":"authorizeSuccessful","time":"2026-09-01T10:00:05Z"}"#,
            extra: """
                ,"paymentComposition":[{"paymentId":"c0de","paymentMethodCode":"payPal","paymentInstrumentId":"6f6a",
                "amount":{"value":"57.49","currency":"EUR"}},{"amount":{"value":"1.00","currency":"EUR"}},7]
                """)
        let payments = try #require(await read(body).value?.facts.filter { $0.kind == .payment })
        #expect(payments.count == 1)
        #expect(payments.first?.code == nil)
        #expect(payments.first?.paymentID == "c0de")
        #expect(payments.first?.amount == .of("57.49"))
        #expect(payments.first?.success == nil)
        // By when the execution was made: the same fact in every reading.
        #expect(payments.first?.at == Timestamp(rfc3339: "2026-09-01T10:00:00.000000001Z"))
    }

    @Test("the answer for another execution is no answer")
    func anotherExecution() async throws {
        let body = Samples.pending3DS.replacing(Samples.executionID, with: "9b1d0a52-2a41-4f0c-8c0e-3f7f5d0e1c99")
        #expect(await read(body).doubt?.kind == .unreadable)
    }

    @Test("links are a string or an object; anything else is no link")
    func links() throws {
        let json = try JSON(
            parsing: Data(
                #"{"a":"https://x","b":{"href":"https://y","method":"POST"},"c":[],"d":5,"e":{},"f":""}"#.utf8))
        let links = PayrailsLink.all(json)
        #expect(links.keys.sorted() == ["a", "b"])
        #expect(links["a"]?.href == "https://x")
        #expect(links["b"]?.method == "POST")
        #expect(PayrailsLink.all([]).isEmpty)
    }

    @Test("waiting asks for what is newer than the last status, encoded")
    func waitQuery() async throws {
        let transport = ScriptedTransport([.json(200, Samples.pending3DS)])
        let newerThan = try time("2026-09-01T10:00:00.450000001Z")
        let outcome = await PayrailsClient(.test, transport: transport)
            .readExecution(execution, wait: ExecutionWait(newerThan: newerThan, patience: .seconds(60)))
        #expect(outcome.value != nil)
        #expect(transport.calls.count == 1)
        #expect(
            transport.calls.first?.url.hasSuffix(
                "?waitWhile%5BlastStatusTime%5D=2026-09-01T10%3A00%3A00.450000001Z") == true)
        #expect((transport.calls.first?.timeout ?? .zero) <= .seconds(30))
        #expect((transport.calls.first?.timeout ?? .zero) > .zero)
    }

    @Test("an early answer with nothing new is asked for again, until there is something new")
    func waitAgain() async throws {
        let old = Samples.execution(#"{"code":"created","time":"2026-09-01T10:00:00Z"}"#)
        let transport = ScriptedTransport { _, index throws(HTTPClientError) in
            .json(200, index < 3 ? old : Samples.pending3DS)
        }
        let client = PayrailsClient(.test { $0.waitPause = .milliseconds(1) }, transport: transport)
        let outcome = await client.readExecution(
            execution,
            wait: ExecutionWait(newerThan: try time("2026-09-01T10:00:00Z"), patience: .seconds(60)))
        #expect(outcome.value?.facts.last?.code == "authorizePending")
        #expect(transport.calls.count == 4)
    }

    @Test("a server that holds longer than we wait is read once more without waiting")
    func heldTooLong() async throws {
        let transport = ScriptedTransport { request, _ throws(HTTPClientError) in
            guard request.url.contains("waitWhile") else { return .json(200, Samples.pending3DS) }
            try? await Task.sleep(for: request.timeout)
            throw .failure(.timedOut, sent: true)
        }
        let client = PayrailsClient(.test { $0.waitPause = .milliseconds(1) }, transport: transport)
        let outcome = await client.readExecution(
            execution, wait: ExecutionWait(newerThan: try time("2026-09-02T10:00:00Z"), patience: .milliseconds(200)))
        #expect(outcome.value != nil)
        #expect(transport.calls.last?.url.contains("waitWhile") == false)
    }

    @Test("a refusal or a doubt ends the wait at once")
    func waitRefused() async throws {
        let wait = ExecutionWait(newerThan: try time("2026-09-01T10:00:00Z"), patience: .seconds(60))
        for answer in [HTTPClientResponse.json(404, Samples.error("request.not-found")), .html(502)] {
            let transport = ScriptedTransport([answer])
            let outcome = await PayrailsClient(.test, transport: transport).readExecution(execution, wait: wait)
            #expect(outcome.value == nil)
            #expect(transport.calls.count == 1)
        }
    }
}
