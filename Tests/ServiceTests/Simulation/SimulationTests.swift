import Foundation
import Synchronization
import TestKit
import Testing

/// Everything at once, by chance.
///
/// | variable | |
/// | --- | --- |
/// | `LOCKSTEP_TEST_SIMULATION_SEED` | the first seed; alone, it is the only one |
/// | `LOCKSTEP_TEST_SIMULATION_RUNS` | how many seeds are played |
/// | `LOCKSTEP_TEST_SIMULATION_WIDTH` | how many of them at once, each on a database of its own |
/// | `LOCKSTEP_TEST_SIMULATION_STOP` | after how many seeds that failed nothing more is played |
/// | `LOCKSTEP_TEST_SIMULATION_LOGS` | a folder for what the processes of a seed logged that failed |
@Suite(.serialized) struct SimulationTests {
    private static func text(_ name: String) -> String? {
        ProcessInfo.processInfo.environment["LOCKSTEP_TEST_SIMULATION_\(name)"]
    }
    private static func number(_ name: String) -> UInt64? { text(name).flatMap { UInt64($0) } }

    @Test("whatever goes wrong, in the end the books say what happened to the money")
    func books() async throws {
        let seed = Self.number("SEED") ?? UInt64.random(in: 0...999_999_999)
        let runs = Self.number("RUNS") ?? (Self.number("SEED") == nil ? 200 : 1)
        let width = min(runs, Self.number("WIDTH") ?? 4)
        print("simulation: seeds \(seed) to \(seed + runs - 1), \(width) at once")
        let began = ContinuousClock.now
        let seeds = Seeds(seed..<seed + runs, maximumFailures: Self.number("STOP") ?? 10)
        let tally = try await withThrowingTaskGroup(of: SimulationTally.self) { group in
            for _ in 0..<width {
                group.addTask {
                    var tally = SimulationTally()
                    let books = try await SimulatedBooks()
                    while let seed = seeds.next() {
                        tally += try await Self.play(seed, on: books, failed: seeds.note)
                    }
                    await books.pool.shutdown()
                    return tally
                }
            }
            return try await group.reduce(into: SimulationTally()) { $0 += $1 }
        }
        print("simulation: \(tally); \(ContinuousClock.now - began)")
    }

    private static func play(_ seed: UInt64, on books: SimulatedBooks, failed: () -> Void) async throws
        -> SimulationTally
    {
        try await books.clear()
        let cluster = try await PostgresCluster.shared()
        let mark = cluster.logLength
        let simulation = try await Simulation(seed: seed, books: books, isLogged: text("LOGS") != nil)
        let findings = await simulation.run() + cluster.deadlocks(in: books.url, since: mark)
        guard !findings.isEmpty else { return simulation.tally }
        failed()
        Issue.record(
            """
            \(findings.joined(separator: "\n"))
            trouble: \(simulation.plan)
            again: LOCKSTEP_TEST_SIMULATION_SEED=\(seed) swift test --filter Simulation
            """)
        if let folder = text("LOGS") {
            try simulation.log.text.write(toFile: "\(folder)/\(seed).log", atomically: true, encoding: .utf8)
        }
        return simulation.tally
    }
}

/// Those that are still to be played.
private final class Seeds: Sendable {
    private let state: Mutex<(rest: Range<UInt64>, failures: UInt64)>
    private let maximumFailures: UInt64

    init(_ seeds: Range<UInt64>, maximumFailures: UInt64) {
        state = Mutex((seeds, 0))
        self.maximumFailures = maximumFailures
    }

    func next() -> UInt64? { state.withLock { $0.failures < maximumFailures ? $0.rest.popFirst() : nil } }
    /// One has failed.
    func note() { state.withLock { $0.failures += 1 } }
}
