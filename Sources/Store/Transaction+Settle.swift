import Basics
import Foundation
import Lockstep
import Postgres

/// A checkout as it stands after a settlement.
public struct SettledCheckout: Sendable {
    public let checkout: Checkout
    public let executions: [CheckoutExecution]

    public var json: JSON { checkout.json(executions: executions) }
}

/// What the facts mean for checkouts and charges, decided and not yet written.
struct Decision {
    var changes: SettlementChanges
    var checkouts: [SettledCheckout] = []
    var charges: [(before: Charge, after: Charge)] = []
    /// Of the charges; locked.
    var subscriptions: [SubscriptionID: Subscription] = [:]
}

extension Transaction {
    /// Makes true what the facts mean: the one place where a checkout's status, its executions' states, the results of
    /// its operations and the events about them are written. The caller holds the checkout's lock.
    ///
    /// - Parameter announcing: events of the caller's own change.
    @discardableResult
    func settle(_ checkout: Checkout, announcing: [EventType] = []) async throws -> SettledCheckout {
        let holdings = try await readHoldings(of: [.checkout(checkout.id)])
        var changes = SettlementChanges(now: now, policy: policy, identifiers: identifiers)
        let settled = changes.settle(checkout, holdings[.checkout(checkout.id)] ?? Holdings(), announcing: announcing)
        try await write(Decision(changes: changes))
        return settled
    }

    /// The same for a charge.
    @discardableResult
    func settle(_ charge: Charge) async throws -> Charge {
        try await settle([], [charge]).charges.first?.after ?? charge
    }

    func settle(_ owner: LockedOwner) async throws {
        switch owner {
        case .checkout(let checkout): try await settle(checkout)
        case .charge(let charge): try await settle(charge)
        }
    }

    /// The same for many at once, in as many statements as for one.
    @discardableResult
    func settle(_ checkouts: [Checkout], _ charges: [Charge]) async throws -> Decision {
        let decision = try await decide(checkouts, LockedCharges(charges: charges))
        try await write(decision)
        return decision
    }

    /// Reads what the facts are, and decides what they mean. Nothing of it is written yet.
    ///
    /// - Parameters:
    ///   - locked: charges, with their subscriptions where those were read already.
    ///   - refused: why the provider refused a call of an attempt for good, by charge and by the attempt's number.
    ///   - abandoned: attempts that nobody goes on with, likewise.
    ///   - justRead: executions that the provider was asked about just now, so that their next reading is planned.
    ///   - writes: what must be written before, in the same round trip.
    func decide(
        _ checkouts: [Checkout], _ locked: LockedCharges, refused: [ChargeID: [Int: String]] = [:],
        abandoned: [ChargeID: [Int: ChargeSettlement.Abandonment]] = [:],
        justRead: Set<ExecutionID> = [], after writes: [PostgresQuery] = []
    ) async throws -> Decision {
        let owners: [ExecutionOwner] =
            checkouts.map { .checkout($0.id) } + locked.charges.map { .charge($0.id) }
        let holdings = try await readHoldings(of: owners, after: writes)
        var decision = Decision(
            changes: SettlementChanges(now: now, policy: policy, identifiers: identifiers, justRead: justRead),
            subscriptions: locked.subscriptions)
        for checkout in checkouts {
            decision.checkouts.append(
                decision.changes.settle(checkout, holdings[.checkout(checkout.id)] ?? Holdings(), announcing: []))
        }
        if decision.subscriptions.isEmpty, locked.charges.contains(where: { $0.subscription != nil }) {
            decision.subscriptions = try await lockSubscriptions(of: locked.charges.map(\.id))
        }
        for charge in locked.charges {
            let subscription = charge.subscription.flatMap { decision.subscriptions[$0] }
            let settled = decision.changes.settle(
                charge, holdings[.charge(charge.id)] ?? Holdings(), refused: refused[charge.id] ?? [:],
                abandoned: abandoned[charge.id] ?? [:],
                afterFailure: { policy.renewal.afterFailure($0, of: charge, subscription) })
            decision.charges.append((charge, settled))
        }
        return decision
    }

    private func readHoldings(
        of owners: [ExecutionOwner], after writes: [PostgresQuery] = []
    ) async throws -> [ExecutionOwner: Holdings] {
        guard !owners.isEmpty else {
            if !writes.isEmpty { _ = try await pipeline(writes) }
            return [:]
        }
        let kinds = owners.byColumn
        let reads = kinds.flatMap { kind in
            [
                Self.executionsQuery(kind.column, kind.ids), Self.factsQuery(kind.column, kind.ids),
                Self.operationsQuery(kind.column, kind.ids),
            ]
        }
        let results = try await pipeline(writes + reads + [Self.discrepanciesQuery(of: owners)])
        var executions: [ExecutionOwner: [StoredExecution]] = [:]
        var operations: [PaymentOperation] = []
        for index in kinds.indices {
            let first = writes.count + 3 * index
            try Self.collect(results[first], facts: results[first + 1], into: &executions)
            operations += try results[first + 2].map(Self.operation(from:))
        }
        var holdings = executions.mapValues { Holdings(executions: $0) }
        for operation in operations {
            guard let owner = operation.owner else { continue }
            if !operation.state.isFinal { holdings[owner, default: Holdings()].operations.append(operation) }
            guard operation.state != .failed, let execution = operation.execution?.id else { continue }
            if operation.kind == .cancel { holdings[owner, default: Holdings()].cancelled.insert(execution) }
            holdings[owner, default: Holdings()].actions.account(for: operation)
        }
        for row in results[results.count - 1] {
            let (owner, discrepancy) = try Self.discrepancy(from: row)
            if let owner { holdings[owner, default: Holdings()].discrepancies.append(discrepancy) }
        }
        return holdings
    }

    /// Writes what was decided, and tells the subscriptions of what became of their charges.
    ///
    /// - Parameter others: what else is to be written, in the same round trip.
    func write(_ decision: Decision, and others: [PostgresQuery] = []) async throws {
        try await write(decision.changes, and: others)
        try await settleSubscriptions(decision.charges, decision.subscriptions)
        for (before, after) in decision.charges { failures.add(policy.renewal.configurationFailures(before, after)) }
    }

    /// Writes all that was decided: one statement for each kind of row, all in one round trip.
    private func write(_ changes: SettlementChanges, and others: [PostgresQuery]) async throws {
        var queries = others
        if let query = update(changes.checkouts) { queries.append(query) }
        if let query = update(changes.charges) { queries.append(query) }
        // Those that are over first: at no moment may two attempts of a charge be open.
        for isOpen in [false, true] {
            let rows = changes.attempts.filter { $0.attempt.outcome.isOpen == isOpen }
            if let query = update(rows) { queries.append(query) }
        }
        if let query = update(changes.executions) { queries.append(query) }
        for (execution, amount) in changes.amounts {
            queries.append(
                """
                UPDATE executions SET amount_minor = \(amount.minor), currency = \(amount.currency.code),
                    init_version = NULL, init_data = NULL
                WHERE id = \(execution.uuid)
                """)
        }
        for operation in changes.finished {
            queries.append(
                """
                UPDATE operations SET state = \(operation.state.rawValue), action_id = \(operation.actionID),
                    reason = \(operation.reason), finished_at = \(now.stored), lease_owner = NULL, lease_until = NULL,
                    due_at = NULL
                WHERE id = \(operation.id.uuid)
                """)
        }
        for operation in changes.cancels {
            guard let execution = operation.execution else { continue }
            queries.append(
                """
                INSERT INTO operations (id, kind, checkout_id, charge_id, execution_id, workflow_code, idempotency_key,
                    state, intent_reason, created_at, due_at)
                VALUES (\(operation.id.uuid), 'cancel', \(operation.checkout?.uuid), \(operation.charge?.uuid),
                    \(execution.id.uuid), \(execution.workflowCode), \(operation.key.uuid), 'prepared', \(operation.intentReason),
                    \(now.stored), \(now.stored))
                """)
        }
        queries += write(opened: changes.opened, resolved: changes.resolved)
        if let query = insert(changes.events) { queries.append(query) }
        guard !queries.isEmpty else { return }
        _ = try await pipeline(queries)
    }

    private func update(_ rows: [SettlementChanges.CheckoutRow]) -> PostgresQuery? {
        guard !rows.isEmpty else { return nil }
        let checkouts = rows.map(\.checkout)
        return """
            UPDATE checkouts SET status = new.status, amount_minor = new.amount_minor, currency = new.currency,
                amount_version = new.amount_version, amount_state = new.amount_state,
                basket_version = new.basket_version, current_execution_id = new.current_execution_id,
                kept_execution_id = new.kept_execution_id, lease_execution_id = new.lease_execution_id,
                lease_until = new.lease_until, due_at = new.due_at
            FROM unnest(\(checkouts.map(\.id.uuid)), \(checkouts.map(\.status.rawValue)),
                \(checkouts.map(\.amount.minor)), \(checkouts.map(\.amount.currency.code)),
                \(checkouts.map(\.amountVersion)), \(checkouts.map(\.amountState.rawValue)),
                \(checkouts.map(\.basketVersion)), \(checkouts.map { $0.currentExecution?.uuid }),
                \(checkouts.map { $0.keptExecution?.uuid }), \(checkouts.map { $0.lease?.execution.uuid }),
                \(checkouts.map { $0.lease?.until.stored }), \(rows.map { $0.dueAt?.stored }))
                AS new(id, status, amount_minor, currency, amount_version, amount_state, basket_version,
                    current_execution_id, kept_execution_id, lease_execution_id, lease_until, due_at)
            WHERE checkouts.id = new.id
            """
    }

    private func update(_ rows: [SettlementChanges.ChargeRow]) -> PostgresQuery? {
        guard !rows.isEmpty else { return nil }
        let charges = rows.map(\.charge)
        return """
            UPDATE charges SET state = new.state, reason = new.reason, next_attempt_at = new.next_attempt_at,
                settle_at = new.settle_at
            FROM unnest(\(charges.map(\.id.uuid)), \(charges.map(\.state.rawValue)), \(charges.map(\.reason)),
                \(charges.map { $0.nextAttemptAt?.stored }), \(rows.map { $0.dueAt?.stored }))
                AS new(id, state, reason, next_attempt_at, settle_at)
            WHERE charges.id = new.id
                AND (charges.state, charges.reason, charges.next_attempt_at, charges.settle_at)
                    IS DISTINCT FROM (new.state, new.reason, new.next_attempt_at, new.settle_at)
            """
    }

    private func update(_ rows: [SettlementChanges.AttemptRow]) -> PostgresQuery? {
        guard !rows.isEmpty else { return nil }
        return """
            UPDATE charge_attempts AS attempts SET outcome = new.outcome, reason = new.reason
            FROM unnest(\(rows.map(\.charge.uuid)), \(rows.map(\.attempt.number)),
                \(rows.map(\.attempt.outcome.rawValue)), \(rows.map(\.attempt.reason)))
                AS new(charge_id, number, outcome, reason)
            WHERE attempts.charge_id = new.charge_id AND attempts.number = new.number
            """
    }

    private func update(_ rows: [SettlementChanges.ExecutionRow]) -> PostgresQuery? {
        guard !rows.isEmpty else { return nil }
        let executions = rows.map(\.execution)
        return """
            UPDATE executions SET state = new.state, authorized_minor = new.authorized,
                captured_minor = new.captured, refunded_minor = new.refunded, cancel_reason = new.cancel_reason,
                cancel_reported = new.cancel_reported, check_at = new.check_at,
                told_disputes = new.disputes::jsonb, checks = new.checks,
                changed_at = CASE WHEN new.has_changed THEN \(now.stored) ELSE changed_at END
            FROM unnest(\(executions.map(\.id.uuid)), \(executions.map(\.state.rawValue)),
                \(executions.map { $0.picture.authorized?.minor }), \(executions.map { $0.picture.captured?.minor }),
                \(executions.map { $0.picture.refunded?.minor }), \(executions.map { $0.cancelReason?.rawValue }),
                \(executions.map(\.cancelReported)), \(rows.map { $0.checkAt?.stored }), \(rows.map(\.checks)),
                \(rows.map(\.hasChanged)), \(rows.map { $0.disputes.told?.text }))
                AS new(id, state, authorized, captured, refunded, cancel_reason, cancel_reported, check_at, checks,
                    has_changed, disputes)
            WHERE executions.id = new.id
            """
    }

    func insert(_ events: [SettlementChanges.Event]) -> PostgresQuery? {
        guard !events.isEmpty else { return nil }
        return """
            INSERT INTO events (id, type, scope, checkout_id, subject_id, execution_id, data, time)
            SELECT new.id, new.type, new.scope, new.checkout_id, new.subject_id, new.execution_id, new.data::jsonb,
                \(now.stored)
            FROM unnest(\(events.map { _ in identifiers.next() }), \(events.map(\.type.rawValue)),
                \(events.map(\.type.scope.rawValue)), \(events.map { $0.about.checkout?.uuid }),
                \(events.map(\.about.other)), \(events.map { $0.execution?.uuid }), \(events.map(\.data.text)))
                WITH ORDINALITY AS new(id, type, scope, checkout_id, subject_id, execution_id, data, place)
            ORDER BY new.place
            """
    }
}

extension [Dispute] {
    /// As the row keeps them: the status by the dispute's id; nil for none.
    fileprivate var told: JSON? {
        isEmpty ? nil : .object(Dictionary(map { ($0.id, .string($0.status)) }) { first, _ in first })
    }
}
