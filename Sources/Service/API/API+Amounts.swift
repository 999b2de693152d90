import Basics
import Foundation
import Lockstep
import Store

extension API {
    /// `PUT /v1/checkouts/{id}/amount`
    func updateAmount(_ request: Request) async throws -> Answer {
        let id = try request.ownCheckout()
        let change = try request.read { body in
            (amount: body.money("amount"), basketVersion: body.optional.string("basketVersion", .opaque))
        }
        let version = try request.requiredVersion()
        return try await move(
            id, to: change.amount, basketVersion: change.basketVersion, version: Int64(version), execution: nil,
            for: request)
    }

    /// `POST /v1/executions/{executionId}/update`: the SDK guide's shape of the same step.
    func updateExecution(_ request: Request) async throws -> Answer {
        let execution: ExecutionID = try request.id("executionId")
        let amount = try request.read { $0.moneyHere() }
        guard let id = try await store.checkout(of: execution) else { throw Problem.notFound }
        try request.authenticated().mustReach(id)
        return try await move(id, to: amount, basketVersion: nil, version: nil, execution: execution, for: request)
    }

    private func move(
        _ id: CheckoutID, to amount: Money, basketVersion: String?, version: Int64?, execution: ExecutionID?,
        for request: Request
    ) async throws -> Answer {
        let mover: PaymentStore.Mover = try request.authenticated().isMerchant ? .merchant : .client
        let start = try await store.beginMove(
            of: id, to: amount, basketVersion: basketVersion, version: version, execution: execution, by: mover,
            owner: orchestrator.owner)
        switch start {
        case .settled(let checkout): return answer(inStep: checkout)
        case .refused(let refusal): throw refusal.problem
        case .planned(let planned):
            switch try await orchestrator.move(planned) {
            case .inStep(let checkout): return answer(inStep: checkout)
            case .refused(let checkout): throw await refusedMove(checkout)
            case .unavailable: throw Problem(.unavailable, "Payrails could not be reached; the amount is as it was")
            case .unconfirmed: throw Problem(.amountUnconfirmed)
            }
        }
    }

    /// The provider's refusal, in the words of its reason where the facts that were just learned show one.
    private func refusedMove(_ checkout: Checkout) async -> Problem {
        if checkout.wasPaid { return Problem(.alreadyPaid) }
        if checkout.status == .processing { return Problem(.paymentInProgress) }
        return Problem(.amountRefused, "the amount is as it was")
    }

    private func answer(inStep checkout: Checkout) -> Answer {
        bells.feed.ring()
        return Answer.ok([
            "amount": checkout.amount.json, "amountVersion": JSON(checkout.amountVersion),
            "amountState": .string(checkout.amountState.rawValue),
        ]).tagged(Int(checkout.amountVersion))
    }
}

extension PaymentStore.MoveRefusal {
    fileprivate var problem: Problem {
        switch self {
        case .notFound: .notFound
        case .alreadyPaid: Problem(.alreadyPaid)
        case .cancelled: Problem(.checkoutCancelled)
        case .expired: Problem(.checkoutExpired)
        case .superseded: Problem(.conflict, "another execution is current; fetch the session again")
        case .outsidePolicy: Problem(.amountOutsidePolicy)
        case .paymentInProgress: Problem(.paymentInProgress)
        case .moving: Problem(.amountMoving)
        case .unconfirmed: Problem(.amountUnconfirmed)
        case .stale(let current):
            Problem(
                .stale, "the version is \(current)", members: ["amountVersion": JSON(current)],
                headers: ["ETag": "\"\(current)\""])
        }
    }
}
