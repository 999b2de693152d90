import Basics
import Foundation
import Lockstep
import Store

extension Orchestrator {
    public enum SessionOutcome: Sendable {
        case ready(ReadySession)
        /// The provider certainly refused; the order's reference is free again if it was the first session.
        case refused(Refusal)
        /// Nobody knows yet. The same request, or a worker, goes on with it.
        case unconfirmed
    }

    /// Creates a planned session at the provider.
    ///
    /// Whatever went wrong may be stored under the key and then comes back for ever. So what is in doubt for the second
    /// time is looked into: where an execution is there its payload is lost with the stored answer, so it is kept as
    /// superseded and another one is made; where nothing was created after a 5xx the intent gets a new key.
    public func createSession(_ planned: PlannedSession) async throws -> SessionOutcome {
        var planned = planned
        var serverErrors = planned.operation.reason == Doubt.Kind.serverError.rawValue ? 1 : 0
        // Each turn ends, or has a new key or another execution; more than a few mean that the provider is broken.
        for _ in 0..<4 {
            switch await provider.createSession(planned.request, key: planned.operation.key) {
            case .done(let session):
                return try await store.finishSession(planned, session).map(SessionOutcome.ready) ?? .unconfirmed
            case .refused(let refusal):
                let isRunning = refusal.kind == .conflict
                let isFirst = planned.operation.attempts <= 1 && serverErrors == 0
                let isCertain = isFirst || refusal.isAboutIntent
                guard !refusal.isPassing, !isRunning, isCertain else {
                    try await store.doubtSession(planned, Doubt(kind: .connectionLost, detail: refusal.detail))
                    return .unconfirmed
                }
                log.warning("the provider refused a session", .checkout(planned.checkout.id), .error(refusal))
                try await store.refuseSession(planned, refusal)
                return .refused(refusal)
            case .unknown(let doubt):
                log.warning("nobody knows about a session", .checkout(planned.checkout.id), .error(doubt))
                let wasDoubted = planned.operation.reason != nil
                if doubt.kind == .serverError {
                    serverErrors += 1
                    if serverErrors == 1 { continue }
                }
                guard serverErrors > 1 || wasDoubted,
                    let next = try await lookForSession(planned, mayRekey: serverErrors > 1)
                else {
                    try await store.doubtSession(planned, doubt)
                    return .unconfirmed
                }
                planned = next
                serverErrors = 0
            }
        }
        try await store.doubtSession(planned, Doubt(kind: .serverError, detail: "the provider keeps failing"))
        return .unconfirmed
    }

    /// Whether the provider created the execution after all. Nil where it can't be asked.
    private func lookForSession(_ planned: PlannedSession, mayRekey: Bool) async throws -> PlannedSession? {
        guard
            case .done(let found) = await provider.findExecutions(
                merchantReference: planned.request.merchantReference, workflowCode: planned.request.workflowCode)
        else { return nil }
        guard let execution = found.first else {
            return mayRekey ? try await store.rekeySession(planned, owner: owner) : nil
        }
        return try await store.adoptExecution(execution, insteadOf: planned, owner: owner)
    }

    public enum RenewedSession: Sendable {
        case ready(ReadySession)
        case refused(PaymentStore.SessionRefusal)
        case providerRefused(Refusal)
        case unconfirmed
        case notFound
    }

    /// The session to hand to an app: the one it has while that is good, a new one otherwise.
    public func renewSession(of checkout: CheckoutID, isExpired: Bool) async throws -> RenewedSession {
        var asked: Set<ExecutionID> = []
        while true {
            switch try await store.renewSession(
                of: checkout, isExpired: isExpired, asked: asked, owner: owner)
            {
            case .ready(let session): return .ready(session)
            case .refused(let refusal): return .refused(refusal)
            case .notFound: return .notFound
            case .busy: return .unconfirmed
            case .askFirst(let execution):
                guard asked.insert(execution.id).inserted, try await refresh(execution) != nil else {
                    return .unconfirmed
                }
            case .planned(let planned):
                switch try await createSession(planned) {
                case .ready(let session): return .ready(session)
                case .refused(let refusal): return .providerRefused(refusal)
                case .unconfirmed: return .unconfirmed
                }
            }
        }
    }
}
