import Basics
import Foundation
import HTTPServer
import Synchronization

/// A stand-in for Payrails on this machine: it speaks what `reference/payrails-api.md` says, strictly, keeps a ledger of
/// what really happened to the money, plays the SDK's part on request, and misbehaves on request.
///
/// It shares no code with the client beyond plain value types, so that a misreading on one side shows on the other.
public final class PayrailsSandbox: Sendable {
    struct State: Sendable {
        var world: World
        var keys: IdempotencyStore
        var faults: FaultBox
        var calls: [SandboxCall] = []
        var callsBegun = 0
        /// Long polls that wait for a new status of an execution.
        var waiters: [String: [Int: CheckedContinuation<Void, Never>]] = [:]
        var nextWaiter = 0
        /// When the next alarm will ring.
        var alarm: Timestamp?
        /// Calls that the rate allows at once, and when that was reckoned.
        var permits = 0.0
        var permitsAt: Timestamp?
        var isStopped = false
        /// How many are just handing over notifications that were made.
        var dispatching = 0
    }

    public let configuration: SandboxConfiguration
    /// The seed that makes another run the same.
    public let seed: UInt64
    let state: Mutex<State>
    let notifier: Notifier
    let listener: Listener

    /// Nothing listens before ``start()``; the Swift methods work without it.
    public init(_ configuration: SandboxConfiguration = SandboxConfiguration()) throws {
        self.configuration = configuration
        seed = configuration.seed ?? UInt64.random(in: 0...UInt64.max)
        state = Mutex(
            State(
                world: World(configuration, seed: seed),
                keys: IdempotencyStore(retention: configuration.idempotencyRetention),
                faults: FaultBox(seed: seed ^ 0xF0F0)))
        notifier = try Notifier(configuration, seed: seed ^ 0x0F0F)
        listener = Listener(configuration)
    }

    public var clientID: String { configuration.clientID }
    public var clientSecret: String { configuration.clientSecret }
    public var workspaceID: String { configuration.workspaceID }

    /// `http://127.0.0.1:<port>`, without a slash at the end; the port is known once it has started.
    public var baseURL: String { state.withLock { $0.world.baseURL } }

    /// Listens, and answers from here on.
    ///
    /// - Throws: `HTTPServerError` when the address can't be listened on, like a port that is in use.
    public func start() throws {
        try listener.start(self)
        let host = configuration.host.contains(":") ? "[\(configuration.host)]" : configuration.host
        let base = "http://\(host):\(listener.port)"
        state.withLock { $0.world.baseURL = base }
    }

    /// Ends long polls, gives up deliveries that wait, and stops listening.
    public func stop() async {
        let waiting = state.withLock { state in
            state.isStopped = true
            defer { state.waiters = [:] }
            return state.waiters.values.flatMap(\.values)
        }
        for waiter in waiting { waiter.resume() }
        await notifier.stop()
        await listener.stop()
    }

    /// Runs one step of the world: first what is due, then the step; then what must happen outside.
    func perform<Result: Sendable, Failure: Error>(
        _ step: (inout sending State) throws(Failure) -> sending Result
    ) throws(Failure) -> Result {
        defer { dispatch() }
        return try state.withLock { state throws(Failure) in
            state.world.settle()
            return try step(&state)
        }
    }

    /// Sends what there is to send, wakes who waits, and sets the alarm for what comes next.
    private func dispatch() {
        let (notifications, woken, alarm) = state.withLock { state in
            state.world.settle()
            let effects = state.world.takeEffects()
            let woken = effects.changed.flatMap { state.waiters.removeValue(forKey: $0).map { Array($0.values) } ?? [] }
            let notifications = effects.notifications.map { ($0, state.faults.take(for: $0)) }
            var alarm: Timestamp?
            if let next = state.world.schedule.nextDue, !state.isStopped, state.alarm.map({ next < $0 }) ?? true {
                state.alarm = next
                alarm = next
            }
            state.dispatching += 1
            return (notifications, woken, alarm)
        }
        for (notification, faults) in notifications { notifier.send(notification, faults: faults) }
        state.withLock { $0.dispatching -= 1 }
        for waiter in woken { waiter.resume() }
        guard let alarm else { return }
        let delay = max(.milliseconds(1), alarm - configuration.clock.now())
        Task { [weak self, pacing = configuration.pacing] in
            try? await pacing.sleep(delay)
            self?.ring(alarm)
        }
    }

    /// What is due happens. With a clock that a test moves, this looks again until it has.
    private func ring(_ alarm: Timestamp) {
        state.withLock { if $0.alarm == alarm { $0.alarm = nil } }
        dispatch()
    }

    /// Lets everything happen whose time has come, by the clock.
    public func settle() { dispatch() }

    /// Waits for a new status of the execution, at most so long.
    func waitForChange(of id: String, within patience: Duration, unless isOver: @Sendable (State) -> Bool) async {
        let ticket = state.withLock { state in
            state.nextWaiter += 1
            return state.nextWaiter
        }
        var alarm: Task<Void, any Error>?
        await withCheckedContinuation { continuation in
            let isOver = state.withLock { state in
                guard !state.isStopped, !isOver(state) else { return true }
                state.waiters[id, default: [:]][ticket] = continuation
                return false
            }
            guard !isOver else { return continuation.resume() }
            // Only now: an alarm that rings before the waiter is there would wake nobody, and never ring again.
            alarm = Task {
                try await configuration.pacing.sleep(patience)
                endWait(ticket, of: id)
            }
        }
        alarm?.cancel()
    }

    private func endWait(_ ticket: Int, of id: String) {
        state.withLock { state in
            let waiter = state.waiters[id]?.removeValue(forKey: ticket)
            if state.waiters[id]?.isEmpty == true { state.waiters[id] = nil }
            return waiter
        }?.resume()
    }
}
