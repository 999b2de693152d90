import Basics
import Foundation
import Testing

@testable import PayrailsSandbox

@Suite("Misbehaving on request")
struct FaultTests {
    /// A fault on a capture, what the caller sees, and whether the money moved.
    struct Case: Sendable, CustomTestStringConvertible {
        let kind: SandboxFault.Kind
        let status: Int?
        let breaks: APIResponse.Break?
        let hasEffect: Bool
        /// What the same key answers the next time.
        let afterwards: Int
        var testDescription: String { "\(kind)" }
    }

    static let cases: [Case] = [
        Case(kind: .delay(milliseconds: 30), status: 202, breaks: nil, hasEffect: true, afterwards: 202),
        Case(kind: .delayAfter(milliseconds: 30), status: 202, breaks: nil, hasEffect: true, afterwards: 202),
        Case(kind: .errorBefore(status: 503), status: 503, breaks: nil, hasEffect: false, afterwards: 202),
        Case(
            kind: .errorBefore(status: 500, stored: true), status: 500, breaks: nil, hasEffect: false, afterwards: 500),
        Case(kind: .errorBefore(status: 408), status: 408, breaks: nil, hasEffect: false, afterwards: 202),
        Case(kind: .errorAfter(status: 500), status: 500, breaks: nil, hasEffect: true, afterwards: 500),
        Case(kind: .closeBefore, status: nil, breaks: .beforeAnything, hasEffect: false, afterwards: 202),
        Case(kind: .closeAfter, status: nil, breaks: .beforeAnything, hasEffect: true, afterwards: 202),
        Case(kind: .html(status: 403), status: 403, breaks: nil, hasEffect: false, afterwards: 202),
        Case(kind: .html(status: 502, effect: true), status: 502, breaks: nil, hasEffect: true, afterwards: 202),
        Case(kind: .halfBody, status: nil, breaks: .inTheBody, hasEffect: true, afterwards: 202),
        Case(kind: .rateLimited(retryAfterSeconds: 3), status: 429, breaks: nil, hasEffect: false, afterwards: 202),
        Case(kind: .expiredToken, status: 401, breaks: nil, hasEffect: false, afterwards: 401),
        Case(kind: .lowercaseHeaders, status: 202, breaks: nil, hasEffect: true, afterwards: 202),
    ]

    @Test("an ignored amount is answered like any other, and the old one stays")
    func ignoredAmount() async throws {
        let caller = try await Caller()
        let id = try await caller.execution()
        let before = try #require(caller.sandbox.execution(id)?["amount"])
        let new: JSON = ["amount": ["value": "11.11", "currency": "EUR"]]
        caller.sandbox.add(SandboxFault(.amountIgnored))
        let ignored = await caller.call("POST", caller.path(id, "lookup"), new)
        #expect(ignored.status == 200)
        #expect(ignored.json["name"] == "lookup")
        #expect(caller.sandbox.execution(id)?["amount"] == before)
        #expect(await caller.call("POST", caller.path(id, "lookup"), new).status == 200)
        #expect(caller.sandbox.execution(id)?["amount"] == new["amount"])
    }

    @Test("each fault does what it says, to the answer and to the money, once", arguments: cases)
    func each(_ example: Case) async throws {
        let caller = try await Caller()
        let id = try await caller.authorized()
        caller.sandbox.add(SandboxFault(example.kind, on: .capture))
        let key = UUID().uuidString
        let start = ContinuousClock.now
        let reply = await caller.call("POST", caller.path(id, "capture"), [:], key: key)
        if case .delay = example.kind { #expect(ContinuousClock.now - start >= .milliseconds(30)) }
        if case .delayAfter = example.kind { #expect(ContinuousClock.now - start >= .milliseconds(30)) }
        if let status = example.status { #expect(reply.status == status) }
        #expect(reply.breaks == example.breaks)
        if case .html = example.kind {
            #expect(reply.headers["Content-Type"]?.hasPrefix("text/html") == true)
            #expect(reply.json == .null)
        }
        if case .rateLimited = example.kind { #expect(reply.headers["Retry-After"] == "3") }
        if case .lowercaseHeaders = example.kind {
            #expect(reply.headers.fields.allSatisfy { $0.name == $0.name.lowercased() })
        }
        #expect(await caller.sandbox.becomesQuiet(within: .seconds(20)))
        #expect(caller.sandbox.ledger.contains { $0.kind == .capture } == example.hasEffect)
        let again = await caller.call("POST", caller.path(id, "capture"), [:], key: key)
        #expect(again.status == example.afterwards)
        #expect(again.breaks == nil)
        #expect(await caller.sandbox.becomesQuiet(within: .seconds(20)))
        #expect(caller.sandbox.ledger.filter { $0.kind == .capture }.count <= 1)
        #expect(caller.sandbox.calls(to: .capture).first?.faults.count == 1)
        #expect(caller.sandbox.calls(to: .capture).last?.faults.isEmpty == true)
    }

    @Test("a fault is for its route, its text and its number of times")
    func matching() async throws {
        let caller = try await Caller()
        caller.sandbox.add(SandboxFault(.errorBefore(status: 503), on: .clientInit, times: 2, containing: "target"))
        #expect(await caller.call("POST", "/merchant/client/init", caller.initBody("other")).status == 200)
        #expect(await caller.call("GET", "/payment/payments").status == 200)
        for status in [503, 503, 200] {
            #expect(await caller.call("POST", "/merchant/client/init", caller.initBody("target")).status == status)
        }
    }

    @Test("a probability is kept to, by the seed")
    func probability() async throws {
        var runs: [[Int]] = []
        for _ in 0..<2 {
            let caller = try await Caller()
            caller.sandbox.add(SandboxFault(.errorBefore(status: 500), times: nil, probability: 0.3))
            var statuses: [Int] = []
            for _ in 0..<200 { statuses.append(await caller.call("GET", "/payment/payments").status) }
            runs.append(statuses)
        }
        #expect(runs[0] == runs[1])
        #expect((30...90).contains(runs[0].filter { $0 == 500 }.count))
    }

    @Test("the token call fails on request too")
    func token() async throws {
        let caller = try await Caller()
        caller.sandbox.add(SandboxFault(.html(status: 403), on: .token))
        let path = "/auth/token/\(caller.sandbox.clientID)"
        let secret = ["x-api-key": caller.sandbox.clientSecret]
        #expect(await caller.call("POST", path, headers: secret).status == 403)
        let reply = await caller.call("POST", path, headers: secret)
        #expect(reply.status == 200)
        #expect(reply.headers["Cache-Control"] == "no-store")
    }

    @Test("an expired token stays expired, another one works")
    func expiredToken() async throws {
        let caller = try await Caller()
        caller.sandbox.add(SandboxFault(.expiredToken, on: .listPayments))
        #expect(await caller.call("GET", "/payment/payments").status == 401)
        #expect(await caller.call("GET", "/payment/payments").status == 401)
        let fresh = await caller.call(
            "POST", "/auth/token/\(caller.sandbox.clientID)", headers: ["x-api-key": caller.sandbox.clientSecret])
        let token = try #require(fresh.json["access_token"]?.string)
        #expect(await caller.call("GET", "/payment/payments", token: token).status == 200)
    }

    @Test("the same seed and the same calls give the same ids")
    func determinism() async throws {
        var ids: [String] = []
        for _ in 0..<2 {
            let hand = HandClock()
            let caller = try await Caller { $0.clock = hand.clock }
            ids.append(try await caller.execution())
        }
        #expect(ids[0] == ids[1])
    }
}
