import Basics
import Foundation
import Lockstep
import Postgres

/// Up to when things have outlived their retention.
public struct RetentionLimits: Sendable {
    public let notifications: Timestamp
    public let personalData: Timestamp
    public let events: Timestamp

    public init(notifications: Timestamp, personalData: Timestamp, events: Timestamp) {
        self.notifications = notifications
        self.personalData = personalData
        self.events = events
    }
}

/// What was deleted, or would be.
public struct RetentionCount: Sendable, Equatable {
    public var notificationBodies = 0
    public var checkouts = 0
    public var charges = 0
    public var subscriptions = 0
    /// Instruments that the provider doesn't have any more.
    public var instruments = 0
    public var events = 0

    public init() {}
}

extension PaymentStore {
    /// Deletes what has outlived its retention, in batches so small that nobody waits for them. What money needs stays:
    /// amounts, ids, facts, and the hash that tells a late duplicate.
    public func retain(_ limits: RetentionLimits, batch: Int = 500) async throws -> RetentionCount {
        var count = RetentionCount()
        count.notificationBodies = try await removeBodies(before: limits.notifications, batch: batch)
        count.checkouts = try await removePersonalData(before: limits.personalData, batch: batch)
        count.charges = try await removeChargesData(before: limits.personalData, batch: batch)
        count.subscriptions = try await removeSubscriptionsData(before: limits.personalData, batch: batch)
        count.instruments = try await removeInstruments(before: limits.personalData, batch: batch)
        count.events = try await removeEvents(before: limits.events, batch: batch)
        return count
    }

    /// The same without deleting anything.
    public func countOutlived(_ limits: RetentionLimits) async throws -> RetentionCount {
        let row = try await pool.query(
            """
            SELECT (SELECT count(*) FROM notifications JOIN notification_outcomes USING (id)
                    WHERE \(unescaped: Self.outlivedBody) AND received_at < \(limits.notifications.stored)) AS bodies,
                (SELECT count(*) FROM checkouts WHERE \(unescaped: Self.closedForGood)
                    AND expires_at < \(limits.personalData.stored) AND NOT EXISTS (SELECT FROM executions
                        WHERE checkout_id = checkouts.id AND changed_at >= \(limits.personalData.stored)))
                    AS checkouts,
                (SELECT count(*) FROM charges WHERE \(unescaped: Self.overForGood)
                    AND created_at < \(limits.personalData.stored)) AS charges,
                (SELECT count(*) FROM subscriptions WHERE \(unescaped: Self.closedSubscription)
                    AND closed_at < \(limits.personalData.stored)) AS subscriptions,
                (SELECT count(*) FROM instruments WHERE status = 'deleted'
                    AND read_at < \(limits.personalData.stored)) AS instruments,
                (SELECT count(*) FROM events WHERE \(unescaped: Self.toldEvent)
                    AND time < \(limits.events.stored)) AS events
            """
        ).first
        var count = RetentionCount()
        if let (bodies, checkouts, charges, subscriptions, instruments, events) = try row?.decode(
            (Int64, Int64, Int64, Int64, Int64, Int64).self)
        {
            count.notificationBodies = Int(bodies)
            count.checkouts = Int(checkouts)
            count.charges = Int(charges)
            count.subscriptions = Int(subscriptions)
            count.instruments = Int(instruments)
            count.events = Int(events)
        }
        return count
    }

    private static let outlivedBody = "body IS NOT NULL AND state IN ('applied','ignored','parked')"

    /// Nothing is open at it any more, here or at the provider.
    private static let closedForGood = """
        personal_data_removed_at IS NULL AND status NOT IN ('open','processing') AND due_at IS NULL
            AND NOT EXISTS (SELECT FROM operations WHERE checkout_id = checkouts.id AND finished_at IS NULL)
            AND NOT EXISTS (SELECT FROM executions WHERE checkout_id = checkouts.id AND check_at IS NOT NULL)
        """

    /// The same for a charge.
    private static let overForGood = """
        personal_data_removed_at IS NULL AND state IN ('succeeded','failed','needsCustomer','skipped')
            AND settle_at IS NULL
            AND NOT EXISTS (SELECT FROM operations WHERE charge_id = charges.id AND finished_at IS NULL)
            AND NOT EXISTS (SELECT FROM executions WHERE charge_id = charges.id AND check_at IS NOT NULL)
        """

    /// Cancelled or ended, and nothing of its charges is to come.
    private static let closedSubscription = """
        closed_at IS NOT NULL AND personal_data_removed_at IS NULL
            AND NOT EXISTS (SELECT FROM charges WHERE subscription_id = subscriptions.id
                AND state IN ('scheduled','processing','unknown'))
        """

    /// Takes out why the shop captured, cancelled or refunded, which it says in its own words.
    fileprivate static let withoutShopReason = """
        intent_reason = CASE WHEN kind = 'cancel' AND intent_reason NOT LIKE '\(PaymentOperation.shopReasonPrefix)%' \
        THEN intent_reason END
        """

    /// Neither before the cursor that queues events for the shop, nor one that the shop still has to take.
    private static let toldEvent = """
        NOT EXISTS (SELECT FROM event_deliveries WHERE event_id = events.id AND state <> 'delivered')
            AND NOT EXISTS (SELECT FROM delivery_cursor AS cursor WHERE (cursor.transaction_id, cursor.number)
                < (events.transaction_id, events.number))
        """

    /// By number, so that no batch looks again at what the one before has done. The outcome is held too: else somebody
    /// might have it applied again meanwhile, and find no body.
    private func removeBodies(before limit: Timestamp, batch: Int) async throws -> Int {
        var after: Int64 = 0
        var count = 0
        while true {
            let numbers = try await pool.query(
                """
                UPDATE notifications SET body = NULL WHERE id IN (SELECT id FROM notifications JOIN notification_outcomes USING (id)
                    WHERE id > \(after) AND received_at < \(limit.stored) AND \(unescaped: Self.outlivedBody)
                    ORDER BY id LIMIT \(batch) FOR UPDATE SKIP LOCKED)
                RETURNING id
                """
            ).map { try $0.decode(Int64.self) }
            guard let last = numbers.max() else { return count }
            after = last
            count += numbers.count
        }
    }

    private func removePersonalData(before limit: Timestamp, batch: Int) async throws -> Int {
        var count = 0
        while true {
            let done = try await transact { transaction in
                try await transaction.removePersonalData(Self.closedForGood, before: limit, batch: batch)
            }
            guard done > 0 else { return count }
            count += done
        }
    }

    private func removeChargesData(before limit: Timestamp, batch: Int) async throws -> Int {
        try await repeatBatches {
            try await pool.query(
                """
                WITH closed AS (
                    UPDATE charges SET holder_reference = '', meta = NULL,
                        personal_data_removed_at = \(clock.now().stored)
                    WHERE id IN (SELECT id FROM charges WHERE \(unescaped: Self.overForGood)
                        AND created_at < \(limit.stored) ORDER BY created_at LIMIT \(batch) FOR UPDATE SKIP LOCKED)
                    RETURNING id),
                said AS (
                    UPDATE operations SET \(unescaped: Self.withoutShopReason)
                    WHERE charge_id IN (SELECT id FROM closed) AND intent_reason IS NOT NULL)
                SELECT id FROM closed
                """
            ).count
        }
    }

    private func removeSubscriptionsData(before limit: Timestamp, batch: Int) async throws -> Int {
        try await repeatBatches {
            try await pool.query(
                """
                UPDATE subscriptions SET holder_reference = '', meta = NULL,
                    personal_data_removed_at = \(clock.now().stored)
                WHERE id IN (SELECT id FROM subscriptions WHERE \(unescaped: Self.closedSubscription)
                    AND closed_at < \(limit.stored) ORDER BY closed_at LIMIT \(batch) FOR UPDATE SKIP LOCKED)
                """
            ).affected
        }
    }

    private func removeInstruments(before limit: Timestamp, batch: Int) async throws -> Int {
        try await repeatBatches {
            try await pool.query(
                """
                DELETE FROM instruments WHERE id IN (SELECT id FROM instruments
                    WHERE status = 'deleted' AND read_at < \(limit.stored) LIMIT \(batch) FOR UPDATE SKIP LOCKED)
                """
            ).affected
        }
    }

    /// Until a batch finds nothing.
    private func repeatBatches(_ work: () async throws -> Int) async throws -> Int {
        var count = 0
        while true {
            let done = try await work()
            guard done > 0 else { return count }
            count += done
        }
    }

    private func removeEvents(before limit: Timestamp, batch: Int) async throws -> Int {
        var count = 0
        while true {
            let gone = try await pool.query(
                """
                DELETE FROM events WHERE id IN (SELECT id FROM events
                    WHERE time < \(limit.stored) AND \(unescaped: Self.toldEvent)
                    ORDER BY transaction_id, number LIMIT \(batch) FOR UPDATE SKIP LOCKED)
                """
            ).affected
            guard gone > 0 else { return count }
            count += gone
        }
    }
}

extension Transaction {
    fileprivate func removePersonalData(_ closed: String, before limit: Timestamp, batch: Int) async throws -> Int {
        let checkouts = try await query(
            """
            UPDATE checkouts SET holder_reference = '', meta = NULL, basket_version = NULL,
                allowed_payment_methods = NULL, personal_data_removed_at = \(now.stored)
            WHERE id IN (SELECT id FROM checkouts WHERE \(unescaped: closed) AND expires_at < \(limit.stored)
                AND NOT EXISTS (SELECT FROM executions
                    WHERE checkout_id = checkouts.id AND changed_at >= \(limit.stored))
                ORDER BY expires_at LIMIT \(batch) FOR UPDATE SKIP LOCKED)
            RETURNING id
            """
        ).map { CheckoutID(try $0.decode("id", as: UUID.self)) }
        guard !checkouts.isEmpty else { return 0 }
        _ = try await query(
            """
            UPDATE operations SET basket_version = NULL, \(unescaped: PaymentStore.withoutShopReason)
            WHERE checkout_id = ANY(\(checkouts.map(\.uuid)))
                AND (basket_version IS NOT NULL OR intent_reason IS NOT NULL)
            """)
        return checkouts.count
    }
}
