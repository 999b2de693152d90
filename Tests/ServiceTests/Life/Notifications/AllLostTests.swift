import Basics
import Foundation
import Lockstep
import PayrailsSandbox
import Synchronization
import TestKit
import Testing

@Suite("All notifications lost")
struct AllLostTests {
    private static let settings = [
        "LOCKSTEP_HEAL_PENDING": "100ms,200ms,400ms,800ms", "LOCKSTEP_HEAL_UNKNOWN": "50ms,100ms,200ms,400ms",
        "LOCKSTEP_FAILURE_SETTLE_SECONDS": "1",
    ]

    /// What happens at Payrails, and what must be known here in the end.
    private struct Course: Sendable {
        let name: String
        let execution: String
        let checkout: String
        let happens: @Sendable (ServiceHarness, Order) async throws -> Void
    }

    private static func asked(_ kind: String, _ lockstep: ServiceHarness, _ order: Order) async throws {
        let path = "/v1/executions/\(order.execution)/\(kind)"
        var status = 0
        // What the state allows is known here only once it was asked for.
        _ = try await waitUntil {
            status = try await lockstep.shop.post(path, key: freshWord(kind)).status
            return status == 202
        }
        #expect(status == 202, "\(kind)")
    }

    private static let courses = [
        Course(name: "paid", execution: "authorized", checkout: "paid") { try $0.pay($1.execution) },
        Course(name: "declined", execution: "failed", checkout: "failed") {
            try $0.pay($1.execution, .decline(result: "InsufficientBalance"))
        },
        Course(name: "paid by the second provider", execution: "authorized", checkout: "paid") {
            try $0.pay($1.execution, .cascade(result: "Score"))
        },
        Course(name: "3-D Secure, answered", execution: "authorized", checkout: "paid") { lockstep, order in
            try lockstep.pay(order.execution, .threeDS)
            #expect(await waitUntil { lockstep.sandbox.execution(order.execution)?["actionRequired"] != nil })
            _ = lockstep.sandbox.answerChallenge(order.execution, .success)
        },
        Course(name: "3-D Secure, failed", execution: "failed", checkout: "failed") { lockstep, order in
            try lockstep.pay(order.execution, .threeDS)
            #expect(await waitUntil { lockstep.sandbox.execution(order.execution)?["actionRequired"] != nil })
            _ = lockstep.sandbox.answerChallenge(order.execution, .fail)
        },
        Course(name: "captured by the shop", execution: "captured", checkout: "paid") {
            try $0.pay($1.execution)
            try await asked("capture", $0, $1)
        },
        Course(name: "captured in the portal", execution: "captured", checkout: "paid") { lockstep, order in
            try lockstep.pay(order.execution)
            #expect(await waitUntil { lockstep.sandbox.actInPortal(order.execution, .capture).isAccepted })
        },
        Course(name: "cancelled by the shop", execution: "cancelled", checkout: "cancelled") {
            try $0.pay($1.execution)
            try await asked("cancel", $0, $1)
        },
        Course(name: "captured and refunded by the shop", execution: "refunded", checkout: "refunded") {
            try $0.pay($1.execution)
            try await asked("capture", $0, $1)
            try await asked("refund", $0, $1)
        },
    ]

    @Test("C1, C2, O5 (M4): every execution still reaches its final state, by asking; after how long is printed")
    func everyCourse() async throws {
        let lockstep = try await ServiceHarness.start(Self.settings)
        lockstep.sandbox.add(SandboxNotificationFault(.lost, times: nil))
        let courses = Self.courses.flatMap { Array(repeating: $0, count: 4) }
        let times = Mutex<[String: Duration]>([:])
        let orders = try await atOnce(courses.count) { number in
            let course = courses[number]
            let order = try await lockstep.order()
            try await course.happens(lockstep, order)
            // From here on nothing more is to happen at Payrails.
            let began = ContinuousClock.now
            #expect(try await lockstep.becomes(course.execution, execution: order.execution), "\(course.name)")
            #expect(try await lockstep.becomes(course.checkout, order), "\(course.name)")
            let time = ContinuousClock.now - began
            times.withLock { $0[course.name] = max($0[course.name] ?? .zero, time) }
            return (course.name, order)
        }
        let longest = times.withLock { $0 }.sorted { $0.value < $1.value }
        for (name, time) in longest { print("all lost: \(name): known after \(time) at most") }
        print("all lost: with \(Self.settings.sorted { $0.key < $1.key }.map { "\($0.key)=\($0.value)" })")
        for (name, order) in orders {
            #expect(lockstep.sandbox.deliveries.allSatisfy { $0.state == .lost })
            let tally = try await lockstep.tally(order)
            for (type, count) in tally { #expect(count == 1, "\(name): \(type)") }
        }
        let came = try await lockstep.books.query("SELECT 1 AS one FROM notifications")
        #expect(came.isEmpty)
        await lockstep.stop()
    }
}
