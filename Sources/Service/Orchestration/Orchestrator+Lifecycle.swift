import Basics
import Foundation
import Lockstep
import Store

extension Orchestrator {
    /// Sends a capture, cancel or refund that was written down, under its key, and learns what can be learned at once.
    public func send(_ claimed: ClaimedOperation) async throws -> PaymentOperation {
        guard let execution = claimed.operation.execution else { return claimed.operation }
        if claimed.wasSent, claimed.operation.kind != .cancel, !isKept(claimed.operation) {
            return try await lookInstead(claimed, execution)
        }
        if claimed.operation.isRekeyed, try await !isStillUntouched(claimed, execution) {
            return try await store.readOperation(claimed.operation.id) ?? claimed.operation
        }
        let answer: PaymentStore.LifecycleAnswer
        switch await call(claimed.operation, execution) {
        case .done(let acknowledgement): answer = .acknowledged(acknowledgement)
        case .refused(let refusal) where refusal.isPassing:
            answer = .later(seconds: refusal.retryAfterSeconds ?? 2)
        case .refused(let refusal)
        where claimed.operation.isOwnCancel && claimed.operation.reason == nil && !refusal.isByProvider:
            // Nobody else would ask again: the customer's money isn't kept because of a page of something in between, or of
            // our credentials. Where it lasts, it becomes a discrepancy.
            log.warning(
                "a cancel got no further than to something before the provider", .operation(claimed.operation.id),
                .execution(execution.id), .error(refusal))
            answer = .later(seconds: nil)
        case .refused(let refusal) where claimed.wasSent && !refusal.isAboutIntent:
            answer = .unknown(Doubt(kind: .unreadable, detail: refusal.detail))
        case .refused(let refusal):
            // Nobody had begun to pay what an abandoned order left open; then there is nothing to cancel.
            let isExpected = !claimed.operation.isTold
            log.write(
                isExpected ? .debug : .warning, "the provider refused an operation",
                [.operation(claimed.operation.id), .execution(execution.id), .error(refusal)])
            // Sent before, it may be refused because it has happened: facts go first.
            if claimed.wasSent { try await refresh(execution) }
            answer = .refused(refusal)
        case .unknown(let doubt):
            log.warning(
                "nobody knows about an operation", .operation(claimed.operation.id), .execution(execution.id),
                .error(doubt))
            answer = .unknown(doubt)
        }
        let operation = try await store.recordLifecycle(claimed, answer)
        if case .later = answer { return operation }
        let snapshot = try await refresh(execution)
        // A 5xx that comes back is kept under the key: then nothing but a look tells, and the key may be worn out.
        let isServerError = if case .unknown(let doubt) = answer { doubt.kind == .serverError } else { false }
        if isServerError, claimed.operation.reason == Doubt.Kind.serverError.rawValue, let snapshot {
            try await rekey(claimed, after: snapshot)
        }
        return try await store.readOperation(operation.id) ?? operation
    }

    /// The provider may have forgotten the key: what is sent under it now could be a second capture or refund. So nothing
    /// is sent; facts decide whether it happened, and where they show that nothing did it gets a new key.
    private func lookInstead(
        _ claimed: ClaimedOperation, _ execution: ExecutionReference
    ) async throws -> PaymentOperation {
        log.warning(
            "the key of an operation is too old to be sent again", .operation(claimed.operation.id),
            .execution(execution.id))
        let operation = try await store.recordLifecycle(
            claimed, .unknown(Doubt(kind: .timedOut, detail: "the key is too old to be sent again")))
        if let snapshot = try await refresh(execution) { try await rekey(claimed, after: snapshot) }
        return try await store.readOperation(operation.id) ?? operation
    }

    /// Looks again before anything is sent under a new key. Where the look shows more than the one before, or there is
    /// none, it waits.
    private func isStillUntouched(
        _ claimed: ClaimedOperation, _ execution: ExecutionReference
    ) async throws -> Bool {
        if let snapshot = try await refresh(execution), let reference = snapshot.merchantReference,
            try await readPayments(reference, of: snapshot), try await store.confirmRekeyed(claimed)
        {
            return true
        }
        try await store.postponeOperation(claimed)
        return false
    }

    /// Gives the intent a new key where the execution and its payments show that nothing came of it.
    private func rekey(_ claimed: ClaimedOperation, after snapshot: ExecutionSnapshot) async throws {
        guard let reference = snapshot.merchantReference, try await readPayments(reference, of: snapshot) else {
            return
        }
        try await store.rekeyLifecycle(claimed)
    }

    /// Whether the provider certainly still keeps what it answered under the operation's key.
    func isKept(_ operation: PaymentOperation) -> Bool {
        store.now < (operation.sentAt ?? operation.createdAt) + charging.keyLife
    }

    private func call(
        _ operation: PaymentOperation, _ execution: ExecutionReference
    ) async -> Outcome<Acknowledgement> {
        switch operation.kind {
        case .capture:
            await provider.capture(
                execution,
                CaptureRequest(
                    amount: operation.amount, isFinal: operation.isFinalCapture, reason: operation.intentReason),
                key: operation.key)
        case .refund:
            await provider.refund(
                execution, RefundRequest(amount: operation.amount, reason: operation.intentReason), key: operation.key)
        case .cancel: await provider.cancel(execution, reason: operation.shopReason, key: operation.key)
        case .createSession, .moveAmount, .createExecution, .authorize, .tokenization, .changeInstrument,
            .deleteInstrument:
            preconditionFailure("\(operation.kind) isn't sent as a capture, cancel or refund is")
        }
    }

    /// One step of an operation that a worker claimed.
    func advance(_ claimed: ClaimedOperation) async throws {
        switch claimed.operation.kind {
        case .createSession:
            guard let planned = try await store.resumePlannedSession(claimed) else { return }
            _ = try await createSession(planned)
        case .moveAmount: try await resumeMove(claimed)
        case .createExecution, .authorize: try await ChargeRunner(self).resume(claimed)
        case .tokenization, .changeInstrument, .deleteInstrument: try await lookInto(claimed.operation)
        case .capture, .cancel, .refund:
            guard claimed.operation.state == .acknowledged else {
                _ = try await send(claimed)
                return
            }
            if let execution = claimed.operation.execution { try await refresh(execution) }
            try await store.postponeOperation(claimed)
        }
    }
}
