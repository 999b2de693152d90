import Basics
import Foundation
import TestKit
import Testing

@testable import Lockstep

/// Made-up histories, as many as `LOCKSTEP_TEST_HISTORIES` says (800), from the seed `LOCKSTEP_TEST_SEED` on. History
/// number *n* has the seed plus *n*, so that one that fails can be made again alone.
@Suite("Whatever happened, the picture is the right one", .ownThread)
struct HistoryTests {
    private static func setting(_ name: String) -> UInt64? {
        ProcessInfo.processInfo.environment[name].flatMap(UInt64.init)
    }
    static let count = setting("LOCKSTEP_TEST_HISTORIES") ?? 800
    static let seed = setting("LOCKSTEP_TEST_SEED") ?? .random(in: 0..<1_000_000_000)

    /// Runs the check over all histories; after the third that fails it stops.
    private func forEachHistory(_ property: String, _ check: (History, inout Seeded) -> String?) {
        print("histories: \(property): LOCKSTEP_TEST_SEED=\(Self.seed) LOCKSTEP_TEST_HISTORIES=\(Self.count)")
        var failures = 0
        for number in 0..<Self.count {
            let seed = Self.seed &+ number
            let history = History(seed: seed)
            var generator = Seeded(seed: seed ^ 0xABCD)
            guard let fault = check(history, &generator) else { continue }
            Issue.record("seed \(seed): \(fault)\n\(history.log.joined(separator: "\n"))\nend: \(history.end)")
            failures += 1
            if failures == 3 { return }
        }
    }

    private func fault(
        _ picture: ExecutionPicture, _ standing: History.Standing, amounts: Bool, authorized: Bool = true
    ) -> String? {
        var faults: [String] = []
        if picture.state != standing.state { faults.append("\(picture.state) is not \(standing.state)") }
        let wasPaid = standing.authorized > 0
        if wasPaid, let known = picture.authorized, known.minor != standing.authorized {
            faults.append("authorized \(known.value)")
        }
        if amounts, wasPaid {
            if authorized, picture.authorized?.minor != standing.authorized {
                faults.append("authorized \(picture.authorized?.value ?? "-")")
            }
            if picture.captured?.minor ?? 0 != standing.captured {
                faults.append("captured \(picture.captured?.value ?? "-")")
            }
            if picture.refunded?.minor ?? 0 != standing.refunded {
                faults.append("refunded \(picture.refunded?.value ?? "-")")
            }
        }
        return faults.isEmpty ? nil : faults.joined(separator: ", ")
    }

    @Test("all facts: the state and the amounts are those that it ended with")
    func allFacts() {
        forEachHistory("all facts") { history, _ in
            let facts = history.statuses + history.notifications + history.answers
            return fault(ExecutionPicture(of: facts), history.end, amounts: true)
        }
    }

    @Test("all notifications and no read: the state and the amounts are right")
    func notificationsOnly() {
        forEachHistory("notifications") { history, _ in
            let told = fault(
                ExecutionPicture(of: history.notifications), history.endAsTold, amounts: true,
                authorized: history.isAuthorizationTold)
            let answered = fault(
                ExecutionPicture(of: history.notifications + history.answers), history.endAsTold, amounts: true,
                authorized: history.isAuthorizationTold)
            return told ?? answered
        }
    }

    @Test("all notifications lost: one read at the end says it all (M4, O4)")
    func readsOnly() {
        forEachHistory("reads") { history, _ in
            guard history.isReadable else { return nil }
            let read = history.statuses + history.records.suffix(1)
            let withRecord = fault(ExecutionPicture(of: read), history.end, amounts: true)
            guard history.isOurs else { return withRecord }
            // Without the payment record the amounts are those that we asked for.
            let asked = fault(ExecutionPicture(of: history.statuses + history.answers), history.end, amounts: true)
            return withRecord ?? asked
        }
    }

    @Test("results of authorizing that are told without a time, late and in any order: with one read the end is right")
    func undatedResults() {
        forEachHistory("undated") { history, generator in
            guard history.isReadable else { return nil }
            let heard = history.notifications.map { fact in
                guard fact.action == "authorize", fact.phase == .completed else { return fact }
                return fact.heard(after: .milliseconds(Int.random(in: 0...20_000, using: &generator)))
            }
            let facts = history.statuses + heard + history.answers
            return fault(ExecutionPicture(of: facts), history.end, amounts: false)
        }
    }

    @Test("some notifications, an earlier read, and one read at the end: the end is right whatever was lost")
    func someFactsAndARead() {
        forEachHistory("some and a read") { history, generator in
            guard history.isReadable else { return nil }
            let read = history.statuses + history.records.suffix(1)
            for _ in 0..<2 {
                let some = (history.notifications + history.answers + history.records).filter { _ in
                    Bool.random(using: &generator)
                }
                if let fault = fault(ExecutionPicture(of: some + read), history.end, amounts: true) { return fault }
            }
            return nil
        }
    }

    @Test("any order and any duplication of the same facts gives the same picture (M6)")
    func anyOrder() {
        forEachHistory("any order") { history, generator in
            let all = history.statuses + history.notifications + history.answers + history.records
            let some = all.filter { _ in Int.random(in: 0..<4, using: &generator) > 0 }
            let picture = ExecutionPicture(of: some)
            for _ in 0..<3 {
                let again = some.filter { _ in Bool.random(using: &generator) }
                let shuffled = ExecutionPicture(of: (some + again).shuffled(using: &generator))
                if shuffled != picture { return "\(shuffled) is not \(picture)" }
            }
            return nil
        }
    }

    @Test("nothing holds money that nobody authorized, whatever part of it is known (M7)")
    func noMoneyFromNothing() {
        forEachHistory("no money from nothing") { history, generator in
            guard !history.wasEverAuthorized else { return nil }
            let all = history.statuses + history.notifications + history.answers
            for _ in 0..<4 {
                let some = all.filter { _ in Bool.random(using: &generator) }
                let picture = ExecutionPicture(of: some)
                if picture.state.holdsMoney || picture.state == .refunded || picture.paidAmount != nil {
                    return "\(picture.state), \(picture.paidAmount?.description ?? "-")"
                }
            }
            return nil
        }
    }

    @Test("as facts come in by their time, the state takes only the steps that it may")
    func stepsInTime() {
        var seen: Set<[ExecutionState]> = []
        forEachHistory("steps") { history, generator in
            let some = (history.statuses + history.notifications + history.answers).filter { _ in
                Int.random(in: 0..<5, using: &generator) > 0
            }
            let ordered = some.sorted { ($0.at, $0.identity) < ($1.at, $1.identity) }
            var state = ExecutionState.created
            for count in 1..<max(2, ordered.count + 1) {
                let next = ExecutionPicture(of: ordered.prefix(count)).state
                if next != state, !state.successors.contains(next) { return "\(state) to \(next)" }
                seen.insert([state, next])
                state = next
            }
            return nil
        }
        // The histories are worth something: they go through most of the steps.
        if Self.count >= 500 { #expect(seen.filter { $0[0] != $0[1] }.count > 40, "\(seen.count) steps") }
    }

    @Test("the histories end in every state")
    func coverage() {
        guard Self.count >= 500 else { return }
        let ends = Set((0..<Self.count).map { History(seed: Self.seed &+ $0).end.state })
        #expect(ends == Set(ExecutionState.allCases))
    }
}
