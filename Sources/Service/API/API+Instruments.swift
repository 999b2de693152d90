import Basics
import Foundation
import Lockstep
import Store

extension API {
    /// `POST /v1/tokenizations`
    func createTokenization(_ request: Request) async throws -> Answer {
        let wish = try request.read { body in
            let kind = body.optional.choice("kind", of: TokenizationRequest.Kind.self) ?? .tokenization
            let instrument: InstrumentID? = kind == .secureFields ? body.id("instrumentId", as: InstrumentID.self) : nil
            if kind == .tokenization, body.has("instrumentId") {
                body.fault("instrumentId", "goes with the kind secureFields only")
            }
            return TokenizationRequest(
                kind: kind, holderReference: body.reference("holderReference"), instrumentID: instrument)
        }
        if let instrument = wish.instrumentID {
            switch await orchestrator.look(at: instrument, of: wish.holderReference) {
            case .found: break
            case .anotherHolder: throw Problem(.instrumentOfAnotherHolder)
            case .missing: throw Problem.missingInstrument
            case .unavailable(_, let error): throw Problem.provider(error)
            }
        }
        var operation = try await store.beginInstrumentOperation(
            .tokenization, of: wish.instrumentID, request: try request.identity(), owner: orchestrator.owner)
        var outcome = await orchestrator.provider.createTokenization(wish, key: operation.key)
        if case .unknown(let doubt) = outcome, doubt.kind == .serverError {
            operation = try await store.rekeyTokenization(operation)
            outcome = await orchestrator.provider.createTokenization(wish, key: operation.key)
        }
        switch outcome {
        case .done(let payload):
            try await store.finishInstrumentOperation(operation, succeeded: true, reason: nil)
            return .created(["id": .string(operation.id.description), "init": payload.json])
        case .refused(let refusal):
            try await store.finishInstrumentOperation(operation, succeeded: false, reason: refusal.kind.rawValue)
            throw refusal.isPassing ? Problem.provider(refusal) : Problem(.creationRefused, refusal.code)
        case .unknown(let doubt):
            // An init that nobody got is worth nothing; the same request makes it again.
            try await store.finishInstrumentOperation(operation, succeeded: false, reason: doubt.kind.rawValue)
            throw Problem.provider(doubt)
        }
    }

    /// `POST /v1/holders/{holderReference}/instruments`
    func saveInstrument(_ request: Request) async throws -> Answer {
        let holder = try request.reference("holderReference")
        let id = try request.read { $0.id("instrumentId", as: InstrumentID.self) }
        switch await orchestrator.look(at: id, of: holder) {
        case .found(let instrument):
            guard !instrument.isDeleted else { throw Problem.notFound }
            return .created(json(try await learn(instrument, holder)))
        case .anotherHolder(let instrument):
            try await relearn(instrument)
            throw Problem(.instrumentOfAnotherHolder)
        case .missing:
            try await store.learnDeletion(of: id)
            throw Problem.notFound
        case .unavailable(_, let error): throw Problem.provider(error)
        }
    }

    /// `GET /v1/holders/{holderReference}/instruments?includeExpired=`
    func listInstruments(_ request: Request) async throws -> Answer {
        let holder = try request.reference("holderReference")
        let query = try request.readQuery { query in
            (
                includeExpired: query.flag("includeExpired") ?? true, limit: query.limit(),
                after: query.parsed("after", "must be the next of an earlier page") { InstrumentID($0) }
            )
        }
        var instruments: [InstrumentSnapshot]
        switch try await orchestrator.listInstruments(of: holder) {
        case .done(let all): instruments = all
        case .refused(let refusal): throw Problem.provider(refusal)
        case .unknown(let doubt): throw Problem.provider(doubt)
        }
        bells.feed.ring()
        if !query.includeExpired {
            instruments.removeAll {
                CardExpiry.state(of: CardExpiry(of: $0), at: clock.now(), in: store.expiryZone) == .expired
            }
        }
        instruments.sort { $0.id < $1.id }
        if let after = query.after { instruments.removeAll { $0.id <= after } }
        let page = instruments.prefix(query.limit)
        let next = instruments.count > query.limit ? page.last : nil
        return .ok(
            .compact(["items": .array(page.map(json)), "next": next.map { .string($0.id.description) }]))
    }

    /// `PATCH /v1/instruments/{id}`
    func changeInstrument(_ request: Request) async throws -> Answer {
        let id: InstrumentID = try request.id()
        let change = try request.read { body in
            let isDefault = body.optional.flag("default")
            if isDefault == false { body.fault("default", "must be true; make another one the default instead") }
            let status = body.optional.choice("status", of: InstrumentStatus.self)
            if !body.has("default"), !body.has("status") { body.fault("", "must hold default or status") }
            return InstrumentChange(makeDefault: isDefault ?? false, isEnabled: status.map { $0 == .enabled })
        }
        let instrument = try await find(id)
        if change.isDone(on: instrument) { return .ok(json(instrument)) }
        let operation = try await store.beginInstrumentOperation(
            .changeInstrument, of: id, wish: change.wish, owner: orchestrator.owner)
        switch await orchestrator.provider.updateInstrument(id, change, key: operation.key) {
        case .done(let changed):
            let learned = try await learn(changed, instrument.holderReference ?? "")
            try await store.finishInstrumentOperation(operation, succeeded: true, reason: nil)
            return .ok(json(learned))
        case .refused(let refusal):
            try await store.finishInstrumentOperation(operation, succeeded: false, reason: refusal.kind.rawValue)
            throw refusal.kind == .notFound ? Problem.notFound : Problem.provider(refusal)
        case .unknown(let doubt):
            // Perhaps it happened.
            try await orchestrator.lookInto(operation)
            guard try await store.readOperation(operation.id)?.state == .succeeded,
                let known = try await store.readInstrument(id)
            else { throw Problem.provider(doubt) }
            return .ok(json(known.snapshot))
        }
    }

    /// `DELETE /v1/instruments/{id}`
    func deleteInstrument(_ request: Request) async throws -> Answer {
        let id: InstrumentID = try request.id()
        do { _ = try await find(id) } catch let problem as Problem where problem.kind == .notFound {
            // Said again.
            guard try await store.readInstrument(id) != nil else { throw problem }
            return .noContent
        }
        let operation = try await store.beginInstrumentOperation(
            .deleteInstrument, of: id, owner: orchestrator.owner)
        switch await orchestrator.provider.deleteInstrument(id, key: operation.key) {
        case .done: break
        case .refused(let refusal) where refusal.kind == .notFound: break
        case .refused(let refusal):
            try await store.finishInstrumentOperation(operation, succeeded: false, reason: refusal.kind.rawValue)
            throw Problem.provider(refusal)
        case .unknown(let doubt):
            try await orchestrator.lookInto(operation)
            guard try await store.readOperation(operation.id)?.state == .succeeded else {
                throw Problem.provider(doubt)
            }
        }
        try await store.learnDeletion(of: id)
        try await store.finishInstrumentOperation(operation, succeeded: true, reason: nil)
        bells.feed.ring()
        return .noContent
    }

    // MARK: what they share

    /// The instrument as the provider shows it now, and the copy here is it.
    ///
    /// - Throws: 404 where the provider doesn't have it, or not any more.
    private func find(_ id: InstrumentID) async throws -> InstrumentSnapshot {
        switch await orchestrator.provider.readInstrument(id) {
        case .done(let instrument):
            let learned = try await relearn(instrument)
            guard !learned.isDeleted else { throw Problem.notFound }
            return learned
        case .refused(let refusal) where refusal.kind == .notFound:
            try await store.learnDeletion(of: id)
            throw Problem.notFound
        case .refused(let refusal): throw Problem.provider(refusal)
        case .unknown(let doubt): throw Problem.provider(doubt)
        }
    }

    private func learn(_ instrument: InstrumentSnapshot, _ holder: String) async throws -> InstrumentSnapshot {
        let learned = try await store.learnInstruments([instrument], holder: holder).first ?? instrument
        bells.feed.ring()
        return learned
    }

    /// Takes over what is shown of an instrument that belongs to whomever.
    @discardableResult
    private func relearn(_ instrument: InstrumentSnapshot) async throws -> InstrumentSnapshot {
        let known = try await store.readInstrument(instrument.id)
        // Nobody here has anything to do with it yet, so there is nothing to remember.
        guard known != nil || instrument.holderReference != nil else { return instrument }
        return try await learn(instrument, known?.holderReference ?? instrument.holderReference ?? "")
    }

    private func json(_ instrument: InstrumentSnapshot) -> JSON {
        instrument.json(holder: instrument.holderReference ?? "", at: clock.now(), in: store.expiryZone)
    }
}

/// What a shop may set.
enum InstrumentStatus: String, CaseIterable { case enabled, disabled }

extension Request {
    /// Which request asks for something that is made once.
    func identity() throws(Problem) -> PaymentStore.RequestIdentity {
        guard let idempotency else { throw Problem(.idempotencyKeyMissing) }
        return PaymentStore.RequestIdentity(credential: idempotency.owner, key: idempotency.key)
    }
}

extension Problem {
    /// The provider didn't do it, or can't be asked.
    static func provider(_ error: any Error) -> Problem {
        if let refusal = error as? Refusal, !refusal.isPassing { return Problem(.providerRefused, refusal.code) }
        if let doubt = error as? Doubt, doubt.kind == .unreadable { return Problem(.providerUnreadable) }
        let seconds = (error as? Refusal)?.retryAfterSeconds
        return Problem(.unavailable, "Payrails could not be asked", retryAfterSeconds: seconds)
    }

    static let missingInstrument = Problem.invalid("/instrumentId", "must be an instrument that Payrails has")
}
