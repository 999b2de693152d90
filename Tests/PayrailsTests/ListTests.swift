import Basics
import Foundation
import Lockstep
import Testing

@testable import HTTPClient
@testable import Payrails

@Suite("Lists and their pages")
struct ListTests {
    private func page(_ results: [String], _ rest: String = #""links":{}"#) -> HTTPClientResponse {
        .json(200, #"{"results":[\#(results.joined(separator: ","))],\#(rest)}"#)
    }

    private func execution(_ number: Int, created: String, reference: String = "order_501") -> String {
        """
        {"id":"9b1d0a52-2a41-4f0c-8c0e-3f7f5d0e1c0\(number)","status":[],"createdAt":"\(created)","merchantReference":"\(reference)"}
        """
    }

    @Test("executions of a reference are found over all pages, newest first, without those of others")
    func findExecutions() async throws {
        let transport = ScriptedTransport([
            page(
                [
                    execution(1, created: "2026-09-01T10:00:00Z"),
                    execution(2, created: "2026-09-01T09:00:00Z", reference: "order_5"),
                ],
                #""links":{"next":"https://evil.example/steal?page[after]=a b&page[size]=2#x"}"#),
            page([execution(3, created: "2026-09-01T10:00:00.000000001Z")]),
        ])
        let client = PayrailsClient(.test { $0.pageSize = 2 }, transport: transport)
        let found = try #require(await client.findExecutions(merchantReference: "order_501").value)
        #expect(found.map { $0.reference.id.description.last } == ["3", "1"])
        let base = "https://api.example.test/merchant/workflows/payment-acceptance/executions"
        #expect(
            transport.calls.map(\.url) == [
                "\(base)?filter%5BmerchantReference%5D=order_501&page%5Bsize%5D=2",
                "\(base)?page%5Bafter%5D=a%20b&page%5Bsize%5D=2&filter%5BmerchantReference%5D=order_501",
            ])
    }

    @Test(
        "what can't be read makes the whole answer unknown, since callers conclude from what is missing",
        arguments: [
            #"{"results":[{"status":[]}]}"#, #"{"results":[7]}"#, #"{"results":{}}"#, "{}", "[]",
            #"{"results":[{"id":"9b1d0a52-2a41-4f0c-8c0e-3f7f5d0e1c01","status":[]}]}"#,
            #"{"results":[],"links":{"next":7}}"#, #"{"results":[],"links":{"next":"https://api.example.test/x"}}"#,
            #"{"results":[],"links":{"next":"?"}}"#, #"{"results":[],"links":{"next":{"method":"GET"}}}"#,
            // The same page again, for ever.
            #"{"results":[],"links":{"next":"?filter[merchantReference]=order_501&page[size]=100"}}"#,
        ])
    func unreadableLists(_ body: String) async {
        let client = PayrailsClient(.test, transport: ScriptedTransport([.json(200, body)]))
        #expect(await client.findExecutions(merchantReference: "order_501").doubt?.kind == .unreadable)
    }

    @Test("a list without an end is given up")
    func endless() async {
        let transport = ScriptedTransport { _, index throws(HTTPClientError) in
            .json(200, #"{"results":[],"links":{"next":"?page[after]=\#(index)"}}"#)
        }
        let client = PayrailsClient(.test { $0.maximumPages = 5 }, transport: transport)
        #expect(await client.findExecutions(merchantReference: "o").doubt?.kind == .unreadable)
        #expect(transport.calls.count == 5)
    }

    @Test("a failure on a later page is the answer")
    func laterFailure() async {
        let transport = ScriptedTransport([
            page([], #""links":{"next":"?page[after]=b"}"#), .html(502),
        ])
        let client = PayrailsClient(.test, transport: transport)
        #expect(await client.findExecutions(merchantReference: "o").doubt?.kind == .connectionLost)
    }

    @Test(
        "the next page is found in every shape that was seen",
        arguments: [
            (
                #"{"links":{"next":"https://api.example.test/payment/payments?page[after]=abc&page[size]=2"}}"#,
                "page%5Bafter%5D=abc&page%5Bsize%5D=2"
            ),
            (#"{"links":{"next":"/payment/payments?page%5Bafter%5D=abc"}}"#, "page%5Bafter%5D=abc"),
            (#"{"links":{"next":{"href":"http://x/y?z=1","method":"GET"}}}"#, "z=1"),
            (
                #"{"paging":{"next":"?createdAtOrAfter=2026&limit=50&pagingIdBefore=9"}}"#,
                "createdAtOrAfter=2026&limit=50&pagingIdBefore=9"
            ),
            (#"{"links":{"next":null},"paging":{"next":"?a=%zz"}}"#, "a=%zz"),
            (
                #"{"links":{"next":"?page[cursor]=aGk+/w==&x=%5B1%5D\"é\""}}"#,
                "page%5Bcursor%5D=aGk+/w==&x=%5B1%5D%22%C3%A9%22"
            ),
            (#"{"links":{"self":"x"}}"#, nil), (#"{"links":{"next":""}}"#, nil), (#"{"links":[]}"#, nil), ("{}", nil),
            (#"{"links":null,"paging":null}"#, nil),
        ] as [(String, String?)])
    func nextShapes(_ body: String, _ next: String?) throws {
        let paging = Paging(try JSON(parsing: Data(body.utf8)), after: "q=1")
        #expect(paging == next.map { .next($0) } ?? .end)
    }

    @Test("a filter that the next page repeats, in whatever writing, is not sent twice")
    func filtersOnce() throws {
        let body = #"{"links":{"next":"?filter[a]=2&page[after]=x"}}"#
        let paging = Paging(
            try JSON(parsing: Data(body.utf8)), after: "filter%5Ba%5D=1&filter%5Bb%5D=1&page%5Bsize%5D=9")
        #expect(paging == .next("filter%5Ba%5D=2&page%5Bafter%5D=x&filter%5Bb%5D=1"))
    }

    @Test("payments are filtered by an interval and the workspace, and followed by the query that came")
    func listPayments() async throws {
        let transport = ScriptedTransport([
            page([Samples.payment], #""links":{"next":"https://api.example.test/payment/payments?page[after]=abc"}"#),
            page([]),
        ])
        let client = PayrailsClient(.test { $0.workspaceID = "ws 1" }, transport: transport)
        let filter = PaymentFilter(
            createdFrom: Timestamp(rfc3339: "2026-09-01T00:00:00Z"),
            createdTo: Timestamp(rfc3339: "2026-09-02T00:00:00Z"))
        let first = try #require(await client.listPayments(filter, after: nil).value)
        #expect(
            first.records == [
                PaymentRecord(
                    id: "c0de0a52", status: "Authorized", merchantReference: "order_501", amount: .of("57.49"),
                    capturedAmount: .of("0.00"), refundedAmount: .of("0.00"),
                    createdAt: Timestamp(rfc3339: "2026-09-01T10:00:03Z"))
            ])
        let second = try #require(await client.listPayments(filter, after: first.next).value)
        #expect(second.next == nil)
        let filters =
            "filter%5BcreatedAt%5D=%5B2026-09-01T00%3A00%3A00Z%2C2026-09-02T00%3A00%3A00Z%29&filter%5BworkspaceId%5D=ws%201"
        #expect(
            transport.calls.map(\.url) == [
                "https://api.example.test/payment/payments?\(filters)&page%5Bsize%5D=100",
                "https://api.example.test/payment/payments?page%5Bafter%5D=abc&\(filters)",
            ])
    }

    @Test("intervals are open where no bound is given")
    func intervals() {
        let time = Timestamp(rfc3339: "2026-09-01T00:00:00Z")
        #expect(PayrailsClient.interval(PaymentFilter()) == nil)
        #expect(PayrailsClient.interval(PaymentFilter(createdFrom: time)) == "[2026-09-01T00:00:00Z")
        #expect(PayrailsClient.interval(PaymentFilter(createdTo: time)) == "2026-09-01T00:00:00Z)")
    }

    @Test("a payment of another reference is left out, one without a status is Unknown, one without an id is no record")
    func oddPayments() async throws {
        let odd =
            #"{"id":"p2","merchantReference":"order_501","amount":{"value":5,"currency":"EUR"},"createdAt":"yesterday"}"#
        let other = Samples.payment.replacing("order_501", with: "order_502")
        let client = PayrailsClient(.test, transport: ScriptedTransport([page([other, odd])]))
        let found = try #require(
            await client.listPayments(PaymentFilter(merchantReference: "order_501"), after: nil).value)
        #expect(found.records.map(\.id) == ["p2"])
        #expect(found.records.first?.status == "Unknown")
        #expect(found.records.first?.amount == nil)
        #expect(found.records.first?.createdAt == nil)
        let broken = PayrailsClient(.test, transport: ScriptedTransport([page([#"{"status":"Captured"}"#])]))
        #expect(await broken.listPayments(PaymentFilter(), after: nil).doubt?.kind == .unreadable)
    }
}

@Suite("Saved instruments")
struct InstrumentTests {
    private let id: InstrumentID
    private let key: IdempotencyKey

    init() throws {
        id = try #require(InstrumentID(Samples.instrumentID))
        key = try #require(Samples.key)
    }

    @Test("the sample is read with its expiry, its token and its flags")
    func sample() async throws {
        let transport = ScriptedTransport([.json(200, Samples.instrument)])
        let found = try #require(await PayrailsClient(.test, transport: transport).readInstrument(id).value)
        #expect(
            found
                == InstrumentSnapshot(
                    id: id, holderReference: "cust_77", paymentMethod: "card", status: "enabled", isDefault: true,
                    displayName: "Visa **** 4242", network: "visa", suffix: "4242", expiryMonth: 9, expiryYear: 2027,
                    hasNetworkToken: true, futureUsage: "Subscription"))
        #expect(
            transport.calls.first?.url
                == "https://api.example.test/payment/instruments/\(id)?includeTokens=true&includeHolderReference=true")
    }

    @Test(
        "E3: an expiry that is missing or nonsense is unknown",
        arguments: [
            (#""09""#, #""2027""#, 9, 2027), (#""9""#, #""2027""#, 9, 2027), ("9", "2027", 9, 2027),
            (#""13""#, #""2027""#, nil, 2027), (#""00""#, #""27""#, nil, nil), (#""""#, "null", nil, nil),
            (#""-1""#, #""20270""#, nil, nil), (#""9.0""#, "2027.5", nil, nil), ("[]", "{}", nil, nil),
        ] as [(String, String, Int?, Int?)])
    func expiry(_ month: String, _ year: String, _ expectedMonth: Int?, _ expectedYear: Int?) throws {
        let text = #"{"id":"\#(Samples.instrumentID)","data":{"expiryMonth":\#(month),"expiryYear":\#(year)}}"#
        let snapshot = try #require(InstrumentReading.snapshot(JSON(parsing: Data(text.utf8))))
        #expect(snapshot.expiryMonth == expectedMonth)
        #expect(snapshot.expiryYear == expectedYear)
        #expect(snapshot.status == "unknown")
        #expect(snapshot.hasNetworkToken == nil)
    }

    @Test("only an enabled network token is one")
    func tokens() throws {
        for (token, expected) in [
            (#"{"type":"network","status":"enabled"}"#, true), (#"{"type":"network","status":"disabled"}"#, false),
            (#"{"type":"psp","status":"enabled"}"#, false), (#"{"type":"network"}"#, false), ("7", false),
        ] {
            let text = #"{"id":"\#(Samples.instrumentID)","tokens":[\#(token)]}"#
            #expect(try InstrumentReading.snapshot(JSON(parsing: Data(text.utf8)))?.hasNetworkToken == expected)
        }
    }

    @Test("a card number in a display name is blanked")
    func displayName() throws {
        let text = #"{"id":"\#(Samples.instrumentID)","displayName":"Visa 4242 4242 4242 4242"}"#
        #expect(try InstrumentReading.snapshot(JSON(parsing: Data(text.utf8)))?.displayName == "Visa •••")
    }

    @Test("a holder's list leaves out another holder's cards and what can't be read")
    func list() async throws {
        let other = Samples.instrument.replacing("cust_77", with: "cust_78")
        let body = #"{"results":[\#(Samples.instrument),\#(other),{"id":5}],"paging":{}}"#
        let transport = ScriptedTransport([.json(200, body)])
        let found = try #require(
            await PayrailsClient(.test, transport: transport).listInstruments(holderReference: "cust_77").value)
        #expect(found.map(\.id) == [id])
        #expect(
            transport.calls.first?.url
                == "https://api.example.test/payment/instruments?filter%5BholderReference%5D=cust_77"
                + "&includeHolderReference=true&page%5Bsize%5D=100")
    }

    @Test("an update is a PATCH of what changes")
    func update() async throws {
        let transport = ScriptedTransport([.json(200, Samples.instrument)])
        let client = PayrailsClient(.test, transport: transport)
        #expect(await client.updateInstrument(id, InstrumentChange(makeDefault: true), key: key).value?.id == id)
        _ = await client.updateInstrument(id, InstrumentChange(isEnabled: false), key: key)
        #expect(transport.calls.map(\.method) == ["PATCH", "PATCH"])
        #expect(transport.calls.map(\.json) == [["default": true], ["status": "disabled"]])
        #expect(transport.calls.first?.headers["x-idempotency-key"] == key.description)
    }

    @Test("a deletion is done only when Payrails says so")
    func delete() async {
        typealias Expected = OutcomeTableTests.Expected
        for (answer, expected) in [
            (HTTPClientResponse.json(200, #"{"success":true}"#), Expected.done), (.json(204, ""), .done),
            (.json(200, #"{"success":false}"#), .refused(.rejected)), (.json(200, "{}"), .unknown(.unreadable)),
            (.json(200, ""), .unknown(.unreadable)), (.html(200), .unknown(.unreadable)),
            (.json(404, Samples.error("request.not-found")), .refused(.notFound)),
            (.html(502), .unknown(.connectionLost)),
        ] {
            let client = PayrailsClient(.test, transport: ScriptedTransport([answer]))
            #expect(OutcomeTableTests.kind(await client.deleteInstrument(id, key: key)) == expected)
        }
    }
}
