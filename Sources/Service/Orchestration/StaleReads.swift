import Basics
import Foundation
import Lockstep
import Store
import Synchronization

/// Asks Payrails about what a caller wants to know now and nobody told of for a while: a notification that was lost is
/// missed by whoever looks, long before healing's growing patience comes to it.
///
/// Bounded three times, so that many who look are no burden: a process asks about an execution once in a while only, about
/// few of them at once, and a caller waits for the answer no longer than ``budget``. What comes later is learned, too.
public final class StaleReads: Sendable {
    /// How long a caller waits at most.
    static let budget: Duration = .seconds(2)
    /// How many executions are asked about at once; who comes then is shown what is known.
    static let most = 32
    /// How many are remembered before those are forgotten that may be asked about again.
    static let memory = 4096

    private struct State {
        var asked: [ExecutionID: Timestamp] = [:]
        var running = 0
    }
    private let state = Mutex(State())
    private let orchestrator: Orchestrator
    private let clock: WallClock
    private let after: Duration
    private let learned: @Sendable () -> Void

    /// - Parameters:
    ///   - after: for how long nothing was heard; zero: never asks.
    ///   - learned: called when Payrails was asked and what it said is in the books.
    init(
        _ orchestrator: Orchestrator, clock: WallClock, after: Duration, learned: @escaping @Sendable () -> Void = {}
    ) {
        self.orchestrator = orchestrator
        self.clock = clock
        self.after = after
        self.learned = learned
    }

    /// Reads from the books, and once more where Payrails was asked in between.
    func read<Value>(
        _ read: () async throws -> Value?, _ awaited: (Value) -> [AwaitedExecution]
    ) async throws -> Value? {
        guard let value = try await read() else { return nil }
        return await ask(awaited(value)) ? try await read() : value
    }

    /// - Returns: whether something may be known now that wasn't before.
    private func ask(_ awaited: [AwaitedExecution]) async -> Bool {
        let due = take(awaited)
        guard !due.isEmpty else { return false }
        // Not a part of the request: a caller who leaves, or a budget that is over, loses nothing of the answer.
        let asking = Task {
            await withTaskGroup(of: Void.self) { group in
                for execution in due { group.addTask { await self.ask(execution) } }
            }
            self.learned()
        }
        do {
            try await withBudget(Self.budget) { await asking.value }
            return true
        } catch {
            return false
        }
    }

    private func ask(_ execution: ExecutionReference) async {
        defer { state.withLock { $0.running -= 1 } }
        do {
            try await orchestrator.refresh(execution)
        } catch {
            orchestrator.log.warning(
                "an execution could not be read for a caller", .execution(execution.id), .error(error))
        }
    }

    private func take(_ awaited: [AwaitedExecution]) -> [ExecutionReference] {
        guard after > .zero else { return [] }
        let now = clock.now()
        return state.withLock { state in
            if state.asked.count > Self.memory { state.asked = state.asked.filter { now < $0.value + after } }
            return awaited.compactMap { execution in
                let last = max(execution.heardAt, state.asked[execution.reference.id] ?? execution.heardAt)
                guard now >= last + after, state.running < Self.most else { return nil }
                state.asked[execution.reference.id] = now
                state.running += 1
                return execution.reference
            }
        }
    }
}
