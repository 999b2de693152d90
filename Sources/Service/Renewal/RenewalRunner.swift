import Basics
import Foundation
import Lockstep
import Store

/// One pass over what is due: what was left unknown is looked up, then subscriptions are claimed in batches and charged,
/// oldest first, one charge each.
///
/// It keeps nothing that matters: killed between any two lines, it leaves claims whose leases end, and operations that the
/// next run or a worker goes on with. Two at once leave each other's claims alone.
public struct RenewalRunner: Sendable {
    public struct Options: Sendable {
        /// Subscriptions that are dealt with at once.
        public var concurrency: Int
        /// How many are taken at once; a few for each that is dealt with, so that leases don't end in the queue.
        public var batch: Int { max(16, concurrency * 4) }
        /// How many subscriptions at most; nil: all that are due.
        public var limit: Int?

        public init(concurrency: Int = 8, limit: Int? = nil) {
            self.concurrency = concurrency
            self.limit = limit
        }
    }

    let orchestrator: Orchestrator
    let run: RenewalRun
    let options: Options
    let progress: @Sendable (RenewalSummary) -> Void
    var store: PaymentStore { orchestrator.store }
    var log: Log { orchestrator.log }

    /// - Parameter progress: told of every step, from one task at a time.
    public init(
        _ orchestrator: Orchestrator, run: RenewalRun, options: Options = Options(),
        progress: @escaping @Sendable (RenewalSummary) -> Void = { _ in }
    ) {
        self.orchestrator = orchestrator
        self.run = run
        self.options = options
        self.progress = progress
    }

    /// How many providers' refusals to answer in a row end the run: it is down, and every further try costs time.
    static let patience = 5

    /// - Parameter isStopping: asked between steps; what is in flight is finished.
    public func perform(isStopping: @escaping @Sendable () -> Bool = { false }) async throws -> RenewalSummary {
        var summary = RenewalSummary(asOf: run.asOf)
        var place: RenewalPlace?
        var inARow = try await lookUp(&summary) ? 0 : Self.patience
        while !isStopping(), inARow < Self.patience {
            let left = options.limit.map { $0 - summary.looked } ?? options.batch
            guard left > 0 else {
                summary.isLimited = true
                break
            }
            let batch = try await store.claimRenewals(run, after: place, limit: min(left, options.batch))
            summary.broken += batch.broken
            guard let last = batch.place else { break }
            place = last
            inARow = try await deal(with: batch.claimed, inARow, &summary)
        }
        if inARow >= Self.patience {
            summary.stoppedEarly = true
            log.error("Payrails can't be reached; the run stops, and nothing was burnt", .count("tries", inARow))
        }
        try await tellExpiring(&summary)
        summary.stillUnknown = try await store.countUnknownCharges()
        return summary
    }

    /// A batch with bounded concurrency. Once the provider is known to be down, the rest is given back.
    private func deal(
        with claimed: [ClaimedRenewal], _ before: Int, _ summary: inout RenewalSummary
    ) async throws -> Int {
        var inARow = before
        try await withThrowingTaskGroup(of: Dealt.self) { group in
            var queue = claimed[...]
            for renewal in queue.prefix(options.concurrency) { group.addTask { try await deal(with: renewal) } }
            queue = queue.dropFirst(options.concurrency)
            while let dealt = try await group.next() {
                summary.add(dealt)
                if case .untried = dealt { inARow += 1 } else { inARow = 0 }
                progress(summary)
                guard let renewal = queue.popFirst() else { continue }
                let isDown = inARow >= Self.patience
                group.addTask { try await isDown ? giveBack(renewal) : deal(with: renewal) }
            }
        }
        return inARow
    }

    private func giveBack(_ renewal: ClaimedRenewal) async throws -> Dealt {
        try await store.releaseRenewal(renewal.subscription.id)
        return .untried
    }

    private func deal(with renewal: ClaimedRenewal) async throws -> Dealt {
        let subscription = renewal.subscription
        do {
            var report: InstrumentReport?
            var look: InstrumentLook?
            if renewal.needsInstrument {
                let found = await orchestrator.look(at: subscription.instrument, of: subscription.holderReference)
                if case .unavailable(_, let error) = found {
                    log.warning("an instrument could not be read", .instrument(subscription.instrument), .error(error))
                    try await store.releaseRenewal(subscription.id)
                    return .untried
                }
                (look, report) = (found, InstrumentReport(found))
            }
            let step = try await store.applyRenewal(renewal, of: run, report)
            if step.isLost { return .lost }
            guard let attempt = step.attempt else {
                return step.hasEnded ? .ended : .skipped(step.skipped)
            }
            return try await charge(attempt, look, skipped: step.skipped)
        } catch {
            // One bad row never stops the others.
            log.error(
                "a subscription could not be renewed", .id("subscriptionId", subscription.id.uuid), .error(error))
            if let corrupt = error as? CorruptRow {
                try await store.setAsideRenewal(subscription.id, corrupt.detail)
            }
            return .failed
        }
    }

    private func charge(_ claimed: ClaimedCharge, _ look: InstrumentLook?, skipped: Int) async throws -> Dealt {
        switch try await ChargeRunner(orchestrator).run(claimed, looked: look, at: run.asOf) {
        case .begun(let charge):
            // The answer is often there already; what isn't comes by notification or by reading.
            guard charge.state == .processing, let execution = charge.execution else {
                return .charged(charge.state, skipped: skipped)
            }
            _ = try await orchestrator.refresh(execution)
            return .charged(try await store.readCharge(charge.id)?.state ?? charge.state, skipped: skipped)
        case .skipped: return .skipped(skipped + 1)
        case .unavailable: return .untried
        case .lost: return .lost
        }
    }
}

extension Charge {
    /// Of its last attempt.
    var execution: ExecutionReference? {
        attempts.last?.execution.map { ExecutionReference(id: $0, workflowCode: workflowCode) }
    }
}

extension InstrumentReport {
    init(_ look: InstrumentLook) {
        switch look {
        case .found(let instrument): self = .found(instrument)
        case .anotherHolder(let instrument): self = .anotherHolder(instrument)
        case .missing: self = .missing
        case .unavailable: self = .unavailable
        }
    }
}
