import Basics
import Foundation
import Lockstep
import Testing

@testable import HTTPClient
@testable import Payrails

@Suite("Client init")
struct SessionTests {
    private let request: SessionRequest
    private let key: IdempotencyKey

    init() throws {
        request = SessionRequest(
            workflowCode: "payment-acceptance", merchantReference: "order_501", holderReference: "cust_77",
            amount: try #require(Money.of("49.99")))
        key = try #require(Samples.key)
    }

    private func session(_ status: Int, _ body: String) async -> Outcome<Session> {
        await PayrailsClient(.test, transport: ScriptedTransport([.json(status, body)])).createSession(
            request, key: key)
    }

    @Test("the payload is handed on untouched, and its execution is read from a copy", arguments: [200, 201])
    func payload(_ status: Int) async throws {
        let session = try #require(await session(status, Samples.initResponse()).value)
        #expect(session.payload.version == "6.0.3")
        #expect(session.payload.data.reveal == Data(Samples.decodedInit.utf8).base64EncodedString())
        #expect(session.execution.reference == Samples.reference)
        #expect(session.execution.amount == .of("49.99"))
        #expect(session.execution.merchantReference == "order_501")
        #expect(
            session.execution.facts == [
                Fact(
                    kind: .status, code: "created", amount: .of("49.99"),
                    at: try #require(Timestamp(rfc3339: "2026-09-01T09:58:00.1Z")), source: .answer)
            ])
    }

    @Test("base64 in another alphabet, with breaks or without padding is still handed on as it came")
    func oddBase64() async throws {
        let plain = Data(Samples.decodedInit.utf8).base64EncodedString()
        let url = plain.replacing("+", with: "-").replacing("/", with: "_").replacing("=", with: "")
        for text in [
            url, plain + "\\n", plain.replacing("=", with: ""),
            String(plain.prefix(76)) + "\\r\\n" + plain.dropFirst(76),
        ] {
            let session = try #require(await session(200, #"{"version":"6","data":"\#(text)"}"#).value)
            #expect(session.execution.reference == Samples.reference)
            let sent = text.replacing("\\n", with: "\n").replacing("\\r", with: "\r")
            #expect(session.payload.data.reveal == sent)
        }
    }

    @Test(
        "a payload without a readable execution may have created one: unknown",
        arguments: [
            #"{"version":"6.0.3"}"#, #"{"data":"e30="}"#, #"{"version":"6.0.3","data":"e30="}"#,
            #"{"version":"6.0.3","data":"%%%"}"#, #"{"version":"6.0.3","data":""}"#, #"{"version":"6.0.3","data":{}}"#,
            #"{"version":"6.0.3","data":"W10="}"#, #"{"version":6,"data":"e30="}"#,
        ])
    func unreadable(_ body: String) async {
        #expect(await session(200, body).doubt?.kind == .unreadable)
    }

    @Test("the replayed answer of another order or holder is not ours, and what was asked for is unknown")
    func replayed() async throws {
        for (ours, other) in [("order_501", "order_502"), ("cust_77", "cust_78")] {
            let decoded = Samples.decodedInit.replacing("\"\(ours)\"", with: "\"\(other)\"")
            #expect(await session(200, Samples.initResponse(decoded)).doubt?.kind == .unreadable)
            let execution = Samples.pending3DS.replacing("\"\(ours)\"", with: "\"\(other)\"")
            let client = PayrailsClient(.test, transport: ScriptedTransport([.json(201, execution)]))
            let request = ExecutionRequest(
                workflowCode: "payment-acceptance", merchantReference: "order_501", holderReference: "cust_77")
            #expect(await client.createExecution(request, key: key).doubt?.kind == .unreadable)
        }
    }

    @Test("P2: printing an outcome shows neither the payload nor the client's token")
    func printed() async throws {
        let session = try #require(await session(200, Samples.initResponse()).value)
        var dumped = "\(session)"
        dump(session, to: &dumped)
        dump(try #require(DecodedInit(data: session.payload.data.reveal)), to: &dumped)
        #expect(!dumped.contains("eyJ"))
        #expect(!dumped.contains("MIIB"))
        #expect(!dumped.contains(session.payload.data.reveal))
    }

    @Test("the decoded sample has every field that the SDK needs")
    func decoded() throws {
        let decoded = try #require(DecodedInit(data: Data(Samples.decodedInit.utf8).base64EncodedString()))
        #expect(decoded.token?.reveal == "eyJ.client.jwt")
        #expect(decoded.type == "dropIn")
        #expect(decoded.amount == .of("49.99"))
        #expect(decoded.amountText == "49.99")
        #expect(decoded.vault?.providerConfigID == "8a7b")
        #expect(decoded.vault?.encryptionPublicKeyExpiresInSeconds == 3300)
        #expect(decoded.vault?.saveInstrument?.method == "POST")
        #expect(decoded.executionLinks["self"]?.href == "https://api-pub.example.test/s")
        #expect(decoded.executionLinks["authorize"]?.method == "POST")
        #expect(decoded.paymentOptions.map(\.paymentMethodCode) == ["card", "applePay", "payPal"])
        #expect(decoded.paymentOptions.first?.instruments.first?.expiryMonth == 9)
        #expect(decoded.paymentOptions.first?.supportsSaveInstrument == true)
        #expect(decoded.paymentOptions.last?.flow == "redirect")
        #expect(decoded.paymentOptions[1].config?["parameters"]?["countryCode"] == "DE")
        #expect(decoded.links["instrumentDelete"]?.href.hasSuffix(":instrumentId") == true)
        #expect(decoded.sdkVersion == "6.0.3")
        #expect(decoded.holderID == "1c5a")
        #expect(decoded.workflowVersion == 12)
        #expect(decoded.lookupHTTPStatus == 200)
        #expect(decoded.raw.reveal["vaultConfiguration"]?["vaultId"] == "v1")
        #expect(decoded.schemaVersion == 1)
    }

    @Test("a disabled binLookup, an empty array, is no link, and takes nothing else away")
    func disabledBinLookup() throws {
        let text = Samples.decodedInit.replacing(
            #""binLookup":{"method":"POST","href":"https://api-pub.example.test/b"}"#, with: #""binLookup":[]"#)
        let decoded = try #require(DecodedInit(data: Data(text.utf8).base64EncodedString()))
        #expect(decoded.links["binLookup"] == nil)
        #expect(decoded.links.count == 3)
        #expect(decoded.execution != nil)
    }

    @Test("an object that holds nothing known is decoded as nothing")
    func empty() throws {
        let decoded = try #require(DecodedInit(data: "e30="))
        #expect(decoded.token == nil)
        #expect(decoded.execution == nil)
        #expect(decoded.paymentOptions.isEmpty)
        #expect(DecodedInit(data: "") == nil)
        #expect(DecodedInit(data: "bnVsbA==") == nil)
    }
}
