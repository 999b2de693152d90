import Basics
import Foundation
import Lockstep
import Payrails
import PayrailsSandbox
import Store
import TestKit
import Testing

@testable import Service

@Suite(
    "Two changes of the amount, a gate call and a payment of one checkout, in every order of their steps", .serialized)
struct InterleavingTests {
    private static let shared = Task { try await InterleavingHarness() }
    private let lockstep: InterleavingHarness
    init() async throws { lockstep = try await Self.shared.value }

    /// - Parameter choose: which of so many goes on.
    /// - Returns: what was wrong.
    private func play(
        paying amount: Money?, atStatements: Bool, _ choose: (Int) -> Int
    ) async throws -> [String] {
        let scene = try await ContendedCheckout(lockstep)
        let conductor = Conductor(parties: 4)
        try await withThrowingTaskGroup(of: Void.self) { group in
            for party in 0..<4 {
                group.addTask {
                    try await StepPoint.$hold.withValue({ point in
                        if point == .transaction || atStatements { await conductor.arrive(party) }
                    }) {
                        defer { conductor.finish(party) }
                        try await scene.run(party, paying: amount)
                    }
                }
            }
            while true {
                let parked =
                    atStatements
                    ? try await conductor.standstill(blocked: lockstep.blocked) : await conductor.standstill()
                guard !parked.isEmpty else { break }
                conductor.release(parked[choose(parked.count)])
            }
            try await group.waitForAll()
        }
        try await scene.judge()
        return scene.faults
    }

    @Test("Q8: between their transactions and calls, every one")
    func everyOrder() async throws {
        // What the app was told at first; an app that was told of a change pays in the other test.
        let amount = try Money(value: "49.99", currencyCode: "EUR")
        let tree = Tree()
        var runs = 0
        repeat {
            let faults = try await play(paying: amount, atStatements: false, tree.choose)
            runs += 1
            #expect(faults == [], "in this order: \(tree.path)")
        } while tree.advance()
        print("interleavings: \(runs)")
        #expect(runs > 100)
        #expect(lockstep.deadlocks == [])
    }

    @Test("Q8: within their transactions, many by chance")
    func withinTransactions() async throws {
        let given = ProcessInfo.processInfo.environment["LOCKSTEP_TEST_SEED"].flatMap { UInt64($0) }
        let seed = given ?? .random(in: 0...(.max))
        print("interleavings: LOCKSTEP_TEST_SEED=\(seed)")
        for number in 0..<60 {
            var dice = Dice(seed: seed &+ UInt64(number))
            let faults = try await play(paying: nil, atStatements: true) { dice.number(0...$0 - 1) }
            #expect(faults == [], "LOCKSTEP_TEST_SEED=\(seed &+ UInt64(number))")
        }
        #expect(lockstep.deadlocks == [], "LOCKSTEP_TEST_SEED=\(seed)")
    }
}
