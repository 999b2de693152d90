import Basics
import Foundation
import Lockstep
import Store

/// Makes attempts of charges: reads the instrument once more, writes the attempt down, creates its execution, authorizes
/// it, and writes down what became of each call.
///
/// Any number may run at once: all wait for the client's one rate limit, and what they learn at once is written down in
/// one transaction. It needs to keep nothing: a process that is killed between any two lines leaves an operation with a
/// lease, and any process's workers go on with it through ``resume(_:)``. What became of the payment itself isn't waited
/// for; it comes as facts, by notification or by reading, and is settled in the transaction that learns them.
public struct ChargeRunner: Sendable {
    private let orchestrator: Orchestrator
    private var store: PaymentStore { orchestrator.store }
    private var provider: any PaymentProvider { orchestrator.provider }
    private var log: Log { orchestrator.log }

    public init(_ orchestrator: Orchestrator) { self.orchestrator = orchestrator }

    public enum Result: Sendable {
        /// The attempt is under way, or already over: the charge as it stands.
        case begun(Charge)
        /// Its instrument can't be charged; the shop was told.
        case skipped(Charge)
        /// The provider can't be reached, asks for patience, or doesn't let us in. Nothing is burnt: the charge is due
        /// again later, or its attempt waits to be sent. A run over many stops here.
        case unavailable(Charge, retryAfterSeconds: Int?)
        /// The claim was over, or somebody else's attempt is open.
        case lost
    }

    // MARK: a new attempt

    /// Makes the attempt of a claimed unscheduled charge.
    ///
    /// - Parameter looked: what its instrument was found to be just now; nil reads it.
    public func run(_ claimed: ClaimedCharge, looked: InstrumentLook? = nil) async throws -> Result {
        let charge = claimed.charge
        let look =
            if let looked { looked } else {
                await orchestrator.look(at: charge.instrument, of: charge.holderReference)
            }
        switch look {
        case .unavailable(let seconds, let reason):
            log.warning("an instrument could not be read", .instrument(charge.instrument), .error(reason))
            return try await postpone(claimed, seconds: seconds)
        case .missing: return try await skip(claimed, for: .missing, nil)
        case .anotherHolder(let instrument): return try await skip(claimed, for: .anotherHolder, instrument)
        case .found(let instrument):
            if let obstacle = obstacle(instrument, charge) {
                return try await skip(claimed, for: obstacle, instrument)
            }
            guard orchestrator.charging.returnURL != nil else {
                log.error("charges can't be made: LOCKSTEP_RETURN_URL must be set")
                return try await postpone(claimed, seconds: nil)
            }
            guard
                let planned = try await store.beginAttempt(of: claimed, with: instrument, owner: orchestrator.owner)
            else { return .lost }
            return try await begin(planned)
        }
    }

    /// Sends an attempt that was written down just now.
    func begin(_ planned: PlannedExecution) async throws -> Result { try await create(planned, wasSent: false) }

    private func obstacle(_ instrument: InstrumentSnapshot, _ charge: Charge) -> InstrumentObstacle? {
        instrument.obstacle(
            for: charge.holderReference, by: charge.expiryPolicy, at: store.now, in: store.expiryZone)
    }

    private func postpone(_ claimed: ClaimedCharge, seconds: Int?) async throws -> Result {
        let charge = try await store.postponeCharge(claimed, seconds: seconds)
        return .unavailable(charge ?? claimed.charge, retryAfterSeconds: seconds)
    }

    private func skip(
        _ claimed: ClaimedCharge, for obstacle: InstrumentObstacle, _ instrument: InstrumentSnapshot?
    ) async throws -> Result {
        try await store.skipCharge(claimed, for: obstacle, instrument: instrument).map { Result.skipped($0) } ?? .lost
    }

    // MARK: what somebody left behind

    /// Goes on with an attempt's call that may or may not have been sent: looks first, then sends it again under the same
    /// key, as long as the provider is taken to keep that, its card can be charged and nobody has stopped it.
    func resume(_ claimed: ClaimedOperation) async throws {
        if claimed.operation.kind == .createExecution {
            guard let planned = try await store.resumeExecution(claimed) else { return }
            try await resume(planned)
        } else {
            guard let planned = try await store.resumeAuthorization(claimed) else { return }
            try await resume(planned)
        }
    }

    private func resume(_ planned: PlannedExecution) async throws {
        switch await provider.findExecutions(merchantReference: planned.attempt.merchantReference) {
        case .done(let found):
            if found.isEmpty, !orchestrator.isKept(planned.operation) {
                // It never was: nobody could have charged it. It begins anew.
                _ = try await store.withdrawAttempt(planned, seconds: nil)
            } else {
                try await goOn(planned, found.first)
            }
        case .refused(let refusal):
            log.warning("an attempt could not be looked up", .operation(planned.operation.id), .error(refusal))
            _ = try await record(planned, .unknown(Doubt(kind: .timedOut, detail: refusal.detail)))
        case .unknown(let doubt):
            log.warning("an attempt could not be looked up", .operation(planned.operation.id), .error(doubt))
            _ = try await record(planned, .unknown(doubt))
        }
    }

    /// - Parameter execution: what the provider has made already; nil: nothing.
    private func goOn(_ planned: PlannedExecution, _ execution: ExecutionSnapshot?) async throws {
        switch try await readiness(of: planned.attempt, planned.charge) {
        case .unavailable(let seconds): _ = try await record(planned, .later(seconds: seconds))
        case .ready:
            if let execution {
                _ = try await authorize(planned, execution)
            } else if try await goesOn(planned.operation, planned.charge, planned.attempt) {
                _ = try await create(planned, wasSent: true)
            }
        case .unusable(let end):
            guard let execution else {
                _ = try await record(planned, .abandoned(end))
                return
            }
            let standing = try await orchestrator.steps.add(.created(planned, execution, owner: orchestrator.owner))
            if let authorization = standing.authorization { _ = try await record(authorization, .abandoned(end)) }
        }
    }

    private func resume(_ planned: PlannedAuthorization) async throws {
        if planned.isUnsent, orchestrator.isKept(planned.operation) {
            switch try await readiness(of: planned.attempt, planned.charge) {
            case .unavailable(let seconds): _ = try await record(planned, .later(seconds: seconds))
            case .unusable(let end): _ = try await record(planned, .abandoned(end))
            case .ready:
                guard try await goesOn(planned.operation, planned.charge, planned.attempt) else { return }
                _ = try await send(planned)
            }
            return
        }
        let seen = try await orchestrator.refreshCharge(of: planned.execution)
        guard try await store.readOperation(planned.operation.id)?.state.isFinal == false else { return }
        guard let seen else {
            // Without a look nothing is sent.
            _ = try await record(planned, .unknown(Doubt(kind: .timedOut, detail: "not looked up")))
            return
        }
        guard try await goesOn(planned.operation, planned.charge, planned.attempt) else { return }
        let isOnlyCreated = seen.snapshot.facts.allSatisfy(\.isCreation)
        // Under a new key it is sent only where nothing at all is seen of the one before.
        if planned.operation.isRekeyed, !isOnlyCreated {
            _ = try await record(planned, .later(seconds: nil))
            return
        }
        if orchestrator.isKept(planned.operation) {
            // It may never have been sent: then its card must still be good. Whether it was, nobody knows yet.
            if isOnlyCreated {
                guard case .ready = try await readiness(of: planned.attempt, planned.charge) else {
                    let doubt = Doubt(kind: .timedOut, detail: "its card can't be charged, or can't be read")
                    _ = try await record(planned, .unknown(doubt))
                    return
                }
            }
            _ = try await send(planned)
        } else if isOnlyCreated {
            // It never arrived, and nothing is sent under a key that the provider may have forgotten.
            _ = try await record(planned, .abandoned(anew(planned.charge)))
        } else {
            _ = try await record(planned, .unknown(Doubt(kind: .timedOut, detail: "too old to be sent again")))
        }
    }

    /// A period gets another attempt, with a reference and a key of its own. An unscheduled charge has but one.
    private func anew(_ charge: Charge) -> ChargeSettlement.Abandonment {
        charge.subscription == nil
            ? .skip(reason: ChargeSettlement.Abandonment.notSent) : .again(at: store.now)
    }

    /// What an instrument is found to be before a call is sent that has waited.
    private enum Readiness {
        case ready
        case unusable(ChargeSettlement.Abandonment)
        case unavailable(retryAfterSeconds: Int?)
    }

    private func readiness(of attempt: ChargeAttempt, _ charge: Charge) async throws -> Readiness {
        let obstacle: InstrumentObstacle?
        switch await orchestrator.look(at: attempt.instrument, of: charge.holderReference) {
        case .unavailable(let seconds, let reason):
            log.warning("an instrument could not be read", .instrument(attempt.instrument), .error(reason))
            return .unavailable(retryAfterSeconds: seconds)
        case .missing:
            try await store.learnDeletion(of: attempt.instrument)
            obstacle = .missing
        case .anotherHolder: obstacle = charge.subscription == nil ? .anotherHolder : .missing
        case .found(let instrument):
            let known = try await store.learnInstruments([instrument], holder: charge.holderReference)
            obstacle = self.obstacle(known.first ?? instrument, charge)
        }
        return obstacle.map { Readiness.unusable(.skip(reason: $0.rawValue)) } ?? .ready
    }

    /// Whether a call that has waited is to be sent: its attempt isn't over, and its subscription runs.
    private func goesOn(
        _ operation: PaymentOperation, _ charge: Charge, _ attempt: ChargeAttempt
    ) async throws -> Bool {
        try await orchestrator.steps.add(.resumed(operation, of: charge.id, number: attempt.number)).goesOn
    }

    // MARK: the execution

    private func create(_ planned: PlannedExecution, wasSent: Bool) async throws -> Result {
        switch await provider.createExecution(planned.request, key: planned.operation.key) {
        case .done(let execution): return try await authorize(planned, execution)
        case .refused(let refusal):
            log.warning(
                "the provider refused an attempt's execution", .operation(planned.operation.id), .error(refusal))
            if refusal.isAboutCharge {
                return .begun(try await record(planned, .refused(reason: refusal.result ?? refusal.code ?? "refused")))
            }
            let charge =
                if wasSent {
                    try await record(planned, .later(seconds: refusal.retryAfterSeconds))
                } else {
                    try await store.withdrawAttempt(planned, seconds: refusal.retryAfterSeconds)
                }
            return .unavailable(charge, retryAfterSeconds: refusal.retryAfterSeconds)
        case .unknown(let doubt):
            log.warning("nobody knows about an attempt's execution", .operation(planned.operation.id), .error(doubt))
            // It was looked for just now and isn't there, and the error that came back is kept under the key.
            let isWornOut =
                wasSent && doubt.kind == .serverError && planned.operation.reason == Doubt.Kind.serverError.rawValue
            return .begun(try await record(planned, isWornOut ? .wornOut : .unknown(doubt)))
        }
    }

    private func record(_ planned: PlannedExecution, _ answer: AttemptAnswer) async throws -> Charge {
        let step = ChargeStep.answered(
            planned.operation, of: planned.charge.id, number: planned.attempt.number, answer)
        return try await orchestrator.steps.add(step).charge ?? planned.charge
    }

    // MARK: the authorization

    private func authorize(_ planned: PlannedExecution, _ execution: ExecutionSnapshot) async throws -> Result {
        let standing = try await orchestrator.steps.add(.created(planned, execution, owner: orchestrator.owner))
        guard let authorization = standing.authorization else { return .begun(standing.charge ?? planned.charge) }
        return try await send(authorization)
    }

    private func send(_ planned: PlannedAuthorization) async throws -> Result {
        guard let returnURL = orchestrator.charging.returnURL else {
            log.error("charges can't be made: LOCKSTEP_RETURN_URL must be set")
            return .unavailable(try await record(planned, .later(seconds: nil)), retryAfterSeconds: nil)
        }
        let request = AuthorizeRequest(
            amount: planned.attempt.amount, instrumentID: planned.attempt.instrument,
            paymentMethodCode: planned.attempt.paymentMethod,
            processing: planned.charge.subscription == nil ? .unscheduled : .subscription, returnURL: returnURL)
        switch await provider.authorize(planned.execution, request, key: planned.operation.key) {
        case .done(let acknowledgement): return .begun(try await record(planned, .acknowledged(acknowledgement)))
        case .refused(let refusal) where refusal.isPassing:
            return .unavailable(
                try await record(planned, .later(seconds: refusal.retryAfterSeconds)),
                retryAfterSeconds: refusal.retryAfterSeconds)
        case .refused(let refusal): return try await refused(planned, refusal)
        case .unknown(let doubt): return try await doubted(planned, doubt)
        }
    }

    /// A refusal stands once a look has shown that nothing runs: a 401 may be about an amount, and what was sent before
    /// may have happened.
    private func refused(_ planned: PlannedAuthorization, _ refusal: Refusal) async throws -> Result {
        log.warning(
            "the provider refused to authorize", .operation(planned.operation.id), .execution(planned.execution.id),
            .error(refusal))
        let isSeen = try await orchestrator.refreshCharge(of: planned.execution) != nil
        let isSetUp = refusal.kind == .unauthorized ? !isSeen : !refusal.isAboutCharge && refusal.kind != .notFound
        if isSetUp {
            let charge = try await record(planned, .later(seconds: refusal.retryAfterSeconds))
            return .unavailable(charge, retryAfterSeconds: refusal.retryAfterSeconds)
        }
        guard isSeen else {
            return .begun(
                try await record(planned, .unknown(Doubt(kind: .timedOut, detail: "a refusal that isn't looked into"))))
        }
        let reason = refusal.result ?? refusal.code ?? refusal.kind.rawValue
        return .begun(try await record(planned, .refused(reason: reason)))
    }

    private func doubted(_ planned: PlannedAuthorization, _ doubt: Doubt) async throws -> Result {
        log.warning(
            "nobody knows about an authorization", .operation(planned.operation.id), .execution(planned.execution.id),
            .error(doubt))
        let charge = try await record(planned, .unknown(doubt))
        guard let seen = try await orchestrator.refreshCharge(of: planned.execution) else { return .begun(charge) }
        let wasServerError = planned.operation.reason == Doubt.Kind.serverError.rawValue
        if doubt.kind == .serverError, wasServerError, seen.snapshot.facts.allSatisfy(\.isCreation) {
            return .begun(try await record(planned, .wornOut))
        }
        return .begun(seen.charge ?? charge)
    }

    private func record(_ planned: PlannedAuthorization, _ answer: AttemptAnswer) async throws -> Charge {
        let step = ChargeStep.answered(
            planned.operation, of: planned.charge.id, number: planned.attempt.number, answer)
        return try await orchestrator.steps.add(step).charge ?? planned.charge
    }
}

extension Fact {
    /// It tells of nothing but that the execution is there.
    fileprivate var isCreation: Bool { kind == .status && code == "created" || kind == .payment && code == nil }
}

extension Refusal {
    /// The provider has looked at what this charge asks for and turns it down. Anything else is about our set-up or the
    /// way there, and would turn down every charge.
    var isAboutCharge: Bool {
        guard kind == .rejected || kind == .conflict, let code else { return false }
        return !Self.aboutAccess.contains(code)
    }
}
