import Basics
import Crypto
import Foundation
import PayrailsSandbox
import Postgres
import TestKit
import Testing

@Suite("Notifications: what is taken, what is turned away")
struct NotificationIntakeTests {
    private static let shared = Task {
        try await ServiceHarness.shared([
            "PAYRAILS_WEBHOOK_KEYS": "try=\(ServiceHarness.notificationKey),bare-key,two=old,two=new"
        ])
    }
    private let lockstep: ServiceHarness
    init() async throws { lockstep = try await Self.shared.value }

    @Test("S9, S13: without exactly one right signature over the bytes as they came nothing is kept, and it is counted")
    func signatures() async throws {
        let refused = #"lockstep_notifications_refused_total{endpoint="two"}"#
        let before = try await lockstep.stranger.metric(refused) ?? 0
        let body = Data(#"{"event":"executionCreated","note":"\#(freshWord("forged"))"}"#.utf8)
        let right = sign(body, "old")
        let twice = HTTPHeaders([.init(name: "X-Signature", value: right), .init(name: "X-Signature", value: right)])
        let wrong: [HTTPHeaders] = [
            [:], ["X-Signature": ""], ["X-Signature": sign(body, "another")], ["X-Signature": right + "="],
            ["X-Signature": sign(body + Data(" ".utf8), "old")], ["X-Signature": "sha256=" + right],
            ["Signature": right], ["X-Signature": "\(right),\(right)"], twice,
            // Not base64, of another alphabet, too short, too long, in hexadecimal, in lower case.
            ["X-Signature": String(repeating: "!", count: 44)], ["X-Signature": right.replacing("=", with: "-")],
            ["X-Signature": String(right.dropLast(4))], ["X-Signature": right + right],
            ["X-Signature": hmac(body, "old").hexadecimal], ["X-Signature": right.lowercased()],
            ["X-Signature": right + " " + right],
            // Right for another endpoint.
            ["X-Signature": sign(body, ServiceHarness.notificationKey)], ["X-Signature": sign(body, "bare-key")],
            // What others take for a way around.
            ["X-Signature": sign(body, "another"), "X-Webhook-Secret": "another", "X-Debug": "1"],
        ]
        for fields in wrong {
            let reply = try await post(body, to: "/webhooks/payrails/two", fields)
            #expect(reply.outcome == "401 bad-signature", "\(fields)")
        }
        #expect(try await count(body) == 0)
        #expect(try await lockstep.stranger.metric(refused) ?? 0 >= before + Double(wrong.count))
        let reply = try await post(body, to: "/webhooks/payrails/two", ["X-Signature": right])
        #expect(reply.status == 200)
        #expect(try await count(body) == 1)
    }

    @Test("S13: of what comes with a notification only the body is kept, and nothing is logged")
    func headers() async throws {
        let body = Data(#"{"event":"executionCreated","note":"\#(freshWord("kept"))"}"#.utf8)
        let canary = freshWord("canary")
        let reply = try await post(
            body, to: ServiceHarness.endpoint,
            [
                "X-Signature": sign(body, ServiceHarness.notificationKey), "Authorization": "Bearer \(canary)",
                "Cookie": "session=\(canary)", "X-Forwarded-For": canary, "User-Agent": canary,
            ])
        #expect(reply.status == 200)
        #expect(try await waitUntil { try await state(body) == "ignored" })
        let rows = try await lockstep.books.query(
            """
            SELECT notifications::text || encode(body, 'escape') AS row FROM notifications
            WHERE body_hash = \(Crypto.sha256(body))
            """
        ).map { try $0.decode("row", as: String.self) }
        #expect(rows.count == 1 && rows.allSatisfy { !$0.contains(canary) })
        #expect(!lockstep.log.text.contains(canary))
    }

    @Test("S8: each endpoint has its own keys, during a rotation several, and none that wasn't set up")
    func endpoints() async throws {
        func outcome(_ path: String, _ key: String) async throws -> String {
            let body = Data(#"{"event":"x","note":"\#(freshWord("n"))"}"#.utf8)
            return try await post(body, to: path, ["X-Signature": sign(body, key)]).outcome
        }
        #expect(try await outcome("/webhooks/payrails", "bare-key") == "200")
        #expect(try await outcome("/webhooks/payrails", ServiceHarness.notificationKey) == "401 bad-signature")
        #expect(try await outcome("/webhooks/payrails/two", "old") == "200")
        #expect(try await outcome("/webhooks/payrails/two", "new") == "200")
        #expect(try await outcome("/webhooks/payrails/two", "bare-key") == "401 bad-signature")
        #expect(try await outcome("/webhooks/payrails/three", "bare-key") == "404 not-found")
        #expect(try await outcome("/webhooks/payrails/", "bare-key") == "404 not-found")
        #expect(try await lockstep.stranger.get(ServiceHarness.endpoint).status == 405)
    }

    @Test(
        "W16: what can't be read, or has no known meaning, is kept, counted and acknowledged",
        arguments: [
            "", "not json", "{}", "[]", "null", "{\"event\":7}", "{\"event\":\"networkOffersEnrollmentCompleted\"}",
            "{\"event\":\"executionActionCompleted\",\"details\":{}}", "\u{0}\u{1}\u{2}", "<html></html>",
            "{\"event\":\"executionActionCompleted\",\"details\":{\"execution\":{\"id\":\"nobody\"},\"action\":\"authorize\",\"success\":\"yes\"}}",
        ])
    func unreadable(_ text: String) async throws {
        let body = Data(text.utf8)
        let ignored = #"lockstep_notifications_applied_total{state="ignored"}"#
        let before = try await lockstep.stranger.metric(ignored) ?? 0
        for contentType in ["application/json", "text/plain", ""] {
            let reply = try await post(
                body, to: ServiceHarness.endpoint,
                ["X-Signature": sign(body, ServiceHarness.notificationKey), "Content-Type": contentType])
            #expect(reply.status == 200, "\(reply.text)")
        }
        #expect(try await count(body) == 1)
        #expect(try await waitUntil { try await state(body) == "ignored" })
        #expect(try await waitUntil { try await lockstep.stranger.metric(ignored) ?? 0 >= before + 1 })
    }

    @Test("a body of a mebibyte is taken, one of a byte more is not")
    func size() async throws {
        for (count, status) in [(1_048_576, 200), (1_048_577, 413)] {
            let body = Data(repeating: UInt8(ascii: "x"), count: count)
            let fields: HTTPHeaders = ["X-Signature": sign(body, ServiceHarness.notificationKey)]
            #expect(try await post(body, to: ServiceHarness.endpoint, fields).status == status)
        }
    }

    @Test("a body that is too long is 413 before it is there: announced, or when it has grown too long")
    func tooLong() async throws {
        let head = "POST \(ServiceHarness.endpoint) HTTP/1.1\r\nHost: a\r\n"
        let announced = try RawClient(port: try lockstep.service.port)
        announced.write(head + "Content-Length: 1048577\r\n\r\n")
        let refused = try await announced.reply()
        #expect(refused.status == 413 && refused.body.contains("urn:lockstep:problem:"))

        let growing = try RawClient(port: try lockstep.service.port)
        growing.write(head + "Transfer-Encoding: chunked\r\n\r\n")
        let piece = "10000\r\n" + String(repeating: "x", count: 0x10000) + "\r\n"
        for _ in 0..<17 { growing.write(piece) }
        // There is no last chunk: nothing would ever end it.
        #expect(try await growing.reply().status == 413)
        #expect(try await growing.isEnded())
    }

    @Test("one poisoned notification stops none of the others")
    func poison() async throws {
        let order = try await lockstep.order()
        let execution = order.execution
        // A reason with a character that PostgreSQL's text can't hold, and amounts beyond all measure.
        for poison in [
            #"{"event":"executionActionCompleted","time":"2026-11-30T08:00:00Z","details":{"action":"capture","actionId":"\#(UUID())","success":false,"execution":{"id":"\#(execution)"},"paymentComposition":[{"operationResult":"a\u0000b","success":false}]}}"#,
            #"{"event":"executionActionCompleted","time":"9999-12-31T23:59:59.999999999Z","details":{"action":"capture","actionId":"\#(String(repeating: "x", count: 100_000))","success":false,"execution":{"id":"\#(execution)"}}}"#,
            #"{"event":"executionActionCompleted","time":"2026-11-30T08:00:00Z","details":{"action":"capture","success":true,"execution":{"id":"\#(execution)"},"amount":{"value":"99999999999999999999","currency":"EUR"}}}"#,
        ] {
            let body = Data(poison.utf8)
            let reply = try await post(
                body, to: ServiceHarness.endpoint, ["X-Signature": sign(body, ServiceHarness.notificationKey)])
            #expect(reply.status == 200)
        }
        let next = try await lockstep.order()
        try lockstep.pay(next.execution)
        #expect(try await lockstep.becomes("paid", next))
        // Others of this suite send theirs at the same time.
        let nothingIsLeft = try await waitUntil {
            try await lockstep.books.query("SELECT 1 AS one FROM waiting_notifications").isEmpty
        }
        #expect(nothingIsLeft)
    }

    // MARK: tools

    private func hmac(_ body: Data, _ key: String) -> Data { Crypto.hmacSHA256(key: Data(key.utf8), message: body) }

    private func sign(_ body: Data, _ key: String) -> String { hmac(body, key).base64EncodedString() }

    private func post(_ body: Data, to path: String, _ headers: HTTPHeaders) async throws -> JSONCaller.Reply {
        try await lockstep.stranger.call("POST", path, body: body, headers: headers)
    }

    private func count(_ body: Data) async throws -> Int64? {
        try await lockstep.books.query(
            "SELECT count(*) AS rows FROM notifications WHERE body_hash = \(Crypto.sha256(body))"
        ).first?.decode("rows", as: Int64.self)
    }

    private func state(_ body: Data) async throws -> String? {
        try await lockstep.books.query(
            """
            SELECT state FROM notifications JOIN notification_states USING (id)
            WHERE body_hash = \(Crypto.sha256(body))
            """
        )
        .first?.decode("state", as: String.self)
    }
}
