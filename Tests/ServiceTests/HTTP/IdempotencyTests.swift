import Basics
import Foundation
import Lockstep
import TestKit
import Testing

@testable import Service

@Suite("Idempotency keys")
struct IdempotencyTests {
    private let tally = Tally()
    private func bench(_ handler: @escaping Route.Handler) -> Bench {
        Bench([
            Endpoint.createCharge.handled { [tally] request in
                tally.hit()
                return try await handler(request)
            },
            Endpoint.openSession.handled { _ in .ok([:]) },
            Endpoint.prePayment.handled { request in .ok(["hasKey": .bool(request.idempotency != nil)]) },
        ])
    }
    private let body = #"{"a":1,"b":"x"}"#

    @Test("I9: a required key that is missing is 400, and nothing runs")
    func missing() async {
        let bench = bench { _ in .ok([:]) }
        let answer = await bench.send("POST", "/v1/charges", body: body)
        #expect(answer.status == 400 && answer.slug == "idempotency-key-missing")
        #expect(tally.hits == 0)
    }

    @Test(
        "a key of the wrong form is 400",
        arguments: ["", " ", "a b", "ü", "a\u{7F}", String(repeating: "k", count: 256), "4111111111111111"])
    func invalid(key: String) async {
        let bench = bench { _ in .ok([:]) }
        for path in ["/v1/charges", "/v1/checkouts/\(Bench.ownCheckout)/session"] {
            let answer = await bench.send("POST", path, ["Idempotency-Key": key], body: body)
            #expect(answer.status == 400 && answer.slug == "idempotency-key-invalid")
        }
        #expect(tally.hits == 0)
    }

    @Test("a doubled key is 400, the longest and oddest visible one is fine")
    func forms() async {
        let bench = bench { _ in .ok([:]) }
        var doubled: HTTPHeaders = ["Idempotency-Key": "k"]
        doubled.add("idempotency-key", "k")
        #expect(await bench.send("POST", "/v1/charges", doubled, body: body).slug == "idempotency-key-invalid")
        for key in [String(repeating: "k", count: 255), "!", "~", "{\"a\":1}"] {
            #expect(await bench.send("POST", "/v1/charges", ["Idempotency-Key": key], body: body).status == 200)
        }
    }

    @Test("I9: the same request gets the stored answer and says so; its order of members and spacing don't matter")
    func replay() async {
        let bench = bench { _ in Answer.created(["n": 1], location: "/v1/charges/1") }
        let first = await bench.send("POST", "/v1/charges", ["Idempotency-Key": "k"], body: body)
        let again = await bench.send("POST", "/v1/charges", ["Idempotency-Key": "k"], body: #"{ "b" : "x", "a":1 }"#)
        #expect(first.headers["Idempotent-Replayed"] == nil)
        #expect(again.headers["Idempotent-Replayed"] == "true")
        #expect(again.status == 201 && again.body == first.body && again.headers["Location"] == "/v1/charges/1")
        #expect(first.headers["X-Request-Id"] != again.headers["X-Request-Id"])
        #expect(tally.hits == 1)
    }

    @Test("a problem is an answer too, and is replayed")
    func replayedProblem() async {
        let bench = bench { _ in throw Problem(.instrumentOfAnotherHolder) }
        let first = await bench.send("POST", "/v1/charges", ["Idempotency-Key": "k"], body: body)
        let again = await bench.send("POST", "/v1/charges", ["Idempotency-Key": "k"], body: body)
        #expect(first.status == 422 && again.status == 422)
        #expect(again.headers["Idempotent-Replayed"] == "true")
        #expect(tally.hits == 1)
    }

    @Test("I9: another body, path or query under the key is 422")
    func reused() async {
        let bench = bench { _ in .ok([:]) }
        _ = await bench.send("POST", "/v1/charges", ["Idempotency-Key": "k"], body: body)
        let other = await bench.send("POST", "/v1/charges", ["Idempotency-Key": "k"], body: #"{"a":2,"b":"x"}"#)
        #expect(other.status == 422 && other.slug == "idempotency-key-reused")
        let path = await bench.send(
            "POST", "/v1/checkouts/\(Bench.ownCheckout)/session", ["Idempotency-Key": "k"], body: body)
        #expect(path.slug == "idempotency-key-reused")
    }

    @Test("keys of different credentials never meet")
    func perCredential() async {
        let bench = bench { _ in .ok([:]) }
        _ = await bench.send("POST", "/v1/charges", ["Idempotency-Key": "k"], body: body)
        let other = await bench.send("POST", "/v1/charges", token: Bench.narrow, ["Idempotency-Key": "k"], body: body)
        #expect(other.status == 200 && other.headers["Idempotent-Replayed"] == nil)
        #expect(tally.hits == 2)
    }

    @Test("I5, I9: while the first is running, the same request is 409 with Retry-After")
    func inUse() async {
        let gate = Gate()
        let bench = bench { _ in
            await gate.wait()
            return .ok([:])
        }
        async let first = bench.send("POST", "/v1/charges", ["Idempotency-Key": "k"], body: body)
        while tally.hits == 0 { await Task.yield() }
        let second = await bench.send("POST", "/v1/charges", ["Idempotency-Key": "k"], body: body)
        #expect(second.status == 409 && second.slug == "idempotency-key-in-use")
        #expect(second.headers["Retry-After"] != nil)
        await gate.open()
        #expect(await first.status == 200)
        #expect(await bench.send("POST", "/v1/charges", ["Idempotency-Key": "k"], body: body).status == 200)
        #expect(tally.hits == 1)
    }

    @Test("I5: a key stays a request's for as long as its handler runs, and what is given back is the lease in force")
    func renewed() async {
        let gate = Gate()
        let bench = bench { _ in
            await gate.wait()
            throw Problem(.unavailable)
        }
        async let answer = bench.send("POST", "/v1/charges", ["Idempotency-Key": "k"], body: body)
        #expect(await waitUntil { bench.keeper.renewed >= 3 })
        await gate.open()
        #expect(await answer.status == 503)
        #expect(bench.keeper.released == [Timestamp(seconds: Int64(bench.keeper.renewed))])
    }

    @Test("I10: a 5xx, thrown or returned, and a come-back-later aren't stored: the same request goes on")
    func unstored() async {
        struct Broken: Error {}
        let answers: [Route.Handler] = [
            { _ in throw Problem(.unavailable) }, { _ in throw Broken() }, { _ in Answer(status: 502) },
            { _ in throw Problem(.amountMoving) },
        ]
        let bench = bench { [tally] request in
            tally.hits <= answers.count ? try await answers[tally.hits - 1](request) : .ok([:])
        }
        for status in [503, 500, 502, 409, 200] {
            let answer = await bench.send("POST", "/v1/charges", ["Idempotency-Key": "k"], body: body)
            #expect(answer.status == status && answer.headers["Idempotent-Replayed"] == nil)
        }
        #expect(tally.hits == 5)
        #expect(bench.keeper.stored.count == 1)
    }

    @Test("what must not be kept isn't, and a replay gets a new one")
    func unstoredMembers() async {
        let tally = Tally()
        let route = Endpoint.createCharge.handled { _ in
            Answer.created(["id": "1", "clientToken": "secret-1"]).neverStoring("clientToken")
        }.refreshingReplays { answer, _ in
            tally.hit()
            var members = answer.json?.object ?? [:]
            members["clientToken"] = .string("secret-\(tally.hits + 1)")
            return Answer.json(answer.status, .object(members))
        }
        let bench = Bench([route])
        let first = await bench.send("POST", "/v1/charges", ["Idempotency-Key": "k"], body: body)
        #expect(first.json?["clientToken"] == "secret-1")
        #expect(bench.keeper.stored.allSatisfy { !String(decoding: $0.body, as: UTF8.self).contains("secret") })
        let again = await bench.send("POST", "/v1/charges", ["Idempotency-Key": "k"], body: body)
        #expect(again.json?["clientToken"] == "secret-2" && again.json?["id"] == "1")
        #expect(again.headers["Idempotent-Replayed"] == "true")
    }

    @Test("an answer that can't be kept is given all the same")
    func failingKeeper() async {
        let bench = bench { _ in .ok(["done": true]) }
        bench.keeper.failOnFinish()
        let answer = await bench.send("POST", "/v1/charges", ["Idempotency-Key": "k"], body: body)
        #expect(answer.json?["done"] == true)
        #expect(bench.logged().contains("could not be kept"))
    }

    @Test("nothing is begun for a request that is malformed, and pre-payment has no keys at all")
    func notBegun() async {
        let bench = bench { _ in .ok([:]) }
        _ = await bench.send("POST", "/v1/charges", ["Idempotency-Key": "k"], body: "{")
        _ = await bench.send("POST", "/v1/charges", ["Idempotency-Key": "k"], body: #"{"a":"4111111111111111"}"#)
        #expect(bench.keeper.begun == 0)
        let answer = await bench.send("POST", "/v1/pre-payment", ["Idempotency-Key": "a b"], body: "{}")
        #expect(answer.json?["hasKey"] == false)
    }
}

/// Shut until somebody opens it.
actor Gate {
    private var isOpen = false
    private var waiting: [CheckedContinuation<Void, Never>] = []
    func open() {
        isOpen = true
        for continuation in waiting { continuation.resume() }
        waiting = []
    }
    func wait() async {
        if isOpen { return }
        await withCheckedContinuation { waiting.append($0) }
    }
}
