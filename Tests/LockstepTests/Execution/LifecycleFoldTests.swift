import Basics
import Testing

@testable import Lockstep

@Suite("Capturing, refunding, cancelling: what the facts add up to")
struct LifecycleFoldTests {
    typealias S = Sample
    let authorized = S.completed("authorize", 4, minor: 5749, id: "a1")

    @Test("a capture of all is captured, of a part partly captured; parts add up (W1)")
    func captures() {
        let first = S.completed("capture", 10, minor: 2000, id: "c1")
        let second = S.completed("capture", 20, minor: 3749, id: "c2")
        let part = picture(authorized, first)
        #expect(part.state == .partiallyCaptured)
        #expect(part.captured == S.money(2000) && part.authorized == S.money(5749))
        let whole = picture(authorized, first, second)
        #expect(whole.state == .captured)
        #expect(whole.captured == S.money(5749))
        #expect(picture(authorized, S.completed("capture", 10, minor: 5749)).state == .captured)
    }

    @Test("a redelivered capture isn't added again, nor one that an update repeats (W1)")
    func repeatedCapture() {
        let facts = picture(
            authorized, S.completed("capture", 10, minor: 2000, id: "c1"),
            S.completed("capture", 10, minor: 2000, id: "c1"), S.completed("capture", 30, minor: 2000, id: "c1"),
            S.status("captureSuccessful", 9.8))
        #expect(facts.captured == S.money(2000))
    }

    @Test("the capture is heard of before the authorization (O2)")
    func captureBeforeAuthorization() {
        let early = picture(S.completed("capture", 10, minor: 5749, id: "c1"))
        #expect(early.state == .captured)
        #expect(early.captured == S.money(5749))
        #expect(early.authorized == nil && early.paidAmount == S.money(5749))
        // A part that was heard of first must not pass for the amount that was authorized.
        let part = picture(S.completed("capture", 10, minor: 2000, id: "c1"))
        #expect(part.authorized == nil)
        #expect(picture(authorized, S.completed("capture", 10, minor: 2000, id: "c1")).state == .partiallyCaptured)
    }

    @Test("two captures of one amount, without ids, are two")
    func equalCapturesWithoutIDs() {
        let facts = picture(
            authorized, S.completed("capture", 10, minor: 2000), S.completed("capture", 20, minor: 2000))
        #expect(facts.captured == S.money(4000))
        #expect(facts.state == .partiallyCaptured)
    }

    @Test("a result without an id belongs to the capture that was asked for with one")
    func resultWithoutID() {
        let facts = picture(
            authorized, S.requested("capture", 9, minor: 2000, id: "c1"), S.completed("capture", 10, minor: 2000))
        #expect(facts.captured == S.money(2000))
        #expect(facts.actions["c1"]?.success == true)
        // But not to one of another amount.
        let other = picture(
            authorized, S.requested("capture", 9, minor: 3000, id: "c1"), S.completed("capture", 10, minor: 2000))
        #expect(other.captured == S.money(2000))
        #expect(other.actions["c1"]?.success == nil)
    }

    @Test("a capture that only a status tells of is the one that was asked for")
    func captureByStatus() {
        let facts = picture(
            authorized, S.requested("capture", 9, minor: 2000, id: "c1"), S.status("captureRequested", 9.1),
            S.status("captureSuccessful", 11))
        #expect(facts.state == .partiallyCaptured)
        #expect(facts.captured == S.money(2000))
        // The operation learns of it too, though its notification never came (M4).
        #expect(
            facts.actions["c1"] == ActionResult(action: "capture", success: true, amount: S.money(2000), reason: nil))
    }

    @Test("a result whose own status wasn't read yet takes none from a capture that only a status tells of")
    func statusOfAnother() {
        let known = [
            authorized, S.requested("capture", 9, minor: 2000, id: "c1"), S.status("captureSuccessful", 11),
            S.requested("capture", 16, minor: 3000, id: "c2"), S.completed("capture", 18, minor: 3000, id: "c2"),
        ]
        for facts in [known, known + [S.status("captureSuccessful", 18)]] {
            let picture = ExecutionPicture(of: facts)
            #expect(picture.captured == S.money(5000))
            #expect(picture.actions["c1"]?.success == true && picture.actions["c2"]?.success == true)
        }
    }

    @Test("a status from before a capture was asked for is another capture's")
    func statusBeforeRequest() {
        let facts = picture(
            authorized, S.status("captureSuccessful", 8), S.requested("capture", 9, minor: 2000, id: "c1"))
        #expect(facts.actions["c1"]?.success == nil)
        #expect(facts.captured == S.money(5749))
    }

    @Test("a capture whose amount nobody told is a whole one")
    func wholeCapture() {
        let facts = picture(authorized, S.status("captureSuccessful", 11))
        #expect(facts.state == .captured)
        #expect(facts.captured == S.money(5749))
        #expect(picture(S.status("captureSuccessful", 11)).state == .captured)
        #expect(picture(S.status("captureSuccessful", 11)).captured == nil)
    }

    @Test("two open captures, one success: the one asked for first is counted, neither is told to have worked")
    func ambiguousStatuses() {
        let asked = [
            S.requested("capture", 9, minor: 2000, id: "c1"), S.requested("capture", 10, minor: 3000, id: "c2"),
        ]
        let one = picture(authorized, asked[0], asked[1], S.status("captureSuccessful", 11))
        #expect(one.captured == S.money(2000))
        #expect(one.actions["c1"]?.success == nil && one.actions["c2"]?.success == nil)
        let both = picture(
            authorized, asked[0], asked[1], S.status("captureSuccessful", 11), S.status("captureSuccessful", 12))
        #expect(both.captured == S.money(5000))
        #expect(both.actions["c1"]?.success == true && both.actions["c2"]?.success == true)
        let mixed = picture(
            authorized, asked[0], asked[1], S.status("captureFailed", 11), S.status("captureSuccessful", 12))
        #expect(mixed.actions["c1"]?.success == nil && mixed.actions["c2"]?.success == nil)
        // Once the first one's result is told, the rest is clear.
        let told = picture(
            authorized, asked[0], asked[1], S.status("captureFailed", 11), S.status("captureSuccessful", 12),
            S.completed("capture", 11.2, success: false, id: "c1"))
        #expect(told.actions["c1"]?.success == false && told.actions["c2"]?.success == true)
        #expect(told.captured == S.money(3000))
    }

    @Test("a failed capture captures nothing, and its 0.00 isn't what was asked for")
    func failedCapture() {
        let facts = picture(
            authorized, S.requested("capture", 9, minor: 2000, id: "c1"),
            S.completed("capture", 10, success: false, amount: S.money(0), id: "c1", reason: "action.not-allowed"),
            S.status("captureFailed", 9.9))
        #expect(facts.state == .authorized)
        #expect(facts.captured == nil)
        #expect(
            facts.actions["c1"]
                == ActionResult(action: "capture", success: false, amount: S.money(2000), reason: "action.not-allowed"))
        let byStatus = picture(
            authorized, S.requested("capture", 9, minor: 2000, id: "c1"),
            S.status("captureFailed", 9.9, reason: "LimitExceeded"))
        #expect(byStatus.actions["c1"]?.success == false)
        #expect(byStatus.actions["c1"]?.reason == "LimitExceeded")
        // What failed before it was asked for was another one, and makes nothing doubtful.
        let after = picture(
            authorized, S.status("captureFailed", 8), S.requested("capture", 9, minor: 2000, id: "c1"),
            S.status("captureSuccessful", 9.9))
        #expect(after.actions["c1"]?.success == true)
    }

    @Test("an update takes a capture, a refund or a cancel back")
    func undone() {
        let capture = S.completed("capture", 10, minor: 5749, id: "c1")
        let captureUndone = S.completed("capture", 50, success: false, id: "c1")
        #expect(picture(authorized, capture, captureUndone).state == .authorized)
        #expect(
            picture(
                authorized, capture, captureUndone, S.status("captureSuccessful", 9.9), S.status("captureFailed", 49.9)
            ).captured == nil)
        // What could be captured had been authorized, although nobody told of that; unless it failed afterwards.
        #expect(picture(S.status("authorizeFailed", 3), capture, captureUndone).state == .authorized)
        #expect(picture(capture, captureUndone, S.status("authorizeFailed", 60)).state == .failed)
        let refund = S.completed("refund", 20, minor: 1000, id: "r1")
        let refundUndone = S.completed("refund", 50, success: false, id: "r1")
        let back = picture(authorized, capture, refund, refundUndone)
        #expect(back.state == .captured && back.refunded == nil)
        // What could be refunded had been captured, although nobody told of that; unless the capture was undone, too.
        let requested = S.status("authorizeRequested", 1)
        #expect(picture(requested, refund, refundUndone).state == .captured)
        #expect(picture(authorized, refund, refundUndone).captured == S.money(5749))
        #expect(picture(authorized, capture, captureUndone, refund, refundUndone).state == .authorized)
        #expect(picture(requested, S.completed("refund", 50, success: false, id: "r1")).state == .processing)
        let cancel = S.completed("cancel", 20, id: "x1")
        let cancelUndone = S.completed("cancel", 50, success: false, id: "x1")
        #expect(picture(authorized, cancel).state == .cancelled)
        #expect(picture(authorized, cancel, cancelUndone).state == .authorized)
        #expect(
            picture(
                authorized, cancel, cancelUndone, S.status("cancelSuccessful", 19.9), S.status("cancelFailed", 49.9)
            )
            .state == .authorized)
    }

    @Test("refunds of a part and of all, also as the sum of parts")
    func refunds() {
        let capture = S.completed("capture", 10, minor: 5749, id: "c1")
        let first = S.completed("refund", 20, minor: 2000, id: "r1")
        let second = S.completed("refund", 30, minor: 3749, id: "r2")
        let part = picture(authorized, capture, first)
        #expect(part.state == .partiallyRefunded)
        #expect(part.refunded == S.money(2000) && part.captured == S.money(5749))
        #expect(picture(authorized, capture, first, second).state == .refunded)
        #expect(picture(authorized, capture, S.completed("refund", 20, minor: 5749)).state == .refunded)
        // All of what was captured, though not of what was authorized.
        #expect(
            picture(authorized, S.completed("capture", 10, minor: 2000), S.completed("refund", 20, minor: 2000)).state
                == .refunded)
    }

    @Test("a refund of a part that is heard of before its capture isn't a whole refund (O2)")
    func refundBeforeCapture() {
        let refund = S.completed("refund", 20, minor: 1000, id: "r1")
        #expect(picture(refund).state == .partiallyRefunded)
        #expect(picture(authorized, refund).state == .partiallyRefunded)
        #expect(picture(authorized, S.completed("refund", 20, minor: 5749, id: "r1")).state == .refunded)
    }

    @Test("a refund that only a status tells of may be any part; what was asked for says which")
    func refundByStatus() {
        let capture = S.completed("capture", 10, minor: 5749, id: "c1")
        let bare = picture(authorized, capture, S.status("refundSuccessful", 20))
        #expect(bare.state == .partiallyRefunded)
        #expect(bare.refunded == nil && bare.captured == S.money(5749))
        let asked = picture(
            authorized, capture, S.requested("refund", 19, minor: 5749, id: "r1"), S.status("refundSuccessful", 20))
        #expect(asked.state == .refunded && asked.actions["r1"]?.success == true)
        let recorded = picture(
            authorized, capture, S.status("refundSuccessful", 20),
            S.payment("Captured", 21, amount: 5749, captured: 5749, refunded: 700))
        #expect(recorded.state == .partiallyRefunded && recorded.refunded == S.money(700))
    }

    @Test("payment records know the totals, whenever they were read")
    func paymentRecords() {
        let before = S.payment("Authorized", 5, amount: 5749, captured: 0, refunded: 0)
        let after = S.payment("Captured", 25, amount: 5749, captured: 5749, refunded: 0)
        let status = S.status("authorizeSuccessful", 4)
        #expect(picture(status, before).state == .authorized)
        #expect(picture(status, before).authorized == S.money(5749))
        #expect(picture(status, before, after).state == .captured)
        #expect(picture(status, before, after).captured == S.money(5749))
        #expect(picture(before, after).state == .captured)
        let refunded = S.payment("Refunded", 35, amount: 5749, captured: 5749, refunded: 5749)
        #expect(picture(status, before, after, refunded).state == .refunded)
        // A record alone that holds no money is no authorization.
        #expect(picture(S.payment("Failed", 5, amount: 5749, captured: 0)).state == .created)
        #expect(picture(S.status("authorizeFailed", 4), S.payment("Failed", 5, amount: 5749)).state == .failed)
    }

    @Test("records of one instant keep the largest total")
    func recordsOfOneInstant() {
        let facts = picture(
            S.status("authorizeSuccessful", 4), S.payment("Authorized", 5, amount: 5749, captured: 0),
            S.payment("Captured", 5, amount: 5749, captured: 5749))
        #expect(facts.captured == S.money(5749))
    }

    @Test("the records of several payments add up, and the failed provider's amount isn't the authorized one")
    func severalPayments() {
        let facts = picture(
            S.status("authorizeFailed", 3), S.status("authorizeSuccessful", 4),
            S.payment("Failed", 9, amount: 9999, captured: 0, id: "pay_z"),
            S.payment("Captured", 5, amount: 5749, captured: 5749, id: "pay_a"))
        #expect(facts.authorized == S.money(5749) && facts.captured == S.money(5749))
        #expect(facts.paymentIDs == ["pay_a", "pay_z"])
    }

    @Test("the authorized amount is the composition's, then the record's, then the execution's after the success")
    func authorizedAmount() {
        let moved = [S.status("created", 0, amount: 4999), S.status("created", 0, amount: 5749)]
        let success = S.status("authorizeSuccessful", 4, amount: 5749)
        #expect(picture(moved[0], moved[1], success).authorized == S.money(5749))
        // What the execution's amount was before doesn't say what was authorized.
        #expect(picture(moved[0], S.completed("authorize", 4)).authorized == nil)
        // Nor where only the capture of an instant payment is told: it would pass for a payment of another amount.
        let instant = picture(moved[0], S.completed("capture", 4, minor: 5749))
        #expect(instant.authorized == nil && instant.paidAmount == S.money(5749))
        #expect(
            picture(moved[0], S.completed("capture", 4.2, minor: 5749), S.status("captureSuccessful", 4, amount: 5749))
                .authorized == S.money(5749))
        #expect(picture(success, S.payment("Authorized", 5, amount: 5000)).authorized == S.money(5000))
        #expect(
            picture(success, S.payment("Authorized", 5, amount: 5000), S.completed("authorize", 4.1, minor: 4000))
                .authorized == S.money(4000))
    }

    @Test("a cancel takes back what was held, and what was captured")
    func cancel() {
        let void = picture(authorized, S.completed("cancel", 20, id: "x1"))
        #expect(void.state == .cancelled)
        #expect(void.authorized == S.money(5749) && void.captured == nil && void.refunded == nil)
        let refunded = picture(
            authorized, S.completed("capture", 10, minor: 5749), S.completed("cancel", 20),
            S.status("cancelSuccessful", 19))
        #expect(refunded.state == .cancelled)
        #expect(refunded.captured == S.money(5749) && refunded.refunded == S.money(5749))
        #expect(picture(S.status("authorizePending", 2), S.status("cancelSuccessful", 19)).state == .cancelled)
    }

    @Test("a second cancel that fails undoes nothing")
    func secondCancel() {
        #expect(
            picture(
                authorized, S.completed("cancel", 20, id: "x1"), S.completed("cancel", 30, success: false, id: "x2"),
                S.status("cancelSuccessful", 19), S.status("cancelFailed", 29)
            ).state == .cancelled)
        #expect(
            picture(authorized, S.status("cancelSuccessful", 19), S.status("cancelFailed", 29)).state == .cancelled)
        #expect(picture(authorized, S.status("cancelFailed", 29)).state == .authorized)
        #expect(picture(authorized, S.status("cancelRequested", 29)).state == .authorized)
    }

    @Test("money that is authorized after a cancel is held, and seen")
    func successAfterCancel() {
        let late = picture(
            S.status("authorizePending", 2), S.status("cancelSuccessful", 10),
            S.status("authorizeSuccessful", 12, amount: 5749))
        #expect(late.state == .authorized)
        #expect(late.authorized == S.money(5749))
        // A cancel in the second in which it was authorized, told with whole seconds, is still a cancel of it.
        #expect(picture(S.status("authorizeSuccessful", 12.4), S.completed("cancel", 12)).state == .cancelled)
        // What is told of the authorization again, later, isn't a new one.
        #expect(
            picture(authorized, S.completed("cancel", 20), S.completed("authorize", 30, minor: 5749, id: "a1")).state
                == .cancelled)
    }

    @Test("a capture means that there was an authorization, whatever was lost or comes late")
    func captureAfterFailure() {
        #expect(picture(S.status("authorizeFailed", 3), S.completed("capture", 10, minor: 5749)).state == .captured)
    }

    @Test("more captured than authorized is captured, and shown as it is")
    func overCapture() {
        let facts = picture(authorized, S.completed("capture", 10, minor: 6000))
        #expect(facts.state == .captured)
        #expect(facts.captured == S.money(6000) && facts.authorized == S.money(5749))
    }

    @Test("an amount in another currency says nothing")
    func otherCurrency() {
        let facts = picture(
            authorized, S.completed("capture", 10, amount: S.money(2000), id: "c1"),
            S.completed("capture", 12, amount: S.money(9999, "JPY"), id: "c2"),
            S.completed("refund", 14, amount: S.money(9999, "JPY"), id: "r1"))
        #expect(facts.captured == S.money(2000))
        #expect(facts.refunded == nil)
        #expect(facts.state == .partiallyRefunded)
    }

    @Test("totals beyond 15 digits are not known, and no crash")
    func hugeAmounts() {
        let facts = picture(
            authorized, S.completed("capture", 10, minor: Money.maximumMinor, id: "c1"),
            S.completed("capture", 12, minor: Money.maximumMinor, id: "c2"))
        #expect(facts.state == .captured)
    }

    @Test("a dispute changes no state and no amount")
    func disputes() {
        let without = picture(authorized, S.completed("capture", 10, minor: 5749))
        for status in ["DisputeOpened", "DisputeLost", "DisputeWon", "FraudAlert"] {
            let with = picture(authorized, S.completed("capture", 10, minor: 5749), S.dispute(status, 90, minor: 5749))
            #expect(with == without)
        }
        #expect(picture(S.dispute("DisputeOpened", 90, minor: 5749)).state == .created)
    }

    @Test("all orders of five facts give one picture, and the right one (O8)")
    func allOrders() {
        let facts = [
            S.status("authorizeFailed", 3), authorized, S.completed("capture", 10, minor: 2000),
            S.completed("refund", 20, minor: 500, id: "r1"), S.status("authorizePending", 3.5),
        ]
        var pictures: Set<ExecutionPicture> = []
        func permute(_ taken: [Fact], _ rest: [Fact]) {
            if rest.isEmpty { pictures.insert(ExecutionPicture(of: taken)) }
            for index in rest.indices {
                var others = rest
                let next = others.remove(at: index)
                permute(taken + [next], others)
            }
        }
        permute([], facts)
        #expect(pictures.count == 1)
        #expect(pictures.first?.state == .partiallyRefunded)
        #expect(pictures.first?.captured == S.money(2000) && pictures.first?.refunded == S.money(500))
    }

    @Test("what is known of the payment beside its state")
    func details() {
        let fact = Fact(
            kind: .action, action: "authorize", actionID: "a1", phase: .completed, success: true,
            amount: S.money(5749), paymentID: "p2", paymentMethodCode: "card", instrumentID: "i1", at: S.at(4),
            source: .notification)
        let earlier = Fact(
            kind: .action, action: "authorize", actionID: "a0", phase: .completed, success: false, paymentID: "p1",
            paymentMethodCode: "payPal", at: S.at(3), source: .notification)
        let facts = picture(fact, earlier, S.status("created", 0), S.status("authorizeSuccessful", 3.9))
        #expect(facts.paymentIDs == ["p1", "p2"])
        #expect(facts.paymentMethodCode == "card" && facts.instrumentID == "i1")
        #expect(facts.newestStatusAt == S.at(3.9))
        #expect(facts.actions["a1"]?.success == true && facts.actions["a0"]?.success == false)
    }
}
