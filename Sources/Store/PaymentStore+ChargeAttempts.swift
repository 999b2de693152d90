import Basics
import Foundation
import Lockstep
import Postgres

/// An attempt whose execution is to be created at the provider: what was written down, and what to send.
public struct PlannedExecution: Sendable {
    public let operation: PaymentOperation
    public let charge: Charge
    public let attempt: ChargeAttempt
    public let request: ExecutionRequest

    /// The request is always built from what was written down: the same key, the same content.
    init(_ operation: PaymentOperation, _ charge: Charge, _ attempt: ChargeAttempt, meta: JSON?) {
        self.operation = operation
        self.charge = charge
        self.attempt = attempt
        request = ExecutionRequest(
            workflowCode: charge.workflowCode, merchantReference: attempt.merchantReference,
            holderReference: charge.holderReference,
            processing: charge.subscription == nil ? .unscheduled : .subscription, meta: meta)
    }
}

/// An attempt whose execution is there and is to be authorized.
public struct PlannedAuthorization: Sendable {
    public let operation: PaymentOperation
    public let execution: ExecutionReference
    public let charge: Charge
    public let attempt: ChargeAttempt
    /// Its sender may have died, or it was sent and nobody knows: look first.
    public var wasSent: Bool { operation.attempts > 1 && !isUnsent }
    /// The provider could not be reached, or wanted to be asked later: nothing was sent so far.
    public var isUnsent: Bool { operation.reason == Self.neverSent }
    /// The reason of an operation that is to be sent for the first time.
    static let neverSent = "not-sent"
}

extension PaymentStore {
    /// Begins the next attempt of a claimed unscheduled charge: the attempt and the creation of its execution are written
    /// down, and the charge isn't due any more. From here on its operations drive it, whoever dies.
    ///
    /// - Parameters:
    ///   - instrument: as it was read just now.
    ///   - owner: who sends it; holds the operation's lease.
    /// - Returns: nil when the claim was over, or somebody else's attempt is open.
    public func beginAttempt(
        of claimed: ClaimedCharge, with instrument: InstrumentSnapshot, owner: UUID
    ) async throws -> PlannedExecution? {
        try await transact { transaction in
            try await transaction.learnInstrument(instrument, holder: claimed.charge.holderReference)
            guard var charge = try await transaction.lockClaimed(claimed),
                !charge.attempts.contains(where: \.outcome.isOpen)
            else { return nil }
            let meta = try await transaction.readMeta(of: charge.id)
            var changes = transaction.subscriptionChanges
            let planned = changes.begin(&charge, meta: meta, with: instrument, at: transaction.now, owner: owner)
            changes.put(charge)
            try await transaction.write(changes)
            return planned
        }
    }

    /// What a claimed `createExecution` needs to go on.
    public func resumeExecution(_ claimed: ClaimedOperation) async throws -> PlannedExecution? {
        try await transact { transaction in
            guard let charge = claimed.operation.charge else { return nil }
            return try await transaction.planned(claimed.operation, charge)
        }
    }

    /// What a claimed `authorize` needs to go on.
    public func resumeAuthorization(_ claimed: ClaimedOperation) async throws -> PlannedAuthorization? {
        try await transact { transaction in
            guard let id = claimed.operation.charge, let charge = try await transaction.readCharge(id) else {
                return nil
            }
            return PlannedAuthorization(claimed.operation, of: charge)
        }
    }

    /// The reason of a call that isn't sent any more since its attempt was decided without it.
    static let attemptOver = "attempt-over"

    /// Nothing was sent: the attempt is as if it had not begun, and the charge is due again later; or it is skipped, where
    /// its subscription doesn't run any more.
    public func withdrawAttempt(_ planned: PlannedExecution, seconds: Int?) async throws -> Charge {
        try await transact { transaction in
            let locked = try await transaction.lockChargesAndMore([planned.charge.id])
            guard let charge = locked.charges.first,
                var operation = try await transaction.lockOperation(planned.operation.id)
            else { throw CorruptRow(table: "operations", detail: "a planned execution is gone") }
            // Another one sent it in the meantime: then it goes on.
            guard !operation.state.isFinal, operation.attempts == planned.operation.attempts else { return charge }
            try await transaction.resolveDiscrepancies(
                of: operation, about: .other(charge.subscription?.uuid ?? charge.id.uuid))
            let attempt = charge.attempts.first { $0.number == planned.attempt.number }
            guard let attempt, attempt.outcome.isUndecided else {
                // Another attempt has paid meanwhile: there is none to come.
                operation.state = .failed
                operation.reason = Self.attemptOver
                try await transaction.writeOperation(operation, dueAt: nil)
                return charge
            }
            _ = try await transaction.pipeline([
                "DELETE FROM operations WHERE id = \(operation.id.uuid)",
                """
                DELETE FROM charge_attempts
                WHERE charge_id = \(charge.id.uuid) AND number = \(planned.attempt.number) AND execution_id IS NULL
                """,
            ])
            guard let reason = charge.subscription.flatMap({ locked.subscriptions[$0]?.stopReason }) else {
                return try await transaction.postpone(charge.id, seconds: seconds) ?? charge
            }
            var withdrawn = charge
            withdrawn.attempts.removeAll { $0.number == planned.attempt.number && $0.execution == nil }
            var changes = transaction.subscriptionChanges
            changes.skip(withdrawn, reason)
            try await transaction.write(changes)
            return try await transaction.readCharge(charge.id) ?? withdrawn
        }
    }
}

extension PlannedAuthorization {
    init?(_ operation: PaymentOperation, of charge: Charge) {
        guard let execution = operation.execution,
            let attempt = charge.attempts.first(where: { $0.execution == execution.id })
        else { return nil }
        self.init(operation: operation, execution: execution, charge: charge, attempt: attempt)
    }
}

extension Transaction {
    fileprivate func planned(_ operation: PaymentOperation, _ id: ChargeID) async throws -> PlannedExecution? {
        let number = try await ordinal(of: operation.id)
        guard let charge = try await readCharge(id), let attempt = charge.attempts.first(where: { $0.number == number })
        else { return nil }
        return PlannedExecution(operation, charge, attempt, meta: try await readMeta(of: id))
    }
}
