import Basics
import Foundation
import Lockstep
import Postgres

extension PaymentStore {
    /// Answers the pre-payment check from the books, and takes the basket's lease on a `proceed`.
    ///
    /// - Parameters:
    ///   - checkout: the only checkout that the caller may ask about (a client token); nil for a merchant key.
    ///   - deadline: after which nobody waits for the answer any more.
    /// - Returns: nil to proceed, or the reason against it.
    public func decideGate(
        _ question: Gate.Question, within checkout: CheckoutID?, deadline: ContinuousClock.Instant
    ) async throws -> Gate.Reason? {
        try await transact(deadline: deadline) { transaction in
            guard let id = try await transaction.checkout(of: question.execution),
                checkout == nil || checkout == id,
                var subject = try await transaction.lockCheckout(id)
            else { return .unknownExecution }
            let executions = try await transaction.readExecutions(of: id).map(\.execution)
            guard let execution = executions.first(where: { $0.id == question.execution }) else {
                return .unknownExecution
            }
            let refusal = Gate.refusal(of: question, checkout: subject, execution: execution, now: transaction.now)
            if let refusal { return refusal }
            if subject.lease?.execution != execution.id || subject.lease.map({ transaction.now >= $0.until }) ?? true {
                subject.lease = GateLease(execution: execution.id, until: transaction.now + policy.gateLease)
                try await transaction.settle(subject)
                // A payment is about to start: if nothing is heard of it soon, ask.
                _ = try await transaction.query(
                    """
                    UPDATE executions SET check_at =
                        \((transaction.now + policy.healing.pending.delay(before: 0, jitter: 0)).stored)
                    WHERE id = \(execution.id.uuid)
                    """)
            }
            return nil
        }
    }
}
