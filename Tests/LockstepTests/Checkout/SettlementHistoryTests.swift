import Basics
import Foundation
import TestKit
import Testing

@testable import Lockstep

/// A checkout through a random life: sessions, results in any order, moves of the amount, cancels, time. After each
/// step it is settled, and the effects are made true as the store does.
private struct Life {
    var checkout = Sample.checkout()
    var executions: [CheckoutExecution] = [Sample.execution(1, .created)]
    var pendingMove: Money?
    var now = 0.0
    var generator: Seeded
    let rules: Settlement.Rules
    var log: [String] = []
    var events: [EventType] = []
    var cancels: [ExecutionID: [CancelReason]] = [:]

    init(seed: UInt64) {
        generator = Seeded(seed: seed)
        rules = Settlement.Rules(mismatch: Bool.random(using: &generator) ? .cancel : .hold)
    }

    mutating func step() {
        now += Double.random(in: 0...200, using: &generator)
        let index = Int.random(in: executions.indices, using: &generator)
        switch Int.random(in: 0..<100, using: &generator) {
        case ..<50: changeState(at: index)
        case ..<60: if executions.count < 5, checkout.status != .cancelled { newSession() }
        case ..<68: beginMove()
        case ..<74: endMove()
        case ..<78: giveUp()
        case ..<84: finishCancel()
        case ..<90: now += 4000
        default: takeLease()
        }
    }

    private mutating func changeState(at index: Int) {
        var picture = executions[index].picture
        let next = picture.state.successors.sorted { $0.rawValue < $1.rawValue }
        guard let state = next.randomElement(using: &generator) else { return }
        picture.state = state
        let amounts: [Int64?] = [5749, 5749, 5749, 6000, 6000, 1, nil]
        if state.holdsMoney, picture.authorized == nil {
            picture.authorized = (amounts.randomElement(using: &generator) ?? nil).map { Sample.money($0) }
        }
        if state == .captured, picture.captured == nil { picture.captured = picture.authorized ?? Sample.money(5749) }
        picture.failedAt = state == .failed ? Sample.at(now) : picture.failedAt
        executions[index].picture = picture
        log.append("\(executions[index].ordinal) is \(state) \(picture.authorized?.value ?? "-")")
    }

    private mutating func newSession() {
        let number = executions.count + 1
        executions.append(Sample.execution(number, .created, amount: checkout.amount.minor))
        if checkout.keptExecution == nil { checkout.currentExecution = Sample.execution(number) }
        log.append("session \(number)")
    }

    private mutating func beginMove() {
        guard checkout.amountState == .inStep, checkout.keptExecution == nil else { return }
        pendingMove = Sample.money([5749, 6000, 7000].randomElement(using: &generator) ?? 6000)
        checkout.amountState = Bool.random(using: &generator) ? .moving : .unknown
        log.append("move to \(pendingMove?.value ?? "-")")
    }

    private mutating func endMove() {
        guard let move = pendingMove else { return }
        if Bool.random(using: &generator) {
            checkout.amount = move
            checkout.amountVersion += 1
        }
        checkout.amountState = .inStep
        pendingMove = nil
        log.append("moved: \(checkout.amount)")
    }

    private mutating func giveUp() {
        guard checkout.keptExecution == nil, checkout.status != .cancelled else { return }
        checkout.status = .cancelled
        checkout.lease = nil
        for index in executions.indices where executions[index].cancelReason == nil {
            let state = executions[index].state
            if state.isInFlight || state == .created { executions[index].cancelReason = .checkoutCancelled }
        }
        log.append("given up")
    }

    private mutating func finishCancel() {
        guard let index = executions.firstIndex(where: { $0.cancelReason != nil && $0.state != .cancelled }) else {
            return
        }
        executions[index].picture.state = .cancelled
        log.append("\(executions[index].ordinal) is cancelled")
    }

    private mutating func takeLease() {
        guard let current = checkout.currentExecution, checkout.status == .open else { return }
        checkout.lease = GateLease(execution: current, until: Sample.at(now + 120))
    }

    mutating func settle() -> Settlement {
        let settlement = Settlement(
            of: checkout, executions: executions.shuffled(using: &generator), pendingMove: pendingMove, rules: rules,
            now: Sample.at(now))
        checkout = settlement.checkout
        for effect in settlement.effects {
            switch effect {
            case .cancel(let id, let reason):
                cancels[id, default: []].append(reason)
                change(id) { $0.cancelReason = reason }
            case .cancelled(let id): change(id) { $0.cancelReported = true }
            case .amountMoved: pendingMove = nil
            case .event(let type): events.append(type)
            case .held, .read: break
            }
        }
        log.append("\(now): \(checkout.status) \(settlement.effects)")
        return settlement
    }

    private mutating func change(_ id: ExecutionID, _ apply: (inout CheckoutExecution) -> Void) {
        for index in executions.indices where executions[index].id == id { apply(&executions[index]) }
    }
}

@Suite("Whatever happens, an order is paid at most once, by its amount, and every other success goes back", .ownThread)
struct SettlementHistoryTests {
    private static let legal: [Checkout.Status: Set<Checkout.Status>] = [
        // Straight to refunded where the payment and the refund are learned together.
        .open: [.processing, .paid, .failed, .expired, .refunded],
        .processing: [.open, .paid, .failed, .expired, .refunded],
        .failed: [.open, .processing, .paid, .expired, .refunded],
        .expired: [.paid, .refunded],
        .paid: [.cancelled, .refunded],
        .cancelled: [],
        .refunded: [],
    ]

    /// The first thing that is wrong after a settlement.
    private func fault(before: Checkout, life: Life, settlement: Settlement) -> String? {
        let after = settlement.checkout
        if let kept = before.keptExecution, after.keptExecution != kept { return "the kept one was replaced" }
        if before.keptExecution == nil, let kept = after.keptExecution {
            guard let payer = life.executions.first(where: { $0.id == kept }),
                payer.state.holdsMoney || payer.state == .refunded,
                payer.picture.paidAmount == after.amount, before.status != .cancelled
            else { return "paid by something that is no payment" }
        }
        if (after.keptExecution != nil) != [.paid, .refunded].contains(after.status), after.status != .cancelled {
            return "\(after.status) with\(after.keptExecution == nil ? "out" : "") a kept one"
        }
        if after.status != before.status, Self.legal[before.status]?.contains(after.status) != true {
            return "\(before.status) became \(after.status)"
        }
        let isOver = after.keptExecution != nil || after.status == .cancelled
        for execution in life.executions where execution.state.holdsMoney && execution.cancelReason == nil {
            if isOver, execution.id != after.keptExecution { return "\(execution.ordinal) keeps the customer's money" }
            if after.status == .cancelled { return "\(execution.ordinal) keeps money of a cancelled order" }
        }
        for (id, reasons) in life.cancels where reasons.count > 1 { return "\(id) was cancelled for \(reasons)" }
        if let dueAt = settlement.dueAt, dueAt <= Sample.at(life.now) { return "due in the past" }
        if let lease = after.lease, let leased = life.executions.first(where: { $0.id == lease.execution }),
            leased.state.holdsMoney || [.failed, .cancelled, .refunded].contains(leased.state)
        {
            return "a lease on what is over"
        }
        for event in [EventType.checkoutPaid, .checkoutRefunded, .checkoutCancelled, .checkoutExpired] {
            if life.events.filter({ $0 == event }).count > 1 { return "\(event) twice" }
        }
        if life.events.contains(.checkoutPaid) != (after.keptExecution != nil) { return "paid and not told" }
        return nil
    }

    @Test("a random life of a checkout")
    func randomLives() {
        let count = HistoryTests.count * 2
        print("checkouts: LOCKSTEP_TEST_SEED=\(HistoryTests.seed) LOCKSTEP_TEST_HISTORIES=\(HistoryTests.count)")
        var statuses: Set<Checkout.Status> = []
        for number in 0..<count {
            let seed = HistoryTests.seed &+ UInt64(number)
            var life = Life(seed: seed)
            for _ in 0..<20 {
                life.step()
                let before = life.checkout
                let settlement = life.settle()
                statuses.insert(settlement.checkout.status)
                var found = fault(before: before, life: life, settlement: settlement)
                // Settled again, nothing new is done.
                let again = life.settle()
                let isQuiet = again.effects.allSatisfy { effect in
                    switch effect {
                    case .read, .held: true
                    case .cancel, .cancelled, .amountMoved, .event: false
                    }
                }
                if found == nil, again.checkout != settlement.checkout || !isQuiet { found = "again: \(again.effects)" }
                guard let found else { continue }
                Issue.record("seed \(seed): \(found)\n\(life.log.joined(separator: "\n"))")
                return
            }
        }
        #expect(statuses == Set(Checkout.Status.allCases))
    }

    @Test("an order that nobody touches comes to its end by time alone")
    func byTimeAlone() {
        for number in 0..<HistoryTests.count {
            var life = Life(seed: HistoryTests.seed &+ UInt64(number))
            for _ in 0..<6 {
                life.step()
                _ = life.settle()
            }
            var settlement = life.settle()
            var rounds = 0
            while let dueAt = settlement.dueAt, rounds < 10 {
                life.now = Double((dueAt - Sample.start).components.seconds) + 1
                settlement = life.settle()
                rounds += 1
            }
            #expect(rounds < 10)
            // What runs, and money of which nobody knows how much it is, keeps it from its end.
            let waits = life.executions.contains { $0.state.isInFlight || $0.mayHavePaid }
            if !waits, settlement.checkout.status == .open || settlement.checkout.status == .processing {
                Issue.record("still \(settlement.checkout.status)\n\(life.log.joined(separator: "\n"))")
                return
            }
        }
    }
}
