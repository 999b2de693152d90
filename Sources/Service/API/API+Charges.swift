import Basics
import Foundation
import Lockstep
import Store

extension API {
    /// `POST /v1/charges`
    func createCharge(_ request: Request) async throws -> Answer {
        let new = try newCharge(request)
        guard orchestrator.charging.returnURL != nil else {
            throw Problem(.unavailable, "charges can't be made: LOCKSTEP_RETURN_URL must be set")
        }
        if let opening = try await store.findCharge(new.merchantReference, by: new.request) {
            return try await answer(opening, looked: nil)
        }
        let look = await orchestrator.look(at: new.instrument, of: new.holderReference)
        switch look {
        case .found: break
        case .anotherHolder: throw Problem(.instrumentOfAnotherHolder)
        case .missing:
            // One that was known has gone, which is the charge's fate; one that never was is the caller's mistake.
            guard try await store.readInstrument(new.instrument) != nil else { throw Problem.missingInstrument }
        case .unavailable(_, let error): throw Problem.provider(error)
        }
        return try await answer(try await store.openCharge(new), looked: look)
    }

    private func newCharge(_ request: Request) throws -> NewCharge {
        let identity = try request.identity()
        return try request.read { body in
            let reference = body.reference("merchantReference")
            if reference.contains(options.references.separator) {
                body.fault("merchantReference", "must not contain \"\(options.references.separator)\"")
            }
            return NewCharge(
                merchantReference: reference, holderReference: body.reference("holderReference"),
                instrument: body.id("instrumentId"), workflowCode: options.workflowCode, amount: body.money("amount"),
                expiryPolicy: body.optional.choice("expiryPolicy", of: ExpiryPolicy.self) ?? .block,
                meta: body.optional.freeObject("meta"), request: identity)
        }
    }

    private func answer(_ opening: PaymentStore.ChargeOpening, looked: InstrumentLook?) async throws -> Answer {
        switch opening {
        case .referenceTaken: throw Problem(.referenceExists, "an order or another charge has this merchantReference")
        case .known(let charge): return accepted(charge)
        case .opened(let claimed):
            let result = try await ChargeRunner(orchestrator).run(claimed, looked: looked)
            bells.feed.ring()
            switch result {
            case .begun(let charge), .skipped(let charge), .unavailable(let charge, _): return accepted(charge)
            case .lost: return accepted(try await store.readCharge(claimed.charge.id) ?? claimed.charge)
            }
        }
    }

    private func accepted(_ charge: Charge) -> Answer { .accepted(charge.json, location: "/v1/charges/\(charge.id)") }

    /// `GET /v1/charges/{id}`
    func readCharge(_ request: Request) async throws -> Answer {
        let id: ChargeID = try request.id()
        let charge = try await staleReads.read({ try await store.readCharge(id) }) { charge in
            guard charge.state == .processing || charge.state == .unknown, let execution = charge.execution,
                let attempt = charge.attempts.last
            else { return [] }
            return [AwaitedExecution(reference: execution, heardAt: attempt.begunAt)]
        }
        guard let charge else { throw Problem.notFound }
        return .ok(charge.json)
    }
}
