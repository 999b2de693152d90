import Basics
import Foundation
import HTTPServer
import Lockstep
import Store
import TestKit
import Testing

@testable import Service

@Suite("Events reach the shop as webhooks")
struct PushTests {
    @Test("what the shop gets is what the feed shows, byte for byte, signed and in order")
    func wholeLife() async throws {
        let shop = try ShopReceiver()
        let lockstep = try await PushHarness.start(shop)
        let order = try await lockstep.paidOrder()
        let capture = try await lockstep.shop.post("/v1/executions/\(order.execution)/capture", [:], key: "capture")
        #expect(capture.status == 202)
        #expect(try await lockstep.tells("execution.captured", order))
        let feed = try await lockstep.feed()
        #expect(await waitUntil { shop.received.count == feed.count })
        #expect(
            shop.accepted(about: order.checkout) == ["checkout.created", "checkout.paid", "execution.captured"])
        for event in feed {
            let webhook = try #require(shop.received.first { $0.id == event["id"]?.string })
            #expect(webhook.body == event.bytes)
            #expect(webhook.headers["Content-Type"] == "application/json")
            #expect(webhook.headers["User-Agent"]?.hasPrefix("lockstep/") == true)
            let time = try #require(webhook.headers["webhook-timestamp"])
            #expect(abs((Int64(time) ?? 0) - Timestamp.systemNow.seconds) < 30)
            let mac = try await OpenSSL.hmac(PushHarness.secret, Data("\(webhook.id).\(time).".utf8) + webhook.body)
            #expect(webhook.headers.all("webhook-signature") == ["v1,\(mac)"])
        }
        #expect(try await waitUntil { try await lockstep.deliveries(.delivered) == feed.count })
        let metrics = try await lockstep.shop.get("/metrics").text
        #expect(metrics.contains("lockstep_event_attempts_total{outcome=\"accepted\"} \(feed.count)\n"))
        #expect(lockstep.log.errors == [])
        await lockstep.stop()
        await shop.stop()
    }

    @Test("without an address nothing is queued, and with one only what comes from then on is")
    func switchedOn() async throws {
        let shop = try ShopReceiver()
        let lockstep = try await ServiceHarness.start()
        _ = try await lockstep.order()
        await lockstep.stopServices()
        #expect(try await lockstep.deliveries(.pending) == 0)
        let isSettled = try await waitUntil {
            try await lockstep.books.query(
                "SELECT count(*) AS n FROM events WHERE transaction_id >= pg_snapshot_xmin(pg_current_snapshot())"
            ).first?.decode(Int64.self) == 0
        }
        #expect(isSettled)
        try await lockstep.startService(.all, PushHarness.settings(shop))
        let order = try await lockstep.order()
        #expect(await waitUntil { shop.accepted(about: order.checkout) == ["checkout.created"] })
        await lockstep.stop()
        #expect(shop.received.count == 1)
        await shop.stop()
    }

    @Test("two secrets sign together while one replaces the other")
    func rotation() async throws {
        let new = "whsec_" + Data(repeating: 3, count: 24).base64EncodedString()
        let shop = try ShopReceiver()
        let lockstep = try await PushHarness.start(
            shop, ["LOCKSTEP_EVENTS_SECRET": "\(new),\(PushHarness.secret)"])
        try await lockstep.writeEvent()
        #expect(await waitUntil { shop.received.count == 1 })
        let webhook = shop.received[0]
        let signed = Data("\(webhook.id).\(webhook.headers["webhook-timestamp"] ?? "").".utf8) + webhook.body
        var signatures: [String] = []
        for secret in [new, PushHarness.secret] { signatures.append("v1," + (try await OpenSSL.hmac(secret, signed))) }
        #expect(webhook.headers["webhook-signature"] == signatures.joined(separator: " "))
        await lockstep.stop()
        await shop.stop()
    }

    @Test("nothing secret and nothing that is in an event or in an answer to it gets into the log or the metrics")
    func quiet() async throws {
        let card = "4111111111111111"
        let shop = try ShopReceiver { _, time in
            HTTPServerResponse(
                status: [500, 302, 410][min(time - 1, 2)],
                headers: ["Location": "/\(card)", "Retry-After": card, "X-Canary": "canary-\(card)"],
                body: Data("canary \(card) \(PushHarness.secret)".utf8))
        }
        let lockstep = try await PushHarness.start(shop, ["LOCKSTEP_EVENTS_RETRIES": "10ms,10ms"])
        try await lockstep.writeEvent(
            nil, ["checkout": ["holderReference": "canary@example.org", "note": .string(card)]])
        // `Retry-After` asks for more than a day, which the service would wait for; a person doesn't.
        #expect(
            try await waitUntil {
                try await lockstep.store.readDeliveries([.pending], limit: 1).first?.lastStatus == 500
            })
        for count in 2...3 {
            _ = try await lockstep.store.resendDeliveries(in: .pending)
            #expect(await waitUntil { shop.received.count >= count })
        }
        #expect(try await waitUntil { try await lockstep.deliveries(.dead) == 1 })
        #expect(shop.received.allSatisfy { $0.json["data"]?["checkout"]?["note"]?.string == card })
        let metrics = try await lockstep.shop.get("/metrics").text
        await lockstep.stop()
        let traces = lockstep.log.text + metrics
        #expect(traces.contains("the shop did not take an event"))
        for secret in [card, "canary", "whsec_", String(PushHarness.secret.dropFirst(6)), "v1,", "the-secret-of"] {
            #expect(!traces.contains(secret), "\(secret)")
        }
        await shop.stop()
    }

    @Test("what is in flight when the service stops is finished, and isn't sent again")
    func stopping() async throws {
        let shop = try ShopReceiver { _, _ in
            try? await Task.sleep(for: .milliseconds(300))
            return HTTPServerResponse(status: 200)
        }
        let lockstep = try await PushHarness.start(shop)
        for _ in 0..<3 { try await lockstep.writeEvent() }
        #expect(await waitUntil { shop.received.count == 3 })
        await lockstep.stopServices()
        #expect(try await lockstep.deliveries(.delivered) == 3)
        #expect(shop.received.count == 3)
        #expect(lockstep.log.errors == [])
        await lockstep.stop()
        await shop.stop()
    }
}
