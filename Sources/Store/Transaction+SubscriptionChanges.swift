import Basics
import Foundation
import Lockstep
import Postgres

extension Transaction {
    /// Nothing decided yet.
    var subscriptionChanges: SubscriptionChanges {
        SubscriptionChanges(now: now, policy: policy, identifiers: identifiers)
    }

    /// Writes all that was decided: one statement for each kind of row, all in one round trip.
    func write(_ changes: SubscriptionChanges) async throws {
        let queries =
            [
                insert(changes.newCharges), update(changes.charges), insertAttempts(of: changes.attempts),
                insertOperations(of: changes.attempts), update(changes.subscriptions), update(changes.ends),
                insert(changes.events),
            ].compactMap { $0 }
        guard !queries.isEmpty else { return }
        _ = try await pipeline(queries)
    }

    private func insert(_ rows: [SubscriptionChanges.NewCharge]) -> PostgresQuery? {
        guard !rows.isEmpty else { return nil }
        let charges = rows.map(\.charge)
        return """
            INSERT INTO charges (id, subscription_id, period_index, period_start, period_end, merchant_reference,
                holder_reference, instrument_id, workflow_code, amount_minor, currency, expiry_policy, meta, state,
                reason, next_attempt_at, created_at)
            SELECT new.id, new.subscription_id, new.period_index, DATE '1970-01-01' + new.start_day::integer,
                DATE '1970-01-01' + new.end_day::integer, new.merchant_reference, new.holder_reference,
                new.instrument_id, new.workflow_code, new.amount_minor, new.currency, new.expiry_policy, new.meta,
                new.state, new.reason, new.next_attempt_at, \(now.stored)
            FROM unnest(\(charges.map(\.id.uuid)), \(charges.map { $0.subscription?.uuid }),
                \(charges.map { $0.period?.index }), \(charges.map { $0.period?.start.daysSince1970 }),
                \(charges.map { $0.period?.end.daysSince1970 }), \(charges.map(\.merchantReference)),
                \(charges.map(\.holderReference)), \(charges.map(\.instrument.uuid)), \(charges.map(\.workflowCode)),
                \(charges.map(\.amount.minor)), \(charges.map(\.amount.currency.code)),
                \(charges.map(\.expiryPolicy.rawValue)), \(rows.map { $0.meta.map { PostgresJSON($0.text) } }),
                \(charges.map(\.state.rawValue)), \(charges.map(\.reason)),
                \(charges.map { $0.nextAttemptAt?.stored }))
                AS new(id, subscription_id, period_index, start_day, end_day, merchant_reference, holder_reference,
                    instrument_id, workflow_code, amount_minor, currency, expiry_policy, meta, state, reason,
                    next_attempt_at)
            """
    }

    private func update(_ charges: [Charge]) -> PostgresQuery? {
        guard !charges.isEmpty else { return nil }
        return """
            UPDATE charges SET state = new.state, reason = new.reason, next_attempt_at = new.next_attempt_at,
                instrument_id = new.instrument_id, amount_minor = new.amount_minor,
                expiry_policy = new.expiry_policy, lease_owner = NULL, lease_until = NULL
            FROM unnest(\(charges.map(\.id.uuid)), \(charges.map(\.state.rawValue)), \(charges.map(\.reason)),
                \(charges.map { $0.nextAttemptAt?.stored }), \(charges.map(\.instrument.uuid)),
                \(charges.map(\.amount.minor)), \(charges.map(\.expiryPolicy.rawValue)))
                AS new(id, state, reason, next_attempt_at, instrument_id, amount_minor, expiry_policy)
            WHERE charges.id = new.id
            """
    }

    private func insertAttempts(of rows: [SubscriptionChanges.NewAttempt]) -> PostgresQuery? {
        guard !rows.isEmpty else { return nil }
        let attempts = rows.map(\.attempt)
        return """
            INSERT INTO charge_attempts (charge_id, number, merchant_reference, instrument_id, payment_method,
                amount_minor, currency, outcome, begun_at)
            SELECT * FROM unnest(\(rows.map(\.charge.id.uuid)), \(attempts.map(\.number)),
                \(attempts.map(\.merchantReference)), \(attempts.map(\.instrument.uuid)),
                \(attempts.map(\.paymentMethod)), \(attempts.map(\.amount.minor)),
                \(attempts.map(\.amount.currency.code)), \(attempts.map(\.outcome.rawValue)),
                \(attempts.map(\.begunAt.stored)))
            """
    }

    private func insertOperations(of rows: [SubscriptionChanges.NewAttempt]) -> PostgresQuery? {
        insertSent(
            rows.map {
                SentOperation(
                    operation: $0.operation, workflowCode: $0.charge.workflowCode, ordinal: $0.attempt.number,
                    owner: $0.owner)
            })
    }

    /// Its lease ends, whoever had it. A row that is as it shall be isn't written again.
    private func update(_ rows: [SubscriptionChanges.SubscriptionRow]) -> PostgresQuery? {
        guard !rows.isEmpty else { return nil }
        let all = rows.map(\.subscription)
        return """
            UPDATE subscriptions AS old SET instrument_id = new.instrument_id, amount_minor = new.amount_minor,
                starts_on = DATE '1970-01-01' + new.start_day::integer, anchor_index = new.anchor_index,
                ends_on = DATE '1970-01-01' + new.end_day::integer, max_charges = new.max_charges,
                expiry_policy = new.expiry_policy, meta = new.meta, status = new.status, next_index = new.next_index,
                declined_instrument_id = new.declined_id, declined_appearance = new.declined_appearance,
                due_at = new.due_at, lease_until = NULL,
                closed_at = CASE WHEN new.status IN ('cancelled','ended')
                    THEN coalesce(old.closed_at, \(now.stored)) END
            FROM unnest(\(all.map(\.id.uuid)), \(all.map(\.instrument.uuid)), \(all.map(\.amount.minor)),
                \(all.map(\.startsOn.daysSince1970)), \(all.map(\.anchorIndex)),
                \(all.map { $0.endsOn?.daysSince1970 }), \(all.map(\.maxCharges)), \(all.map(\.expiryPolicy.rawValue)),
                \(all.map { $0.meta.map { PostgresJSON($0.text) } }), \(all.map(\.status.rawValue)),
                \(all.map(\.nextIndex)), \(all.map { $0.declined?.instrument.uuid }),
                \(all.map { $0.declined?.appearance }), \(rows.map { $0.dueAt?.stored }))
                AS new(id, instrument_id, amount_minor, start_day, anchor_index, end_day, max_charges, expiry_policy,
                    meta, status, next_index, declined_id, declined_appearance, due_at)
            WHERE old.id = new.id AND (old.lease_until IS NOT NULL
                OR (old.instrument_id, old.amount_minor, old.starts_on - DATE '1970-01-01', old.anchor_index,
                    old.ends_on - DATE '1970-01-01', old.max_charges, old.expiry_policy, old.meta, old.status,
                    old.next_index, old.declined_instrument_id, old.declined_appearance, old.due_at)
                IS DISTINCT FROM (new.instrument_id, new.amount_minor, new.start_day, new.anchor_index, new.end_day,
                    new.max_charges, new.expiry_policy, new.meta, new.status, new.next_index, new.declined_id,
                    new.declined_appearance, new.due_at))
            """
    }

    private func update(_ ends: [SubscriptionChanges.End]) -> PostgresQuery? {
        guard !ends.isEmpty else { return nil }
        return """
            UPDATE charges SET period_end = DATE '1970-01-01' + new.day::integer
            FROM unnest(\(ends.map(\.subscription.uuid)), \(ends.map(\.index)), \(ends.map(\.day.daysSince1970)))
                AS new(subscription_id, period_index, day)
            WHERE charges.subscription_id = new.subscription_id AND charges.period_index = new.period_index
            """
    }
}
