import Basics
import Foundation
import TestKit
import Testing

@testable import PayrailsSandbox

@Suite("The idempotency store")
struct IdempotencyTests {
    @Test("a key replays its first answer, even for another body")
    func replay() async throws {
        let caller = try await Caller()
        let key = UUID().uuidString
        let first = await caller.call("POST", "/merchant/client/init", caller.initBody("a"), key: key)
        let again = await caller.call("POST", "/merchant/client/init", caller.initBody("a"), key: key.lowercased())
        let other = await caller.call("POST", "/merchant/client/init", caller.initBody("b", value: "1.00"), key: key)
        #expect(first.status == 200)
        #expect(again.bytes == first.bytes)
        #expect(other.bytes == first.bytes)
        #expect(caller.sandbox.executionIDs(merchantReference: "a").count == 1)
        #expect(caller.sandbox.executionIDs(merchantReference: "b").isEmpty)
        #expect(caller.sandbox.calls(to: .clientInit).map(\.isReplay) == [false, true, true])
    }

    @Test("wrong parameters take no key")
    func validation() async throws {
        let caller = try await Caller()
        let key = UUID().uuidString
        let wrong = await caller.call("POST", "/merchant/client/init", ["type": "dropIn"], key: key)
        #expect(wrong.status == 400)
        #expect(await caller.call("POST", "/merchant/client/init", caller.initBody(), key: key).status == 200)
    }

    @Test("a refusal by the state is kept, also when the state would allow it later")
    func keptRefusal() async throws {
        let caller = try await Caller()
        let id = try await caller.execution()
        let key = UUID().uuidString
        let early = await caller.call("POST", caller.path(id, "capture"), [:], key: key)
        #expect(early.status == 409)
        #expect(early.code == "workflow.action.not-allowed")
        #expect(caller.sandbox.pay(id).isAccepted)
        #expect(await waitUntil { caller.sandbox.statusCodes(id).contains("authorizeSuccessful") })
        #expect(await caller.call("POST", caller.path(id, "capture"), [:], key: key).bytes == early.bytes)
        #expect(await caller.call("POST", caller.path(id, "capture"), [:]).status == 202)
    }

    @Test("a key whose first request is still running is a conflict, and the first goes on")
    func concurrent() async throws {
        let caller = try await Caller()
        caller.sandbox.add(SandboxFault(.delay(milliseconds: 1500), on: .clientInit))
        let key = UUID().uuidString
        async let slow = caller.call("POST", "/merchant/client/init", caller.initBody(), key: key)
        #expect(await waitUntil { caller.sandbox.calls(to: .clientInit).first?.faults == ["delay"] })
        let second = await caller.call("POST", "/merchant/client/init", caller.initBody(), key: key)
        #expect(second.status == 409)
        #expect(second.code == "request.conflict")
        let first = await slow
        #expect(first.status == 200)
        #expect(await caller.call("POST", "/merchant/client/init", caller.initBody(), key: key).bytes == first.bytes)
        #expect(caller.sandbox.executionIDs(merchantReference: "order_1").count == 1)
    }

    @Test("of a hundred requests at once with one key, one has an effect")
    func burst() async throws {
        let caller = try await Caller()
        let key = UUID().uuidString
        let statuses = await withTaskGroup(of: Int.self) { group in
            for _ in 0..<100 {
                group.addTask {
                    await caller.call("POST", "/merchant/client/init", caller.initBody(), key: key).status
                }
            }
            return await group.reduce(into: [Int]()) { $0.append($1) }
        }
        #expect(statuses.allSatisfy { $0 == 200 || $0 == 409 })
        #expect(caller.sandbox.executionIDs(merchantReference: "order_1").count == 1)
    }

    @Test("a 5xx after the effect is kept under the key; the effect is there")
    func storedServerError() async throws {
        let caller = try await Caller()
        let id = try await caller.authorized()
        caller.sandbox.add(SandboxFault(.errorAfter(status: 500), on: .capture))
        let key = UUID().uuidString
        let first = await caller.call("POST", caller.path(id, "capture"), [:], key: key)
        #expect(first.status == 500)
        #expect(first.code == "internal")
        #expect(await caller.call("POST", caller.path(id, "capture"), [:], key: key).bytes == first.bytes)
        #expect(await waitUntil { caller.sandbox.ledgerTotals("order_1")?.capturedMinor == 4999 })
    }

    @Test("a key is forgotten after its retention")
    func retention() async throws {
        let hand = HandClock()
        let caller = try await Caller {
            $0.clock = hand.clock
            $0.tokenLifetime = .seconds(7 * 24 * 3600)
        }
        let key = UUID().uuidString
        let first = await caller.call("POST", "/merchant/client/init", caller.initBody(), key: key)
        hand.advance(by: .seconds(24 * 3600 - 1))
        #expect(await caller.call("POST", "/merchant/client/init", caller.initBody(), key: key).bytes == first.bytes)
        hand.advance(by: .seconds(1))
        #expect(await caller.call("POST", "/merchant/client/init", caller.initBody(), key: key).bytes != first.bytes)
    }
}
