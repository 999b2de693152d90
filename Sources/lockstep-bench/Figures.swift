import Foundation
import Synchronization

/// A line of the report, out at once also where it goes into a file.
func tell(_ line: String) { FileHandle.standardOutput.write(Data((line + "\n").utf8)) }

/// What was measured, by step: how often, how long, and what went wrong.
final class Figures: Sendable {
    private struct State {
        var durations: [String: [Duration]] = [:]
        var errors: [String: Int] = [:]
        var finished = 0
        var startedSteps = 0
    }
    private let state = Mutex(State())

    func record(_ step: String, _ duration: Duration) {
        state.withLock { $0.durations[step, default: []].append(duration) }
    }

    func fail(_ what: String) { state.withLock { $0.errors[what, default: 0] += 1 } }
    func finish() { state.withLock { $0.finished += 1 } }

    var finished: Int { state.withLock(\.finished) }
    var errorCount: Int { state.withLock { $0.errors.values.reduce(0, +) } }
    var errors: [(what: String, count: Int)] {
        state.withLock { $0.errors.map { (what: $0.key, count: $0.value) } }.sorted { $0.count > $1.count }
    }

    /// Takes the durations out, so that a long run doesn't collect them for ever.
    func take() -> [String: [Duration]] {
        state.withLock { state in
            defer { state.durations = [:] }
            return state.durations
        }
    }
}

extension [Duration] {
    /// The value below which so many of 1,000 are; zero for none.
    func quantile(_ permille: Int) -> Duration {
        guard !isEmpty else { return .zero }
        return sorted()[Swift.min(count - 1, count * permille / 1000)]
    }
}

extension Duration {
    /// Milliseconds with one decimal.
    var milliseconds: String {
        let tenths = components.seconds * 10_000 + components.attoseconds / 100_000_000_000_000
        return "\(tenths / 10).\(tenths % 10) ms"
    }
}
