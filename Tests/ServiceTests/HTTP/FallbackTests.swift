import Basics
import Foundation
import Lockstep
import Testing

@testable import Service

@Suite("A call that must answer, answers")
struct FallbackTests {
    struct Broken: Error {}

    private func bench(budget: Duration = .seconds(5), _ handler: @escaping Route.Handler) -> Bench {
        Bench([
            Endpoint.prePayment.handled(by: handler).answeringAnyway(within: budget) { broken in
                let id = try broken.read(unknownMembers: .ignored) { $0.uuid("executionId") }
                return .ok(["decision": "refuse", "reason": "internal", "executionId": .string(id.lowercased)])
            }
        ])
    }
    private let body = #"{"executionId":"0197c0de-0000-7000-8000-000000000001","paymentMethodCode":"card"}"#

    @Test("when credentials can't be checked, it refuses with 200")
    func blindDoorman() async {
        let bench = bench { _ in .ok(["decision": "proceed"]) }
        bench.doorman.fallAsleep()
        let answer = await bench.send("POST", "/v1/pre-payment", body: body)
        #expect(answer.status == 200 && answer.json?["reason"] == "internal")
        #expect(answer.json?["executionId"] == "0197c0de-0000-7000-8000-000000000001")
        #expect(await bench.send("POST", "/v1/pre-payment", body: "{").status == 400)
        #expect(await bench.send("POST", "/v1/pre-payment", body: "{}").status == 422)
    }

    @Test("when the handler breaks in any way, it refuses with 200")
    func brokenHandler() async {
        let answers: [Route.Handler] = [
            { _ in throw Broken() }, { _ in throw Problem(.unavailable) }, { _ in throw Problem(.internalError) },
            { _ in throw CancellationError() },
        ]
        for handler in answers {
            #expect(await bench(handler).send("POST", "/v1/pre-payment", body: body).json?["decision"] == "refuse")
        }
    }

    @Test("the caller's own faults stay what they are")
    func callersFaults() async {
        let bench = bench { _ in throw Problem.invalid("/x", "is wrong") }
        #expect(await bench.send("POST", "/v1/pre-payment", body: body).status == 422)
        #expect(await bench.send("POST", "/v1/pre-payment", token: nil, body: body).status == 401)
    }

    @Test("a handler that never ends, and doesn't listen, is no longer waited for", .timeLimit(.minutes(1)))
    func endless() async {
        let gate = Gate()
        let bench = bench(budget: .milliseconds(50)) { _ in
            await gate.wait()
            return .ok(["decision": "proceed"])
        }
        let answer = await bench.send("POST", "/v1/pre-payment", body: body)
        #expect(answer.json?["decision"] == "refuse")
        await gate.open()
    }

    @Test("a handler that listens is told to stop")
    func cancelled() async throws {
        let stopped = Tally()
        await #expect(throws: OutOfTime.self) {
            try await withBudget(.milliseconds(20)) {
                do { try await Task.sleep(for: .seconds(600)) } catch { stopped.hit() }
            }
        }
        let deadline = ContinuousClock.now + .seconds(10)
        while stopped.hits == 0, .now < deadline { await Task.yield() }
        #expect(stopped.hits == 1)
    }

    @Test("a result that is there in time is given, and an error too")
    func inTime() async throws {
        #expect(try await withBudget(.seconds(60)) { 7 } == 7)
        await #expect(throws: Broken.self) { try await withBudget(.seconds(60)) { throw Broken() } }
    }

    @Test("a budget that is already over is over")
    func over() async {
        await #expect(throws: OutOfTime.self) {
            try await withBudget(.seconds(-1)) { try await Task.sleep(for: .seconds(600)) }
        }
    }
}
