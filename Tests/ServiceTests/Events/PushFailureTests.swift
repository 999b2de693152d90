import Basics
import Foundation
import HTTPServer
import Lockstep
import Store
import Synchronization
import TestKit
import Testing

@testable import Service

@Suite("Events reach the shop whatever goes wrong, in order")
struct PushFailureTests {
    @Test("two services, a shop that fails in many ways: each checkout's events arrive in order, one at a time")
    func order() async throws {
        let shop = try ShopReceiver { event, time in
            try? await Task.sleep(for: .milliseconds(Int(event.body.count) % 7))
            // By the event's id, so that each fails in its own way: never, once, or three times.
            let kind = (event.id.utf8.last ?? 0) % 5
            guard time <= Int(kind == 4 ? 3 : min(kind, 1)) else { return HTTPServerResponse(status: 202) }
            var answer = HTTPServerResponse(
                status: [500, 404, 302, 503][time % 4], headers: ["Location": "/hook/"], body: Data("no".utf8))
            if kind == 2 { answer.cut = 0 }
            return answer
        }
        let lockstep = try await PushHarness.start(shop)
        try await lockstep.startService(.workers)
        let checkouts = (0..<6).map { _ in UUID() }
        for _ in 0..<8 { for checkout in checkouts { try await lockstep.writeEvent(of: checkout) } }
        #expect(try await waitUntil { try await lockstep.deliveries(.delivered) == 48 })
        let feed = try await lockstep.feed()
        for checkout in checkouts.map({ $0.uuidString.lowercased() }) {
            let expected = feed.filter { $0["data"]?["checkout"]?["id"]?.string == checkout }.compactMap {
                $0["id"]?.string
            }
            var first: [String] = []
            for webhook in shop.received(about: checkout) where !first.contains(webhook.id) { first.append(webhook.id) }
            #expect(first == expected)
            #expect(shop.received(about: checkout).allSatisfy { $0.alongside == 0 })
        }
        // What failed came again as it was.
        for (_, webhooks) in Dictionary(grouping: shop.received, by: \.id) {
            #expect(Set(webhooks.map(\.body)).count == 1)
            let kind = (webhooks[0].id.utf8.last ?? 0) % 5
            #expect(webhooks.count == 1 + Int(kind == 4 ? 3 : min(kind, 1)))
        }
        #expect(lockstep.log.errors == [])
        await lockstep.stop()
        await shop.stop()
    }

    @Test("a shop that is down gets everything when it is up again, and knows each event by its id")
    func downThenUp() async throws {
        let first = try ShopReceiver()
        let port = first.port
        let lockstep = try await PushHarness.start(first)
        await first.stop()
        let checkout = UUID()
        let written = [
            try await lockstep.writeEvent(of: checkout), try await lockstep.writeEvent(of: checkout),
            try await lockstep.writeEvent(),
        ]
        #expect(
            try await waitUntil {
                try await lockstep.store.readDeliveries([.pending], limit: 9).contains { $0.attempts >= 2 }
            })
        #expect(try await lockstep.store.readDeliveries([.pending], limit: 9).first?.lastFailure == .cannotConnect)
        let second = try ShopReceiver(port: port)
        #expect(try await waitUntil { try await lockstep.deliveries(.delivered) == 3 })
        #expect(Set(second.received.map(\.id)) == Set(written) && second.received.count == 3)
        await lockstep.stop()
        await second.stop()
    }

    @Test("after the last retry an event is dead and the next one goes; a person has it sent again")
    func dead() async throws {
        let checkout = UUID()
        let isMended = Shared(false)
        let poison = Shared("")
        let shop = try ShopReceiver { event, _ in
            HTTPServerResponse(status: event.id == poison.value && !isMended.value ? 500 : 200)
        }
        let lockstep = try await PushHarness.start(shop, ["LOCKSTEP_EVENTS_RETRIES": "20ms,40ms,60ms"], parts: nil)
        try await lockstep.store.beginDeliveries()
        poison.value = try await lockstep.writeEvent(of: checkout)
        let next = try await lockstep.writeEvent(of: checkout)
        try await lockstep.startService()
        #expect(try await waitUntil { try await lockstep.deliveries(.delivered) == 1 })
        #expect(shop.received.map(\.id) == Array(repeating: poison.value, count: 4) + [next])
        let dead = try await lockstep.store.readDeliveries([.dead], limit: 9)
        #expect(dead.map(\.event.description) == [poison.value])
        #expect(dead.first?.attempts == 4 && dead.first?.lastStatus == 500)
        #expect(lockstep.log.errors.count == 1)
        #expect(
            try await waitUntil {
                try await lockstep.shop.get("/metrics").text.contains("lockstep_event_deliveries{state=\"dead\"} 1\n")
            })
        isMended.value = true
        #expect(try await lockstep.store.resendDeliveries(in: .dead) == 1)
        #expect(try await waitUntil { try await lockstep.deliveries(.delivered) == 2 })
        #expect(shop.received.last?.id == poison.value)
        await lockstep.stop()
        await shop.stop()
    }

    @Test("410: the shop doesn't want it, so it isn't sent again")
    func gone() async throws {
        let shop = try ShopReceiver { _, _ in HTTPServerResponse(status: 410) }
        let lockstep = try await PushHarness.start(shop)
        try await lockstep.writeEvent()
        #expect(try await waitUntil { try await lockstep.deliveries(.dead) == 1 })
        #expect(shop.received.count == 1)
        await lockstep.stop()
        #expect(shop.received.count == 1)
        await shop.stop()
    }

    @Test("Retry-After is waited for, and a redirect isn't followed")
    func retryAfter() async throws {
        let times = Shared<[ContinuousClock.Instant]>([])
        let shop = try ShopReceiver { _, time in
            times.value += [.now]
            return time == 1
                ? HTTPServerResponse(status: 308, headers: ["Location": "/hook/", "Retry-After": "1"])
                : HTTPServerResponse(status: 200)
        }
        let lockstep = try await PushHarness.start(shop)
        try await lockstep.writeEvent()
        #expect(try await waitUntil { try await lockstep.deliveries(.delivered) == 1 })
        let came = times.value
        #expect(came.count == 2 && came[1] - came[0] >= .milliseconds(990))
        await lockstep.stop()
        await shop.stop()
    }

    @Test("told that it is too much, the whole service pauses, and no event loses an attempt to it")
    func tooMuch() async throws {
        let shop = try ShopReceiver { _, _ in HTTPServerResponse(status: 429, headers: ["Retry-After": "30"]) }
        let lockstep = try await PushHarness.start(shop, ["LOCKSTEP_EVENTS_CONCURRENCY": "2"], parts: nil)
        try await lockstep.store.beginDeliveries()
        for _ in 0..<20 { try await lockstep.writeEvent() }
        try await lockstep.startService()
        #expect(await waitUntil { shop.received.count >= 2 })
        #expect(try await waitUntil { try await lockstep.deliveries(.pending) == 20 })
        // Ten rounds of its looking around.
        try await Task.sleep(for: .milliseconds(200))
        await lockstep.stopServices()
        #expect(shop.received.count <= 3)
        let untried = try await lockstep.store.readDeliveries([.pending], limit: 50).count { $0.attempts == 0 }
        #expect(untried >= 17)
        await lockstep.stop()
        await shop.stop()
    }

    @Test("an answer that doesn't end in time, and one that never ends, are no answers")
    func noAnswer() async throws {
        let shop = try ShopReceiver { _, time in
            if time == 1 { try? await Task.sleep(for: .seconds(2)) }
            return HTTPServerResponse(
                status: 200, body: Data(count: time == 2 ? EventSender.maximumResponseBytes + 1 : 0))
        }
        let lockstep = try await PushHarness.start(shop, ["LOCKSTEP_EVENTS_TIMEOUT_MS": "200"])
        try await lockstep.writeEvent()
        #expect(try await waitUntil { try await lockstep.deliveries(.delivered) == 1 })
        #expect(shop.received.count == 3)
        let metrics = try await lockstep.shop.get("/metrics").text
        #expect(metrics.contains("lockstep_event_attempts_total{outcome=\"timedOut\"} 1\n"))
        #expect(metrics.contains("lockstep_event_attempts_total{outcome=\"unreadable\"} 1\n"))
        await lockstep.stop()
        await shop.stop()
    }

    @Test("a service that died between sending and writing it down: another sends the event again, as it was")
    func diedBetween() async throws {
        let shop = try ShopReceiver()
        let lockstep = try await PushHarness.start(shop, parts: nil)
        try await lockstep.store.beginDeliveries()
        let event = try await lockstep.writeEvent(of: UUID())
        #expect(try await waitUntil { try await lockstep.store.queueDeliveries(limit: 10) == 1 })
        let settings = try Settings(environment: lockstep.environment)
        let client = try #require(try settings.events.client())
        let pusher = try #require(
            settings.pusher(
                client: client, store: lockstep.store, metrics: DeliveryMetrics(Metrics(), clock: .system),
                clock: .system, log: .silent))
        let claimed = try await lockstep.store.claimDeliveries(limit: 5, lease: pusher.lease)
        #expect(await pusher.sender.send(try #require(claimed.first).event) == .accepted(status: 204))
        await client.shutdown()

        // The lease holds the others back.
        try await lockstep.startService()
        let later = try await lockstep.writeEvent()
        #expect(await waitUntil { shop.received.contains { $0.id == later } })
        #expect(shop.received.count { $0.id == event } == 1)
        // Once it is over, they send it, once.
        try await lockstep.startService(.workers, clock: WallClock { .systemNow + .seconds(60) })
        #expect(try await waitUntil { try await lockstep.deliveries(.delivered) == 2 })
        let both = shop.received.filter { $0.id == event }
        #expect(both.count == 2 && both[0].body == both[1].body)
        await lockstep.stop()
        #expect(shop.received.count == 3)
        await shop.stop()
    }
}

/// A value that a test and its shop share.
private final class Shared<Value: Sendable>: Sendable {
    private let state: Mutex<Value>
    init(_ value: Value) { state = Mutex(value) }
    var value: Value {
        get { state.withLock { $0 } }
        set { state.withLock { $0 = newValue } }
    }
}
