import Basics
import Foundation
import Lockstep
import Postgres

/// An event's way to the shop, for a person.
public struct EventDelivery: Sendable {
    public let event: EventID
    public let type: String
    public let checkout: CheckoutID?
    public let state: DeliveryState
    /// Since it was queued or sent again by hand.
    public let attempts: Int
    public let queuedAt: Timestamp
    public let lastAttemptAt: Timestamp?
    public let lastStatus: Int?
    public let lastFailure: DeliveryFailure?
    /// Nil unless it is pending, and for one that waits behind an earlier event of its checkout.
    public let nextAttemptAt: Timestamp?
}

/// How many events are on their way; for the metrics.
public struct DeliveryBacklog: Sendable, Equatable {
    public var pending: Int64 = 0
    public var dead: Int64 = 0
    /// When the first of the pending ones was queued.
    public var oldestQueuedAt: Timestamp?

    public init() {}
}

extension PaymentStore {
    /// Deliveries in these states, in the feed's order.
    public func readDeliveries(_ states: Set<DeliveryState>, limit: Int) async throws -> [EventDelivery] {
        try await pool.query(
            """
            SELECT delivery.event_id, events.type, events.checkout_id, delivery.state, delivery.attempts,
                delivery.queued_at, delivery.last_attempt_at, delivery.last_status, delivery.last_failure,
                CASE WHEN delivery.state = 'pending' AND NOT EXISTS (SELECT FROM event_deliveries AS earlier
                    WHERE earlier.lane = delivery.lane AND earlier.state = 'pending'
                        AND (earlier.transaction_id, earlier.number) < (delivery.transaction_id, delivery.number))
                    THEN lanes.due_at END AS next_attempt_at
            FROM event_deliveries AS delivery JOIN events ON events.id = delivery.event_id
            LEFT JOIN delivery_lanes AS lanes ON lanes.lane = delivery.lane
            WHERE delivery.state = ANY(\(states.map(\.rawValue).sorted()))
            ORDER BY delivery.transaction_id, delivery.number LIMIT \(limit)
            """
        ).map { row in
            let (id, type, checkout, state, attempts, queuedAt, lastAttemptAt, lastStatus, lastFailure, nextAttemptAt) =
                try row.decode(
                    (
                        UUID, String, UUID?, String, Int32, PostgresTimestamp, PostgresTimestamp?, Int32?, String?,
                        PostgresTimestamp?
                    ).self)
            return EventDelivery(
                event: EventID(id), type: type, checkout: checkout.map { CheckoutID($0) },
                state: try legal(state, "event_deliveries"), attempts: Int(attempts),
                queuedAt: queuedAt.timestamp, lastAttemptAt: lastAttemptAt?.timestamp,
                lastStatus: lastStatus.map { Int($0) },
                lastFailure: lastFailure.flatMap { DeliveryFailure(rawValue: $0) },
                nextAttemptAt: nextAttemptAt?.timestamp)
        }
    }

    /// Has events sent now with all their attempts before them, whatever became of them: dead, delivered, pending, or
    /// never queued because they are older than the address. They are sent under the same `webhook-id`.
    ///
    /// - Returns: those that are there.
    public func resendDeliveries(_ events: [EventID]) async throws -> Set<EventID> {
        try await transact { transaction in
            try await transaction.hastenLanes(of: events)
            return try await transaction.renewDeliveries(events)
        }
    }

    /// The same for all in a state. How many there were.
    public func resendDeliveries(in state: DeliveryState) async throws -> Int {
        let events = try await pool.query(
            "SELECT event_id FROM event_deliveries WHERE state = \(state.rawValue) ORDER BY transaction_id, number"
        ).map { EventID(try $0.decode(UUID.self)) }
        var count = 0
        for start in stride(from: 0, to: events.count, by: 500) {
            count += try await resendDeliveries(Array(events[start..<min(start + 500, events.count)])).count
        }
        return count
    }

    public func readDeliveryBacklog() async throws -> DeliveryBacklog {
        let row = try await pool.query(
            """
            SELECT (SELECT count(*) FROM event_deliveries WHERE state = 'pending') AS pending,
                (SELECT count(*) FROM event_deliveries WHERE state = 'dead') AS dead,
                (SELECT queued_at FROM event_deliveries WHERE state = 'pending'
                    ORDER BY transaction_id, number LIMIT 1) AS oldest_queued_at
            """
        ).first
        var backlog = DeliveryBacklog()
        if let (pending, dead, oldest) = try row?.decode((Int64, Int64, PostgresTimestamp?).self) {
            (backlog.pending, backlog.dead, backlog.oldestQueuedAt) = (pending, dead, oldest?.timestamp)
        }
        return backlog
    }
}

extension Transaction {
    /// Makes the lanes of events due now; one in which an attempt runs, as soon as that has ended.
    fileprivate func hastenLanes(of events: [EventID]) async throws {
        _ = try await query(
            """
            INSERT INTO delivery_lanes AS lanes (lane, due_at)
            SELECT DISTINCT coalesce(checkout_id, subject_id, id), \(now.stored)::timestamptz FROM events
            WHERE id = ANY(\(events.map(\.uuid))) ORDER BY 1
            ON CONFLICT (lane) DO UPDATE SET is_hastened = lanes.lease_owner IS NOT NULL,
                due_at = CASE WHEN lanes.lease_owner IS NULL THEN excluded.due_at ELSE lanes.due_at END
            """)
    }

    fileprivate func renewDeliveries(_ events: [EventID]) async throws -> Set<EventID> {
        let rows = try await query(
            """
            INSERT INTO event_deliveries (event_id, transaction_id, number, lane, state, queued_at)
            SELECT id, transaction_id, number, coalesce(checkout_id, subject_id, id), 'pending', \(now.stored) FROM events
            WHERE id = ANY(\(events.map(\.uuid))) ORDER BY id
            ON CONFLICT (event_id) DO UPDATE
            SET state = 'pending', attempts = 0, queued_at = excluded.queued_at, finished_at = NULL
            RETURNING event_id
            """)
        return Set(try rows.map { EventID(try $0.decode(UUID.self)) })
    }
}
