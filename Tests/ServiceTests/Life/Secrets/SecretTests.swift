import Basics
import Foundation
import PayrailsSandbox
import Postgres
import TestKit
import Testing

@testable import Service

@Suite("Secrets and card numbers are nowhere where they must not be")
struct SecretTests {
    private static let shared = Task {
        try await ServiceHarness.shared(["LOCKSTEP_FAILURE_SETTLE_SECONDS": "0", "PAYRAILS_CALL_TIMEOUT_MS": "1500"])
    }
    private let lockstep: ServiceHarness
    init() async throws { lockstep = try await Self.shared.value }

    /// What a shop could put a card number into, by mistake.
    static let cards: [(name: String, body: @Sendable (String) -> JSON)] = [
        ("merchantReference", { ["merchantReference": .string($0)] }),
        ("within a reference", { ["merchantReference": .string("order \($0) of today")] }),
        ("holderReference", { ["holderReference": .string($0)] }),
        ("basketVersion", { ["basketVersion": .string($0)] }),
        ("meta", { ["meta": ["note": ["deep": [.string($0)]]]] }),
        ("a name in meta", { ["meta": .object([$0: "x"])] }),
        ("a number in meta", { ["meta": ["number": .number($0)]] }),
        ("an unknown member", { ["surprise": .string($0)] }),
    ]

    @Test("a card number in any field is refused, and is neither logged nor kept (P1)", arguments: 0..<8)
    func cardNumbers(_ index: Int) async throws {
        // A number of its own for each case, so that finding it says who let it through.
        let card = Self.cardNumber(index)
        let spaced = stride(from: 0, to: 16, by: 4).map { offset in
            String(card.dropFirst(offset).prefix(4))
        }.joined(separator: " ")
        for written in index == 6 ? [card] : [card, spaced] {
            var body = lockstep.newCheckout(freshWord("card")).object ?? [:]
            for (name, value) in Self.cards[index].body(written).object ?? [:] { body[name] = value }
            let reply = try await lockstep.shop.post("/v1/checkouts", .object(body), key: freshWord("key"))
            #expect(reply.outcome == "422 card-number", "\(Self.cards[index].name)")
            #expect(!reply.text.contains(written))
        }
        let order = try await lockstep.order()
        let paths = [
            "/v1/pre-payment", "/v1/executions/\(order.execution)/update", "/v1/executions/\(order.execution)/capture",
            "\(order.path)/session",
        ]
        for path in paths {
            let reply = try await lockstep.shop.post(path, ["x": .string(card)], key: freshWord("key"))
            #expect(reply.outcome == "422 card-number", "\(path)")
        }
        let query = try await lockstep.shop.get("/v1/checkouts?merchantReference=\(card)")
        #expect(query.outcome == "422 card-number")
        let header = try await lockstep.shop.post("/v1/checkouts", lockstep.newCheckout("x"), key: card)
        #expect(header.outcome == "400 idempotency-key-invalid")
        let id = try await lockstep.shop.call("GET", order.path, headers: ["X-Request-Id": card])
        #expect(id.headers["X-Request-Id"] != card)
        for written in [card, spaced] {
            #expect(!lockstep.log.text.contains(written))
            #expect(try await places(of: written) == [])
        }
    }

    @Test(
        "P1: a card number through every call of the real service is in no log, no table and no metric",
        arguments: zip(Endpoint.all, 0..<Endpoint.all.count))
    func everyCall(_ endpoint: Endpoint, _ index: Int) async throws {
        // A number of its own for each call, as above.
        let card = Self.cardNumber(index, beginning: "42424242424")
        let (shop, stranger) = (try lockstep.shop, try lockstep.stranger)
        let somebody = UUID().uuidString.lowercased()
        // As every reference that the call takes, then as every id.
        for (id, reference) in [(somebody, card), (card, freshWord("nobody"))] {
            let reply = try await CatalogueCall(endpoint: endpoint, id: id, reference: reference).make(by: shop)
            #expect(!reply.text.contains(card))
        }
        let path = endpoint.pattern.description.replacing(/\{[A-Za-z]+\}/, with: somebody)
        let query = try await shop.call(endpoint.method, "\(path)?after=\(card)&\(card)=1")
        #expect(!query.text.contains(card))
        // A call that isn't routed yet takes nothing; what is open to strangers minds no query.
        if endpoint.access != .open { #expect(["422 card-number", "404 not-found"].contains(query.outcome)) }
        let headers: HTTPHeaders = [
            "Idempotency-Key": card, "X-Request-Id": card, "If-Match": card, "traceparent": card,
        ]
        let headed = try await shop.call(endpoint.method, path, headers: headers)
        #expect(!headed.text.contains(card))
        let token = try await stranger.with(token: card).call(endpoint.method, path)
        #expect(!token.text.contains(card))
        switch endpoint.body {
        case .none: break
        case .json:
            let bodies: [JSON] = [
                ["surprise": .string(card)], ["meta": ["note": ["deep": [.string(card)]]]], .object([card: "x"]),
            ]
            for body in bodies {
                let reply = try await shop.call(
                    endpoint.method, path, body: body.bytes, headers: ["Idempotency-Key": freshWord("key")])
                #expect(["422 card-number", "404 not-found"].contains(reply.outcome), "\(reply.text)")
                #expect(!reply.text.contains(card))
            }
        case .raw:
            for text in [#"{"event":"somethingNew","details":{"note":"\#(card)"}}"#, card] {
                let reply = try await SignedNotification(text).send(to: stranger)
                #expect(reply.status == 200)
                #expect(!reply.text.contains(card))
            }
        }
        #expect(lockstep.log.text.contains(#""level":"#), "there is something to look through")
        #expect(!lockstep.log.text.contains(card))
        // What Payrails signs is its own: the body of a notification is kept as it came.
        let found = try await places(of: card)
        #expect(found.filter { $0 != "notifications.body" } == [])
        let metrics = try await stranger.get("/metrics").text
        #expect(!metrics.contains(card))
    }

    /// Digits of a Visa-like number with the right check digit.
    static func cardNumber(_ index: Int, beginning: String = "41111111111") -> String {
        let number = [index / 1000, index / 100, index / 10, index].map { $0 % 10 }
        let digits = beginning.utf8.map { Int($0) - 48 } + number
        let sum = digits.reversed().enumerated().reduce(0) { sum, digit in
            let doubled = digit.element * 2
            return sum + (digit.offset.isMultiple(of: 2) ? (doubled > 9 ? doubled - 9 : doubled) : digit.element)
        }
        return digits.map(String.init).joined() + String((10 - sum % 10) % 10)
    }

    @Test(
        "no token, key, payload or secret is logged at any level, whatever went wrong; tokens are kept as hashes only (P2)"
    )
    func canaries() async throws {
        let order = try await lockstep.order("49.99", ServiceHarness.mayUpdate)
        let shop = try lockstep.shop
        let app = try lockstep.app(order)
        // A life with everything that is logged: refusals, doubts, bad signatures, bad bodies, retries.
        for kind in [
            SandboxFault.Kind.html(status: 502), .halfBody, .errorAfter(status: 500), .errorBefore(status: 403),
        ] {
            lockstep.sandbox.add(SandboxFault(kind, on: .lookup, containing: order.execution))
            _ = try await app.put("\(order.path)/amount", ["amount": lockstep.money("60.00")], version: 1)
            lockstep.sandbox.add(SandboxFault(kind, on: .clientInit, containing: order.reference))
            _ = try await lockstep.session(order)
            lockstep.sandbox.add(SandboxFault(kind, on: .token))
            lockstep.sandbox.expireAccessTokens()
            _ = try await lockstep.session(order)
        }
        _ = try await app.get("/v1/executions/\(order.execution)")
        _ = try await shop.with(token: order.token + "x").get(order.path)
        _ = try await shop.get("\(order.path)?token=\(order.token)")
        _ = try await shop.get("/v1/\(lockstep.key)")
        _ = try await shop.post("/v1/checkouts", ["merchantReference": .string(lockstep.key)], key: lockstep.key)
        _ = try await SignedNotification("{}", key: "wrong").send(to: lockstep.stranger)
        _ = try await SignedNotification(#"{"token":"\#(order.token)"}"#).send(to: lockstep.stranger)
        // What the faults left in doubt is looked into first; until then the answer is 503.
        var last = try await lockstep.session(order)
        _ = try await waitUntil {
            if last.status != 200 { last = try await lockstep.session(order) }
            return last.status == 200
        }
        let execution = try #require(last.json["executionId"]?.string, "\(last.outcome)")
        try lockstep.pay(execution)
        #expect(try await lockstep.becomes("paid", order))
        _ = try await shop.post("/v1/executions/\(execution)/capture", key: freshWord("capture"))

        var secrets = [
            "the merchant key": lockstep.key, "the client token": order.token,
            "Payrails' client secret": lockstep.sandbox.clientSecret,
            "the notification key": ServiceHarness.notificationKey,
        ]
        for (name, reply) in [("first", order.answer), ("last", last)] {
            let data = try #require(reply.json["init"]?["data"]?.string)
            secrets["the \(name) payload"] = String(data.prefix(200).suffix(60))
            let inside = try JSON(parsing: try #require(Data(base64Encoded: data)))
            secrets["the \(name) payload's token"] = try #require(inside["token"]?.string)
        }
        let log = lockstep.log.text
        #expect(log.count > 2000, "there is something to look through")
        for (name, secret) in secrets { #expect(!log.contains(secret), "\(name) is in the log") }
        #expect(!log.contains("eyJ"), "no token of any kind is in the log")
        for name in ["the merchant key", "the client token", "Payrails' client secret", "the notification key"] {
            let found = try await places(of: try #require(secrets[name]))
            // What a stranger sends is his own: the body of a signed notification is kept as it came.
            #expect(found.filter { $0 != "notifications.body" } == [], "\(name)")
        }
        let metrics = try await lockstep.stranger.get("/metrics").text
        for secret in secrets.values { #expect(!metrics.contains(secret)) }
    }

    /// The columns of any table that hold this text.
    private func places(of text: String) async throws -> [String] {
        let columns = try await lockstep.books.query(
            """
            SELECT table_name, column_name, data_type FROM information_schema.columns
            WHERE table_schema = 'public' AND data_type IN ('text', 'jsonb', 'bytea', 'ARRAY', 'character varying')
            """)
        var found: [String] = []
        for column in columns {
            let (table, name, type) = try column.decode((String, String, String).self)
            let value = type == "bytea" ? "encode(\(name), 'escape')" : "\(name)::text"
            let rows = try await lockstep.books.query(
                "SELECT 1 AS one FROM \(unescaped: table) WHERE position(\(text) IN \(unescaped: value)) > 0 LIMIT 1")
            if !rows.isEmpty { found.append("\(table).\(name)") }
        }
        return found
    }
}
