import Basics
import Foundation
import Lockstep
import Testing

@testable import HTTPClient
@testable import Payrails

/// What goes over the wire: addresses, headers, keys and bodies.
@Suite("Calls on the wire")
struct CallTests {
    private let execution: ExecutionReference
    private let instrument: InstrumentID
    private let key: IdempotencyKey
    private let amount: Money

    init() throws {
        execution = try #require(Samples.reference)
        instrument = try #require(InstrumentID(Samples.instrumentID))
        key = try #require(Samples.key)
        amount = try #require(Money.of("49.9"))
    }

    private static let base = "https://api.example.test/merchant/workflows/payment-acceptance/executions"

    private func only(_ transport: ScriptedTransport) throws -> HTTPClientRequest {
        #expect(transport.calls.count == 1)
        return try #require(transport.calls.first)
    }

    @Test("a call that changes something carries a lower-case key, its type and the token, and nothing else")
    func headersOfAChange() async throws {
        let transport = ScriptedTransport([.json(202, Samples.acknowledgement("capture"))])
        _ = await PayrailsClient(.test, transport: transport).capture(execution, CaptureRequest(), key: key)
        let request = try only(transport)
        #expect(request.headers["x-idempotency-key"] == "0192f0e1-7c2d-7a11-8000-0000000000ab")
        #expect(request.headers["Content-Type"] == "application/json")
        #expect(request.headers["Accept"] == "application/json")
        #expect(request.headers["Authorization"] == "Bearer token-0")
        #expect(request.headers.fields.count == 4)
    }

    @Test("a read carries neither a key nor a type")
    func headersOfARead() async throws {
        let transport = ScriptedTransport([.json(200, Samples.pending3DS)])
        _ = await PayrailsClient(.test, transport: transport).readExecution(execution, wait: nil)
        let request = try only(transport)
        #expect(request.method == "GET")
        #expect(request.body == nil)
        #expect(request.headers.fields.map(\.name).sorted() == ["Accept", "Authorization"])
        #expect(request.url == "\(CallTests.base)/\(Samples.executionID)")
    }

    @Test("a call for a request carries that request's trace, and no other call does")
    func trace() async throws {
        let transport = ScriptedTransport([.json(200, Samples.pending3DS)])
        let client = PayrailsClient(.test, transport: transport)
        let trace = try #require(TraceParent("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"))
        _ = await TraceParent.$current.withValue(trace) { await client.readExecution(execution, wait: nil) }
        _ = await client.readExecution(execution, wait: nil)
        #expect(transport.calls.map { $0.headers["traceparent"] } == [trace.text, nil])
    }

    @Test("a deletion carries a key and no body")
    func headersOfADeletion() async throws {
        let transport = ScriptedTransport([.json(200, #"{"success":true}"#)])
        _ = await PayrailsClient(.test, transport: transport).deleteInstrument(instrument, key: key)
        let request = try only(transport)
        #expect(request.method == "DELETE")
        #expect(request.body == nil)
        #expect(request.headers["x-idempotency-key"] == key.description)
        #expect(request.headers["Content-Type"] == nil)
    }

    @Test("client init sends the canonical amount, the holder, the workspace and the shop's meta")
    func sessionBody() async throws {
        let transport = ScriptedTransport([.json(200, Samples.initResponse())])
        let client = PayrailsClient(.test { $0.workspaceID = "ws-1" }, transport: transport)
        let request = SessionRequest(
            workflowCode: "payment-acceptance", merchantReference: "order_501", holderReference: "cust_77",
            amount: amount, allowedPaymentMethods: ["card", "payPal"], meta: ["order": ["reference": "order_501"]])
        _ = await client.createSession(request, key: key)
        let sent = try only(transport)
        #expect(sent.url == "https://api.example.test/merchant/client/init")
        #expect(
            sent.json == [
                "type": "dropIn", "workflowCode": "payment-acceptance", "merchantReference": "order_501",
                "holderReference": "cust_77", "workspaceId": "ws-1", "amount": ["value": "49.90", "currency": "EUR"],
                "meta": ["order": ["reference": "order_501"], "allowedPaymentMethods": ["card", "payPal"]],
            ])
    }

    @Test("without workspace, meta and methods none is sent")
    func plainSessionBody() async throws {
        let transport = ScriptedTransport([.json(200, Samples.initResponse())])
        let request = SessionRequest(
            workflowCode: "w", merchantReference: "o", holderReference: "h", amount: amount)
        _ = await PayrailsClient(.test, transport: transport).createSession(request, key: key)
        let names = try only(transport).json?.object?.keys.sorted()
        #expect(names == ["amount", "holderReference", "merchantReference", "type", "workflowCode"])
    }

    @Test("the switches of section 12 put CIT, processing type, capture mode and version where they say")
    func switches() async throws {
        let configuration = PayrailsConfiguration.test {
            $0.sendsCIT = true
            $0.sendsOrderProcessingType = true
            $0.captureMode = .manual
            $0.sendsCaptureModeOnInit = true
            $0.workflowVersion = 12
        }
        let transport = ScriptedTransport { request, _ throws(HTTPClientError) in
            request.url.hasSuffix("/init")
                ? .json(200, Samples.initResponse())
                : .json(202, Samples.acknowledgement("authorize"))
        }
        let client = PayrailsClient(configuration, transport: transport)
        let session = SessionRequest(
            workflowCode: "w", merchantReference: "o", holderReference: "h", amount: amount, meta: ["order": ["a": "b"]]
        )
        _ = await client.createSession(session, key: key)
        _ = await client.createExecution(
            ExecutionRequest(
                workflowCode: "w", merchantReference: "o", holderReference: "h", processing: .subscription,
                meta: ["order": ["a": "b"], "risk": ["threeDSMode": "Force"]]), key: key)
        _ = await client.authorize(
            execution,
            AuthorizeRequest(
                amount: amount, instrumentID: instrument, paymentMethodCode: "card", processing: .unscheduled,
                returnURL: "https://shop.example/r"), key: key)
        let bodies = transport.calls.map(\.json)
        try #require(bodies.count == 3)
        #expect(bodies[0]?["meta"] == ["order": ["a": "b"], "CIT": true])
        #expect(bodies[0]?["workflowConfigOverride"] == ["captureMode": "Manual"])
        #expect(bodies[0]?["workflowVersion"] == 12)
        #expect(
            bodies[1]?["meta"] == [
                "order": ["a": "b", "processingType": "Subscription"], "risk": ["threeDSMode": "Force"], "CIT": false,
            ], "the shop's own value wins")
        #expect(bodies[1]?["workflowConfigOverride"] == ["captureMode": "Manual"])
        #expect(bodies[2]?["meta"] == ["order": ["processingType": "UnscheduledCardOnFile"], "CIT": false])
    }

    @Test("an execution for a charge is created without an amount, and asks for no challenge")
    func createExecutionBody() async throws {
        let transport = ScriptedTransport([.json(201, Samples.pending3DS)])
        let client = PayrailsClient(.test { $0.workspaceID = "ws-1" }, transport: transport)
        let outcome = await client.createExecution(
            ExecutionRequest(
                workflowCode: "payment-acceptance", merchantReference: "order_501", holderReference: "cust_77"),
            key: key)
        #expect(outcome.value?.reference == execution)
        let sent = try only(transport)
        #expect(sent.url == CallTests.base)
        #expect(
            sent.json == [
                "merchantReference": "order_501", "holderReference": "cust_77", "workspaceId": "ws-1",
                "meta": ["risk": ["threeDSMode": "Skip"]],
            ])
    }

    @Test("a charge without the customer is one composition with the instrument and its processing type")
    func authorizeBody() async throws {
        let transport = ScriptedTransport([.json(202, Samples.acknowledgement("authorize"))])
        let request = AuthorizeRequest(
            amount: amount, instrumentID: instrument, paymentMethodCode: "card", processing: .subscription,
            returnURL: "https://shop.example/pay/return")
        let outcome = await PayrailsClient(.test, transport: transport).authorize(execution, request, key: key)
        #expect(outcome.value?.actionID == "2f9b8d70-0000-4d10-8000-000000000009")
        #expect(outcome.value?.executedAt == Timestamp(rfc3339: "2026-09-01T10:00:00.45Z"))
        let sent = try only(transport)
        #expect(sent.url == "\(CallTests.base)/\(Samples.executionID)/authorize")
        #expect(
            sent.json == [
                "amount": ["value": "49.90", "currency": "EUR"],
                "returnInfo": ["success": "https://shop.example/pay/return"],
                "paymentComposition": [
                    [
                        "paymentInstrumentId": .string(Samples.instrumentID), "paymentMethodCode": "card",
                        "integrationType": "api", "amount": ["value": "49.90", "currency": "EUR"],
                        "storeInstrument": false, "paymentProcessingType": "Subscription",
                    ]
                ],
            ])
    }

    @Test("capture, cancel and refund send what was asked, and reasons as a word or a description")
    func actionBodies() async throws {
        let transport = ScriptedTransport { request, _ throws(HTTPClientError) in
            .json(202, Samples.acknowledgement(request.url.split(separator: "/").last.map(String.init) ?? ""))
        }
        let client = PayrailsClient(.test, transport: transport)
        let outcomes = [
            await client.capture(execution, CaptureRequest(amount: amount, isFinal: false), key: key),
            await client.capture(execution, CaptureRequest(), key: key),
            await client.cancel(execution, reason: nil, key: key),
            await client.cancel(execution, reason: "NoReason", key: key),
            await client.refund(execution, RefundRequest(amount: amount, reason: "came too late"), key: key),
        ]
        #expect(outcomes.allSatisfy { $0.value != nil })
        let base = "\(CallTests.base)/\(Samples.executionID)"
        #expect(
            transport.calls.map(\.url) == ["capture", "capture", "cancel", "cancel", "refund"].map { "\(base)/\($0)" })
        #expect(
            transport.calls.map(\.json) == [
                ["amount": ["value": "49.90", "currency": "EUR"], "final": false], [:], [:], ["reason": "NoReason"],
                ["amount": ["value": "49.90", "currency": "EUR"], "reasonDescription": "came too late"],
            ])
    }

    @Test(
        "M1, M2: every currency's amount goes out with its own decimals",
        arguments: [
            ("500", "JPY", "500"), ("1.25", "KWD", "1.250"), ("49.9", "EUR", "49.90"), ("100", "USD", "100.00"),
        ])
    func canonicalAmounts(_ value: String, _ currency: String, _ canonical: String) async throws {
        let transport = ScriptedTransport([.json(200, Samples.lookup)])
        let money = try #require(Money.of(value, currency))
        _ = await PayrailsClient(.test, transport: transport).moveAmount(execution, to: money, key: key)
        let sent = try only(transport)
        #expect(sent.json == ["amount": ["value": .string(canonical), "currency": .string(currency)]])
        #expect(sent.url == "\(CallTests.base)/\(Samples.executionID)/lookup")
    }

    @Test("the lookup's path is a template")
    func lookupPath() async throws {
        let transport = ScriptedTransport([.json(200, Samples.lookup)])
        let configuration = PayrailsConfiguration.test {
            $0.lookupPath = "/v1/merchant/executions/{executionId}/lookup?w={workflowCode}"
            $0.baseURL = "https://api.example.test/prefix//"
        }
        _ = await PayrailsClient(configuration, transport: transport).moveAmount(execution, to: amount, key: key)
        #expect(
            try only(transport).url
                == "https://api.example.test/prefix/v1/merchant/executions/\(Samples.executionID)/lookup?w=payment-acceptance"
        )
    }

    @Test("a moved amount is what the answer shows, or nil where it shows none")
    func movedAmount() async throws {
        let shown = Samples.lookup.replacing(
            #""name":"lookup","#, with: #""name":"lookup","amount":{"value":"49.9","currency":"EUR"},"#)
        let transport = ScriptedTransport { _, index throws(HTTPClientError) in
            .json(200, [Samples.lookup, shown, "{}", Samples.acknowledgement("capture")][index])
        }
        let client = PayrailsClient(.test, transport: transport)
        guard case .done(let none) = await client.moveAmount(execution, to: amount, key: key) else {
            Issue.record("not done")
            return
        }
        #expect(none == nil)
        #expect(await client.moveAmount(execution, to: amount, key: key).value == .some(amount))
        #expect(await client.moveAmount(execution, to: amount, key: key).doubt?.kind == .unreadable)
        #expect(await client.moveAmount(execution, to: amount, key: key).doubt?.kind == .unreadable)
    }

    @Test(
        "an acknowledgement must be recognizable as the one of this action",
        arguments: [
            (#"{"name":"Capture"}"#, true), (#"{"actionId":"a"}"#, true),
            (#"{"executedAt":"2026-09-01T10:00:00Z"}"#, true),
            (#"{"name":"capture","errors":[]}"#, true), (#"{"name":"capture","errors":null,"actionId":7}"#, true),
            (#"{"name":"cancel","actionId":"a"}"#, false), (#"{"name":"capture","errors":[{"code":"x"}]}"#, false),
            (#"{"actionId":"a b"}"#, false), (#"{"executedAt":"now"}"#, false), (#"{"links":{}}"#, false),
            (#"["capture"]"#, false),
        ])
    func acknowledgements(_ body: String, _ isOne: Bool) async {
        let client = PayrailsClient(.test, transport: ScriptedTransport([.json(202, body)]))
        let outcome = await client.capture(execution, CaptureRequest(), key: key)
        #expect((outcome.value != nil) == isOne)
        #expect((outcome.doubt?.kind == .unreadable) == !isOne)
    }

    @Test("tokenization and secure fields are inits of their own kind")
    func tokenization() async throws {
        let transport = ScriptedTransport([.json(200, Samples.initResponse())])
        let client = PayrailsClient(.test, transport: transport)
        _ = await client.createTokenization(TokenizationRequest(kind: .tokenization, holderReference: "h"), key: key)
        let outcome = await client.createTokenization(
            TokenizationRequest(kind: .secureFields, holderReference: "h", instrumentID: instrument), key: key)
        #expect(outcome.value?.version == "6.0.3")
        #expect(
            transport.calls.map(\.json) == [
                ["type": "tokenization", "holderReference": "h"],
                [
                    "type": "secureFields", "holderReference": "h", "instrumentId": .string(Samples.instrumentID),
                    "workflowCode": "payment-acceptance",
                ],
            ])
    }

    @Test("a hostile workflow code can't leave its place in the address")
    func hostilePath() async throws {
        let transport = ScriptedTransport([.json(200, Samples.pending3DS)])
        let hostile = ExecutionReference(id: execution.id, workflowCode: "../../evil?x=1#y")
        _ = await PayrailsClient(.test, transport: transport).readExecution(hostile, wait: nil)
        let url = try only(transport).url
        #expect(url.hasPrefix("https://api.example.test/merchant/workflows/..%2F..%2Fevil%3Fx%3D1%23y/executions/"))
    }

    @Test("every call has its time and a limit for its answer")
    func limits() async throws {
        let transport = ScriptedTransport([.json(200, Samples.pending3DS)])
        let hand = HandClock()
        let client = PayrailsClient(
            .test { ($0.readTimeout, $0.tokenTimeout) = (.seconds(7), .seconds(3)) }, transport: transport,
            clock: hand.clock)
        _ = await client.readExecution(execution, wait: nil)
        #expect(try only(transport).timeout == .seconds(7))
        #expect(try only(transport).maximumResponseBytes == 4 * 1024 * 1024)
        #expect(transport.tokenCalls.first?.timeout == .seconds(3))
    }
}
