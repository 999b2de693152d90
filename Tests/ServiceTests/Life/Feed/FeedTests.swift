import Basics
import Lockstep
import Synchronization
import TestKit
import Testing

@Suite("The feed")
struct FeedTests {
    private static let shared = Task { try await ServiceHarness.shared() }

    @Test("a reader that follows its cursor while eight write at once misses nothing and sees nothing twice")
    func nothingMissed() async throws {
        let lockstep = try await ServiceHarness.start()
        try await lockstep.startService()
        let isOver = Mutex(false)
        async let written: Void = {
            defer { isOver.withLock { $0 = true } }
            _ = try await atOnce(8) { _ in
                for _ in 0..<12 {
                    let order = try await lockstep.order()
                    try lockstep.pay(order.execution)
                    if Bool.random() { _ = try await lockstep.shop.post("\(order.path)/cancel") }
                }
            }
        }()
        var seen: [String] = []
        var cursors: [String] = []
        var next = ""
        while true {
            let wasOver = isOver.withLock { $0 }
            let limit = Int.random(in: 1...7)
            let page = try await lockstep.shop.get("/v1/events?limit=\(limit)\(next)").json
            let events = try #require(page["events"]?.array)
            #expect(events.count <= limit)
            seen += events.compactMap { $0["id"]?.string }
            cursors += events.compactMap { $0["cursor"]?.string }
            let following = try #require(page["next"]?.string)
            if let last = cursors.last { #expect(following == last) }
            next = "&after=\(following)"
            if events.isEmpty, wasOver, try await isQuiet(lockstep), seen.count >= (try await stored(lockstep)).count {
                break
            }
        }
        try await written
        #expect(Set(seen).count == seen.count)
        #expect(Set(seen) == Set(try await stored(lockstep)))
        // From the start, in pages of another size, it is the same feed in the same order.
        #expect(try await lockstep.feed(limit: 500).compactMap { $0["id"]?.string } == seen)
        await lockstep.stop()
    }

    private func stored(_ lockstep: ServiceHarness) async throws -> [String] {
        try await lockstep.books.query("SELECT id::text AS id FROM events").map { try $0.decode("id", as: String.self) }
    }

    private func isQuiet(_ lockstep: ServiceHarness) async throws -> Bool {
        guard await lockstep.sandbox.becomesQuiet(within: .seconds(10)) else { return false }
        let row = try await lockstep.books.query(
            """
            SELECT (SELECT count(*) FROM waiting_notifications)
                + (SELECT count(*) FROM operations WHERE finished_at IS NULL) AS waiting
            """
        ).first
        return try row?.decode("waiting", as: Int64.self) == 0
    }

    @Test("a key sees the events that its scopes reach, and the cursor goes on all the same")
    func scopes() async throws {
        let lockstep = try await Self.shared.value
        let order = try await lockstep.paidOrder()
        _ = try await lockstep.shop.post("/v1/executions/\(order.execution)/capture", key: freshWord("key"))
        #expect(try await lockstep.tells("execution.captured", order))
        for (scope, subjects) in [
            (Scope.checkouts, Set(["checkout"])), (.payments, ["execution"]), (.instruments, []), (.ops, []),
        ] {
            let events = try await lockstep.feed(as: try await lockstep.makeKey([scope]))
            #expect(
                Set(events.compactMap { $0["type"]?.string?.split(separator: ".").first.map(String.init) }) == subjects)
        }
        #expect(try await lockstep.app(order).get("/v1/events").outcome == "403 forbidden")
    }

    @Test("an event holds the object as its GET shows it, and no secret")
    func contents() async throws {
        let lockstep = try await Self.shared.value
        let order = try await lockstep.paidOrder()
        #expect(try await lockstep.tells("checkout.paid", order))
        let event = try #require(
            try await lockstep.feed().last {
                $0["type"] == "checkout.paid" && $0["data"]?["checkout"]?["id"]?.string == order.checkout
            })
        let shown = try await lockstep.checkout(order)
        #expect(event["data"]?["checkout"] == shown.without("init"))
        #expect(event["id"]?.string != nil && event["cursor"]?.string != nil && event["time"]?.string != nil)
        #expect(!event.text.contains("clientToken") && !event.text.contains("\"init\""))
    }

    @Test("a long poll returns as soon as there is something, and empty-handed when its time is over")
    func longPoll() async throws {
        let lockstep = try await ServiceHarness.start()
        let empty = try await lockstep.shop.get("/v1/events").json
        #expect(empty["events"] == [])
        let start = try #require(empty["next"]?.string)
        let began = ContinuousClock.now
        let over = try await lockstep.shop.get("/v1/events?after=\(start)&wait=1").json
        #expect(over == ["events": [], "next": .string(start)])
        #expect(ContinuousClock.now - began >= .milliseconds(950))
        async let poll = lockstep.shop.get("/v1/events?after=\(start)&wait=30")
        let asked = ContinuousClock.now
        let order = try await lockstep.order()
        let woken = try await poll.json
        #expect(ContinuousClock.now - asked < .seconds(8))
        #expect(woken["events"]?[0]?["data"]?["checkout"]?["id"]?.string == order.checkout)
        // A poll doesn't keep the service from stopping.
        let shop = try lockstep.shop
        let after = try #require(woken["next"]?.string)
        async let last = shop.get("/v1/events?after=\(after)&wait=30")
        // This request is one of the two.
        #expect(
            try await waitUntil {
                try await shop.get("/metrics").text.contains("\nlockstep_http_requests_in_flight 2\n")
            })
        await lockstep.stopServices()
        #expect(try await last.status == 200)
        await lockstep.stop()
    }

    @Test("a key that is revoked while it waits for events gets none of them")
    func revokedWhileWaiting() async throws {
        let lockstep = try await ServiceHarness.start()
        let key = try await lockstep.makeKey([.checkouts])
        let name = try #require(try await lockstep.store.findKey(token: Secret(key))).name
        let reader = try lockstep.stranger.with(token: key)
        let start = try #require(try await reader.get("/v1/events").json["next"]?.string)
        async let poll = reader.get("/v1/events?after=\(start)&wait=30")
        let shop = try lockstep.shop
        // This request is one of the two.
        #expect(
            try await waitUntil {
                try await shop.get("/metrics").text.contains("\nlockstep_http_requests_in_flight 2\n")
            })
        #expect(try await lockstep.store.revokeKey(name))
        _ = try await lockstep.order()
        let reply = try await poll
        #expect(reply.outcome == "401 unauthorized", "\(reply.text)")
        await lockstep.stop()
    }

    @Test("a cursor of after the end is told to be one: whoever waited behind it would wait for ever (M11)")
    func restored() async throws {
        let lockstep = try await Self.shared.value
        _ = try await lockstep.order()
        let last = try #require(try await lockstep.feed().last?["cursor"]?.string)
        #expect(try await lockstep.shop.get("/v1/events?after=\(last)").status == 200)
        let begun = ContinuousClock.now
        let reply = try await lockstep.shop.get("/v1/events?after=c99999999999n1&wait=20")
        #expect(reply.outcome == "422 invalid" && reply.json["errors"]?[0]?["pointer"] == "/after")
        #expect(ContinuousClock.now - begun < .seconds(10))
    }

    @Test(
        "what isn't a cursor, a limit or a wait is 422",
        arguments: [
            "after=x", "after=1", "after=1-", "after=-1-1", "after=1-1-1", "after=99999999999999999999-1", "limit=0",
            "limit=501", "limit=x", "wait=31", "wait=-1", "wait=1.5", "after=1-1&after=1-1", "nothing=1",
        ])
    func badQuery(_ query: String) async throws {
        #expect(try await Self.shared.value.shop.get("/v1/events?\(query)").outcome == "422 invalid")
    }
}
