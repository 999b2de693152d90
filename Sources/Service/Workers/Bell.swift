import Basics
import Synchronization

/// Wakes whoever waits in this process when something was written. Nothing depends on it being rung: everyone who
/// waits for it also looks by himself now and then.
public final class Bell: Sendable {
    private struct State {
        var count = 0
        var isClosed = false
        var waiting: [Int: Waiting] = [:]
        var nextWaiter = 0
    }
    private struct Waiting {
        let continuation: CheckedContinuation<Void, Never>
        /// Ends the waiting when its time is over. Ended itself when the bell rings: else one would stay behind for
        /// every ring.
        var timer: Task<Void, Never>?

        func wake() {
            timer?.cancel()
            continuation.resume()
        }
    }
    private let state = Mutex(State())
    private let clock: SteadyClock

    /// - Parameter clock: what limits are waited for by.
    public init(clock: SteadyClock = .system) { self.clock = clock }

    /// How often it was rung. Take it before you look, and hand it to ``wait(since:atMost:)`` if there was nothing.
    public var count: Int { state.withLock(\.count) }
    /// Whether the process is stopping, so that nobody should wait any more.
    public var isClosed: Bool { state.withLock(\.isClosed) }

    public func ring() { wake { $0.count += 1 } }

    /// Wakes everyone for good.
    public func close() { wake { $0.isClosed = true } }

    private func wake(_ change: (inout State) -> Void) {
        let waiting = state.withLock { state in
            change(&state)
            defer { state.waiting = [:] }
            return Array(state.waiting.values)
        }
        for waiting in waiting { waiting.wake() }
    }

    /// Waits until it is rung, closed, the time is over, or the task is cancelled.
    public func wait(since count: Int, atMost limit: Duration) async {
        let id = state.withLock { state in
            state.nextWaiter += 1
            return state.nextWaiter
        }
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let isOver = state.withLock { state in
                    guard state.count == count, !state.isClosed, !Task.isCancelled else { return true }
                    state.waiting[id] = Waiting(continuation: continuation)
                    return false
                }
                guard !isOver else { return continuation.resume() }
                let timer = Task { [clock] in
                    // Cancelled: somebody has woken the waiting one already.
                    guard (try? await clock.sleep(limit)) != nil else { return }
                    release(id)
                }
                state.withLock { $0.waiting[id]?.timer = timer }
            }
        } onCancel: {
            release(id)
        }
    }

    private func release(_ id: Int) { state.withLock { $0.waiting.removeValue(forKey: id) }?.wake() }
}
