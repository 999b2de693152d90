import Basics
import Testing

@testable import Lockstep

extension Sample {
    static func operation(
        _ kind: PaymentOperation.Kind, _ minor: Int64? = nil, state: PaymentOperation.State = .acknowledged,
        actionID: String? = nil, isFinal: Bool? = false
    ) -> PaymentOperation {
        PaymentOperation(
            id: OperationID(execution(50).uuid), kind: kind, owner: .checkout(checkoutID()),
            execution: ExecutionReference(id: execution(1), workflowCode: "payment-acceptance"),
            key: IdempotencyKey(execution(60).uuid), state: state, amount: minor.map { money($0) },
            isFinalCapture: isFinal, actionID: actionID, createdAt: at(0))
    }
}

@Suite("What may be captured, cancelled, refunded")
struct LifecycleTests {
    typealias S = Sample

    private func known(
        _ state: ExecutionState, authorized: Int64? = 5749, captured: Int64? = nil, refunded: Int64? = nil
    ) -> ExecutionPicture {
        var picture = ExecutionPicture()
        picture.state = state
        picture.authorized = authorized.map { S.money($0) }
        picture.captured = captured.map { S.money($0) }
        picture.refunded = refunded.map { S.money($0) }
        return picture
    }

    @Test("a capture without an amount takes all that is left, with one it takes that, to the last cent")
    func capture() throws {
        #expect(try Lifecycle.capture(nil, of: known(.authorized), open: []) == S.money(5749))
        #expect(try Lifecycle.capture(S.money(5749), of: known(.authorized), open: []) == S.money(5749))
        let part = known(.partiallyCaptured, captured: 2000)
        #expect(try Lifecycle.capture(nil, of: part, open: []) == S.money(3749))
        #expect(try Lifecycle.capture(S.money(3749), of: part, open: []) == S.money(3749))
        #expect(throws: Lifecycle.Refusal.exceedsCapturable) {
            try Lifecycle.capture(S.money(3750), of: part, open: [])
        }
        #expect(throws: Lifecycle.Refusal.exceedsCapturable) {
            try Lifecycle.capture(S.money(Money.maximumMinor), of: known(.authorized), open: [])
        }
        #expect(throws: Lifecycle.Refusal.currencyMismatch) {
            try Lifecycle.capture(S.money(1, "USD"), of: part, open: [])
        }
    }

    @Test("after a final capture nothing is left, unless it failed or was undone", arguments: [nil, true])
    func afterFinal(_ isFinal: Bool?) throws {
        var part = known(.partiallyCaptured, captured: 2000)
        for state in [PaymentOperation.State.prepared, .sent, .acknowledged, .unknown, .succeeded] {
            let capture = S.operation(.capture, 2000, state: state, actionID: "a", isFinal: isFinal)
            #expect(throws: Lifecycle.Refusal.notCapturable) {
                try Lifecycle.capture(S.money(1), of: part, open: [], captures: [capture])
            }
        }
        let failed = S.operation(.capture, 2000, state: .failed, isFinal: isFinal)
        #expect(try Lifecycle.capture(nil, of: part, open: [], captures: [failed]) == S.money(3749))
        let worked = S.operation(.capture, 2000, state: .succeeded, actionID: "a", isFinal: isFinal)
        part.actions["a"] = ActionResult(action: "capture", success: false, amount: S.money(2000), reason: nil)
        #expect(try Lifecycle.capture(nil, of: part, open: [], captures: [worked]) == S.money(3749))
        let more = S.operation(.capture, 2000, state: .succeeded, isFinal: false)
        #expect(try Lifecycle.capture(nil, of: part, open: [], captures: [more]) == S.money(3749))
    }

    @Test(
        "what is in flight counts, also where nobody knows what became of it",
        arguments: [
            PaymentOperation.State.prepared, .sent, .acknowledged, .unknown,
        ])
    func inFlight(state: PaymentOperation.State) throws {
        let open = [S.operation(.capture, 2000, state: state), S.operation(.refund, 5000, state: state)]
        #expect(try Lifecycle.capture(nil, of: known(.authorized), open: open) == S.money(3749))
        #expect(throws: Lifecycle.Refusal.exceedsCapturable) {
            try Lifecycle.capture(S.money(3750), of: known(.authorized), open: open)
        }
        let all = [S.operation(.capture, 5000, state: state), S.operation(.capture, 749, state: state)]
        #expect(throws: Lifecycle.Refusal.notCapturable) {
            try Lifecycle.capture(nil, of: known(.authorized), open: all)
        }
        #expect(throws: Lifecycle.Refusal.notCapturable) {
            try Lifecycle.capture(S.money(1), of: known(.authorized), open: all)
        }
        let captured = known(.captured, captured: 5749)
        #expect(try Lifecycle.refund(nil, of: captured, open: open) == S.money(749))
        #expect(throws: Lifecycle.Refusal.exceedsRefundable) {
            try Lifecycle.refund(S.money(750), of: captured, open: open)
        }
    }

    @Test("what has ended is in the picture, and isn't counted twice")
    func ended() throws {
        let ended = [
            S.operation(.capture, 2000, state: .succeeded), S.operation(.capture, 3000, state: .failed),
            S.operation(.refund, 3000, state: .failed),
        ]
        let part = known(.partiallyCaptured, captured: 2000)
        #expect(try Lifecycle.capture(nil, of: part, open: ended) == S.money(3749))
        #expect(try Lifecycle.refund(nil, of: part, open: ended) == S.money(2000))
    }

    @Test("only an authorization of a known amount can be captured", arguments: ExecutionState.allCases)
    func capturableStates(state: ExecutionState) {
        let isCapturable = state == .authorized || state == .partiallyCaptured
        let result = Result { try Lifecycle.capture(nil, of: known(state), open: []) }
        #expect((try? result.get()) == (isCapturable ? S.money(5749) : nil))
        #expect(throws: Lifecycle.Refusal.notCapturable) {
            try Lifecycle.capture(nil, of: known(state, authorized: nil), open: [])
        }
    }

    @Test("only what was captured can be refunded, less what was refunded", arguments: ExecutionState.allCases)
    func refundableStates(state: ExecutionState) {
        let isRefundable = [.partiallyCaptured, .captured, .partiallyRefunded].contains(state)
        let picture = known(state, captured: 4000, refunded: 1500)
        #expect((try? Lifecycle.refund(nil, of: picture, open: [])) == (isRefundable ? S.money(2500) : nil))
        #expect((try? Lifecycle.refund(S.money(2501), of: picture, open: [])) == nil)
        #expect(throws: Lifecycle.Refusal.notRefundable) {
            try Lifecycle.refund(nil, of: known(state, captured: nil), open: [])
        }
    }

    @Test("nothing left to refund is not refundable; a foreign currency is said so")
    func refundRefusals() {
        #expect(throws: Lifecycle.Refusal.notRefundable) {
            try Lifecycle.refund(nil, of: known(.partiallyRefunded, captured: 4000, refunded: 4000), open: [])
        }
        #expect(throws: Lifecycle.Refusal.notRefundable) {
            try Lifecycle.refund(nil, of: known(.captured, captured: 100, refunded: 200), open: [])
        }
        #expect(throws: Lifecycle.Refusal.currencyMismatch) {
            try Lifecycle.refund(S.money(1, "JPY"), of: known(.captured, captured: 4000), open: [])
        }
    }

    @Test("a cancel under way leaves nothing to capture, to refund or to cancel")
    func cancelUnderWay() {
        let open = [S.operation(.cancel)]
        #expect(throws: Lifecycle.Refusal.notCapturable) {
            try Lifecycle.capture(nil, of: known(.authorized), open: open)
        }
        #expect(throws: Lifecycle.Refusal.notRefundable) {
            try Lifecycle.refund(nil, of: known(.captured, captured: 5749), open: open)
        }
        #expect(throws: Lifecycle.Refusal.notCancellable) {
            try Lifecycle.cancel(nil, of: known(.authorized), whole: S.money(5749), open: open)
        }
    }

    @Test("a cancel is possible where money is held or may yet be", arguments: ExecutionState.allCases)
    func cancellableStates(state: ExecutionState) {
        let refusal = Result {
            try Lifecycle.cancel(nil, of: known(state), whole: S.money(5749), open: [S.operation(.capture, 1)])
        }
        let isRefused = if case .failure = refusal { true } else { false }
        #expect(isRefused == [.created, .refunded, .cancelled, .failed].contains(state))
    }

    @Test("a cancel may say the whole amount, and no other")
    func cancelledAmount() throws {
        func cancel(_ amount: Money?, _ picture: ExecutionPicture) throws(Lifecycle.Refusal) {
            try Lifecycle.cancel(amount, of: picture, whole: S.money(6000), open: [])
        }
        let held = known(.authorized)
        try cancel(nil, held)
        try cancel(S.money(5749), held)
        // Nothing is authorized yet: the whole is what the execution is for.
        try cancel(S.money(6000), known(.processing, authorized: nil))
        for amount in [S.money(5748), S.money(6000)] {
            #expect(throws: Lifecycle.Refusal.notTheWhole) { try cancel(amount, held) }
        }
        #expect(throws: Lifecycle.Refusal.currencyMismatch) { try cancel(S.money(5749, "USD"), held) }
        // What can't be cancelled at all is told as that.
        #expect(throws: Lifecycle.Refusal.notCancellable) { try cancel(S.money(1), known(.cancelled)) }
    }

    @Test("what the shop says of its cancel comes back as it was said, and never reads like a reason of our own")
    func shopReasons() {
        func operation(_ kind: PaymentOperation.Kind, _ intentReason: String?) -> PaymentOperation {
            PaymentOperation(
                id: OperationID(S.execution(50).uuid), kind: kind, owner: .checkout(S.checkoutID()),
                execution: ExecutionReference(id: S.execution(1), workflowCode: "payment-acceptance"),
                key: IdempotencyKey(S.execution(60).uuid), intentReason: intentReason, createdAt: S.at(0))
        }
        let words = ["duplicate", "mismatch", "checkoutCancelled", "attemptOver", "requested"]
        for word in words + ["requested: twice", "NoReason", "\u{301}accent first", " "] {
            for kind in [PaymentOperation.Kind.cancel, .capture, .refund] {
                let written = PaymentOperation.intentReason(kind, ofShop: word)
                #expect(operation(kind, written).shopReason == word)
                if kind == .cancel { #expect(CancelReason(rawValue: written ?? "") == nil) }
            }
        }
        for word in words { #expect(operation(.cancel, word).shopReason == nil) }
        #expect(PaymentOperation.intentReason(.cancel, ofShop: nil) == nil)
        #expect(operation(.cancel, nil).shopReason == nil && operation(.refund, nil).shopReason == nil)
        // From before reasons of cancels were passed on, and what a change of an instrument writes there.
        #expect(operation(.cancel, "NoReason").shopReason == nil)
        #expect(operation(.changeInstrument, "default").shopReason == nil)
    }

    @Test("captures asked for one after the other never exceed what was authorized, refunds never what was captured")
    func sums() {
        var generator = Seeded(seed: 42)
        for _ in 0..<500 {
            let authorized = Int64.random(in: 1...10_000, using: &generator)
            var captures: [PaymentOperation] = []
            while let taken = try? Lifecycle.capture(
                Bool.random(using: &generator) ? nil : S.money(.random(in: 1...10_000, using: &generator)),
                of: known(.authorized, authorized: authorized), open: captures)
            {
                captures.append(S.operation(.capture, taken.minor))
            }
            #expect(captures.reduce(0) { $0 + ($1.amount?.minor ?? 0) } <= authorized)
        }
    }
}

extension PaymentOperation {
    fileprivate func settled(in picture: ExecutionPicture, others: AccountedActions = .init()) -> PaymentOperation? {
        settled(by: picture, others: others)
    }
}

@Suite("What the facts say about an operation")
struct OperationResultTests {
    typealias S = Sample

    @Test("by its action's id: succeeded, failed with the reason, or nothing yet")
    func byActionID() {
        let facts = [
            S.completed("authorize", 1, minor: 5749), S.requested("capture", 2, minor: 100, id: "c1"),
            S.requested("capture", 3, minor: 200, id: "c2"), S.requested("capture", 4, minor: 300, id: "c3"),
            S.completed("capture", 5, minor: 100, id: "c1"),
            S.completed("capture", 6, success: false, id: "c2", reason: "LimitExceeded"),
        ]
        let picture = ExecutionPicture(of: facts)
        #expect(S.operation(.capture, 100, actionID: "c1").settled(in: picture)?.state == .succeeded)
        #expect(S.operation(.capture, 100, actionID: "c1").settled(in: picture)?.reason == nil)
        #expect(S.operation(.capture, 200, actionID: "c2").settled(in: picture)?.state == .failed)
        #expect(S.operation(.capture, 200, actionID: "c2").settled(in: picture)?.reason == "LimitExceeded")
        #expect(S.operation(.capture, 300, actionID: "c3").settled(in: picture) == nil)
        #expect(S.operation(.capture, 300, actionID: "c9").settled(in: picture) == nil)
        #expect(S.operation(.capture, 300).settled(in: picture) == nil)
    }

    @Test("its notification was lost, and a read shows its status (M4)")
    func byStatus() {
        let picture = ExecutionPicture(of: [
            S.completed("authorize", 1, minor: 5749), S.requested("capture", 2, minor: 100, id: "c1"),
            S.status("captureSuccessful", 3),
        ])
        #expect(S.operation(.capture, 100, actionID: "c1").settled(in: picture)?.state == .succeeded)
    }

    @Test("a cancel has worked when the execution is cancelled, also where another cancel did it")
    func cancel() {
        let cancelled = ExecutionPicture(of: [
            S.completed("authorize", 1, minor: 5749), S.status("cancelSuccessful", 3),
            S.completed("cancel", 4, success: false, id: "x2"),
        ])
        #expect(S.operation(.cancel).settled(in: cancelled)?.state == .succeeded)
        #expect(S.operation(.cancel, actionID: "x2").settled(in: cancelled)?.state == .succeeded)
        let failed = ExecutionPicture(of: [
            S.completed("authorize", 1, minor: 5749), S.completed("cancel", 4, success: false, id: "x2"),
        ])
        #expect(S.operation(.cancel, actionID: "x2").settled(in: failed)?.state == .failed)
        #expect(S.operation(.cancel).settled(in: failed) == nil)
    }

    @Test("the answer was lost: an action of its kind and amount is its own, unless it is another's")
    func byAmount() {
        let facts = [
            S.completed("authorize", 1, minor: 5749), S.completed("capture", 5, minor: 100, id: "c1"),
            S.completed("refund", 6, minor: 40, id: "r1"),
        ]
        let picture = ExecutionPicture(of: facts)
        let unknown = S.operation(.capture, 100, state: .unknown)
        #expect(unknown.settled(in: picture)?.state == .succeeded)
        #expect(unknown.settled(in: picture)?.actionID == "c1")
        var others = AccountedActions()
        others.actionIDs = ["c1"]
        others.captured = [S.execution(1): 100]
        #expect(unknown.settled(in: picture, others: others) == nil)
        #expect(S.operation(.capture, 101, state: .unknown).settled(in: picture) == nil)
        #expect(S.operation(.refund, 40, state: .unknown).settled(in: picture)?.actionID == "r1")
        #expect(S.operation(.refund, 41, state: .unknown).settled(in: picture) == nil)
        // So is what was acknowledged without the action's id: there is none to come. What is being sent may still get one.
        #expect(S.operation(.capture, 100).settled(in: picture)?.actionID == "c1")
        #expect(S.operation(.capture, 100, actionID: "c2").settled(in: picture) == nil)
        #expect(S.operation(.capture, 100, state: .sent).settled(in: picture) == nil)
        // A total that a record shows, and that nothing else explains.
        let recorded = ExecutionPicture(of: [
            S.status("authorizeSuccessful", 1), S.payment("Captured", 9, amount: 5749, captured: 300),
        ])
        #expect(S.operation(.capture, 300, state: .unknown).settled(in: recorded)?.state == .succeeded)
        #expect(S.operation(.capture, 301, state: .unknown).settled(in: recorded) == nil)
        others.captured = [S.execution(1): 1]
        #expect(S.operation(.capture, 300, state: .unknown).settled(in: recorded, others: others) == nil)
    }

    @Test("what is final stays, and what isn't about captures, refunds and cancels is settled elsewhere")
    func final() {
        let picture = ExecutionPicture(of: [S.completed("capture", 5, minor: 100, id: "c1")])
        for state in [PaymentOperation.State.succeeded, .failed] {
            #expect(S.operation(.capture, 100, state: state, actionID: "c1").settled(in: picture) == nil)
        }
        #expect(S.operation(.moveAmount, 100, actionID: "c1").settled(in: picture) == nil)
        #expect(S.operation(.createSession, 100, actionID: "c1").settled(in: picture) == nil)
    }

    @Test("the contract knows four states")
    func names() {
        #expect(
            PaymentOperation.State.allCases.map(\.name) == [
                "pending", "pending", "pending", "succeeded", "failed", "unknown",
            ])
        #expect(PaymentOperation.State.allCases.filter(\.isFinal) == [.succeeded, .failed])
        let json = S.operation(.capture, 100).json
        #expect(json["state"] == "pending" && json["kind"] == "capture")
        #expect(json["amount"] == ["value": "1.00", "currency": "EUR"])
        #expect(json["executionId"]?.string == S.execution(1).description && json["reason"] == Optional<JSON>.none)
    }
}
