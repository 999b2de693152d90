import Basics
import Testing

@testable import Lockstep

@Suite("Authorizing: which result counts")
struct AuthorizationFoldTests {
    typealias S = Sample

    @Test("nothing known, or only that it was created, is created")
    func nothing() {
        #expect(picture() == ExecutionPicture())
        #expect(picture(S.status("created", 0)).state == .created)
        #expect(picture(S.status("created", 0)).newestStatusAt == S.at(0))
    }

    @Test("a request runs, a pending one waits for the customer, a confirmation runs again")
    func inFlight() {
        let requested = S.status("authorizeRequested", 1)
        let pending = S.status("authorizePending", 2)
        #expect(picture(S.status("created", 0), requested).state == .processing)
        #expect(picture(requested, pending).state == .needsCustomer)
        #expect(picture(requested, pending, S.status("confirmRequested", 3)).state == .processing)
        #expect(
            picture(requested, pending, S.status("confirmRequested", 3), S.status("confirmSuccessful", 4)).state
                == .processing)
        #expect(picture(S.requested("authorize", 1)).state == .processing)
        #expect(picture(S.requested("authorize", 1), S.pending("authorize", 2)).state == .needsCustomer)
    }

    @Test("a confirmation that worked is no payment")
    func confirmIsNoSuccess() {
        let facts = picture(S.status("authorizeRequested", 1), S.completed("confirm", 3, minor: 5749))
        #expect(facts.state == .processing)
        #expect(facts.authorized == nil)
    }

    @Test("a success is authorized, by its status or by its notification")
    func success() {
        #expect(picture(S.status("authorizeSuccessful", 3)).state == .authorized)
        let told = picture(S.completed("authorize", 3.2, minor: 5749))
        #expect(told.state == .authorized)
        #expect(told.authorized == S.money(5749))
        #expect(told.failureReason == nil && told.failedAt == nil)
    }

    @Test("a failure is failed, with its reason and its time, and success: false is a failure")
    func failure() {
        let told = picture(S.completed("authorize", 3.2, success: false, reason: "InsufficientBalance"))
        #expect(told.state == .failed)
        #expect(told.failureReason == "InsufficientBalance")
        #expect(told.failedAt == S.at(3.2))
        let both = picture(
            S.status("authorizeFailed", 3), S.completed("authorize", 3.2, success: false, reason: "GenericRejection"))
        #expect(both.failureReason == "GenericRejection")
        #expect(both.failedAt == S.at(3))
    }

    @Test("a status that is read with and without its reason is one status")
    func reasonLater() {
        let facts = picture(S.status("authorizeFailed", 3), S.status("authorizeFailed", 3, reason: "LimitExceeded"))
        #expect(facts.failureReason == "LimitExceeded")
    }

    @Test("another provider was tried: failed, then authorized, in either order of arrival (O1, O8)")
    func cascade() {
        let failed = S.status("authorizeFailed", 3, reason: "ProviderConnectionError")
        let success = S.status("authorizeSuccessful", 4)
        #expect(picture(failed, success).state == .authorized)
        #expect(picture(failed, success).failureReason == nil)
        // The notification of the failure was made after the success was stamped.
        let late = S.completed("authorize", 4.5, success: false, id: "a1")
        #expect(picture(failed, success, late).state == .authorized)
        // And it is the only thing known of the failure, beside a success of another action.
        let told = S.completed("authorize", 4.3, minor: 5749, id: "a2")
        #expect(picture(told, late).state == .authorized)
        #expect(picture(success, told, late).state == .authorized)
    }

    @Test("one action with a failure and then a success is authorized, whatever the statuses say beside it")
    func cascadeInOneAction() {
        let failure = S.completed("authorize", 3.4, success: false, id: "a1")
        let success = S.completed("authorize", 4.4, minor: 5749, id: "a1")
        #expect(picture(failure, success).state == .authorized)
        #expect(picture(failure, success, S.status("authorizeFailed", 3)).state == .authorized)
        #expect(
            picture(failure, success, S.status("authorizeFailed", 3), S.status("authorizeSuccessful", 4)).state
                == .authorized)
    }

    @Test("pending that is stamped after the failure means nothing")
    func pendingAfterFailure() {
        #expect(picture(S.status("authorizeFailed", 3), S.status("authorizePending", 3.1)).state == .failed)
        #expect(
            picture(S.completed("authorize", 3.05, success: false), S.pending("authorize", 3.1)).state == .failed)
    }

    @Test("a new request after a failure reopens, and its pending one counts")
    func retryAfterFailure() {
        let failed = S.status("authorizeFailed", 3)
        let again = S.status("authorizeRequested", 5)
        #expect(picture(failed, again).state == .processing)
        #expect(picture(failed, again, S.status("authorizePending", 6)).state == .needsCustomer)
        #expect(picture(failed, again, S.status("authorizeSuccessful", 7)).state == .authorized)
    }

    @Test("pending before a success on a frictionless card doesn't outlive it")
    func pendingBeforeSuccess() {
        #expect(
            picture(S.status("authorizeSuccessful", 3.3), S.status("authorizePending", 3.2)).state == .authorized)
        #expect(picture(S.status("authorizeSuccessful", 3.3), S.pending("authorize", 3.9)).state == .authorized)
    }

    @Test("an update takes an authorization back (executionActionUpdated with success: false)")
    func reversal() {
        let success = S.completed("authorize", 4, minor: 5749, id: "a1")
        let reversed = S.completed("authorize", 60, success: false, id: "a1", reason: "AuthorizationRevoked")
        let facts = picture(success, reversed)
        #expect(facts.state == .failed)
        #expect(facts.authorized == nil)
        #expect(facts.failureReason == "AuthorizationRevoked")
        #expect(facts.failedAt == S.at(60))
    }

    @Test("a reversal isn't mistaken for the failure of the provider that was tried before")
    func reversalAfterCascade() {
        let statuses = [S.status("authorizeFailed", 3), S.status("authorizeSuccessful", 4)]
        let success = S.completed("authorize", 4.2, minor: 5749, id: "a2")
        let reversed = S.completed("authorize", 60, success: false, id: "a2")
        #expect(picture(statuses[0], statuses[1], success, reversed).state == .failed)
        #expect(
            picture(statuses[0], statuses[1], success, reversed, S.status("authorizeFailed", 59.8)).failedAt
                == S.at(59.8))
    }

    @Test("a result that is told late and without a time takes its place among the statuses")
    func lateAndUndated() {
        // Another provider was tried; its failure is heard after the success.
        let failed = S.completed("authorize", 3.2, success: false, id: "a1", reason: "GenericRejection")
        let success = S.completed("authorize", 4.2, minor: 5749, id: "a1")
        let cascade = [S.status("authorizeFailed", 3), S.status("authorizeSuccessful", 4)]
        #expect(picture(cascade[0], cascade[1], success, failed.heard(after: .seconds(20))).state == .authorized)
        // A time that was told is what it is: then it is a reversal, whose status wasn't read yet.
        #expect(
            picture(cascade[0], cascade[1], success, S.completed("authorize", 23.2, success: false, id: "a1")).state
                == .failed)
        // A reversal that was read.
        let reversed = [S.status("authorizeSuccessful", 3), S.status("authorizeFailed", 60)]
        let both = [
            S.completed("authorize", 3.2, minor: 5749, id: "a1").heard(after: .seconds(80)),
            S.completed("authorize", 60.2, success: false, id: "a1"),
        ]
        #expect(picture(reversed[0], reversed[1], both[0], both[1]).state == .failed)
    }

    @Test("a reversed authorization can be authorized again")
    func reversalAndRetry() {
        let facts = [
            S.completed("authorize", 4, minor: 5749, id: "a1"), S.completed("authorize", 60, success: false, id: "a1"),
        ]
        #expect(picture(facts[0], facts[1], S.status("authorizeRequested", 61)).state == .processing)
        #expect(picture(facts[0], facts[1], S.completed("authorize", 62, minor: 5749, id: "a3")).state == .authorized)
    }

    @Test("a second tap that is refused takes no authorization back")
    func refusedSecondAttempt() {
        let success = S.completed("authorize", 4, minor: 5749, id: "a1")
        let refused = S.completed("authorize", 6, success: false, id: "a2", reason: "action.not-allowed")
        #expect(picture(success, refused).state == .authorized)
        #expect(picture(success, refused, S.status("authorizeSuccessful", 3.9)).state == .authorized)
        // The refusal may have a status too; whose it is, is known.
        #expect(picture(success, refused, S.status("authorizeFailed", 5.9)).state == .authorized)
        #expect(picture(success, S.completed("confirm", 7, success: false)).state == .authorized)
        #expect(picture(success, S.status("confirmFailed", 7)).state == .authorized)
        // Before anything succeeded a failed confirmation is the end of the attempt.
        #expect(picture(S.status("authorizePending", 2), S.status("confirmFailed", 7)).state == .failed)
    }

    @Test(
        "codes without a known meaning are never a success (M7)",
        arguments: [
            "authorizeSucceeded", "AuthorizeSuccessful", "authorizeSuccessful ", "authorized", "paid", "success",
            "captured", "authorizeSuccessful2", "unreadable", "", "orderReviewed", "ｃaptureSuccessful",
        ])
    func unknownCode(code: String) {
        let alone = picture(S.status("created", 0), S.status("authorizeRequested", 1), S.status(code, 3))
        #expect(alone.state == .unknown)
        #expect(!alone.state.holdsMoney && alone.state.isInFlight)
        #expect(alone.authorized == nil && alone.captured == nil)
        // What is known afterwards counts; what was authorized stays so.
        #expect(picture(S.status(code, 3), S.status("authorizeSuccessful", 4)).state == .authorized)
        #expect(picture(S.status("authorizeSuccessful", 2), S.status(code, 3)).state == .authorized)
        #expect(picture(S.status(code, 3), S.status("authorizeFailed", 4)).state == .failed)
        #expect(picture(S.status("authorizeFailed", 2), S.status(code, 3)).state == .unknown)
    }

    @Test("every code of the official list has a meaning, and only two of them hold money by themselves")
    func officialCodes() {
        let official = [
            "created", "authorizeSuccessful", "confirmSuccessful", "captureSuccessful", "cancelSuccessful",
            "refundSuccessful", "fraudScoreSuccessful", "payoutSuccessful", "authorizeFailed", "confirmFailed",
            "captureFailed", "cancelFailed", "refundFailed", "fraudScoreFailed", "payoutFailed", "authorizeRequested",
            "authorizePending", "confirmRequested", "captureRequested", "captureScheduled", "captureUnscheduled",
            "cancelRequested", "cancelScheduled", "cancelUnscheduled", "refundRequested", "fraudScoreRequested",
            "fraudScorePending", "payoutRequested", "payoutPending",
        ]
        #expect(official.count == 29)
        #expect(official.allSatisfy { picture(S.status($0, 1)).state != .unknown })
        let holding = official.filter { picture(S.status($0, 1)).state.holdsMoney }
        // A refund implies a capture of which something may be left.
        #expect(holding == ["authorizeSuccessful", "captureSuccessful", "refundSuccessful"])
    }

    @Test("a completed action that doesn't say how it ended is unknown, not failed (M7)")
    func noSuccessField() {
        #expect(picture(S.completed("authorize", 3, success: nil)).state == .unknown)
        #expect(
            picture(S.completed("authorize", 3, success: nil), S.completed("authorize", 4, minor: 5749)).state
                == .authorized)
    }

    @Test(
        "M7: a failure behind which a charge can hide is unknown, until each payment's record says what became of it",
        arguments: ["ProviderTimeout", "TIMEOUT", "UnexpectedProviderResponse", "ProviderUnknownError"])
    func hiddenCharge(_ reason: String) {
        let failed = S.status("authorizeFailed", 10, reason: reason)
        let doubt = picture(S.status("created", 1), failed)
        #expect(doubt.state == .unknown && doubt.hidesCharge && doubt.lacksFigures && doubt.failureReason == reason)
        #expect(doubt.authorized == nil)
        let held = picture(failed, S.payment("Unknown", 10), S.payment("Authorized", 11, amount: 5749))
        #expect(held.state == .authorized && held.authorized == S.money(5749) && !held.hidesCharge)
        let over = picture(failed, S.payment("Unknown", 10), S.payment("Failed", 11, amount: 5749))
        #expect(over.state == .failed && !over.hidesCharge && over.failureReason == reason)
        // What was read before it failed settles nothing, nor does the record of the other provider that was tried.
        #expect(picture(failed, S.payment("Failed", 9)).state == .unknown)
        #expect(picture(failed, S.payment("Failed", 11, id: "b"), S.payment("Unknown", 11, id: "a")).state == .unknown)
        // A later, honest decline of another provider doesn't say what the first did.
        #expect(picture(failed, S.status("authorizeFailed", 12, reason: "LimitExceeded")).state == .unknown)
        #expect(picture(failed, S.status("authorizeSuccessful", 12, amount: 5749)).state == .authorized)
        #expect(picture(failed, S.completed("cancel", 12)).state == .cancelled)
        #expect(picture(S.status("authorizeFailed", 10, reason: "LimitExceeded")).state == .failed)
    }

    @Test("a success whose amount can't be read isn't one of the amount at the creation, whatever its time")
    func amountOfBefore() {
        let created = S.status("created", 5, amount: 5299)
        for time in [1.0, 5.0, 9.0] {
            let told = picture(created, S.completed("authorize", time))
            #expect(told.state == .authorized && told.authorized == nil && told.lacksFigures, "\(time)")
        }
        let read = picture(created, S.completed("authorize", 1), S.status("authorizeSuccessful", 6, amount: 1500))
        #expect(read.authorized == S.money(1500))
    }

    @Test("actions that have nothing to do with paying change nothing")
    func otherActions() {
        for action in ["fraudScore", "dispute", "payout", "lookup", "startPaymentSession", "authorise"] {
            #expect(picture(S.completed(action, 3, minor: 5749)).state == .created)
            #expect(
                picture(S.completed("authorize", 2, minor: 5749), S.completed(action, 3, success: false)).state
                    == .authorized)
        }
    }

    @Test("nanoseconds decide")
    func nanoseconds() {
        let failed = S.status("authorizeFailed", 3.000_000_001)
        #expect(picture(failed, S.status("authorizeSuccessful", 3.000_000_002)).state == .authorized)
        #expect(picture(failed, S.status("authorizeSuccessful", 3.000_000_000)).state == .failed)
        // At the same instant a success counts for more than a failure, and a failure for more than a request.
        #expect(picture(failed, S.status("authorizeSuccessful", 3.000_000_001)).state == .authorized)
        #expect(picture(failed, S.status("authorizeRequested", 3.000_000_001)).state == .failed)
    }

    @Test("a notification whose time was cut to whole seconds still finds its place")
    func cutTimes() {
        // The failure was stamped at 4.5 and the success at 4.7; both were told "at 4".
        let failed = S.status("authorizeFailed", 4.5)
        #expect(picture(failed, S.completed("authorize", 4, minor: 5749)).state == .authorized)
        #expect(
            picture(failed, S.status("authorizeSuccessful", 4.7), S.completed("authorize", 4, success: false, id: "a1"))
                .state == .authorized)
        #expect(picture(failed, S.completed("authorize", 4, success: false)).failedAt == S.at(4.5))
    }
}
