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
    /// Begins the next attempt of a claimed charge: the attempt and the creation of its execution are written down, and
    /// the charge isn't due any more. From here on its operations drive it, whoever dies.
    ///
    /// - Parameters:
    ///   - instrument: as it was read just now.
    ///   - owner: who sends it; holds the operation's lease.
    ///   - moment: when it counts as made, where that isn't now; later attempts are planned from it.
    /// - Returns: nil when the claim was over, or somebody else's attempt is open.
    public func beginAttempt(
        of claimed: ClaimedCharge, with instrument: InstrumentSnapshot, owner: UUID, at moment: Timestamp? = nil
    ) async throws -> PlannedExecution? {
        try await transact { transaction in
            try await transaction.learnInstrument(instrument, holder: claimed.charge.holderReference)
            guard let charge = try await transaction.lockClaimed(claimed),
                !charge.attempts.contains(where: \.outcome.isOpen)
            else { return nil }
            let number = (charge.attempts.last?.number ?? 0) + 1
            let attempt = ChargeAttempt(
                number: number, merchantReference: charge.reference(ofAttempt: number, by: policy.references),
                instrument: instrument.id, paymentMethod: instrument.paymentMethod, amount: charge.amount,
                begunAt: moment ?? transaction.now)
            let operation = PaymentOperation(
                id: OperationID(identifiers.next()), kind: .createExecution, owner: .charge(charge.id),
                execution: nil, key: IdempotencyKey(identifiers.next()), state: .sent, amount: charge.amount,
                attempts: 1, createdAt: transaction.now, sentAt: transaction.now)
            try await transaction.insertAttempt(attempt, of: charge.id)
            try await transaction.insertOperation(
                operation, workflowCode: charge.workflowCode, owner: owner, ordinal: number)
            return try await transaction.planned(operation, charge.id)
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

    /// Nothing was sent: the attempt is as if it had not begun, and the charge is due again later.
    public func withdrawAttempt(_ planned: PlannedExecution, seconds: Int?) async throws -> Charge {
        try await transact { transaction in
            guard let charge = try await transaction.lockCharge(planned.charge.id),
                let operation = try await transaction.lockOperation(planned.operation.id)
            else { throw CorruptRow(table: "operations", detail: "a planned execution is gone") }
            // Another one sent it in the meantime: then it goes on.
            guard !operation.state.isFinal, operation.attempts == planned.operation.attempts else { return charge }
            _ = try await transaction.pipeline([
                "DELETE FROM operations WHERE id = \(operation.id.uuid)",
                """
                DELETE FROM charge_attempts
                WHERE charge_id = \(charge.id.uuid) AND number = \(planned.attempt.number) AND execution_id IS NULL
                """,
            ])
            try await transaction.postpone(charge.id, seconds: seconds)
            return try await transaction.readCharge(charge.id) ?? charge
        }
    }

    /// The provider made the execution: it becomes known with whatever was told about it before, and its authorization
    /// is written down.
    ///
    /// - Returns: nil when the attempt is over, or somebody else goes on with it.
    public func finishExecution(
        _ planned: PlannedExecution, _ snapshot: ExecutionSnapshot, owner: UUID
    ) async throws -> PlannedAuthorization? {
        try await transact { transaction in
            let execution = snapshot.reference
            try await transaction.lockFacts(of: execution.id)
            guard let charge = try await transaction.lockCharge(planned.charge.id),
                var operation = try await transaction.lockOperation(planned.operation.id)
            else { throw CorruptRow(table: "operations", detail: "a planned execution is gone") }
            guard !operation.state.isFinal else { return nil }
            try await transaction.insertExecution(
                execution, owner: .charge(charge.id), ordinal: planned.attempt.number,
                merchantReference: planned.attempt.merchantReference, amount: planned.attempt.amount, payload: nil)
            _ = try await transaction.insertFacts(snapshot.facts, of: execution.id)
            operation.state = .succeeded
            operation.execution = execution
            operation.reason = nil
            try await transaction.writeOperation(operation, dueAt: nil)
            _ = try await transaction.pipeline([
                """
                UPDATE charge_attempts SET execution_id = \(execution.id.uuid)
                WHERE charge_id = \(charge.id.uuid) AND number = \(planned.attempt.number)
                """,
                "UPDATE charges SET postponements = 0 WHERE id = \(charge.id.uuid) AND postponements > 0",
            ])
            guard let known = try await transaction.readCharge(charge.id) else { return nil }
            let settled = try await transaction.settle(known)
            let attempt = settled.attempts.first { $0.number == planned.attempt.number }
            guard let attempt, attempt.outcome == .processing || attempt.outcome == .unknown else { return nil }
            let authorize = PaymentOperation(
                id: OperationID(identifiers.next()), kind: .authorize, owner: .charge(charge.id),
                execution: execution, key: IdempotencyKey(identifiers.next()), state: .sent,
                amount: planned.attempt.amount, attempts: 1, createdAt: transaction.now, sentAt: transaction.now)
            try await transaction.insertOperation(
                authorize, workflowCode: charge.workflowCode, owner: owner, ordinal: planned.attempt.number)
            return PlannedAuthorization(authorize, of: settled)
        }
    }

    /// What became of sending a call of an attempt.
    public enum AttemptAnswer: Sendable {
        case acknowledged(Acknowledgement)
        /// It certainly didn't happen and won't; in the provider's words.
        case refused(reason: String)
        case unknown(Doubt)
        /// Nothing was sent, or the provider wants to be asked later: the intent stays, under its key.
        case later(seconds: Int?)
        /// The provider keeps a 5xx under the key, and a look showed that nothing happened: sent again under a new one.
        case wornOut
    }

    /// Writes down what became of an attempt's call, unless facts decided it in the meantime.
    public func recordAttempt(
        _ operation: PaymentOperation, of id: ChargeID, number: Int, _ answer: AttemptAnswer
    ) async throws -> Charge {
        try await transact { transaction in
            if let execution = operation.execution { try await transaction.lockFacts(of: execution.id) }
            guard let charge = try await transaction.lockCharge(id),
                var known = try await transaction.lockOperation(operation.id)
            else { throw CorruptRow(table: "operations", detail: "a claimed operation is gone") }
            guard !known.state.isFinal else { return charge }
            // Two may have sent it, when the first one took longer than its lease; what the provider took on stands.
            if case .acknowledged = answer {} else if known.key != operation.key { return charge }
            var refused: [Int: String] = [:]
            var dueAt = transaction.nextLook(after: known.attempts)
            switch answer {
            case .acknowledged(let acknowledgement):
                known.state = .succeeded
                known.actionID = acknowledgement.actionID
                known.reason = nil
                if let execution = known.execution {
                    let fact = Fact(
                        kind: .action, action: known.kind.rawValue, actionID: acknowledgement.actionID,
                        phase: .requested, amount: known.amount, at: acknowledgement.executedAt ?? transaction.now,
                        source: .answer)
                    _ = try await transaction.insertFacts([fact], of: execution.id)
                }
            case .refused(let reason):
                known.state = .failed
                known.reason = reason
                refused[number] = reason
            case .unknown(let doubt):
                known.state = .unknown
                known.reason = doubt.kind.rawValue
            case .later(let seconds):
                // What was sent before may still have happened.
                let isUnsent = known.attempts <= 1 || known.reason == PlannedAuthorization.neverSent
                known.state = isUnsent ? .prepared : .unknown
                known.reason = isUnsent ? PlannedAuthorization.neverSent : known.reason
                dueAt = max(dueAt, transaction.now + .seconds(seconds ?? 0))
            case .wornOut:
                known.key = IdempotencyKey(identifiers.next())
                known.state = .unknown
                known.reason = nil
            }
            try await transaction.writeOperation(known, dueAt: dueAt)
            return try await transaction.settle(charge, refused: refused)
        }
    }
}

extension PlannedAuthorization {
    fileprivate init?(_ operation: PaymentOperation, of charge: Charge) {
        guard let execution = operation.execution,
            let attempt = charge.attempts.first(where: { $0.execution == execution.id })
        else { return nil }
        self.init(operation: operation, execution: execution, charge: charge, attempt: attempt)
    }
}

extension Transaction {
    fileprivate func insertAttempt(_ attempt: ChargeAttempt, of charge: ChargeID) async throws {
        _ = try await pipeline([
            """
            INSERT INTO charge_attempts (charge_id, number, merchant_reference, instrument_id, payment_method,
                amount_minor, currency, outcome, begun_at)
            VALUES (\(charge.uuid), \(attempt.number), \(attempt.merchantReference), \(attempt.instrument.uuid),
                \(attempt.paymentMethod), \(attempt.amount.minor), \(attempt.amount.currency.code),
                \(attempt.outcome.rawValue), \(attempt.begunAt.stored))
            """,
            """
            UPDATE charges SET state = 'processing', reason = NULL, next_attempt_at = NULL, lease_owner = NULL,
                lease_until = NULL
            WHERE id = \(charge.uuid)
            """,
        ])
    }

    /// The request of an attempt's execution, always built from what was written down: the same key, the same content.
    fileprivate func planned(_ operation: PaymentOperation, _ id: ChargeID) async throws -> PlannedExecution? {
        let number = try await ordinal(of: operation.id)
        guard let charge = try await readCharge(id), let attempt = charge.attempts.first(where: { $0.number == number })
        else { return nil }
        return PlannedExecution(
            operation: operation, charge: charge, attempt: attempt,
            request: ExecutionRequest(
                workflowCode: charge.workflowCode, merchantReference: attempt.merchantReference,
                holderReference: charge.holderReference,
                processing: charge.subscription == nil ? .unscheduled : .subscription,
                meta: try await readMeta(of: id)))
    }
}
