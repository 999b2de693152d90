import Basics
import Foundation
import Lockstep
import Postgres

/// One pass over what is due. Its id is in every row that it took, so that it takes none twice.
public struct RenewalRun: Hashable, Sendable {
    public let id: UUID
    /// The moment that decides what is due, and whether a card is expired: now, or what `--as-of` says.
    public let asOf: Timestamp

    public init(id: UUID, asOf: Timestamp) {
        self.id = id
        self.asOf = asOf
    }
}

/// A subscription that a run took, to look at its instrument and charge it.
public struct ClaimedRenewal: Sendable {
    public let subscription: Subscription
    /// Whether its instrument has to be read.
    public let needsInstrument: Bool
}

/// Where a run goes on: what is due first comes first.
public struct RenewalPlace: Hashable, Comparable, Sendable {
    let dueAt: Timestamp
    let id: SubscriptionID

    public static func < (left: RenewalPlace, right: RenewalPlace) -> Bool {
        (left.dueAt, left.id) < (right.dueAt, right.id)
    }
}

/// What was found out about an instrument right before a charge.
public enum InstrumentReport: Sendable {
    case found(InstrumentSnapshot)
    case missing
    case anotherHolder(InstrumentSnapshot)
    case unavailable
}

/// What a run did with one subscription.
public struct RenewalStep: Sendable {
    /// What is to be attempted now.
    public var attempt: ClaimedCharge?
    public var skipped = 0
    /// It is due, and couldn't be tried.
    public var isHeld = false
    public var hasEnded = false
    /// Somebody else took it.
    public var isLost = false
}

extension PaymentStore {
    /// Takes the next subscriptions that are due, oldest first; those of other runs are left alone.
    ///
    /// A row that can't be read is set aside, so that it stops no other; its number is `broken`.
    public func claimRenewals(
        _ run: RenewalRun, after place: RenewalPlace?, limit: Int
    ) async throws -> (claimed: [ClaimedRenewal], place: RenewalPlace?, broken: Int) {
        try await transact { transaction in
            let places = try await transaction.query(
                """
                UPDATE subscriptions SET lease_owner = \(run.id),
                    lease_until = \((transaction.now + policy.lease).stored)
                FROM (SELECT id AS claimed_id, due_at AS place FROM subscriptions
                    WHERE due_at <= \(run.asOf.stored) AND set_aside IS NULL
                        AND (\(place?.dueAt.stored)::timestamptz IS NULL
                            OR (due_at, id) > (\(place?.dueAt.stored), \(place?.id.uuid)))
                        AND (lease_until IS NULL OR lease_until <= \(transaction.now.stored))
                        AND lease_owner IS DISTINCT FROM \(run.id)
                    ORDER BY due_at, id LIMIT \(limit) FOR UPDATE SKIP LOCKED) AS due
                WHERE id = claimed_id
                RETURNING id, place
                """
            ).map(Transaction.renewalPlace(from:)).sorted()
            let (subscriptions, broken) = try await transaction.readSubscriptions(places.map(\.id))
            let open = try await transaction.readOpenStandings(of: places.map(\.id))
            let claimed = places.compactMap { place in
                subscriptions[place.id].map { subscription in
                    let plan = RenewalPlan(
                        for: subscription, open: open[place.id] ?? [], instrument: nil, rules: policy.renewal,
                        now: run.asOf)
                    return ClaimedRenewal(subscription: subscription, needsInstrument: plan.needsInstrument)
                }
            }
            for (id, reason) in broken { try await transaction.setAside(id.uuid, reason) }
            return (claimed, places.last, broken.count)
        }
    }

    /// Decides about one claimed subscription, with its instrument as it was read just now, and writes all of it down. What
    /// is to be attempted comes back as a claim, which nothing has been sent for.
    ///
    /// - Parameter report: nil where it needn't be read.
    public func applyRenewal(
        _ claimed: ClaimedRenewal, of run: RenewalRun, _ report: InstrumentReport?
    ) async throws -> RenewalStep {
        try await transact { transaction in
            var step = RenewalStep()
            try await transaction.learn(report, of: claimed.subscription)
            guard
                let subscription = try await transaction.lockClaimed(claimed.subscription.id, run),
                subscription.instrument == claimed.subscription.instrument || report == nil
            else {
                step.isLost = true
                return step
            }
            let open = try await transaction.readOpenCharges(of: subscription.id)
            let instrument = try await transaction.instrument(report, of: subscription, asOf: run.asOf)
            let plan = RenewalPlan(
                for: subscription, open: open.compactMap(\.standing), instrument: instrument, rules: policy.renewal,
                now: run.asOf)
            if plan.needsInstrument, instrument == nil {
                // Something became due since it was taken: the next run reads the instrument.
                step.isLost = true
                try await transaction.release(subscription.id)
                return step
            }
            return try await transaction.carryOut(plan, of: subscription, open: open, run)
        }
    }

    /// A run could not deal with it: it is due as before.
    public func releaseRenewal(_ id: SubscriptionID) async throws {
        try await transact { try await $0.release(id) }
    }

    /// A row that makes a run fail is left out until somebody has mended it.
    public func setAsideRenewal(_ id: SubscriptionID, _ reason: String) async throws {
        try await transact { try await $0.setAside(id.uuid, reason) }
    }

    /// What a run would do, without doing it: nothing is written and nothing is read from the provider, so cards are
    /// taken as they were when they were last seen.
    public func previewRenewals(
        _ run: RenewalRun, after place: RenewalPlace?, limit: Int
    ) async throws -> (previews: [RenewalPreview], place: RenewalPlace?) {
        try await transact { transaction in
            let places = try await transaction.query(
                """
                SELECT id, due_at AS place FROM subscriptions
                WHERE due_at <= \(run.asOf.stored) AND set_aside IS NULL
                    AND (\(place?.dueAt.stored)::timestamptz IS NULL
                        OR (due_at, id) > (\(place?.dueAt.stored), \(place?.id.uuid)))
                ORDER BY due_at, id LIMIT \(limit)
                """
            ).map(Transaction.renewalPlace(from:))
            let (subscriptions, _) = try await transaction.readSubscriptions(places.map(\.id))
            let open = try await transaction.readOpenStandings(of: places.map(\.id))
            var previews: [RenewalPreview] = []
            for place in places {
                guard let subscription = subscriptions[place.id] else { continue }
                let known = try await transaction.readInstrument(subscription.instrument)
                let report: InstrumentReport = known.map { .found($0.snapshot) } ?? .missing
                let plan = RenewalPlan(
                    for: subscription, open: open[place.id] ?? [],
                    instrument: try await transaction.instrument(report, of: subscription, asOf: run.asOf),
                    rules: policy.renewal, now: run.asOf)
                previews.append(RenewalPreview(subscription: subscription, steps: plan.steps))
            }
            return (previews, places.last)
        }
    }
}

/// What a run would do with one subscription.
public struct RenewalPreview: Sendable {
    public let subscription: Subscription
    public let steps: [RenewalPlan.Step]
}

extension Transaction {
    fileprivate static func renewalPlace(from row: PostgresRow) throws -> RenewalPlace {
        let (id, dueAt) = try row.decode((UUID, PostgresTimestamp).self)
        return RenewalPlace(dueAt: dueAt.timestamp, id: SubscriptionID(id))
    }

    /// Those that can be read, and what is wrong with the others.
    fileprivate func readSubscriptions(
        _ ids: [SubscriptionID]
    ) async throws -> (readable: [SubscriptionID: Subscription], broken: [(SubscriptionID, String)]) {
        guard !ids.isEmpty else { return ([:], []) }
        let rows = try await query(
            """
            SELECT \(unescaped: Self.subscriptionColumns) FROM subscriptions WHERE id = ANY(\(ids.map(\.uuid)))
            """)
        var readable: [SubscriptionID: Subscription] = [:]
        var broken: [(SubscriptionID, String)] = []
        for row in rows {
            let id = SubscriptionID(try row.decode("id", as: UUID.self))
            do { readable[id] = try Self.subscription(from: row) } catch { broken.append((id, "\(error)")) }
        }
        return (readable, broken)
    }

    /// The subscription while this run still has it.
    fileprivate func lockClaimed(_ id: SubscriptionID, _ run: RenewalRun) async throws -> Subscription? {
        guard let subscription = try await lockSubscription(id) else { return nil }
        let owner =
            try await query("SELECT lease_owner FROM subscriptions WHERE id = \(id.uuid)")
            .first?.decode("lease_owner", as: UUID?.self) ?? nil
        return owner == run.id ? subscription : nil
    }

    fileprivate func release(_ id: SubscriptionID) async throws {
        _ = try await query("UPDATE subscriptions SET lease_until = NULL WHERE id = \(id.uuid)")
    }

    fileprivate func setAside(_ id: UUID, _ reason: String) async throws {
        _ = try await query(
            """
            UPDATE subscriptions SET set_aside = \(String(reason.prefix(200))), lease_until = NULL WHERE id = \(id)
            """)
    }

    fileprivate func readOpenStandings(
        of ids: [SubscriptionID]
    ) async throws -> [SubscriptionID: [RenewalPlan.OpenCharge]] {
        guard !ids.isEmpty else { return [:] }
        let charges = try await query(
            """
            SELECT id FROM charges WHERE subscription_id = ANY(\(ids.map(\.uuid)))
                AND (state IN ('scheduled','processing','unknown')
                    OR (state = 'skipped' AND reason LIKE 'instrument-%'))
            """
        ).map { ChargeID(try $0.decode("id", as: UUID.self)) }
        var standings: [SubscriptionID: [RenewalPlan.OpenCharge]] = [:]
        for charge in try await readCharges(charges) {
            guard let id = charge.subscription, let standing = charge.standing else { continue }
            standings[id, default: []].append(standing)
        }
        return standings
    }

    /// The report in the plan's words, with what the card's network counts.
    fileprivate func instrument(
        _ report: InstrumentReport?, of subscription: Subscription, asOf: Timestamp
    ) async throws -> RenewalPlan.Instrument? {
        switch report {
        case nil: return nil
        case .unavailable: return .unreadable
        case .missing, .anotherHolder: return .missing
        case .found(let instrument):
            if instrument.isDeleted { return .missing }
            if instrument.isDisabled { return .disabled }
            let window = policy.renewal.dunning.cap(of: instrument.network).days
            let declines = try await query(
                """
                SELECT begun_at FROM charge_attempts
                WHERE instrument_id = \(instrument.id.uuid) AND outcome = 'failed'
                    AND begun_at > \((asOf - .seconds(Int64(window) * 86_400)).stored)
                """
            ).map { try $0.decode("begun_at", as: PostgresTimestamp.self).timestamp }
            return .enabled(instrument, declines: declines)
        }
    }

    fileprivate func learn(_ report: InstrumentReport?, of subscription: Subscription) async throws {
        switch report {
        case .found(let instrument): try await learnInstrument(instrument, holder: subscription.holderReference)
        case .missing: try await learnDeletion(of: subscription.instrument)
        case .anotherHolder, .unavailable, nil: break
        }
    }

    /// Makes a plan true.
    fileprivate func carryOut(
        _ plan: RenewalPlan, of known: Subscription, open: [Charge], _ run: RenewalRun
    ) async throws -> RenewalStep {
        var (subscription, step) = (known, RenewalStep())
        var attempt: Charge?
        var events: [Subscription.Event] = []
        var untouched = open
        func charge(_ index: Int) -> Charge? {
            untouched.firstIndex { $0.period?.index == index }.map { untouched.remove(at: $0) }
        }
        for planned in plan.steps {
            switch planned {
            case .skip(let period, let reason):
                _ = try await insertCharge(for: period, of: subscription, skipped: reason)
                _ = subscription.apply(.begun(upTo: period.index))
                step.skipped += 1
                if reason.waitsForInstrument { events.append(.instrumentUnusable) }
            case .postpone(let period, let until):
                _ = try await insertCharge(for: period, of: subscription, nextAttemptAt: until)
                _ = subscription.apply(.begun(upTo: period.index))
            case .begin(let period):
                attempt = try await insertCharge(
                    for: period, of: subscription, nextAttemptAt: min(now, run.asOf), claim: run.id)
                _ = subscription.apply(.begun(upTo: period.index))
                events.append(contentsOf: subscription.hadTrouble)
            case .retry(let index):
                guard var next = charge(index) else { continue }
                next.state = .scheduled
                next.reason = nil
                next.nextAttemptAt = min(now, run.asOf)
                next.instrument = subscription.instrument
                next.expiryPolicy = subscription.expiryPolicy
                try await write(next, claim: run.id)
                attempt = next
                events.append(contentsOf: subscription.hadTrouble)
            case .suspend(let index, let reason):
                guard let suspended = charge(index) else { continue }
                try await skip(suspended, reason)
                step.skipped += 1
                events.append(.instrumentUnusable)
            case .deferRetry(let index, let until):
                guard var later = charge(index) else { continue }
                later.state = .scheduled
                later.nextAttemptAt = until
                try await write(later)
            case .giveUp(let index):
                guard var over = charge(index) else { continue }
                over.state = .failed
                over.reason = "attempt-cap"
                over.nextAttemptAt = nil
                try await write(over)
                try await tell(.chargeFailed, about: over)
                events.append(.givenUp(cancels: policy.renewal.cancelsAfterDunning))
            case .hold: step.isHeld = true
            case .finish:
                events.append(.finished)
                step.hasEnded = true
            }
        }
        var effects: [Subscription.Effect] = []
        for event in events { effects += subscription.apply(event) }
        // The others that wait have their turn in the next runs.
        _ = try await perform(effects.filter { $0 != .retryWaiting }, of: subscription, open: untouched)
        // While nothing is sent yet, it stays due: a run that dies here leaves it to the next one.
        try await writeSubscription(subscription, dueAt: attempt == nil ? plan.nextAt : min(now, run.asOf))
        step.attempt = attempt.map { ClaimedCharge(charge: $0, claim: run.id) }
        return step
    }
}

extension Subscription {
    /// A charge is attempted again although the instrument was in the way: it isn't any more.
    fileprivate var hadTrouble: [Event] { status == .needsInstrument ? [.instrumentUsable(othersOpen: true)] : [] }
}
