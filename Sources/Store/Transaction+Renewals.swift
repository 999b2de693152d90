import Basics
import Foundation
import Lockstep
import Postgres

/// What a run decides about the subscriptions that it has claimed, many at once.
extension Transaction {
    func applyRenewals(
        _ claimed: [(renewal: ClaimedRenewal, report: InstrumentReport?)], of run: RenewalRun, owner: UUID
    ) async throws -> [RenewalStep] {
        let known = try await learn(claimed)
        let own = try await lockClaimed(claimed.map(\.renewal.subscription), run)
        var changes = subscriptionChanges
        var steps: [RenewalStep] = []
        for (renewal, report) in claimed {
            let id = renewal.subscription.id
            guard let subscription = own.subscriptions[id],
                subscription.instrument == renewal.subscription.instrument || report == nil
            else {
                steps.append(RenewalStep(isLost: true))
                continue
            }
            // As it is stored, for that is how a decline remembers it.
            let shown = report?.completed(by: known)
            let instrument = shown?.instrument(declines: own.declines[subscription.instrument] ?? [])
            let open = own.open[id] ?? []
            let plan = RenewalPlan(
                for: subscription, open: open.compactMap(\.standing), instrument: instrument, rules: policy.renewal,
                now: run.asOf)
            if plan.needsInstrument, instrument == nil {
                // Something became due since it was taken: the next run reads the instrument.
                changes.put(subscription, dueAt: plan.nextAt)
                steps.append(RenewalStep(isLost: true))
                continue
            }
            let card: InstrumentSnapshot? = if case .found(let found) = shown { found } else { nil }
            steps.append(
                changes.carryOut(
                    plan, of: subscription, open: open, meta: own.meta, card, asOf: run.asOf, owner: owner))
        }
        try await write(changes)
        return steps
    }

    /// - Returns: what is known now of the instruments that were read.
    private func learn(
        _ claimed: [(renewal: ClaimedRenewal, report: InstrumentReport?)]
    ) async throws -> [InstrumentID: InstrumentSnapshot] {
        var found: [(snapshot: InstrumentSnapshot, holder: String)] = []
        var missing: [InstrumentID] = []
        for (renewal, report) in claimed {
            switch report {
            case .found(let instrument): found.append((instrument, renewal.subscription.holderReference))
            case .missing: missing.append(renewal.subscription.instrument)
            case .anotherHolder, .unavailable, nil: break
            }
        }
        return try await learnInstruments(found, missing: missing)
    }

    /// The subscriptions that a run still has, with what their plans need, all locked.
    private struct Claimed {
        var subscriptions: [SubscriptionID: Subscription] = [:]
        var open: [SubscriptionID: [Charge]] = [:]
        /// Of the open charges, what each was begun with.
        var meta: [ChargeID: JSON] = [:]
        var declines: [InstrumentID: [Timestamp]] = [:]
    }

    private func lockClaimed(_ subscriptions: [Subscription], _ run: RenewalRun) async throws -> Claimed {
        let ids = subscriptions.map(\.id.uuid)
        let rows = try await pipeline([
            """
            SELECT \(unescaped: Self.subscriptionColumns) FROM subscriptions
            WHERE id = ANY(\(ids)) AND lease_owner = \(run.id) ORDER BY id FOR UPDATE
            """,
            Self.openChargesQuery(of: ids),
            Self.attemptsQuery(ofOpenChargesOf: ids),
            declinesQuery(of: subscriptions.map(\.instrument), asOf: run.asOf),
            Self.metaQuery(ofOpenChargesOf: ids),
        ])
        var claimed = Claimed()
        for subscription in try rows[0].map(Self.subscription(from:)) {
            claimed.subscriptions[subscription.id] = subscription
        }
        claimed.open = try Self.bySubscription(Self.charges(from: rows[1], attempts: rows[2]))
        claimed.declines = try declines(from: rows[3])
        claimed.meta = try Self.meta(from: rows[4])
        return claimed
    }

    // MARK: what a network counts

    /// When attempts with these instruments were declined, as far back as any network counts.
    func readDeclines(of instruments: [InstrumentID], asOf: Timestamp) async throws -> [InstrumentID: [Timestamp]] {
        try declines(from: try await query(declinesQuery(of: instruments, asOf: asOf)))
    }

    private func declinesQuery(of instruments: [InstrumentID], asOf: Timestamp) -> PostgresQuery {
        let days = policy.renewal.dunning.longestCapDays
        return """
            SELECT instrument_id, begun_at, reason FROM charge_attempts
            WHERE instrument_id = ANY(\(instruments.map(\.uuid))) AND outcome = 'failed'
                AND begun_at > \((asOf - .seconds(Int64(days) * 86_400)).stored)
            """
    }

    private func declines(from rows: PostgresRows) throws -> [InstrumentID: [Timestamp]] {
        var declines: [InstrumentID: [Timestamp]] = [:]
        for row in rows {
            let (instrument, at, reason) = try row.decode((UUID, PostgresTimestamp, String?).self)
            guard policy.renewal.networkCounts(reason) else { continue }
            declines[InstrumentID(instrument), default: []].append(at.timestamp)
        }
        return declines
    }
}

extension InstrumentReport {
    /// The same with what earlier readings told, and this one didn't.
    fileprivate func completed(by known: [InstrumentID: InstrumentSnapshot]) -> InstrumentReport {
        if case .found(let instrument) = self { .found(known[instrument.id] ?? instrument) } else { self }
    }

    /// The report in the plan's words.
    ///
    /// - Parameter declines: when attempts with it were declined.
    func instrument(declines: [Timestamp]) -> RenewalPlan.Instrument {
        switch self {
        case .unavailable: return .unreadable
        case .missing, .anotherHolder: return .missing
        case .found(let instrument):
            if instrument.isDeleted { return .missing }
            return instrument.isDisabled ? .disabled : .enabled(instrument, declines: declines)
        }
    }
}

extension SubscriptionChanges {
    /// Makes a plan true.
    ///
    /// - Parameters:
    ///   - meta: of the open charges. What is sent under an attempt's key is always its charge's own, whatever the
    ///     subscription's has become.
    ///   - card: the instrument as it was read just now.
    ///   - moment: the run's clock, by which attempts count as made.
    mutating func carryOut(
        _ plan: RenewalPlan, of known: Subscription, open: [Charge], meta: [ChargeID: JSON],
        _ card: InstrumentSnapshot?, asOf moment: Timestamp, owner: UUID
    ) -> RenewalStep {
        var (subscription, step) = (known, RenewalStep())
        var happened: [Subscription.Event] = []
        var untouched = open
        func charge(_ index: Int) -> Charge? {
            untouched.firstIndex { $0.period?.index == index }.map { untouched.remove(at: $0) }
        }
        for planned in plan.steps {
            switch planned {
            case .skip(let period, let reason):
                insert(newCharge(for: period, of: subscription, skipped: reason), of: subscription)
                _ = subscription.apply(.begun(upTo: period.index))
                step.skipped += 1
                if reason.waitsForInstrument { happened.append(.instrumentUnusable) }
            case .postpone(let period, let until):
                insert(newCharge(for: period, of: subscription, nextAttemptAt: until), of: subscription)
                _ = subscription.apply(.begun(upTo: period.index))
            case .begin(let period):
                guard let card else { continue }
                var new = newCharge(for: period, of: subscription)
                step.attempt = begin(&new, meta: subscription.meta, with: card, at: moment, owner: owner)
                insert(new, of: subscription)
                _ = subscription.apply(.begun(upTo: period.index))
                happened.append(contentsOf: subscription.hadTrouble)
            case .retry(let index):
                guard let card, var next = charge(index) else { continue }
                next.instrument = subscription.instrument
                next.expiryPolicy = subscription.expiryPolicy
                step.attempt = begin(&next, meta: meta[next.id], with: card, at: moment, owner: owner)
                put(next)
                happened.append(contentsOf: subscription.hadTrouble)
            case .suspend(let index, let reason):
                guard let suspended = charge(index) else { continue }
                skip(suspended, reason)
                step.skipped += 1
                happened.append(.instrumentUnusable)
            case .deferRetry(let index, let until):
                guard var later = charge(index) else { continue }
                later.state = .scheduled
                later.nextAttemptAt = until
                put(later)
            case .giveUp(let index):
                guard var over = charge(index) else { continue }
                over.state = .failed
                over.reason = "attempt-cap"
                over.nextAttemptAt = nil
                put(over)
                tell(.chargeFailed, about: over)
                happened.append(.givenUp(cancels: policy.renewal.cancelsAfterDunning))
            case .hold: step.isHeld = true
            case .finish:
                happened.append(.finished)
                step.hasEnded = true
            }
        }
        var effects: [Subscription.Effect] = []
        for event in happened { effects += subscription.apply(event) }
        // The others that wait have their turn in the next runs.
        _ = perform(effects.filter { $0 != .retryWaiting }, of: subscription, open: untouched)
        // What was begun is on disk and driven by its operation, whoever dies: it isn't due any more.
        put(subscription, dueAt: plan.nextAt)
        return step
    }
}

extension Subscription {
    /// A charge is attempted again although the instrument was in the way: it isn't any more.
    fileprivate var hadTrouble: [Event] { status == .needsInstrument ? [.instrumentUsable(othersOpen: true)] : [] }
}
