import Basics
import Crypto
import Foundation
import HTTPServer
import Lockstep
import PayrailsSandbox
import Synchronization
import TestKit
import Testing

@testable import Service

@Suite("The shop's own check before a payment")
struct MerchantCheckTests {
    private static let secret = "whsec_" + Data("the-secret-of-the-gate's-tests--".utf8).base64EncodedString()

    /// A shop that answers each order as it was told; without being told, yes.
    private final class Shop: Sendable {
        typealias Answering = @Sendable (ShopReceiver.Received) async -> HTTPServerResponse
        private final class Book: Sendable { let answers = Mutex<[String: Answering]>([:]) }
        private let book: Book
        private let receiver: ShopReceiver
        var url: String { receiver.url }

        init() throws {
            let book = Book()
            self.book = book
            receiver = try ShopReceiver { question, _ in
                let reference = question.json["merchantReference"]?.string ?? ""
                guard let answer = book.answers.withLock({ $0[reference] }) else {
                    return HTTPServerResponse(status: 200, headers: [:], body: Data(#"{"valid":true}"#.utf8))
                }
                return await answer(question)
            }
        }

        func answer(_ order: Order, _ answering: @escaping Answering) {
            book.answers.withLock { $0[order.reference] = answering }
        }

        func answer(_ order: Order, _ status: Int, _ body: String, _ headers: HTTPHeaders = [:]) {
            answer(order) { _ in HTTPServerResponse(status: status, headers: headers, body: Data(body.utf8)) }
        }

        /// What was asked about an order.
        func questions(_ order: Order) -> [ShopReceiver.Received] {
            receiver.received.filter { $0.json["merchantReference"]?.string == order.reference }
        }

        func stop() async { await receiver.stop() }
    }

    private static let shared = Task {
        let shop = try Shop()
        let lockstep = try await ServiceHarness.shared([
            "LOCKSTEP_PREPAYMENT_HOOK_URL": shop.url, "LOCKSTEP_PREPAYMENT_HOOK_SECRET": secret,
        ])
        return (lockstep, shop)
    }
    private let lockstep: ServiceHarness
    private let shop: Shop
    init() async throws { (lockstep, shop) = try await Self.shared.value }

    @Test("the shop is told exactly what the contract names, signed like an event, and its yes lets the customer pay")
    func asked() async throws {
        let order = try await lockstep.order("49.9", ["basketVersion": "b7"])
        let trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
        let reply = try await lockstep.app(order).post(
            "/v1/pre-payment", ["executionId": .string(order.execution), "paymentMethodCode": "payPal"],
            headers: ["Accept-Language": "de-AT, en;q=0.5", "traceparent": trace, "X-Request-Id": "pay-1"])
        #expect(reply.json == ["decision": "proceed", "valid": true, "executionId": .string(order.execution)])
        let question = try #require(shop.questions(order).first)
        let id = try #require(question.headers["webhook-id"])
        #expect(
            question.json == [
                "id": .string(id), "executionId": .string(order.execution), "checkoutId": .string(order.checkout),
                "merchantReference": .string(order.reference), "holderReference": "cust_77",
                "paymentMethodCode": "payPal", "amount": ["value": "49.90", "currency": "EUR"], "basketVersion": "b7",
            ])
        #expect(UUID(uuidString: id) != nil)
        let timestamp = try #require(question.headers["webhook-timestamp"])
        let key = try #require(Data(base64Encoded: String(Self.secret.dropFirst(6))))
        let mac = Crypto.hmacSHA256(key: key, message: Data("\(id).\(timestamp).".utf8) + question.body)
        #expect(question.headers["webhook-signature"] == "v1,\(mac.base64EncodedString())")
        #expect(question.headers["Content-Type"] == "application/json")
        #expect(question.headers["Accept-Language"] == "de-at, en;q=0.500")
        #expect(question.headers["traceparent"] == trace && question.headers["X-Request-Id"] == "pay-1")
        #expect(question.headers["Authorization"] == nil, "the customer's token is nobody else's")
        // A basket without a version is told as one.
        let plain = try await lockstep.order()
        #expect(try await lockstep.gate(plain.execution) == "proceed")
        #expect(shop.questions(plain).first?.json["basketVersion"] == nil)
    }

    @Test(
        "a no is a refusal with the shop's own words, and nothing else of its answer gets out",
        arguments: [
            (#"{"valid":false,"message":"Nur noch 2 Stück da."}"#, "Nur noch 2 Stück da."),
            (
                #"{"valid":false,"message":"<b>\"So\" nicht</b> Bitte.","reason":"x","decision":"proceed","code":7}"#,
                "<b>\"So\" nicht</b> Bitte."
            ),
            (#"{"valid":false}"#, nil), (#"{"valid":false,"message":null}"#, nil),
            (#"{"valid":false,"message":"\u200f\u05d6\u05d4"}"#, nil),
            (#"{"valid":false,"message":"Nur\u202e2"}"#, nil), (#"{"valid":false,"message":"Nur\u20662"}"#, nil),
            (#"{"valid":false,"message":"So\nnicht."}"#, nil), (#"{"valid":false,"message":"So\r\nnicht."}"#, nil),
            (#"{"valid":false,"message":"So\u2028nicht."}"#, nil),
            (#"{"valid":false,"message":"So\u2029nicht."}"#, nil),
            (#"{"valid":false,"message":"So\u0085nicht."}"#, nil), (#"{"valid":false,"message":"\u001b[2J"}"#, nil),
            (#"{"valid":false,"message":"So\tnicht."}"#, nil), (#"{"valid":false,"message":"\u0000"}"#, nil),
            (#"{"valid":false,"message":"👨‍👩‍👧‍👦 זה שלום"}"#, "👨‍👩‍👧‍👦 זה שלום"),
            (#"{"valid":false,"message":""}"#, nil), (#"{"valid":false,"message":" "}"#, nil),
            (#"{"valid":false,"message":"4111 1111 1111 1111 was declined"}"#, nil),
            (
                #"{"valid":false,"message":"\#(String(repeating: "ä", count: 200))"}"#,
                String(repeating: "ä", count: 200)
            ),
            (
                #"{"valid":false,"message":"\#(String(repeating: "ä", count: 201))"}"#,
                String(repeating: "ä", count: 199) + "…"
            ),
        ] as [(String, String?)])
    func refused(_ body: String, _ words: String?) async throws {
        let order = try await lockstep.order()
        shop.answer(order, 200, body)
        let reply = try await lockstep.gateAnswer(order.execution, as: order.token, language: "de")
        #expect(reply.json["reason"] == "validator-refused")
        let usual = GateMessages.standard.sentence(for: .validatorRefused, preferring: ["de"]).text
        #expect(reply.json["message"]?.string == words ?? usual)
        #expect(reply.headers["Content-Language"] == (words == nil ? "de" : nil))
        // Nothing was leased: the basket may change at once.
        #expect(
            try await lockstep.shop.put("\(order.path)/amount", ["amount": lockstep.money("60.00")], version: 1).status
                == 200)
        shop.answer(order, 200, #"{"valid":true,"message":"Bitte sehr."}"#)
        #expect(try await lockstep.gateAnswer(order.execution).json["message"] == nil)
    }

    @Test(
        "anything else than 200 and {valid} is no answer, and so a refusal",
        arguments: [
            (200, ""), (200, "{}"), (200, "[]"), (200, "true"), (200, "not json"), (200, #"{"valid":"true"}"#),
            (200, #"{"valid":1}"#), (200, #"{"valid":null}"#), (200, #"{"valid":true"#),
            (200, #"{"valid":false,"message":5}"#), (200, #"{"valid":false,"message":["x"]}"#),
            (200, #"{"valid":true,"message":{}}"#), (200, #"{"valid":false,"message":false}"#),
            (200, #"{"valid":false,"valid":true}"#), (200, #"{"Valid":true}"#), (200, #"{"valid":true} {}"#),
            (201, #"{"valid":true}"#), (202, #"{"valid":true}"#), (204, ""), (400, #"{"valid":true}"#),
            (401, #"{"valid":true}"#), (404, #"{"valid":true}"#), (429, #"{"valid":true}"#),
            (500, #"{"valid":true}"#), (503, #"{"valid":false,"message":"x"}"#),
            (200, #"{"valid":true,"x":"\#(String(repeating: "x", count: 70_000))"}"#),
        ])
    func unavailable(_ status: Int, _ body: String) async throws {
        let order = try await lockstep.order()
        shop.answer(order, status, body)
        let reply = try await lockstep.gateAnswer(order.execution)
        #expect(reply.json["reason"] == "validator-unavailable")
        #expect(
            reply.json["message"]?.string
                == GateMessages.standard.sentence(for: .validatorUnavailable, preferring: []).text)
        shop.answer(order, 200, #"{"valid":true}"#)
        #expect(try await lockstep.gate(order.execution) == "proceed")
    }

    @Test("a redirect is no answer, and nobody follows it", arguments: [301, 302, 303, 307, 308])
    func redirect(_ status: Int) async throws {
        let order = try await lockstep.order()
        shop.answer(order, status, #"{"valid":true}"#, ["Location": shop.url])
        #expect(try await lockstep.gate(order.execution) == "validator-unavailable")
        #expect(shop.questions(order).count == 1)
    }

    @Test("a shop that never answers is told to be that, within the budget, and holds nothing up")
    func hanging() async throws {
        let shut = Gate()
        let shop = try Shop()
        let lockstep = try await ServiceHarness.start([
            "LOCKSTEP_PREPAYMENT_HOOK_URL": shop.url, "LOCKSTEP_PREPAYMENT_HOOK_SECRET": Self.secret,
            "LOCKSTEP_PREPAYMENT_BUDGET_MS": "1000",
        ])
        let order = try await lockstep.order()
        shop.answer(order) { _ in
            await shut.wait()
            return HTTPServerResponse(status: 200, headers: [:], body: Data(#"{"valid":true}"#.utf8))
        }
        async let answer = lockstep.gate(order.execution)
        #expect(await waitUntil { !shop.questions(order).isEmpty })
        // While the shop is asked, no transaction and no lease stands in anybody's way.
        let change: JSON = ["amount": lockstep.money("60.00")]
        #expect(try await lockstep.shop.put("\(order.path)/amount", change, version: 1).status == 200)
        // It never answers, so only the budget can have ended this.
        #expect(try await answer == "validator-unavailable")
        await shut.open()
        #expect(
            try await lockstep.shop.put("\(order.path)/amount", ["amount": lockstep.money("61.00")], version: 2).status
                == 200)
        await lockstep.stop()
    }

    @Test("a shop that can't be reached, or speaks no TLS, is unavailable")
    func unreachable() async throws {
        let lockstep = try await ServiceHarness.start(parts: nil)
        let shop = try Shop()
        let gone = try Shop()
        let dead = gone.url
        await gone.stop()
        for url in [dead, shop.url.replacing("http:", with: "https:"), "http://shop.invalid/"] {
            let service = try await lockstep.startService(
                .all,
                [
                    "LOCKSTEP_PREPAYMENT_HOOK_URL": url, "LOCKSTEP_PREPAYMENT_HOOK_SECRET": Self.secret,
                    "LOCKSTEP_ALLOW_PLAIN_HTTP": "1",
                ])
            let order = try await lockstep.order()
            let reply = try await lockstep.gateAnswer(order.execution, of: service)
            #expect(reply.json["reason"] == "validator-unavailable", "\(url)")
        }
        await lockstep.stop()
    }

    @Test("what the books refuse is never asked")
    func notAsked() async throws {
        let order = try await lockstep.order("49.99", ["allowedPaymentMethods": ["payPal"]])
        let other = try await lockstep.order()
        #expect(try await lockstep.gate(order.execution) == "method-not-allowed")
        #expect(try await lockstep.gate(order.execution, as: other.token) == "unknown-execution")
        #expect(
            try await lockstep.gate(
                order.execution, ["amount": lockstep.money("1"), "paymentMethodCode": "payPal"]) == "amount-mismatch")
        #expect(shop.questions(order).isEmpty)
    }

    @Test("what changed while the shop was asked is seen: a yes to another basket, or to a dead checkout, is none")
    func changedMeanwhile() async throws {
        let lockstep = lockstep
        let changes: [(reason: String, make: @Sendable (Order) async throws -> Void)] = [
            (
                "amount-mismatch",
                { order in
                    let change: JSON = ["amount": lockstep.money("60.00")]
                    let reply = try await lockstep.shop.put("\(order.path)/amount", change, version: 1)
                    #expect(reply.status == 200)
                }
            ),
            (
                "basket-changed",
                { order in
                    let change: JSON = ["amount": lockstep.money("49.99"), "basketVersion": "b2"]
                    let reply = try await lockstep.shop.put("\(order.path)/amount", change, version: 1)
                    #expect(reply.status == 200)
                }
            ),
            (
                "superseded-execution",
                { order in
                    let reply = try await lockstep.session(order); #expect(reply.status == 200)
                }
            ),
            (
                "checkout-cancelled",
                { order in
                    let reply = try await lockstep.shop.post("\(order.path)/cancel"); #expect(reply.status == 200)
                }
            ),
            (
                "already-paid",
                { order in
                    try lockstep.pay(order.execution)
                    #expect(try await lockstep.becomes("paid", order))
                }
            ),
        ]
        for (reason, make) in changes {
            let order = try await lockstep.order()
            shop.answer(order) { _ in
                do { try await make(order) } catch { Issue.record(error) }
                return HTTPServerResponse(status: 200, headers: [:], body: Data(#"{"valid":true}"#.utf8))
            }
            #expect(try await lockstep.gate(order.execution) == reason)
        }
    }

    @Test("a database that goes while the shop is asked makes its yes a refusal, within the budget")
    func databaseGoesMeanwhile() async throws {
        let lockstep = try await ServiceHarness.start(parts: nil)
        let proxy = try FaultyProxy(target: try await PostgresCluster.shared().port, fault: .none)
        let name = try #require(lockstep.databaseURL.split(separator: "=").last)
        let shop = try Shop()
        _ = try await lockstep.startService(
            .all,
            [
                "LOCKSTEP_DATABASE_URL": "\(proxy.connectionString) dbname=\(name)",
                "LOCKSTEP_PREPAYMENT_BUDGET_MS": "1000", "LOCKSTEP_DRAIN_SECONDS": "1",
                "LOCKSTEP_PREPAYMENT_HOOK_URL": shop.url, "LOCKSTEP_PREPAYMENT_HOOK_SECRET": Self.secret,
            ])
        let order = try await lockstep.order()
        shop.answer(order) { _ in
            proxy.setFault(.silence)
            return HTTPServerResponse(status: 200, headers: [:], body: Data(#"{"valid":true}"#.utf8))
        }
        // Only the budget can have ended this: the database stays silent until the answer is there.
        #expect(try await lockstep.gate(order.execution) == "internal")
        #expect(shop.questions(order).count == 1)
        shop.answer(order, 200, #"{"valid":true}"#)
        proxy.setFault(.none)
        #expect(try await waitUntil { try await lockstep.gate(order.execution) == "proceed" })
        await lockstep.stop()
        proxy.stop()
        await shop.stop()
    }

    @Test("asked again within its lease, the answer is the same, and the shop isn't asked a second time")
    func again() async throws {
        let order = try await lockstep.order()
        #expect(try await lockstep.gate(order.execution) == "proceed")
        shop.answer(order, 200, #"{"valid":false,"message":"Ausverkauft."}"#)
        #expect(try await lockstep.gate(order.execution) == "proceed")
        #expect(shop.questions(order).count == 1)
        // Another question isn't covered by it.
        #expect(try await lockstep.gate(order.execution, ["amount": lockstep.money("1")]) == "amount-mismatch")
    }

    @Test("what became of the questions is counted")
    func metrics() async throws {
        let order = try await lockstep.order()
        #expect(try await lockstep.gate(order.execution) == "proceed")
        let text = try await lockstep.stranger.get("/metrics").text
        #expect(text.contains(#"lockstep_gate_shop_questions_total{outcome="valid"}"#))
        #expect(text.contains(#"lockstep_gate_decisions_total{decision="proceed"}"#))
        #expect(text.contains("lockstep_gate_shop_question_seconds_count"))
    }
}
