import Basics
import Lockstep
import PayrailsSandbox
import Synchronization
import TestKit
import Testing

@testable import Service

@Suite("How an order ends without being paid, and what comes after")
struct EndOfOrderTests {
    private static let shared = Task { try await ServiceHarness.shared() }
    private let lockstep: ServiceHarness
    init() async throws { lockstep = try await Self.shared.value }

    /// A service whose clock runs an hour and more ahead from a moment on.
    private static func late() async throws -> (ServiceHarness, @Sendable () -> Void) {
        let box = ClockBox()
        let lockstep = try await ServiceHarness.start(parts: nil)
        try await lockstep.startService(.all, clock: box.clock)
        return (lockstep, { box.advance(by: .seconds(3700)) })
    }

    @Test("an order that nobody pays expires, once, and then nothing begins any more")
    func expiry() async throws {
        let (lockstep, anHourLater) = try await Self.late()
        let order = try await lockstep.order()
        anHourLater()
        #expect(try await lockstep.becomes("expired", order))
        #expect(try await lockstep.gate(order.execution) == "checkout-expired")
        #expect(try await lockstep.session(order).outcome == "409 checkout-expired")
        let change = try await lockstep.shop.put(
            "\(order.path)/amount", ["amount": lockstep.money("60.00")], version: 1)
        #expect(change.outcome == "409 checkout-expired")
        #expect(try await lockstep.events(order, atLeast: 2) == ["checkout.created", "checkout.expired"])
        // The app can still see how it ended.
        #expect(try await lockstep.app(order).get(order.path).json["status"] == "expired")
        // A success that comes now is money for the right amount: it pays.
        try lockstep.pay(order.execution)
        #expect(try await lockstep.becomes("paid", order))
        #expect(lockstep.money(of: order) == .init(authorizations: 1, held: 4999))
        #expect(
            try await lockstep.events(order, atLeast: 3)
                == ["checkout.created", "checkout.expired", "checkout.paid"])
        await lockstep.stop()
    }

    @Test("a payment that runs when the time is over is waited for")
    func expiryWaits() async throws {
        let (lockstep, anHourLater) = try await Self.late()
        let order = try await lockstep.order()
        try lockstep.pay(order.execution, .threeDS)
        #expect(try await lockstep.becomes("processing", order))
        anHourLater()
        #expect(try await lockstep.gate(order.execution) == "checkout-expired")
        #expect(try await lockstep.status(order) == "processing")
        _ = lockstep.sandbox.answerChallenge(order.execution, .success)
        #expect(try await lockstep.becomes("paid", order))
        #expect(try await lockstep.tally(order)["checkout.expired"] == nil)
        await lockstep.stop()
    }

    @Test("an order that was given up can't be paid: a late success is taken back")
    func cancelled() async throws {
        let order = try await lockstep.order()
        let first = try await lockstep.shop.post("\(order.path)/cancel")
        #expect(first.status == 200)
        #expect(first.json["status"] == "cancelled")
        #expect(try await lockstep.shop.post("\(order.path)/cancel").json == first.json)
        try lockstep.pay(order.execution)
        #expect(try await lockstep.tells("checkout.duplicate_cancelled", order))
        #expect(lockstep.money(of: order) == .init(authorizations: 1, voided: 4999))
        #expect(try await lockstep.status(order) == "cancelled")
        let tally = try await lockstep.tally(order)
        #expect(tally["checkout.cancelled"] == 1)
        #expect(tally["checkout.paid"] == nil)
        #expect(tally["operation.failed"] == nil)
    }

    @Test("giving up while the customer is at the bank takes the attempt back")
    func cancelledAtTheBank() async throws {
        let order = try await lockstep.order()
        try lockstep.pay(order.execution, .threeDS)
        #expect(try await lockstep.becomes("processing", order))
        #expect(try await lockstep.shop.post("\(order.path)/cancel").json["status"] == "cancelled")
        #expect(try await lockstep.becomes("cancelled", execution: order.execution))
        #expect(lockstep.money(of: order) == .init())
        #expect(try await lockstep.tally(order)["checkout.duplicate_cancelled"] == nil)
    }

    @Test("M1: a success that nobody told of is reported when the cancel that took it back is all that was heard")
    func cancelIsAllThatWasHeard() async throws {
        let lockstep = try await ServiceHarness.start()
        let order = try await lockstep.order()
        #expect(try await lockstep.shop.post("\(order.path)/cancel").status == 200)
        lockstep.sandbox.add(
            SandboxNotificationFault(.lost, action: "authorize", executionID: order.execution, times: nil))
        lockstep.sandbox.add(
            SandboxFault(.errorBefore(status: 500), on: .getExecution, times: nil, containing: order.execution))
        try lockstep.pay(order.execution)
        #expect(await lockstep.sandbox.becomesQuiet())
        #expect(try await lockstep.becomes("cancelled", execution: order.execution))
        #expect(try await lockstep.tally(order)["checkout.duplicate_cancelled"] == nil)
        lockstep.sandbox.clearFaults()
        #expect(try await lockstep.tells("checkout.duplicate_cancelled", order))
        #expect(lockstep.money(of: order) == .init(authorizations: 1, voided: 4999))
        await lockstep.stop()
    }

    @Test("giving up when it was paid a moment ago is refused, although no notification has come")
    func cancelledTooLate() async throws {
        let order = try await lockstep.order()
        try lockstep.pay(order.execution, .threeDS)
        #expect(try await lockstep.becomes("processing", order))
        lockstep.sandbox.add(SandboxNotificationFault(.lost, executionID: order.execution, times: nil))
        _ = lockstep.sandbox.answerChallenge(order.execution, .success)
        #expect(await lockstep.sandbox.becomesQuiet())
        #expect(try await lockstep.shop.post("\(order.path)/cancel").outcome == "409 already-paid")
        #expect(try await lockstep.status(order) == "paid")
        #expect(lockstep.money(of: order) == .init(authorizations: 1, held: 4999))
    }

    @Test("W11: a session that was being created when the order was given up can't pay it")
    func cancelledDuringCreation() async throws {
        let order = try await lockstep.order()
        lockstep.sandbox.add(
            SandboxFault(.delayAfter(milliseconds: 300), on: .clientInit, containing: "\(order.reference)~2"))
        async let session = lockstep.session(order)
        #expect(
            await waitUntil { !lockstep.sandbox.executionIDs(merchantReference: "\(order.reference)~2").isEmpty })
        #expect(try await lockstep.shop.post("\(order.path)/cancel").status == 200)
        #expect(try await session.json["init"] == nil, "handed out for an order that was given up")
        let second = try #require(
            lockstep.sandbox.executionIDs(merchantReference: "\(order.reference)~2").first)
        #expect(try await lockstep.gate(second) == "checkout-cancelled")
        try lockstep.pay(second)
        #expect(await waitUntil { lockstep.money(of: order) == .init(authorizations: 1, voided: 4999) })
        #expect(try await lockstep.status(order) == "cancelled")
    }

    @Test("the shop's cancel of a paid execution gives the order back, a whole refund too")
    func givenBack() async throws {
        let shop = try lockstep.shop
        let cancelled = try await lockstep.paidOrder()
        let cancel = try await shop.post("/v1/executions/\(cancelled.execution)/cancel", key: freshWord("key"))
        #expect(cancel.status == 202)
        #expect(try await lockstep.becomes("cancelled", cancelled))
        #expect(lockstep.money(of: cancelled) == .init(authorizations: 1, voided: 4999))
        #expect(
            try await lockstep.events(cancelled, atLeast: 4).sorted()
                == ["checkout.cancelled", "checkout.created", "checkout.paid", "execution.cancelled"])

        #expect(try await lockstep.gate(cancelled.execution) == "checkout-cancelled")
        #expect(try await lockstep.session(cancelled).outcome == "409 checkout-cancelled")
        let change: JSON = ["amount": lockstep.money("60.00")]
        #expect(try await shop.put("\(cancelled.path)/amount", change, version: 1).outcome == "409 checkout-cancelled")

        let refunded = try await lockstep.paidOrder()
        let path = "/v1/executions/\(refunded.execution)"
        #expect(try await shop.post("\(path)/capture", key: freshWord("key")).status == 202)
        #expect(try await lockstep.becomes("captured", execution: refunded.execution))
        #expect(try await shop.post("\(path)/refund", key: freshWord("key")).status == 202)
        #expect(try await lockstep.becomes("refunded", refunded))
        #expect(lockstep.money(of: refunded) == .init(authorizations: 1, refunded: 4999))
        #expect(try await lockstep.session(refunded).outcome == "409 already-paid")
    }
}

/// A clock that runs with the system's and can be put ahead.
final class ClockBox: Sendable {
    private let offset = Mutex(Duration.zero)
    var clock: WallClock { WallClock { .systemNow + self.offset.withLock { $0 } } }
    func advance(by duration: Duration) { offset.withLock { $0 += duration } }
}
