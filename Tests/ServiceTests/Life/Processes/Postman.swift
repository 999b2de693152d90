import Crypto
import Foundation
import Lockstep
import Payrails
import PayrailsSandbox
import Postgres
import Synchronization
import TestKit
import Testing

/// Posts notifications as Payrails does, over many connections: each until it was answered 200, and never after that.
final class Postman: Sendable {
    private struct State {
        var waiting: [SignedNotification]
        var acknowledged: [SignedNotification] = []
        var refusals: [JSONCaller.Reply] = []
        var isStopped = false
        /// So many answered 200, and nothing more is taken to the door.
        var limit = Int.max
    }
    private let state: Mutex<State>

    init(_ notifications: [SignedNotification]) {
        state = Mutex(State(waiting: notifications.shuffled()))
    }

    var acknowledged: [SignedNotification] { state.withLock(\.acknowledged) }
    /// Answers that weren't 200.
    var refusals: [JSONCaller.Reply] { state.withLock(\.refusals) }

    /// Takes nothing more to the door; what is on its way ends as it ends.
    func stop() { state.withLock { $0.isStopped = true } }

    /// Waits when so many were answered 200, so that something is left however fast the door is; nil: goes on.
    func pause(after count: Int?) { state.withLock { $0.limit = count ?? .max } }

    private func next() async -> SignedNotification? {
        await waitUntil { !isPaused } ? take() : nil
    }

    private var isPaused: Bool { state.withLock { !$0.isStopped && $0.acknowledged.count >= $0.limit } }

    /// Returns when everything was answered 200, or when it was told to stop.
    func deliver(to caller: JSONCaller, connections: Int = 32) async {
        state.withLock { $0.isStopped = false }
        await withTaskGroup(of: Void.self) { group in
            for _ in 0..<connections {
                group.addTask {
                    while let notification = await self.next() {
                        let reply = try? await notification.send(to: caller)
                        self.note(notification, reply)
                        // Payrails waits before it comes again, too.
                        if reply?.status != 200 { try? await Task.sleep(for: .milliseconds(20)) }
                    }
                }
            }
        }
    }

    private func take() -> SignedNotification? {
        state.withLock { $0.isStopped ? nil : $0.waiting.popLast() }
    }

    private func note(_ notification: SignedNotification, _ reply: JSONCaller.Reply?) {
        state.withLock { state in
            if reply?.status == 200 { return state.acknowledged.append(notification) }
            state.waiting.insert(notification, at: 0)
            if let reply { state.refusals.append(reply) }
        }
    }
}

extension ServiceHarness {
    /// Makes the orders, pays them and captures a part of each three times, and holds every notification of it back.
    func heldBack(orders count: Int) async throws -> (orders: [Order], notifications: [SignedNotification]) {
        sandbox.add(SandboxNotificationFault(.lost, times: nil))
        let orders = try await atOnce(count) { _ in
            let order = try await self.order()
            try self.pay(order.execution)
            try #require(
                await waitUntil { self.sandbox.statusCodes(order.execution).contains("authorizeSuccessful") })
            for _ in 0..<3 {
                let answer = self.sandbox.actInPortal(
                    order.execution, .capture, amount: try Money(value: "1.00", currencyCode: "EUR"), isFinal: false)
                try #require(answer.isAccepted, "\(answer.body)")
            }
            return order
        }
        try #require(await sandbox.becomesQuiet(within: .seconds(30)))
        let executions = Set(orders.map(\.execution))
        let held = sandbox.deliveries.filter { executions.contains($0.executionID) }
        return (orders, held.map { SignedNotification($0.body) })
    }

    /// Whether everything that these notifications say is known, and none of them still waits.
    func areInEffect(_ notifications: [SignedNotification]) async throws -> Bool {
        let states = try await books.query(
            """
            SELECT state FROM notifications JOIN notification_states USING (id)
            WHERE body_hash = ANY(\(notifications.map { Crypto.sha256($0.body) }))
            """
        ).map { try $0.decode("state", as: String.self) }
        guard states.count == notifications.count, states.allSatisfy({ $0 == "applied" || $0 == "ignored" }) else {
            return false
        }
        let known = Set(
            try await books.query(
                "SELECT execution_id, action, action_id, phase FROM facts WHERE kind = 'action'"
            ).map { row in
                let (execution, action, id, phase) = try row.decode((UUID, String?, String?, String?).self)
                return [execution.uuidString.lowercased(), action, id, phase]
            })
        return notifications.allSatisfy { notification in
            guard case .facts(let read) = PayrailsNotification.parse(notification.body, receivedAt: .systemNow) else {
                return true
            }
            return read.facts.allSatisfy {
                known.contains([read.executionID?.description, $0.action, $0.actionID, $0.phase?.rawValue])
            }
        }
    }

    /// Whether each order is paid, told so once, and has its three captures.
    func areDone(_ orders: [Order]) async throws -> Bool {
        let ids = orders.compactMap { UUID(uuidString: $0.checkout) }
        let done = try await books.query(
            """
            SELECT checkouts.id FROM checkouts JOIN executions ON executions.id = kept_execution_id
            WHERE status = 'paid' AND captured_minor = 300 AND checkouts.id = ANY(\(ids))
                AND (SELECT count(*) FROM events WHERE type = 'checkout.paid' AND checkout_id = checkouts.id) = 1
            """)
        return done.count == orders.count
    }
}
