import Basics
import Foundation
import Lockstep
import Store

/// What an instrument is found to be at the provider.
public enum InstrumentLook: Sendable {
    case found(InstrumentSnapshot)
    case anotherHolder(InstrumentSnapshot)
    /// The provider doesn't have it, or not any more.
    case missing
    /// The provider can't be asked.
    case unavailable(retryAfterSeconds: Int?, any Error)
}

extension Orchestrator {
    /// Reads an instrument that is to be used for a holder. Where the provider doesn't say whose it is, the holder's list
    /// tells: what isn't in it is somebody else's.
    func look(at id: InstrumentID, of holder: String) async -> InstrumentLook {
        let instrument: InstrumentSnapshot
        switch await provider.readInstrument(id) {
        case .done(let snapshot): instrument = snapshot
        case .refused(let refusal) where refusal.kind == .notFound: return .missing
        case .refused(let refusal): return .unavailable(retryAfterSeconds: refusal.retryAfterSeconds, refusal)
        case .unknown(let doubt): return .unavailable(retryAfterSeconds: nil, doubt)
        }
        if let owner = instrument.holderReference {
            return owner == holder ? .found(instrument) : .anotherHolder(instrument)
        }
        switch await provider.listInstruments(holderReference: holder) {
        case .done(let own): return own.contains { $0.id == id } ? .found(instrument) : .anotherHolder(instrument)
        case .refused(let refusal): return .unavailable(retryAfterSeconds: refusal.retryAfterSeconds, refusal)
        case .unknown(let doubt): return .unavailable(retryAfterSeconds: nil, doubt)
        }
    }

    /// A holder's instruments as the provider shows them now; the copies here are updated.
    ///
    /// What becomes known here for the first time, or was known and isn't listed, is read by itself: lists don't tell of
    /// network tokens, and may leave out what is disabled.
    func listInstruments(of holder: String) async throws -> Outcome<[InstrumentSnapshot]> {
        let listed: [InstrumentSnapshot]
        switch await provider.listInstruments(holderReference: holder) {
        case .done(let instruments): listed = instruments
        case .refused(let refusal): return .refused(refusal)
        case .unknown(let doubt): return .unknown(doubt)
        }
        let known = try await store.listKnownInstruments(holderReference: holder)
        var instruments = listed
        for index in instruments.indices where !known.contains(instruments[index].id) {
            if case .done(let whole) = await provider.readInstrument(instruments[index].id) {
                instruments[index] = whole
            }
        }
        for id in known where !listed.contains(where: { $0.id == id }) {
            switch await provider.readInstrument(id) {
            case .done(let instrument): instruments.append(instrument)
            case .refused(let refusal) where refusal.kind == .notFound: try await store.learnDeletion(of: id)
            case .refused, .unknown: break
            }
        }
        let learned = try await store.learnInstruments(instruments, holder: holder)
        return .done(learned.filter { !$0.isDeleted && $0.holderReference == holder })
    }

    /// What became of a change whose sender died or got no answer. Only looks: the shop may have asked for the opposite
    /// since.
    func lookInto(_ operation: PaymentOperation) async throws {
        guard let id = operation.instrument, operation.kind != .tokenization else {
            // An init that nobody got is worth nothing.
            return try await store.finishInstrumentOperation(operation, succeeded: false, reason: "abandoned")
        }
        let isDeletion = operation.kind == .deleteInstrument
        switch await provider.readInstrument(id) {
        case .done(let instrument):
            let holder = try await store.readInstrument(id)?.holderReference ?? instrument.holderReference ?? ""
            try await store.learnInstruments([instrument], holder: holder)
            let isDone =
                isDeletion
                ? instrument.isDeleted : InstrumentChange(wish: operation.intentReason ?? "").isDone(on: instrument)
            try await store.finishInstrumentOperation(
                operation, succeeded: isDone, reason: isDone ? nil : "not-done")
        case .refused(let refusal) where refusal.kind == .notFound:
            try await store.learnDeletion(of: id)
            try await store.finishInstrumentOperation(
                operation, succeeded: isDeletion, reason: isDeletion ? nil : InstrumentObstacle.missing.rawValue)
        case .refused(let refusal):
            try await store.finishInstrumentOperation(operation, succeeded: nil, reason: refusal.kind.rawValue)
        case .unknown(let doubt):
            try await store.finishInstrumentOperation(operation, succeeded: nil, reason: doubt.kind.rawValue)
        }
    }
}
