import Basics
import Foundation
import Postgres
import Synchronization

/// The clock of a simulation. It stands still while somebody has something to do, and then goes on to the next moment
/// that somebody waits for; so an hour of waiting costs nothing.
///
/// Somebody has something to do while a connection to the books is in use, and while waits begin and end. Whoever is
/// busy with anything else longer than a look takes is overtaken by the clock, like a process on a slow machine: that makes
/// another run of the same plan, and never a wrong one.
final class VirtualTime: Sendable {
    private struct Sleeper {
        let due: Duration
        let continuation: CheckedContinuation<Void, any Error>
    }
    private struct State {
        var now: Duration = .zero
        var sleepers: [Int: Sleeper] = [:]
        var lastSleeper = 0
        /// Waits that began or ended.
        var changes = 0
        var pools: [ObjectIdentifier: PostgresPool] = [:]
        var isOver = false
    }
    private let state = Mutex(State())
    /// Those whose moments lie this close together go on together, and are in each other's way for real.
    private let stride: Duration

    static let start = Timestamp(seconds: 1_800_000_000)

    init(stride: Duration) { self.stride = stride }

    var now: Duration { state.withLock(\.now) }

    /// Each look at the clock takes a microsecond, so that no two of them are the same moment.
    var wallClock: WallClock {
        WallClock { [self] in
            Self.start
                + state.withLock { state in
                    state.now += .microseconds(1)
                    return state.now
                }
        }
    }

    var steadyClock: SteadyClock {
        SteadyClock(now: { [self] in now }, sleep: { [self] in try await sleep($0) })
    }

    /// When somebody goes on next.
    var nextMoment: Duration? { state.withLock { $0.sleepers.values.map(\.due).min() } }

    /// - Throws: `CancellationError`, also for who still waits when the simulation is over.
    func sleep(_ duration: Duration) async throws {
        try Task.checkCancellation()
        guard duration > .zero else { return }
        let id = state.withLock { state in
            state.lastSleeper += 1
            return state.lastSleeper
        }
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                let sleeps = state.withLock { state in
                    guard !state.isOver, !Task.isCancelled else { return false }
                    state.sleepers[id] = Sleeper(due: state.now + duration, continuation: continuation)
                    state.changes += 1
                    return true
                }
                if !sleeps { continuation.resume(throwing: CancellationError()) }
            }
        } onCancel: {
            let sleeper = state.withLock { state in
                state.changes += 1
                return state.sleepers.removeValue(forKey: id)
            }
            sleeper?.continuation.resume(throwing: CancellationError())
        }
    }

    /// The result, or nil when it isn't there within the time. What is late goes on all the same.
    func race<Value: Sendable>(
        within limit: Duration, _ work: @escaping @Sendable () async -> Value
    ) async -> Value? {
        await withCheckedContinuation { continuation in
            let once = Once(continuation)
            let timer = Task { if (try? await sleep(limit)) != nil { once.resume(nil) } }
            Task {
                let value = await work()
                timer.cancel()
                once.resume(value)
            }
        }
    }

    /// Whoever works on these connections has something to do.
    func watch(_ pool: PostgresPool) { state.withLock { $0.pools[ObjectIdentifier(pool)] = pool } }
    func forget(_ pool: PostgresPool) { state.withLock { $0.pools[ObjectIdentifier(pool)] = nil } }

    /// Lets time pass until ``end()``.
    func run() async {
        while !state.withLock(\.isOver) {
            await standstill()
            advance()
        }
    }

    /// Lets so long pass at once. Who waited for a moment in between is late.
    func jump(_ duration: Duration) { state.withLock { $0.now += duration } }

    /// Wakes everybody for good.
    func end() {
        let sleepers = state.withLock { state in
            state.isOver = true
            defer { state.sleepers = [:] }
            return state.sleepers.values.map(\.continuation)
        }
        for sleeper in sleepers { sleeper.resume(throwing: CancellationError()) }
    }

    /// Looks until nothing goes on, nor when it looked a moment later.
    private func standstill() async {
        while !state.withLock(\.isOver) {
            let before = activity()
            // Whoever can go on is ahead in the queue; only then is it worth a timer.
            for _ in 0..<4 { await Task.yield() }
            if before == nil || before != activity() {
                if before == nil { try? await Task.sleep(for: .microseconds(100)) }
                continue
            }
            try? await Task.sleep(for: .microseconds(200))
            if before == activity() { return }
        }
    }

    /// How much has happened; nil while the books are in use.
    private func activity() -> Int? {
        let (changes, pools) = state.withLock { ($0.changes, Array($0.pools.values)) }
        var acquired = 0
        for pool in pools {
            let statistics = pool.statistics
            guard statistics.inUse + statistics.waiting + statistics.opening == 0 else { return nil }
            acquired += statistics.acquired
        }
        return changes + acquired
    }

    private func advance() {
        let woken = state.withLock { state -> [CheckedContinuation<Void, any Error>] in
            guard let next = state.sleepers.values.map(\.due).min() else { return [] }
            state.now = max(state.now, next + stride)
            let due = state.sleepers.filter { $0.value.due <= state.now }
            for id in due.keys { state.sleepers[id] = nil }
            state.changes += due.count
            return due.values.map(\.continuation)
        }
        for sleeper in woken { sleeper.resume() }
    }
}

/// A continuation for whoever comes first.
final class Once<Value: Sendable>: Sendable {
    private let continuation: Mutex<CheckedContinuation<Value?, Never>?>
    init(_ continuation: CheckedContinuation<Value?, Never>) { self.continuation = Mutex(continuation) }

    func resume(_ value: Value?) {
        let waiting = continuation.withLock { waiting in
            defer { waiting = nil }
            return waiting
        }
        waiting?.resume(returning: value)
    }
}
