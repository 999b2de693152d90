import Basics
import Foundation
import Lockstep
import TestKit
import Testing

@testable import PayrailsSandbox

@Suite("What happens at Payrails without us")
struct OutsideTests {
    @Test("credentials: several at once, a replaced secret is worth nothing at once")
    func credentials() async throws {
        let caller = try await Caller()
        func status(_ id: String, _ secret: String) async -> Int {
            await caller.call("POST", "/auth/token/\(id)", headers: ["x-api-key": secret]).status
        }
        caller.sandbox.setCredential(clientID: "second", clientSecret: "s$!^*@2")
        #expect(await status("second", "s$!^*@2") == 200)
        #expect(await status(caller.sandbox.clientID, caller.sandbox.clientSecret) == 200)
        caller.sandbox.setCredential(clientID: "second", clientSecret: "s3")
        #expect(await status("second", "s$!^*@2") == 401)
        #expect(await status("second", "s3") == 200)
        caller.sandbox.setCredential(clientID: "second", clientSecret: nil)
        #expect(await status("second", "s3") == 401)
    }

    @Test("a rotated key signs from that moment on, also what is already on its way")
    func rotation() async throws {
        let receiver = try Receiver { _, received in
            received.signature == NotificationSignature.of(received.body, key: "new") ? 200 : 401
        }
        let caller = try await Caller {
            $0.notificationTargets = [NotificationTarget(url: receiver.url, key: "old")]
            $0.notificationBackoff = .seconds(3600)
        }
        _ = try await caller.execution()
        #expect(await waitUntil { caller.sandbox.deliveries.first?.attempts.map(\.status) == [401] })
        caller.sandbox.rotateNotificationKey(of: receiver.url, to: "new")
        await caller.sandbox.flushNotifications()
        #expect(caller.sandbox.deliveries.first?.state == .delivered)
        _ = try await caller.execution()
        #expect(await waitUntil { caller.sandbox.deliveries.last?.state == .delivered })
        await caller.sandbox.stop()
        await receiver.stop()
    }

    @Test("the amount moves behind our back, and the customer pays it")
    func movedAmount() async throws {
        let caller = try await Caller()
        let id = try await caller.execution(value: "10.00")
        #expect(caller.sandbox.moveAmount(id, to: try .init(value: "1.00", currencyCode: "EUR")).status == 200)
        #expect(caller.sandbox.execution(id)?["amount"]?["value"] == "1.00")
        #expect(caller.sandbox.pay(id).isAccepted)
        #expect(await waitUntil { caller.sandbox.ledgerTotals("order_1")?.authorizedMinor == 100 })
    }

    @Test("somebody captures and refunds in the portal")
    func portal() async throws {
        let caller = try await Caller()
        let id = try await caller.authorized(value: "10.00")
        #expect(caller.sandbox.actInPortal(id, .refund).status == 409)
        #expect(caller.sandbox.actInPortal(id, .capture).status == 202)
        #expect(await waitUntil { caller.sandbox.ledgerTotals("order_1")?.capturedMinor == 1000 })
        let amount = try Money(value: "4.00", currencyCode: "EUR")
        #expect(caller.sandbox.actInPortal(id, .refund, amount: amount).status == 202)
        #expect(await waitUntil { caller.sandbox.ledgerTotals("order_1")?.netMinor == 600 })
        #expect(caller.sandbox.calls(to: .capture).isEmpty)
    }

    @Test("a status of a workflow's own is shown, and wakes who waits")
    func ownStatus() async throws {
        let caller = try await Caller()
        let id = try await caller.execution()
        async let held = caller.call("GET", caller.path(id) + "?waitWhile[status]=created")
        #expect(await waitUntil { caller.sandbox.state.withLock { $0.waiters[id]?.count == 1 } })
        #expect(caller.sandbox.addStatus(id, code: "loyaltyChecked").status == 200)
        #expect(await held.json["status"]?.array?.contains { $0["code"] == "loyaltyChecked" } == true)
    }

    @Test("authorizeRequested can show later than the acknowledgement; the amount is fixed all the same")
    func requestedLater() async throws {
        let hand = HandClock()
        let caller = try await Caller {
            $0.clock = hand.clock
            $0.requestedDelay = .milliseconds(400)
            $0.authorizeDelay = .seconds(3)
        }
        let id = try await caller.execution()
        #expect(caller.sandbox.pay(id).isAccepted)
        #expect(caller.sandbox.statusCodes(id) == ["created"])
        let move: JSON = ["amount": ["value": "1.00", "currency": "EUR"]]
        #expect(await caller.call("POST", caller.path(id, "lookup"), move).status == 409)
        hand.advance(by: .milliseconds(400))
        #expect(caller.sandbox.statusCodes(id) == ["created", "authorizeRequested"])
        hand.advance(by: .seconds(3))
        #expect(caller.sandbox.statusCodes(id).last == "authorizeSuccessful")
    }

    @Test("more calls than the rate allows are 429, take no key, and are allowed again later")
    func rate() async throws {
        let hand = HandClock()
        let caller = try await Caller {
            $0.clock = hand.clock
            $0.requestsPerSecond = 5
        }
        var statuses: [Int] = []
        for _ in 0..<8 { statuses.append(await caller.call("GET", "/payment/payments").status) }
        #expect(statuses == [200, 200, 200, 200, 429, 429, 429, 429], "the token took the first")
        let key = UUID().uuidString
        let refused = await caller.call("POST", "/merchant/client/init", caller.initBody(), key: key)
        #expect(refused.code == "request.rate-limit")
        hand.advance(by: .seconds(1))
        #expect(await caller.call("POST", "/merchant/client/init", caller.initBody(), key: key).status == 200)
    }
}
