import Basics
import Foundation
import Lockstep
import Store

extension API {
    /// `GET /v1/executions/{id}`
    func readExecution(_ request: Request) async throws -> Answer {
        let id: ExecutionID = try request.id()
        let view = try await staleReads.read({ try await store.readExecution(id) }) { $0.awaited.map { [$0] } ?? [] }
        guard let view else { throw Problem.notFound }
        return .ok(view.json)
    }

    /// `GET /v1/operations/{id}`
    func readOperation(_ request: Request) async throws -> Answer {
        guard let operation = try await store.readOperation(try request.id()), operation.kind.isLifecycle else {
            throw Problem.notFound
        }
        return .ok(operation.json)
    }

    /// `POST /v1/executions/{id}/capture`
    func capture(_ request: Request) async throws -> Answer {
        try await begin(.capture, request) { body in
            (body.optional.money("amount"), body.optional.flag("final"), body.optional.string("reason", .note))
        }
    }

    /// `POST /v1/executions/{id}/refund`
    func refund(_ request: Request) async throws -> Answer {
        try await begin(.refund, request) { body in
            // A refund closes nothing: whether it is the last one changes nothing.
            _ = body.optional.flag("final")
            return (body.optional.money("amount"), nil, body.optional.string("reason", .note))
        }
    }

    /// `POST /v1/executions/{id}/cancel`
    func cancelExecution(_ request: Request) async throws -> Answer {
        try await begin(.cancel, request) { body in
            if body.optional.flag("final") == false {
                body.fault("final", "must be true or missing: a cancel is always of the whole")
            }
            return (body.optional.money("amount"), nil, body.optional.string("reason", .note))
        }
    }

    private func begin(
        _ kind: PaymentOperation.Kind, _ request: Request,
        _ reading: (FieldReader) -> (amount: Money?, isFinal: Bool?, reason: String?)
    ) async throws -> Answer {
        let id: ExecutionID = try request.id()
        let wish = try request.read(reading)
        let start = try await store.beginLifecycle(
            kind, of: id, amount: wish.amount, isFinal: wish.isFinal, reason: wish.reason,
            request: request.idempotency.map { PaymentStore.RequestIdentity(credential: $0.owner, key: $0.key) },
            owner: orchestrator.owner)
        switch start {
        case .notFound: throw Problem.notFound
        case .refused(let refusal): throw refusal.problem
        case .known(let operation): return accepted(operation)
        case .begun(let claimed):
            let operation = try await orchestrator.send(claimed)
            bells.feed.ring()
            return accepted(operation)
        }
    }

    private func accepted(_ operation: PaymentOperation) -> Answer {
        .accepted(operation.json, location: "/v1/operations/\(operation.id)")
    }
}

extension Lifecycle.Refusal {
    fileprivate var problem: Problem {
        switch self {
        case .notCapturable: Problem(.notCapturable)
        case .notCancellable: Problem(.notCancellable)
        case .notRefundable: Problem(.notRefundable)
        case .exceedsCapturable: Problem(.amountExceedsCapturable)
        case .exceedsRefundable: Problem(.amountExceedsRefundable)
        case .currencyMismatch: .invalid("/amount/currency", "must be the currency of the execution")
        case .notTheWhole:
            .invalid("/amount/value", "must be the whole amount, or missing: a cancel is always of the whole")
        }
    }
}
