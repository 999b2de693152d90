import Foundation
import Lockstep
import Synchronization

/// Whether a simulated process lives. One that is dead goes on with nothing: whoever passes a point of it stays there
/// until the simulation is over, and whoever waits for its answer gets none.
final class Fate: Sendable {
    private struct State {
        var isDead = false
        var isOver = false
        var dice: Dice
        var deathProbability: Double
        var mourners: [@Sendable () -> Void] = []
        var stuck: [CheckedContinuation<Void, Never>] = []
    }
    private let state: Mutex<State>

    /// - Parameter deathProbability: of dying at each point that is passed.
    init(dice: Dice, deathProbability: Double) {
        state = Mutex(State(dice: dice, deathProbability: deathProbability))
    }

    var isDead: Bool { state.withLock(\.isDead) }

    /// From now on it only dies when it is told to.
    func spare() { state.withLock { $0.deathProbability = 0 } }

    /// A point between two lines at which the process may end.
    ///
    /// - Parameter share: how much of its chance of dying it has here.
    func pass(_ share: Double = 1) async {
        let (isDead, dies) = state.withLock { state in
            let probability = state.deathProbability * share
            return (state.isDead, !state.isDead && probability > 0 && state.dice.chance(probability))
        }
        guard isDead || dies else { return }
        if dies { die() }
        await withCheckedContinuation { continuation in
            let goesOn = state.withLock { state in
                guard state.isDead, !state.isOver else { return true }
                state.stuck.append(continuation)
                return false
            }
            if goesOn { continuation.resume() }
        }
    }

    func die() {
        let mourners = state.withLock { state -> [@Sendable () -> Void] in
            guard !state.isDead else { return [] }
            state.isDead = true
            defer { state.mourners = [] }
            return state.mourners
        }
        for mourner in mourners { mourner() }
    }

    /// Calls back at death, at once if that has been.
    func atDeath(_ mourner: @escaping @Sendable () -> Void) {
        let isDead = state.withLock { state in
            if !state.isDead { state.mourners.append(mourner) }
            return state.isDead
        }
        if isDead { mourner() }
    }

    /// Lets everyone go who is stuck; what they still try fails, as their connections are gone.
    func end() {
        die()
        let stuck = state.withLock { state in
            state.isOver = true
            defer { state.stuck = [] }
            return state.stuck
        }
        for continuation in stuck { continuation.resume() }
    }

    /// The result, or nil when the process dies first.
    func race<Value: Sendable>(_ work: @escaping @Sendable () async -> Value) async -> Value? {
        await withCheckedContinuation { continuation in
            let once = Once(continuation)
            atDeath { once.resume(nil) }
            Task { once.resume(await work()) }
        }
    }
}
