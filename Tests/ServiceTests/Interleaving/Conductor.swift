import Synchronization
import TestKit

/// Lets parties that run at once take one step after the other, in an order that it is given.
///
/// Each party is a task of its own that stops at every ``StepPoint``. While all of them stand still, one is let go.
final class Conductor: Sendable {
    private struct State {
        var parked: [Int: CheckedContinuation<Void, Never>] = [:]
        var finished: Set<Int> = []
        var watcher: CheckedContinuation<Void, Never>?
    }
    private let state = Mutex(State())
    private let count: Int

    init(parties count: Int) { self.count = count }

    /// A party has come to a point; returns when it may go on.
    func arrive(_ party: Int) async {
        await withCheckedContinuation { continuation in
            notify { $0.parked[party] = continuation }
        }
    }

    func finish(_ party: Int) { notify { $0.finished.insert(party) } }

    private func notify(_ change: (inout State) -> Void) {
        let watcher = state.withLock { state -> CheckedContinuation<Void, Never>? in
            change(&state)
            guard state.parked.count + state.finished.count == count else { return nil }
            defer { state.watcher = nil }
            return state.watcher
        }
        watcher?.resume()
    }

    /// Waits until every party stands at a point or is done; who stands, in their order.
    func standstill() async -> [Int] {
        await withCheckedContinuation { continuation in
            let isStill = state.withLock { state in
                if state.parked.count + state.finished.count == count { return true }
                state.watcher = continuation
                return false
            }
            if isStill { continuation.resume() }
        }
        return state.withLock { $0.parked.keys.sorted() }
    }

    /// The same where a party may wait in the database for another one.
    ///
    /// - Parameter blocked: how many wait there now.
    func standstill(blocked: () async throws -> Int) async rethrows -> [Int] {
        while true {
            let (parked, running) = state.withLock { state in
                (state.parked.keys.sorted(), count - state.parked.count - state.finished.count)
            }
            if running == 0 { return parked }
            if !parked.isEmpty, try await blocked() == running { return parked }
            try? await Task.sleep(for: .milliseconds(1))
        }
    }

    func release(_ party: Int) { state.withLock { $0.parked.removeValue(forKey: party) }?.resume() }
}

/// Every way through a tree of choices, one after the other.
final class Tree: Sendable {
    private struct State {
        var path: [(choice: Int, width: Int)] = []
        var place = 0
    }
    private let state = Mutex(State())

    /// What was chosen on this way so far.
    var path: [Int] { state.withLock { $0.path.map(\.choice) } }

    func choose(of width: Int) -> Int {
        state.withLock { state in
            if state.place == state.path.count { state.path.append((0, width)) }
            defer { state.place += 1 }
            return min(state.path[state.place].choice, width - 1)
        }
    }

    /// Goes to the next way; false when there is none left.
    func advance() -> Bool {
        state.withLock { state in
            state.place = 0
            while let last = state.path.popLast() {
                if last.choice + 1 < last.width {
                    state.path.append((last.choice + 1, last.width))
                    return true
                }
            }
            return false
        }
    }
}
