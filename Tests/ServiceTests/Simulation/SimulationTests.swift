import Foundation
import TestKit
import Testing

/// Everything at once, by chance: `LOCKSTEP_TEST_SIMULATION_SEED` repeats one plan, `LOCKSTEP_TEST_SIMULATION_RUNS` says
/// how many are played.
@Suite(.serialized) struct SimulationTests {
    private static func number(_ name: String) -> UInt64? {
        ProcessInfo.processInfo.environment["LOCKSTEP_TEST_SIMULATION_\(name)"].flatMap { UInt64($0) }
    }

    @Test("whatever goes wrong, in the end the books say what happened to the money")
    func books() async throws {
        let seed = Self.number("SEED") ?? UInt64.random(in: 0...999_999_999)
        let runs = Self.number("RUNS") ?? (Self.number("SEED") == nil ? 12 : 1)
        print("simulation: seeds \(seed) to \(seed + runs - 1)")
        var tally = Simulation.Tally()
        for number in 0..<runs {
            let simulation = try await Simulation(seed: seed + number)
            var findings = try await simulation.run()
            findings += try await PostgresCluster.shared().deadlocks(in: simulation.database)
            tally += simulation.tally
            guard !findings.isEmpty else { continue }
            Issue.record(
                """
                \(findings.joined(separator: "\n"))
                trouble: \(simulation.plan)
                again: LOCKSTEP_TEST_SIMULATION_SEED=\(seed + number) swift test --filter Simulation
                """)
            let folder = ProcessInfo.processInfo.environment["LOCKSTEP_TEST_SIMULATION_LOGS"]
            if let folder {
                try simulation.log.text.write(
                    toFile: "\(folder)/\(seed + number).log", atomically: true, encoding: .utf8)
            }
        }
        print("simulation: \(tally)")
    }
}
