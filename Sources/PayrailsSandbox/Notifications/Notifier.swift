import Basics
import Foundation
import HTTPClient
import Synchronization

/// Sends notifications, and repeats them until they are acknowledged or given up (section 5.1).
final class Notifier: Sendable {
    private struct State: Sendable {
        var deliveries: [Int: SandboxDelivery] = [:]
        var finished: [Int] = []
        var lastID = 0
        var sleepers: [Int: CheckedContinuation<Void, Never>] = [:]
        /// Keys that were rotated, by address: the old one is worth nothing from that moment (section 5.1).
        var rotatedKeys: [String: String] = [:]
        /// Held back to be sent in another order.
        var pen: [Int] = []
        var firstAttempts: [Int: CheckedContinuation<Void, Never>] = [:]
        /// Deliveries that are neither asleep nor over.
        var busy = 0
        var idleWaiters: [CheckedContinuation<Void, Never>] = []
        var freeSlots: Int
        var slotWaiters: [CheckedContinuation<Void, Never>] = []
        var random: SeededGenerator
        var isStopped = false
    }

    private let configuration: SandboxConfiguration
    /// Nil where somebody else brings notifications.
    private let client: HTTPClient?
    private let state: Mutex<State>

    init(_ configuration: SandboxConfiguration, seed: UInt64) throws {
        self.configuration = configuration
        var settings = HTTPClientConfiguration()
        settings.allowsPlainHTTP = true
        settings.maximumConnectionsPerHost = configuration.notificationConcurrency
        settings.userAgent = "payrails-sandbox"
        client = configuration.courier == nil ? try HTTPClient(settings) : nil
        state = Mutex(
            State(freeSlots: configuration.notificationConcurrency, random: SeededGenerator(seed: seed)))
    }

    var deliveries: [SandboxDelivery] {
        state.withLock { $0.deliveries.values.sorted { $0.id < $1.id } }
    }

    /// Whether everything is delivered, lost or given up.
    var isQuiet: Bool {
        state.withLock { $0.busy == 0 && $0.sleepers.isEmpty && $0.pen.isEmpty }
    }

    func send(_ notification: OutgoingNotification, faults: [SandboxNotificationFault.Kind]) {
        var delay = Duration.zero
        var hold: Duration?
        for case .late(let milliseconds) in faults { delay += .milliseconds(milliseconds) }
        for case .shuffled(let milliseconds) in faults { hold = .milliseconds(milliseconds) }
        let body = faults.contains(.bare) ? notification.details : notification.body
        for target in notification.targets {
            for _ in 0..<(faults.contains(.twice) ? 2 : 1) {
                let id = add(notification, target, body, isSignedWrongly: faults.contains(.wrongSignature))
                if faults.contains(.lost) {
                    finish(id, .lost)
                } else if let hold {
                    keepBack(id, for: hold)
                } else {
                    start(id, after: delay)
                }
            }
        }
    }

    /// Attempts everything that waits now, whatever it waits for, and returns when each has been attempted.
    func flush() async {
        let penned = takePen()
        let sleeping = state.withLock { state in
            let sleeping = state.sleepers
            state.sleepers = [:]
            state.busy += sleeping.count
            return sleeping.values
        }
        for sleeper in sleeping { sleeper.resume() }
        await sendInTurn(penned)
        await withCheckedContinuation { continuation in
            let isIdle = state.withLock { state in
                guard state.busy > 0, !state.isStopped else { return true }
                state.idleWaiters.append(continuation)
                return false
            }
            if isIdle { continuation.resume() }
        }
    }

    func forget() {
        state.withLock { state in
            let live = state.deliveries.filter { $0.value.state == .waiting || $0.value.state == .sending }
            state.deliveries = live
            state.finished = []
        }
    }

    /// Gives up whatever waits, and closes the connections.
    func stop() async {
        let waiting = state.withLock { state in
            state.isStopped = true
            let waiting =
                Array(state.sleepers.values) + state.idleWaiters + state.slotWaiters + state.firstAttempts.values
            state.busy += state.sleepers.count
            (state.sleepers, state.idleWaiters, state.slotWaiters, state.firstAttempts) = ([:], [], [], [:])
            return waiting
        }
        for waiter in waiting { waiter.resume() }
        await client?.shutdown()
    }

    // MARK: one delivery

    /// Sends everything again that was made for this execution, also what was acknowledged or lost.
    func redeliver(executionID: String) {
        let copies = state.withLock { state in
            state.deliveries.values.filter { $0.executionID == executionID }.sorted { $0.id < $1.id }.map { old in
                state.lastID += 1
                state.deliveries[state.lastID] = SandboxDelivery(again: old, id: state.lastID)
                return state.lastID
            }
        }
        for copy in copies { start(copy) }
    }

    private func add(
        _ notification: OutgoingNotification, _ target: NotificationTarget, _ body: Data, isSignedWrongly: Bool
    ) -> Int {
        state.withLock { state in
            state.lastID += 1
            state.deliveries[state.lastID] = SandboxDelivery(
                id: state.lastID, notificationID: notification.id, event: notification.event,
                action: notification.action, success: notification.isSuccess, executionID: notification.executionID,
                merchantReference: notification.merchantReference, url: target.url, body: body,
                key: target.key, isSignedWrongly: isSignedWrongly)
            return state.lastID
        }
    }

    private func start(_ id: Int, after delay: Duration = .zero) {
        state.withLock { $0.busy += 1 }
        Task { await run(id, after: delay) }
    }

    private func run(_ id: Int, after delay: Duration) async {
        defer { becomeIdle() }
        if delay > .zero { await sleep(id, for: delay) }
        var backoff = configuration.notificationBackoff
        for attempt in 0...configuration.notificationRetries {
            guard let delivery = state.withLock({ $0.isStopped ? nil : $0.deliveries[id] }) else { return }
            let status = await attemptOnce(delivery)
            if status == 200 { return finish(id, .delivered) }
            guard attempt < configuration.notificationRetries else { break }
            await sleep(id, for: backoff)
            backoff = backoff * 2
        }
        finish(id, .dead)
    }

    private func attemptOnce(_ delivery: SandboxDelivery) async -> Int? {
        await takeSlot()
        let signature = sign(delivery)
        let time = configuration.clock.now()
        var status: Int?
        var failure: String?
        do {
            status = try await bring(
                HTTPClientRequest(
                    method: "POST", url: delivery.url,
                    headers: ["Content-Type": "application/json", "X-Signature": signature],
                    body: delivery.body, timeout: configuration.notificationTimeout))
        } catch {
            failure = "\(error)"
        }
        freeSlot()
        let first = state.withLock { state in
            state.deliveries[delivery.id]?.attempts.append(.init(time: time, status: status, failure: failure))
            state.deliveries[delivery.id]?.state = .waiting
            return state.firstAttempts.removeValue(forKey: delivery.id)
        }
        first?.resume()
        return status
    }

    private func bring(_ request: HTTPClientRequest) async throws -> Int? {
        if let courier = configuration.courier { return try await courier(request).status }
        return try await client?.send(request).status
    }

    /// Signs with the key that the address has now.
    private func sign(_ delivery: SandboxDelivery) -> String {
        let key = state.withLock { $0.rotatedKeys[delivery.url] } ?? delivery.key
        let signature = NotificationSignature.of(
            delivery.body, key: delivery.isSignedWrongly ? key + "-another" : key)
        state.withLock { state in
            state.deliveries[delivery.id]?.state = .sending
            state.deliveries[delivery.id]?.signature = signature
        }
        return signature
    }

    func rotateKey(of url: String, to key: String) { state.withLock { $0.rotatedKeys[url] = key } }

    private func finish(_ id: Int, _ end: SandboxDelivery.State) {
        let limit = configuration.recordLimit
        state.withLock { state in
            state.deliveries[id]?.state = end
            state.finished.append(id)
            guard state.finished.count >= limit * 2 else { return }
            for old in state.finished.prefix(limit) { state.deliveries[old] = nil }
            state.finished.removeFirst(limit)
        }
    }

    // MARK: waiting

    /// Until the time has passed, or somebody flushes.
    private func sleep(_ id: Int, for duration: Duration) async {
        var alarm: Task<Void, any Error>?
        await withCheckedContinuation { continuation in
            let isStopped = state.withLock { state in
                guard !state.isStopped else { return true }
                state.sleepers[id] = continuation
                state.busy -= 1
                return false
            }
            guard !isStopped else { return continuation.resume() }
            wakeIfIdle()
            // Only now: an alarm that rings before the sleeper is there would wake nobody, and never ring again.
            alarm = Task {
                try await configuration.pacing.sleep(duration)
                wake(id)
            }
        }
        alarm?.cancel()
    }

    private func wake(_ id: Int) {
        state.withLock { state in
            let sleeper = state.sleepers.removeValue(forKey: id)
            if sleeper != nil { state.busy += 1 }
            return sleeper
        }?.resume()
    }

    private func becomeIdle() {
        state.withLock { $0.busy -= 1 }
        wakeIfIdle()
    }

    private func wakeIfIdle() {
        let waiters = state.withLock { state in
            guard state.busy <= 0 else { return [CheckedContinuation<Void, Never>]() }
            defer { state.idleWaiters = [] }
            return state.idleWaiters
        }
        for waiter in waiters { waiter.resume() }
    }

    private func takeSlot() async {
        await withCheckedContinuation { continuation in
            let isFree = state.withLock { state in
                guard state.freeSlots <= 0, !state.isStopped else {
                    state.freeSlots -= 1
                    return true
                }
                state.slotWaiters.append(continuation)
                return false
            }
            if isFree { continuation.resume() }
        }
    }

    private func freeSlot() {
        let next = state.withLock { state -> CheckedContinuation<Void, Never>? in
            guard !state.slotWaiters.isEmpty else {
                state.freeSlots += 1
                return nil
            }
            return state.slotWaiters.removeFirst()
        }
        next?.resume()
    }

    // MARK: shuffling

    private func keepBack(_ id: Int, for duration: Duration) {
        let isFirst = state.withLock { state in
            state.pen.append(id)
            return state.pen.count == 1
        }
        guard isFirst else { return }
        Task {
            try? await configuration.pacing.sleep(duration)
            await sendInTurn(takePen())
        }
    }

    /// What is in the pen, in another order than it went in.
    private func takePen() -> [Int] {
        state.withLock { state in
            let held = state.pen
            state.pen = []
            guard held.count > 1 else { return held }
            let shuffled = held.shuffled(using: &state.random)
            return shuffled == held ? held.reversed() : shuffled
        }
    }

    /// Each only after the one before was attempted, so that the order is certain.
    private func sendInTurn(_ ids: [Int]) async {
        for id in ids {
            await withCheckedContinuation { continuation in
                let isStopped = state.withLock { state in
                    guard !state.isStopped else { return true }
                    state.firstAttempts[id] = continuation
                    return false
                }
                if isStopped { continuation.resume() } else { start(id) }
            }
        }
    }
}
