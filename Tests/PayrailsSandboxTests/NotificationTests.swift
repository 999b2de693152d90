import Basics
import Foundation
import TestKit
import Testing

@testable import PayrailsSandbox

@Suite("Notifications, as a real receiver gets them")
struct NotificationTests {
    static let key = "44782DEF547AAA06C910C43932B1EB0C71FC68D9D0C057550C48EC2ACF6BA056"

    private func caller(
        notifying targets: [NotificationTarget], _ change: (inout SandboxConfiguration) -> Void = { _ in }
    ) async throws -> Caller {
        try await Caller {
            $0.notificationTargets = targets
            $0.notificationBackoff = .milliseconds(5)
            change(&$0)
        }
    }

    @Test("the signature is OpenSSL's, over raw bytes with the key's own text")
    func signature() {
        // printf … | openssl dgst -sha256 -hmac "$KEY" -binary | base64
        let body = Data("{ \n {\"event\":\"caf\\u00e9 ü\",\"weight\":1.0}\n".utf8)
        #expect(
            NotificationSignature.of(body, key: Self.key) == "RBLjpxcdt+OLwpPttD4J6SfX0d4ZABYexrFepQq+7/4=")
        #expect(
            NotificationSignature.of(Data(), key: Self.key) == "hVtbFdCHXp4KKfUGTJQD4Rbq5UwuF/f89EL08DTlPG4=")
    }

    @Test("a payment is told: created, requested, completed, each signed and in an envelope")
    func told() async throws {
        let receiver = try Receiver()
        let caller = try await caller(notifying: [NotificationTarget(url: receiver.url, key: Self.key)])
        let id = try await caller.authorized()
        #expect(await waitUntil { receiver.received.count == 3 })
        #expect(
            Set(receiver.events) == ["executionCreated", "executionActionRequested", "executionActionCompleted"])
        for received in receiver.received {
            #expect(received.path == "/hook")
            #expect(received.contentType == "application/json")
            #expect(received.signature == NotificationSignature.of(received.body, key: Self.key))
            #expect(received.json["workspaceId"]?.string == caller.sandbox.workspaceID)
            #expect(received.json["time"]?.string.flatMap(Timestamp.init(rfc3339:)) != nil)
            #expect(received.json["details"]?["execution"]?["id"]?.string == id)
        }
        let details = receiver.received.first { $0.event == "executionActionCompleted" }?.json["details"]
        #expect(details?["action"] == "authorize")
        #expect(details?["success"] == true)
        #expect(details?["amount"] == ["value": "49.99", "currency": "EUR"])
        let part = try #require(details?["paymentComposition"]?[0])
        #expect(part["operationResult"] == "Success")
        #expect(part["paymentId"]?.string != nil)
        #expect(part["paymentInstrument"]?["data"]?["suffix"] == "4242")
        await caller.sandbox.stop()
        await receiver.stop()
    }

    @Test("a failure has the same event, with success false and its reason")
    func failure() async throws {
        let receiver = try Receiver()
        let caller = try await caller(notifying: [NotificationTarget(url: receiver.url, key: Self.key)])
        let id = try await caller.execution()
        var payment = PayrailsSandbox.Payment()
        payment.card = "9987"
        #expect(caller.sandbox.pay(id, payment).isAccepted)
        #expect(await waitUntil { receiver.events.contains("executionActionCompleted") })
        let details = receiver.received.first { $0.event == "executionActionCompleted" }?.json["details"]
        #expect(details?["success"] == false)
        #expect(details?["errors"]?[0]?["reason"]?["detail"] == "LostInstrument")
        #expect(details?["paymentComposition"]?[0]?["operationResultDetail"] == "LostInstrument")
        await caller.sandbox.stop()
        await receiver.stop()
    }

    @Test("two addresses, each with its own key; an old execution keeps its addresses")
    func addresses() async throws {
        let first = try Receiver()
        let second = try Receiver()
        let caller = try await caller(notifying: [
            NotificationTarget(url: first.url, key: "one"), NotificationTarget(url: second.url, key: "two"),
        ])
        let id = try await caller.execution()
        caller.sandbox.setNotificationTargets([NotificationTarget(url: second.url, key: "three")])
        #expect(caller.sandbox.pay(id).isAccepted)
        #expect(await waitUntil { first.received.count == 3 && second.received.count == 3 })
        #expect(first.received.allSatisfy { $0.signature == NotificationSignature.of($0.body, key: "one") })
        #expect(second.received.allSatisfy { $0.signature == NotificationSignature.of($0.body, key: "two") })
        _ = try await caller.execution("new")
        #expect(await waitUntil { second.received.count == 4 })
        let last = try #require(second.received.last)
        #expect(last.signature == NotificationSignature.of(last.body, key: "three"))
        #expect(first.received.count == 3)
        await caller.sandbox.stop()
        await first.stop()
        await second.stop()
    }

    @Test("only 200 acknowledges: 201, 204 and 500 are repeated, with the same bytes, ever more slowly")
    func repeated() async throws {
        let receiver = try Receiver { before, _ in [500, 201, 204, 200][min(before, 3)] }
        let caller = try await caller(notifying: [NotificationTarget(url: receiver.url, key: Self.key)]) {
            $0.notificationBackoff = .milliseconds(20)
        }
        _ = try await caller.execution()
        #expect(await waitUntil { caller.sandbox.deliveries.first?.state == .delivered })
        let received = receiver.received
        try #require(received.count == 4)
        #expect(Set(received.map(\.body)).count == 1)
        #expect(caller.sandbox.deliveries.first?.attempts.map(\.status) == [500, 201, 204, 200])
        let gaps = zip(received, received.dropFirst()).map { $1.time - $0.time }
        #expect(gaps[0] >= .milliseconds(20))
        #expect(gaps[1] >= .milliseconds(40))
        #expect(gaps[2] >= .milliseconds(80))
        await caller.sandbox.stop()
        await receiver.stop()
    }

    @Test("after ten repetitions it is given up")
    func dead() async throws {
        let receiver = try Receiver { _, _ in 503 }
        let caller = try await caller(notifying: [NotificationTarget(url: receiver.url, key: Self.key)]) {
            $0.notificationBackoff = .microseconds(50)
        }
        _ = try await caller.execution()
        #expect(await waitUntil { caller.sandbox.deliveries.first?.state == .dead })
        #expect(receiver.received.count == 11)
        await caller.sandbox.stop()
        await receiver.stop()
    }

    @Test("a receiver that isn't there is tried again, and flushing doesn't wait for the backoff")
    func flush() async throws {
        let caller = try await caller(notifying: [NotificationTarget(url: "http://127.0.0.1:9/x", key: "k")]) {
            $0.notificationBackoff = .seconds(3600)
        }
        _ = try await caller.execution()
        #expect(await waitUntil { caller.sandbox.deliveries.first?.attempts.count == 1 })
        for count in 2...4 {
            await caller.sandbox.flushNotifications()
            #expect(caller.sandbox.deliveries.first?.attempts.count == count)
        }
        #expect(caller.sandbox.deliveries.first?.attempts.allSatisfy { $0.status == nil && $0.failure != nil } == true)
        await caller.sandbox.stop()
    }

    @Test("twice: the same bytes come twice")
    func twice() async throws {
        let receiver = try Receiver()
        let caller = try await caller(notifying: [NotificationTarget(url: receiver.url, key: Self.key)])
        caller.sandbox.add(SandboxNotificationFault(.twice, event: "executionActionCompleted"))
        _ = try await caller.authorized()
        #expect(await caller.sandbox.becomesQuiet(within: .seconds(20)))
        let completed = receiver.received.filter { $0.event == "executionActionCompleted" }
        #expect(completed.count == 2)
        #expect(Set(completed.map(\.body)).count == 1)
        #expect(receiver.received.count == 4)
        await caller.sandbox.stop()
        await receiver.stop()
    }

    @Test("lost: it never comes, and is on record")
    func lost() async throws {
        let receiver = try Receiver()
        let caller = try await caller(notifying: [NotificationTarget(url: receiver.url, key: Self.key)])
        caller.sandbox.add(SandboxNotificationFault(.lost, action: "authorize", success: true))
        _ = try await caller.authorized()
        #expect(await caller.sandbox.becomesQuiet(within: .seconds(20)))
        #expect(Set(receiver.events) == ["executionCreated", "executionActionRequested"])
        #expect(caller.sandbox.deliveries.filter { $0.state == .lost }.map(\.event) == ["executionActionCompleted"])
        await caller.sandbox.stop()
        await receiver.stop()
    }

    @Test("late: it comes after those that were sent later")
    func late() async throws {
        let receiver = try Receiver()
        let caller = try await caller(notifying: [NotificationTarget(url: receiver.url, key: Self.key)])
        caller.sandbox.add(SandboxNotificationFault(.late(milliseconds: 60_000), event: "executionCreated"))
        _ = try await caller.authorized()
        #expect(await waitUntil { receiver.received.count == 2 })
        #expect(!receiver.events.contains("executionCreated"))
        await caller.sandbox.flushNotifications()
        #expect(receiver.events.last == "executionCreated")
        await caller.sandbox.stop()
        await receiver.stop()
    }

    @Test("shuffled: they come in another order than they were sent")
    func shuffled() async throws {
        let receiver = try Receiver()
        let caller = try await caller(notifying: [NotificationTarget(url: receiver.url, key: Self.key)])
        caller.sandbox.add(SandboxNotificationFault(.shuffled(milliseconds: 60_000), times: nil))
        _ = try await caller.authorized()
        #expect(receiver.received.isEmpty)
        await caller.sandbox.flushNotifications()
        let times = receiver.received.compactMap { $0.json["time"]?.string.flatMap(Timestamp.init(rfc3339:)) }
        #expect(times.count == 3)
        #expect(times != times.sorted())
        await caller.sandbox.stop()
        await receiver.stop()
    }

    @Test("a wrong signature is wrong on every attempt, and only there")
    func wrongSignature() async throws {
        let receiver = try Receiver { _, received in
            received.signature == NotificationSignature.of(received.body, key: NotificationTests.key) ? 200 : 401
        }
        let caller = try await caller(notifying: [NotificationTarget(url: receiver.url, key: Self.key)]) {
            $0.notificationBackoff = .microseconds(50)
        }
        caller.sandbox.add(SandboxNotificationFault(.wrongSignature, event: "executionCreated"))
        _ = try await caller.authorized()
        #expect(await caller.sandbox.becomesQuiet(within: .seconds(20)))
        #expect(caller.sandbox.deliveries.filter { $0.state == .dead }.map(\.event) == ["executionCreated"])
        #expect(caller.sandbox.deliveries.filter { $0.state == .delivered }.count == 2)
        await caller.sandbox.stop()
        await receiver.stop()
    }

    @Test("bare: only the details come, signed as they are")
    func bare() async throws {
        let receiver = try Receiver()
        let caller = try await caller(notifying: [NotificationTarget(url: receiver.url, key: Self.key)])
        caller.sandbox.add(SandboxNotificationFault(.bare, event: "executionActionCompleted"))
        let id = try await caller.authorized()
        #expect(await caller.sandbox.becomesQuiet(within: .seconds(20)))
        let bare = try #require(receiver.received.first { $0.event == nil })
        #expect(bare.json["success"] == true)
        #expect(bare.json["execution"]?["id"]?.string == id)
        #expect(bare.signature == NotificationSignature.of(bare.body, key: Self.key))
        await caller.sandbox.stop()
        await receiver.stop()
    }

    @Test("everything about an execution comes again, also what was lost; raw bytes are sent as they are")
    func redelivered() async throws {
        let receiver = try Receiver()
        let caller = try await caller(notifying: [NotificationTarget(url: receiver.url, key: Self.key)])
        caller.sandbox.add(SandboxNotificationFault(.lost, times: nil))
        let id = try await caller.authorized()
        #expect(await caller.sandbox.becomesQuiet(within: .seconds(20)))
        #expect(receiver.received.isEmpty)
        caller.sandbox.redeliver(id)
        #expect(await waitUntil { receiver.received.count == 3 })
        let odd = Data("not json \u{0}".utf8)
        caller.sandbox.sendNotification(odd)
        #expect(await waitUntil { receiver.received.last?.body == odd })
        #expect(receiver.received.last?.signature == NotificationSignature.of(odd, key: Self.key))
        await caller.sandbox.stop()
        await receiver.stop()
    }

    @Test("fifty deliveries that fail at once, with no wait in between, all come to their end")
    func impatient() async throws {
        let receiver = try Receiver { _, _ in 500 }
        let caller = try await caller(notifying: [NotificationTarget(url: receiver.url, key: Self.key)]) {
            $0.notificationBackoff = .zero
        }
        _ = await inParallel(50) { index in
            await caller.call("POST", "/merchant/client/init", caller.initBody("m\(index)")).status
        }
        #expect(await caller.sandbox.becomesQuiet(within: .seconds(20)))
        #expect(caller.sandbox.deliveries.filter { $0.state == .dead }.count == 50)
        #expect(receiver.received.count == 550)
        await caller.sandbox.stop()
        await receiver.stop()
    }

    @Test("pending is told only where the workflow has such a step; a muted event never is")
    func optional() async throws {
        let receiver = try Receiver()
        let caller = try await caller(notifying: [NotificationTarget(url: receiver.url, key: Self.key)]) {
            $0.sendsPendingEvents = true
            $0.mutedEvents = ["executionActionRequested"]
        }
        let id = try await caller.execution()
        var payment = PayrailsSandbox.Payment()
        payment.outcome = .threeDS
        #expect(caller.sandbox.pay(id, payment).isAccepted)
        #expect(await waitUntil { receiver.events.contains("executionActionPending") })
        let details = receiver.received.first { $0.event == "executionActionPending" }?.json["details"]
        #expect(details?["actionRequired"] == "3ds")
        #expect(!receiver.events.contains("executionActionRequested"))
        await caller.sandbox.stop()
        await receiver.stop()
    }

    @Test("disputes and later results are told; a lost dispute takes the money")
    func disputes() async throws {
        let receiver = try Receiver()
        let caller = try await caller(notifying: [NotificationTarget(url: receiver.url, key: Self.key)])
        let id = try await caller.authorized()
        await caller.call("POST", caller.path(id, "capture"), [:])
        #expect(await waitUntil { caller.sandbox.ledgerTotals("order_1")?.capturedMinor == 4999 })
        #expect(caller.sandbox.dispute(id, disputeID: "d_1").status == 200)
        #expect(caller.sandbox.dispute(id, status: "DisputeLost", disputeID: "d_1").status == 200)
        #expect(caller.sandbox.updateResult(id, action: .capture, success: false).status == 200)
        #expect(await caller.sandbox.becomesQuiet(within: .seconds(20)))
        let disputes = receiver.received.compactMap { received -> JSON? in
            received.json["details"]?["paymentComposition"]?[0]?["dispute"]
        }
        #expect(Set(disputes.compactMap { $0["status"]?.string }) == ["DisputeOpened", "DisputeLost"])
        #expect(receiver.events.contains("executionActionUpdated"))
        #expect(caller.sandbox.ledgerTotals("order_1")?.chargedBackMinor == 4999)
        await caller.sandbox.stop()
        await receiver.stop()
    }

    @Test("a refused capture can be told instead of answered, in the older shape and with an amount of nothing")
    func notifiedRefusal() async throws {
        let receiver = try Receiver()
        let caller = try await caller(notifying: [NotificationTarget(url: receiver.url, key: Self.key)]) {
            $0.refusalStyle = .notified
        }
        let id = try await caller.authorized()
        let body: JSON = ["amount": ["value": "50.00", "currency": "EUR"]]
        #expect(await caller.call("POST", caller.path(id, "capture"), body).status == 202)
        let isTold = await waitUntil { receiver.received.contains { $0.json["details"]?["action"] == "capture" } }
        #expect(isTold)
        let details = receiver.received.first { $0.json["details"]?["action"] == "capture" }?.json["details"]
        #expect(details?["success"] == false)
        #expect(details?["amount"]?["value"] == "0.00")
        #expect(details?["errors"]?[0]?["title"] == "action.not-allowed")
        #expect(details?["paymentComposition"] == nil)
        #expect(caller.sandbox.statusCodes(id).last == "captureFailed")
        await caller.sandbox.stop()
        await receiver.stop()
    }

    @Test("five hundred notifications arrive, whole and once each")
    func many() async throws {
        let receiver = try Receiver()
        let caller = try await caller(notifying: [NotificationTarget(url: receiver.url, key: Self.key)])
        _ = await inParallel(500) { index in
            await caller.call("POST", "/merchant/client/init", caller.initBody("m\(index)")).status
        }
        #expect(await caller.sandbox.becomesQuiet(within: .seconds(20)))
        let references = receiver.received.compactMap {
            $0.json["details"]?["execution"]?["merchantReference"]?.string
        }
        #expect(references.count == 500)
        #expect(Set(references).count == 500)
        await caller.sandbox.stop()
        await receiver.stop()
    }
}
