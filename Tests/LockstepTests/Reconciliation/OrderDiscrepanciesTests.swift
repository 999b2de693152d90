import Basics
import Testing

@testable import Lockstep

@Suite("What of an order a person must look at")
struct OrderDiscrepanciesTests {
    typealias S = Sample

    private func judge(
        _ checkout: Checkout = S.checkout(status: .paid, current: 2, kept: 1), _ executions: CheckoutExecution...,
        held: Bool = false, changedAt: Double = 0, operations: [PaymentOperation] = [], now: Double = 100
    ) -> OrderDiscrepancies {
        OrderDiscrepancies(
            of: .init(checkout),
            executions: executions.map { .init($0, changedAt: S.at(changedAt), isHeld: held) }, operations: operations,
            rules: .init(unresolvedAfter: .seconds(3600), overdueAfter: .seconds(86_400)), now: S.at(now))
    }

    @Test("money that was to go back and is still there: of a duplicate, of a wrong amount; not the shop's own wish")
    func money() {
        for (reason, kind) in [
            (CancelReason.duplicate, Discrepancy.Class.duplicatePayment), (.checkoutCancelled, .duplicatePayment),
            (.mismatch, .amountMismatch),
        ] {
            for state in [ExecutionState.authorized, .partiallyCaptured, .captured, .partiallyRefunded] {
                let found = second(state, reason)
                #expect(found.causes.map(\.kind) == [kind], "\(reason) \(state)")
                #expect(found.causes.first?.subject == S.execution(2).uuid)
                #expect(found.causes.first?.amount == S.money(5749))
                #expect(found.unattended.count == 1)
            }
            for state in [ExecutionState.cancelled, .refunded, .failed, .created] {
                #expect(second(state, reason).causes.isEmpty, "\(reason) \(state)")
            }
        }
        #expect(second(.authorized, .requested).causes.isEmpty)
        #expect(second(.authorized, nil).causes.isEmpty)
        #expect(
            judge(S.checkout(), S.execution(1, .authorized, authorized: 1), held: true).causes.map(\.kind)
                == [.amountMismatch])
    }

    /// Of an order that is paid by another one.
    private func second(_ state: ExecutionState, _ reason: CancelReason?) -> OrderDiscrepancies {
        judge(
            S.checkout(status: .paid, current: 2, kept: 1), S.execution(1, .captured),
            S.execution(2, state, cancel: reason))
    }

    @Test("while a cancel is on its way nothing is opened, and what is open stays so")
    func attended() {
        let cancel = PaymentOperation(
            id: OperationID(S.execution(50).uuid), kind: .cancel, owner: .checkout(S.checkoutID()),
            execution: ExecutionReference(id: S.execution(2), workflowCode: "payment-acceptance"),
            key: IdempotencyKey(S.execution(60).uuid), state: .sent, createdAt: S.at(90))
        let found = judge(
            S.checkout(status: .paid, current: 2, kept: 1), S.execution(2, .authorized, cancel: .duplicate),
            operations: [cancel])
        #expect(found.causes.map(\.kind) == [.duplicatePayment])
        #expect(found.unattended.isEmpty)
    }

    @Test(
        "an operation is unresolved after its time, unless Payrails has taken it on; then it is overdue after a day",
        arguments: PaymentOperation.State.allCases)
    func operations(state: PaymentOperation.State) {
        let operation = S.operation(.capture, 2000, state: state)
        func kinds(at now: Double) -> [Discrepancy.Class] {
            judge(S.checkout(), operations: [operation], now: now).causes.map(\.kind)
        }
        switch state {
        case .succeeded, .failed: #expect(kinds(at: 1_000_000).isEmpty)
        case .acknowledged:
            #expect(kinds(at: 86_399).isEmpty)
            #expect(kinds(at: 86_400) == [.overdueFinalState])
        case .prepared, .sent, .unknown:
            #expect(kinds(at: 3599).isEmpty)
            #expect(kinds(at: 3600) == [.unresolvedOperation])
            #expect(kinds(at: 1_000_000) == [.unresolvedOperation])
        }
    }

    @Test("however short the patience, what is being sent for the first time isn't unknown yet, and all else is")
    func shortPatience() {
        func kinds(_ state: PaymentOperation.State, attempts: Int, at now: Double) -> [Discrepancy.Class] {
            let operation = PaymentOperation(
                id: OperationID(S.execution(50).uuid), kind: .capture, owner: .checkout(S.checkoutID()),
                execution: ExecutionReference(id: S.execution(1), workflowCode: "payment-acceptance"),
                key: IdempotencyKey(S.execution(60).uuid), state: state, attempts: attempts, createdAt: S.at(0),
                sentAt: S.at(0))
            return OrderDiscrepancies(
                of: .init(S.checkout()), executions: [], operations: [operation],
                rules: .init(unresolvedAfter: .seconds(2), overdueAfter: .seconds(5), lease: .seconds(30)),
                now: S.at(now)
            ).causes.map(\.kind)
        }
        #expect(kinds(.sent, attempts: 1, at: 29) == [] && kinds(.sent, attempts: 1, at: 30) == [.unresolvedOperation])
        #expect(kinds(.sent, attempts: 2, at: 2) == [.unresolvedOperation])
        #expect(kinds(.unknown, attempts: 1, at: 1) == [] && kinds(.unknown, attempts: 1, at: 2) != [])
        #expect(kinds(.acknowledged, attempts: 1, at: 4) == [])
        #expect(kinds(.acknowledged, attempts: 1, at: 5) == [.overdueFinalState])
    }

    @Test("an attempt that runs is overdue a day after the last news", arguments: ExecutionState.allCases)
    func overdue(state: ExecutionState) {
        let kinds = { (now: Double) in
            judge(S.checkout(), S.execution(1, state), changedAt: 50, now: now).causes.map(\.kind)
        }
        #expect(kinds(86_449).isEmpty)
        #expect(kinds(86_450) == (state.isInFlight ? [.overdueFinalState] : []))
    }

    @Test("the object of the contract has what is known and nothing else")
    func object() throws {
        let cause = DiscrepancyCause(
            kind: .duplicatePayment, subject: S.execution(2).uuid, merchantReference: "order-1",
            execution: S.execution(2), paymentID: "p-1", amount: S.money(5749), here: "the order is paid",
            there: "authorized 57.49 EUR")
        var discrepancy = Discrepancy(
            id: DiscrepancyID(S.execution(9).uuid), cause: cause, firstSeenAt: S.at(0), lastSeenAt: S.at(1))
        let json = discrepancy.json
        #expect(json["class"]?.string == "duplicate-payment" && json["state"]?.string == "open")
        #expect(json["amount"] == S.money(5749).json && json["paymentId"]?.string == "p-1")
        #expect(json["resolvedAt"] == nil && json["note"] == nil)
        discrepancy.state = .resolved
        discrepancy.resolvedAt = S.at(2)
        discrepancy.note = "done"
        #expect(discrepancy.json["resolvedAt"]?.string == S.at(2).rfc3339)
        #expect(discrepancy.json["note"]?.string == "done")
        let bare = Discrepancy(
            id: DiscrepancyID(S.execution(9).uuid), cause: .init(kind: .missingHere, subject: S.execution(9).uuid),
            firstSeenAt: S.at(0), lastSeenAt: S.at(0))
        #expect(
            Set((bare.json.object ?? [:]).keys) == ["id", "class", "state", "firstSeenAt", "lastSeenAt"])
    }
}
