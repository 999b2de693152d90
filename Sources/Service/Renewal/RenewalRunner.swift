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
        /// How many subscriptions at most; nil: all that are due.
        public var limit: Int?

        public init(concurrency: Int = 8, limit: Int? = nil) {
            self.concurrency = concurrency
            self.limit = limit
        }

        /// How many are taken at once. They wait while as many are dealt with, so leases don't end in the queue.
        var batch: Int { max(8, concurrency) }
    }

    let orchestrator: Orchestrator
    let run: RenewalRun
    let options: Options
    let progress: @Sendable (RenewalSummary) -> Void
    /// What is decided about subscriptions, by as many as are dealt with at once.
    private let plans: Batcher<(renewal: ClaimedRenewal, report: InstrumentReport?), RenewalStep>
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
        plans = Batcher { [orchestrator] in
            await orchestrator.store.applyRenewals($0, of: run, owner: orchestrator.owner)
        }
    }

    /// How many calls in a row that the provider doesn't answer end the run: it is down, and every further try costs
    /// time.
    static let patience = 5

    /// - Parameter isStopping: asked between steps; what is in flight is finished.
    public func perform(isStopping: @escaping @Sendable () -> Bool = { false }) async throws -> RenewalSummary {
        var summary = RenewalSummary(asOf: run.asOf)
        if orchestrator.charging.returnURL == nil {
            log.error("charges can't be made: LOCKSTEP_RETURN_URL must be set")
        }
        // What can't be looked up keeps nothing else from being charged: whether Payrails is down, charging finds out.
        try await lookUp(&summary, isStopping: isStopping)
        summary = try await charge(from: summary, isStopping: isStopping)
        if summary.stoppedEarly {
            log.error("Payrails can't be reached; the run stops, and nothing was burnt", .count("tries", Self.patience))
        }
        try await tellExpiring(&summary)
        summary.stillUnknown = try await store.countUnknownCharges()
        return summary
    }

    /// Claims and deals with what is due, with bounded concurrency; the next batch is claimed while the last ones of the
    /// one before are still dealt with. Once the provider is known to be down, what was claimed is given back.
    private func charge(
        from start: RenewalSummary, isStopping: @escaping @Sendable () -> Bool
    ) async throws -> RenewalSummary {
        let outcome: Result<RenewalSummary, any Error> = await withTaskGroup(of: Dealt.self) { group in
            var summary = start
            var queue = DueQueue()
            var (inFlight, inARow) = (0, 0)
            var failure: (any Error)?
            while true {
                while inFlight < options.concurrency, !isStopping(), inARow < Self.patience {
                    do {
                        while queue.wantsMore { try await fill(&queue, &summary) }
                    } catch {
                        // What is in flight is finished first.
                        queue.isExhausted = true
                        failure = error
                    }
                    guard let renewal = queue.next() else { break }
                    group.addTask { await deal(with: renewal) }
                    inFlight += 1
                }
                guard let dealt = await group.next() else { break }
                inFlight -= 1
                summary.add(dealt)
                switch dealt {
                case .untried: inARow += 1
                case .charged, .skipped, .unread: inARow = 0
                // The provider has nothing to do with it.
                case .lost, .failed, .ended: break
                }
                progress(summary)
            }
            if let failure { return .failure(failure) }
            summary.stoppedEarly = inARow >= Self.patience
            for renewal in queue.rest {
                let dealt = await giveBack(renewal.subscription)
                if summary.stoppedEarly { summary.add(dealt) }
            }
            return .success(summary)
        }
        return try outcome.get()
    }

    private func fill(_ queue: inout DueQueue, _ summary: inout RenewalSummary) async throws {
        let left = options.limit.map { $0 - queue.claimed } ?? options.batch
        guard left > 0 else {
            summary.isLimited = try await store.hasDueRenewals(besides: run)
            return queue.isExhausted = true
        }
        let batch = try await store.claimRenewals(run, after: queue.place, limit: min(left, options.batch))
        summary.broken += batch.broken
        queue.add(batch.claimed, upTo: batch.place)
    }

    private func deal(with renewal: ClaimedRenewal) async -> Dealt {
        let subscription = renewal.subscription
        do {
            var report: InstrumentReport?
            if renewal.needsInstrument {
                guard orchestrator.charging.returnURL != nil else { return await giveBack(subscription) }
                let found = await orchestrator.look(at: subscription.instrument, of: subscription.holderReference)
                if case .unavailable(_, let error) = found {
                    log.warning("an instrument could not be read", .instrument(subscription.instrument), .error(error))
                    return await postpone(renewal, error)
                }
                report = InstrumentReport(found)
            }
            let step = try await plans.add((renewal, report))
            if step.isLost { return .lost }
            guard let attempt = step.attempt else {
                return step.hasEnded ? .ended : .skipped(step.skipped)
            }
            return try await charge(attempt, skipped: step.skipped)
        } catch {
            // One bad row never stops the others.
            log.error(
                "a subscription could not be renewed", .id("subscriptionId", subscription.id.uuid), .error(error))
            if let corrupt = error as? CorruptRow {
                try? await store.setAsideRenewal(subscription.id, corrupt.detail)
            }
            return .failed
        }
    }

    /// Where that fails, the claim ends with its lease.
    private func giveBack(_ subscription: Subscription) async -> Dealt {
        try? await store.releaseRenewal(subscription.id)
        return .untried
    }

    /// Its instrument can't be read. What else is due comes before it, now and in the next runs, so that a few of these
    /// never look like a provider that is down.
    private func postpone(_ renewal: ClaimedRenewal, _ error: any Error) async -> Dealt {
        try? await store.postponeRenewal(renewal, of: run)
        let isAnswer = (error as? Refusal)?.isAnswer ?? false
        return isAnswer ? .unread : .untried
    }

    private func charge(_ attempt: PlannedExecution, skipped: Int) async throws -> Dealt {
        switch try await ChargeRunner(orchestrator).begin(attempt) {
        case .begun(let charge):
            // The answer is often there already; what isn't comes by notification or by reading.
            guard charge.state == .processing, let execution = charge.execution else {
                return .charged(charge.state, skipped: skipped)
            }
            let seen = try await orchestrator.refreshCharge(of: execution)?.charge
            return .charged(seen?.state ?? charge.state, skipped: skipped)
        case .skipped: return .skipped(skipped + 1)
        case .unavailable: return .untried
        case .lost: return .lost
        }
    }
}

/// What a run has claimed and not begun to deal with.
private struct DueQueue {
    private(set) var rest: ArraySlice<ClaimedRenewal> = []
    private(set) var claimed = 0
    private(set) var place: RenewalPlace?
    var isExhausted = false

    var wantsMore: Bool { rest.isEmpty && !isExhausted }
    mutating func next() -> ClaimedRenewal? { rest.popFirst() }

    /// - Parameter place: of the last one that was found; nil where none was.
    mutating func add(_ more: [ClaimedRenewal], upTo place: RenewalPlace?) {
        guard let place else { return isExhausted = true }
        self.place = place
        rest += more
        claimed += more.count
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
