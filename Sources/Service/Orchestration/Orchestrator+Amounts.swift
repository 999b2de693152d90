import Basics
import Foundation
import Lockstep
import Store

extension Orchestrator {
    public enum MoveOutcome: Sendable {
        /// Books, provider and answer agree.
        case inStep(Checkout)
        /// The provider refused; the books are as they were.
        case refused(Checkout)
        /// Nothing got through; the books are as they were.
        case unavailable
        /// Nobody knows which amount the provider has; the gate is shut.
        case unconfirmed
    }

    /// Moves a planned amount at the provider, and reads it back where the answer doesn't show it, so that "in step"
    /// means equal.
    public func move(_ planned: PlannedMove) async throws -> MoveOutcome {
        let answer = await provider.moveAmount(planned.execution, to: planned.amount, key: planned.operation.key)
        switch answer {
        case .done(let shown):
            if shown == planned.amount { return outcome(of: planned, try await store.finishMove(planned, .applied)) }
            // A yes is kept under the key, too. Once it came back, an amount that is as it was will stay so.
            let isStored = planned.operation.reason == Self.notTaken
            return try await look(
                planned, ifUnchanged: isStored ? .refused(reason: Self.notTaken) : .unknown(reason: Self.notTaken))
        case .refused(let refusal) where refusal.isPassing:
            // It was sent before where this is another attempt: then only a look tells what that one did.
            guard planned.operation.attempts <= 1 else {
                return try await look(planned, ifUnchanged: .unknown(reason: refusal.kind.rawValue))
            }
            _ = try await store.finishMove(planned, .refused(reason: refusal.kind.rawValue))
            return .unavailable
        case .refused(let refusal):
            // What is said of the caller, or by something in between, tells nothing of an attempt before. A 401 isn't that:
            // it is how an amount that doesn't match shows itself.
            if planned.operation.attempts > 1, !refusal.isAboutIntent, refusal.kind != .unauthorized {
                return try await look(planned, ifUnchanged: .unknown(reason: refusal.kind.rawValue))
            }
            // And a payment that began forbids a move: look.
            return try await look(planned, ifUnchanged: .refused(reason: refusal.code ?? refusal.kind.rawValue))
        case .unknown(let doubt):
            log.warning("nobody knows about a move", .checkout(planned.checkout), .error(doubt))
            // A 5xx is stored under the key. Once it came back, an amount that is as it was will stay so.
            let serverError = Doubt.Kind.serverError
            let isStored = doubt.kind == serverError && planned.operation.reason == serverError.rawValue
            return try await look(
                planned,
                ifUnchanged: isStored ? .refused(reason: doubt.kind.rawValue) : .unknown(reason: doubt.kind.rawValue))
        }
    }

    private static let notTaken = "the provider shows another amount"

    /// Reads the execution and decides by the amount that it has.
    private func look(_ planned: PlannedMove, ifUnchanged: PaymentStore.MoveResult) async throws -> MoveOutcome {
        guard let snapshot = try await refresh(planned.execution), let shown = snapshot.amount else {
            // Not even a refusal stands when the amount can't be seen: a 401 may have followed the effect.
            _ = try await store.finishMove(planned, .unknown(reason: "the execution can't be read"))
            return .unconfirmed
        }
        let result = shown == planned.amount ? .applied : ifUnchanged
        return outcome(of: planned, try await store.finishMove(planned, result, shown: shown))
    }

    /// By what the books say then. What was read may have settled the move by itself, whatever the answer was: a payment
    /// was authorized for one of the two amounts.
    private func outcome(of planned: PlannedMove, _ checkout: Checkout) -> MoveOutcome {
        guard checkout.amountState == .inStep else { return .unconfirmed }
        return checkout.amount == planned.amount ? .inStep(checkout) : .refused(checkout)
    }

    /// Goes on with a move whose outcome nobody knows: the same intent under the same key.
    func resumeMove(_ claimed: ClaimedOperation) async throws {
        guard let execution = claimed.operation.execution, let checkout = claimed.operation.checkout,
            let amount = claimed.operation.amount
        else { return }
        _ = try await move(
            PlannedMove(operation: claimed.operation, checkout: checkout, execution: execution, amount: amount))
    }
}
