import Basics
import Foundation
import Lockstep
import Postgres

/// An event that this process may send now, once.
public struct ClaimedDelivery: Sendable {
    public let event: FeedEvent
    /// Which attempt this is since it was queued or sent again by hand, from 1.
    public let attempt: Int
    let lane: UUID
    let claim: UUID
}

extension PaymentStore {
    /// Makes the feed be queued from here on, if it isn't yet. What was written before stays in the feed only.
    ///
    /// To be called before this process serves anything, so that nothing that it writes is missed.
    public func beginDeliveries() async throws {
        _ = try await pool.query(
            """
            INSERT INTO delivery_cursor (transaction_id, number)
            SELECT pg_snapshot_xmin(pg_current_snapshot()), 0 ON CONFLICT DO NOTHING
            """)
    }

    /// Queues the events behind the cursor and moves it, in the feed's order and by the feed's rule (invariant M11).
    /// One process does it at a time; the others find nothing to do.
    ///
    /// - Returns: how many the cursor passed.
    public func queueDeliveries(limit: Int) async throws -> Int {
        // Almost always there is nothing; then nothing is locked or written.
        guard try await hasUnqueuedEvents() else { return 0 }
        return try await transact { transaction in
            guard let cursor = try await transaction.lockCursor() else { return 0 }
            let passed = try await transaction.queueDeliveries(after: cursor, limit: limit)
            try await transaction.openLanes(Set(passed.map(\.lane)))
            if let last = passed.last { try await transaction.moveCursor(to: last.cursor) }
            return passed.count
        }
    }

    private func hasUnqueuedEvents() async throws -> Bool {
        // In the feed's order, so that it is looked for in the index, however long the feed is.
        try await !pool.query(
            """
            SELECT 1 AS one FROM events
            WHERE (transaction_id, number)
                    > ((SELECT transaction_id FROM delivery_cursor), (SELECT number FROM delivery_cursor))
                AND transaction_id < pg_snapshot_xmin(pg_current_snapshot())
            ORDER BY transaction_id, number LIMIT 1
            """
        ).isEmpty
    }

    /// Takes the first pending event of lanes that are due, the ones due longest first. While one is taken, nothing else
    /// of its lane is.
    ///
    /// - Parameter lease: how long the attempt and the writing down of its answer may take. After it, somebody else
    ///   sends the event again.
    public func claimDeliveries(limit: Int, lease: Duration) async throws -> [ClaimedDelivery] {
        let claim = identifiers.next()
        return try await transact { transaction in
            let lanes = try await transaction.claimLanes(limit: limit, claim: claim, until: transaction.now + lease)
            guard !lanes.isEmpty else { return [] }
            // A statement of its own: only what it sees was certainly committed before the lanes were taken.
            return try await transaction.readHeads(of: lanes, claim: claim)
        }
    }

    /// Writes down what an attempt came to, and lets its lane go on.
    ///
    /// - Returns: false when the lease was over and somebody else has taken the lane: then nothing is written.
    public func finishDelivery(
        _ delivery: ClaimedDelivery, _ answer: DeliveryAnswer, _ verdict: DeliveryVerdict
    ) async throws -> Bool {
        try await transact { transaction in
            guard let isHastened = try await transaction.lockLane(delivery.lane, claim: delivery.claim) else {
                return false
            }
            try await transaction.writeAttempt(delivery.event.id, answer, verdict)
            guard let head = try await transaction.readHead(of: delivery.lane) else {
                try await transaction.closeLane(delivery.lane)
                return true
            }
            // What comes next in the lane has waited long enough; so has what a person asks for.
            var pause: Duration = .zero
            if case .retry(let after) = verdict, head == delivery.event.id, !isHastened { pause = after }
            try await transaction.releaseLane(delivery.lane, until: transaction.now + pause)
            return true
        }
    }
}

extension Transaction {
    /// Nil while another process queues, and before anybody began to.
    fileprivate func lockCursor() async throws -> FeedCursor? {
        try await query(
            "SELECT transaction_id::text AS transaction_text, number FROM delivery_cursor FOR UPDATE SKIP LOCKED"
        ).first.map { row in
            let (transaction, number) = try row.decode((String, Int64).self)
            return FeedCursor(transaction: UInt64(transaction) ?? 0, number: number)
        }
    }

    fileprivate func queueDeliveries(
        after cursor: FeedCursor, limit: Int
    ) async throws -> [(cursor: FeedCursor, lane: UUID)] {
        // An event that was sent by hand before the cursor came to it is there already.
        try await query(
            """
            WITH next AS (
                SELECT id, transaction_id, number, coalesce(checkout_id, subject_id, id) AS lane FROM events
                WHERE (transaction_id, number) > (\(String(cursor.transaction))::text::xid8, \(cursor.number))
                    AND transaction_id < pg_snapshot_xmin(pg_current_snapshot())
                ORDER BY events.transaction_id, events.number LIMIT \(limit)
            ), queued AS (
                INSERT INTO event_deliveries (event_id, transaction_id, number, lane, state, queued_at)
                SELECT id, transaction_id, number, lane, 'pending', \(now.stored) FROM next
                ON CONFLICT (event_id) DO NOTHING
            )
            SELECT transaction_id::text AS transaction_text, number, lane FROM next
            ORDER BY next.transaction_id, next.number
            """
        ).map { row in
            let (transaction, number, lane) = try row.decode((String, Int64, UUID).self)
            return (FeedCursor(transaction: UInt64(transaction) ?? 0, number: number), lane)
        }
    }

    fileprivate func moveCursor(to cursor: FeedCursor) async throws {
        _ = try await query(
            """
            UPDATE delivery_cursor
            SET transaction_id = \(String(cursor.transaction))::text::xid8, number = \(cursor.number)
            """)
    }

    /// Makes lanes that aren't there. Those that are there are locked all the same: whoever finishes the last delivery of
    /// one and would close it must first see what was just queued.
    fileprivate func openLanes(_ lanes: Set<UUID>) async throws {
        _ = try await query(
            """
            INSERT INTO delivery_lanes (lane, due_at)
            SELECT lane, \(now.stored) FROM unnest(\(lanes.sorted { $0.uuidString < $1.uuidString })) AS opened(lane)
            ON CONFLICT (lane) DO UPDATE SET due_at = excluded.due_at WHERE false
            """)
    }

    fileprivate func claimLanes(limit: Int, claim: UUID, until: Timestamp) async throws -> [UUID] {
        try await query(
            """
            UPDATE delivery_lanes SET due_at = \(until.stored), lease_owner = \(claim), is_hastened = false
            WHERE lane IN (SELECT lane FROM delivery_lanes WHERE due_at <= \(now.stored)
                ORDER BY due_at LIMIT \(limit) FOR UPDATE SKIP LOCKED)
            RETURNING lane
            """
        ).map { try $0.decode(UUID.self) }
    }

    fileprivate func readHeads(of lanes: [UUID], claim: UUID) async throws -> [ClaimedDelivery] {
        try await query(
            """
            SELECT head.lane, head.attempts, events.id, events.transaction_id::text AS transaction_text, events.number,
                events.type, events.time, events.data
            FROM unnest(\(lanes)) AS claimed(lane) CROSS JOIN LATERAL (
                SELECT event_id, lane, attempts FROM event_deliveries
                WHERE lane = claimed.lane AND state = 'pending' ORDER BY transaction_id, number LIMIT 1
            ) AS head JOIN events ON events.id = head.event_id
            ORDER BY events.transaction_id, events.number
            """
        ).map { row in
            let (lane, attempts, id, transaction, number, type, time, data) = try row.decode(
                (UUID, Int32, UUID, String, Int64, String, PostgresTimestamp, String).self)
            let event = FeedEvent(
                id: EventID(id), cursor: FeedCursor(transaction: UInt64(transaction) ?? 0, number: number), type: type,
                time: time.timestamp, data: try JSON(parsing: Data(data.utf8)))
            return ClaimedDelivery(event: event, attempt: Int(attempts) + 1, lane: lane, claim: claim)
        }
    }

    /// Whether somebody asked for the lane meanwhile; nil when it isn't this claim's any more.
    fileprivate func lockLane(_ lane: UUID, claim: UUID) async throws -> Bool? {
        try await query(
            "SELECT is_hastened FROM delivery_lanes WHERE lane = \(lane) AND lease_owner = \(claim) FOR UPDATE"
        ).first?.decode(Bool.self)
    }

    fileprivate func writeAttempt(
        _ event: EventID, _ answer: DeliveryAnswer, _ verdict: DeliveryVerdict
    ) async throws {
        let state: DeliveryState =
            switch verdict {
            case .delivered: .delivered
            case .dead: .dead
            case .retry: .pending
            }
        _ = try await query(
            """
            UPDATE event_deliveries SET state = \(state.rawValue), attempts = attempts + 1,
                last_attempt_at = \(now.stored), last_status = \(answer.status.map(Int32.init)),
                last_failure = \(answer.failure?.rawValue), finished_at = \(state == .pending ? nil : now.stored)
            WHERE event_id = \(event.uuid) AND state = 'pending'
            """)
    }

    fileprivate func readHead(of lane: UUID) async throws -> EventID? {
        try await query(
            """
            SELECT event_id FROM event_deliveries WHERE lane = \(lane) AND state = 'pending'
            ORDER BY transaction_id, number LIMIT 1
            """
        ).first.map { EventID(try $0.decode(UUID.self)) }
    }

    fileprivate func releaseLane(_ lane: UUID, until: Timestamp) async throws {
        _ = try await query(
            """
            UPDATE delivery_lanes SET due_at = \(until.stored), lease_owner = NULL, is_hastened = false
            WHERE lane = \(lane)
            """)
    }

    fileprivate func closeLane(_ lane: UUID) async throws {
        _ = try await query("DELETE FROM delivery_lanes WHERE lane = \(lane)")
    }
}
