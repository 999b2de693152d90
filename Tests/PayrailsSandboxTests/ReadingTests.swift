import Basics
import Foundation
import TestKit
import Testing

@testable import PayrailsSandbox

@Suite("Reading: long polls, lists and cursors")
struct ReadingTests {
    @Test(
        "a read that waits returns when a status is added",
        arguments: ["waitWhile%5Bstatus%5D=%5B%22created%22%5D", "waitWhile[status]=created", "lastStatusTime"])
    func longPoll(_ given: String) async throws {
        let caller = try await Caller { $0.longPollHold = .seconds(30) }
        let id = try await caller.execution()
        var query = given
        if given == "lastStatusTime" {
            let time = await caller.call("GET", caller.path(id)).json["status"]?[0]?["time"]?.string ?? ""
            query = "waitWhile%5BlastStatusTime%5D=\(time.replacing(":", with: "%3A"))"
        }
        let path = caller.path(id) + "?" + query
        async let held = caller.call("GET", path)
        #expect(await waitUntil { caller.sandbox.state.withLock { $0.waiters[id]?.count == 1 } })
        let start = ContinuousClock.now
        #expect(caller.sandbox.pay(id).isAccepted)
        let json = await held.json
        #expect(ContinuousClock.now - start < .seconds(10))
        #expect(json["status"]?.array?.contains { $0["code"] == "authorizeRequested" } == true)
    }

    @Test("a read that waits for nothing new is answered after the hold, as things are")
    func hold() async throws {
        let caller = try await Caller { $0.longPollHold = .milliseconds(80) }
        let id = try await caller.execution()
        let start = ContinuousClock.now
        let reply = await caller.call("GET", caller.path(id) + "?waitWhile[status]=created")
        #expect(ContinuousClock.now - start >= .milliseconds(80))
        #expect(reply.json["status"]?.array?.count == 1)
        #expect(caller.sandbox.state.withLock { $0.waiters[id]?.isEmpty ?? true })
    }

    @Test("stopping ends every read that waits")
    func stopping() async throws {
        let caller = try await Caller { $0.longPollHold = .seconds(60) }
        let id = try await caller.execution()
        async let held = caller.call("GET", caller.path(id) + "?waitWhile[status]=created")
        #expect(await waitUntil { caller.sandbox.state.withLock { $0.waiters[id]?.count == 1 } })
        await caller.sandbox.stop()
        #expect(await held.status == 200)
    }

    @Test("a wait that can't be read is refused")
    func badWaits() async throws {
        let caller = try await Caller()
        let id = try await caller.execution()
        for query in ["waitWhile[finalStatus]=true", "waitWhile[lastStatusTime]=now", "waitWhile[status]=[oops"] {
            #expect(await caller.call("GET", caller.path(id) + "?" + query).status == 400)
        }
    }

    @Test("payments are paged by cursor without loss, in both shapes, while more come in")
    func paging() async throws {
        let caller = try await Caller()
        for number in 0..<23 { _ = try await caller.authorized("p\(number)") }
        var seen: [String] = []
        var shapes: Set<String> = []
        var next: String? = "/payment/payments?page[size]=5&filter%5Bstatus%5D=Authorized"
        while let path = next {
            let json = await caller.call("GET", path).json
            seen += json["results"]?.array?.compactMap { $0["merchantReference"]?.string } ?? []
            shapes.insert(json["links"] == nil ? "paging" : "links")
            if let absolute = json["links"]?["next"]?.string {
                next = String(absolute.dropFirst(caller.sandbox.baseURL.count))
            } else {
                next = json["paging"]?["next"]?.string.map { "/payment/payments" + $0 }
            }
            _ = try await caller.authorized("later\(seen.count)")
        }
        #expect(seen == (0..<23).reversed().map { "p\($0)" })
        #expect(shapes == ["paging", "links"])
    }

    @Test("payments are filtered by reference and by an interval of creation")
    func payments() async throws {
        let hand = HandClock(Timestamp(seconds: 1_790_000_000))
        let caller = try await Caller { $0.clock = hand.clock }
        for reference in ["a", "b", "c"] {
            _ = caller.sandbox.pay(try await caller.execution(reference))
            hand.advance(by: .seconds(60))
        }
        func references(_ filter: String) async -> [String] {
            await caller.call("GET", "/payment/payments?\(filter)").json["results"]?.array?
                .compactMap { $0["merchantReference"]?.string } ?? []
        }
        let from = Timestamp(seconds: 1_790_000_050).rfc3339
        let to = Timestamp(seconds: 1_790_000_110).rfc3339
        #expect(await references("filter[merchantReference]=b") == ["b"])
        #expect(await references("filter[createdAt]=[\(from),\(to))") == ["b"])
        #expect(await references("filter[createdAt]=[\(from)") == ["c", "b"])
        #expect(await references("filter[createdAt]=\(from))") == ["a"])
        #expect(await references("filter[status]=Captured").isEmpty)
        #expect(await references("merchantReference=b") == ["c", "b", "a"], "a bare name is ignored")
    }

    @Test("executions are listed by reference and by their last status, and belong to their workflow")
    func executions() async throws {
        let caller = try await Caller { $0.pendingBeforeSuccess = 0 }
        let paid = try await caller.authorized("x")
        _ = try await caller.execution("x")
        _ = try await caller.execution("y")
        let path = "/merchant/workflows/payment-acceptance/executions"
        let both = await caller.call("GET", path + "?filter[merchantReference]=x").json
        #expect(both["results"]?.array?.count == 2)
        #expect(both["links"]?["self"]?.string?.isEmpty == false)
        let authorized = await caller.call("GET", path + "?filter[lastStatus]=authorizeSuccessful").json
        #expect(authorized["results"]?.array?.compactMap { $0["id"]?.string } == [paid])
        #expect(await caller.call("GET", "/merchant/workflows/payout/executions/\(paid)").status == 404)
        #expect(await caller.call("GET", caller.path(UUID().lowercased)).code == "request.not-found")
    }

    @Test("a payment tells its history and its operations")
    func payment() async throws {
        let caller = try await Caller()
        let id = try await caller.authorized()
        await caller.call("POST", caller.path(id, "capture"), [:])
        #expect(await waitUntil { caller.sandbox.ledgerTotals("order_1")?.capturedMinor == 4999 })
        let list = await caller.call("GET", "/payment/payments?filter[merchantReference]=order_1").json
        let payment = try #require(list["results"]?[0]?["id"]?.string)
        let json = await caller.call("GET", "/payment/payments/\(payment)").json
        #expect(json["status"] == "Captured")
        #expect(json["capturedAmount"] == ["value": "49.99", "currency": "EUR"])
        #expect(json["history"]?.array?.compactMap { $0["status"]?.string } == ["Created", "Authorized", "Captured"])
    }

    @Test("status times are exact to the nanosecond and never the same twice")
    func times() async throws {
        let hand = HandClock()
        let caller = try await Caller { $0.clock = hand.clock }
        let id = try await caller.execution()
        _ = caller.sandbox.pay(id)
        let json = await caller.call("GET", caller.path(id)).json
        let times = json["status"]?.array?.compactMap { $0["time"]?.string.flatMap(Timestamp.init(rfc3339:)) } ?? []
        #expect(times.count >= 3)
        #expect(Set(times).count == times.count)
    }
}
