import Basics
import Crypto
import Foundation
import Lockstep
import Postgres

/// A verified notification, as it came.
public struct IncomingNotification: Sendable {
    public let endpoint: String
    public let body: Data
    public let receivedAt: Timestamp

    public init(endpoint: String, body: Data, receivedAt: Timestamp) {
        self.endpoint = endpoint
        self.body = body
        self.receivedAt = receivedAt
    }
}

/// What a stored notification turned out to say.
public enum NotificationMeaning: Sendable {
    case facts([Fact], about: ExecutionID, event: String)
    /// Known to need nothing, or an event nobody knows: kept and counted.
    case ignored(event: String?)
    case unreadable(reason: String)
}

/// How many notifications an applying round dealt with.
public struct AppliedCount: Sendable {
    public var applied = 0
    public var parked = 0
    public var ignored = 0
    public var dead = 0
    public var total: Int { applied + parked + ignored + dead }
}

extension PaymentStore {
    /// Makes a batch of notifications durable, in one statement. What was here before is left as it is (M3).
    /// How many were new.
    public func insertNotifications(_ batch: [IncomingNotification]) async throws -> Int {
        try await pool.query(
            """
            INSERT INTO notifications (body_hash, endpoint, body, received_at)
            SELECT * FROM unnest(\(batch.map { Crypto.sha256($0.body) }), \(batch.map(\.endpoint)),
                \(batch.map(\.body)), \(batch.map(\.receivedAt.stored)))
            ON CONFLICT (body_hash) DO NOTHING
            """
        ).affected
    }

    /// Applies stored notifications, oldest first; any number of processes may do so at once. One that can't be
    /// applied stops nothing: it is set aside with its error.
    ///
    /// - Parameter read: what a body says; called outside of any transaction.
    public func applyNotifications(
        limit: Int, read: @Sendable (_ body: Data, _ receivedAt: Timestamp) -> NotificationMeaning
    ) async throws -> AppliedCount {
        var count = AppliedCount()
        let waiting = try await pool.query(
            "SELECT id, body, received_at FROM notifications WHERE state = 'received' ORDER BY id LIMIT \(limit)")
        for row in waiting {
            let (id, body, receivedAt) = try row.decode((Int64, Data, PostgresTimestamp).self)
            let meaning = read(body, receivedAt.timestamp)
            do {
                try await apply(meaning, to: id, count: &count)
            } catch let error as PostgresError where !error.isRefusedData {
                // The database's trouble, not the notification's: it stays for the next round.
                throw error
            } catch {
                try await setAside(id, reason: "\(error)")
                count.dead += 1
            }
        }
        return count
    }

    private func apply(_ meaning: NotificationMeaning, to id: Int64, count: inout AppliedCount) async throws {
        let state: String? = try await transact { transaction in
            let mine = try await transaction.query(
                "SELECT 1 AS one FROM notifications WHERE id = \(id) AND state = 'received' FOR UPDATE SKIP LOCKED")
            guard !mine.isEmpty else { return nil }
            let state: String
            var execution: ExecutionID?
            var event: String?
            var problem: String?
            switch meaning {
            case .facts(let facts, let about, let name):
                (execution, event) = (about, name)
                state = try await transaction.learn(facts, about: about) ? "applied" : "parked"
            case .ignored(let name):
                (state, event) = ("ignored", name)
            case .unreadable(let reason):
                (state, problem) = ("ignored", reason)
            }
            _ = try await transaction.query(
                """
                UPDATE notifications SET state = \(state), event = \(event), execution_id = \(execution?.uuid),
                    error = \(problem), attempts = attempts + 1, applied_at = \(transaction.now.stored)
                WHERE id = \(id)
                """)
            return state
        }
        switch state {
        case "applied": count.applied += 1
        case "parked": count.parked += 1
        case "ignored": count.ignored += 1
        default: break
        }
    }

    private func setAside(_ id: Int64, reason: String) async throws {
        _ = try await pool.query(
            """
            UPDATE notifications SET state = 'dead', error = \(String(reason.prefix(500))), attempts = attempts + 1
            WHERE id = \(id) AND state = 'received'
            """)
    }

    /// How many notifications wait, are parked or dead; for the metrics.
    public func notificationBacklog() async throws -> (received: Int64, parked: Int64, dead: Int64) {
        let row = try await pool.query(
            """
            SELECT (SELECT count(*) FROM notifications WHERE state = 'received') AS received,
                (SELECT count(*) FROM notifications WHERE state = 'parked') AS parked,
                (SELECT count(*) FROM notifications WHERE state = 'dead') AS dead
            """
        ).first
        return try row?.decode((Int64, Int64, Int64).self) ?? (0, 0, 0)
    }
}

extension PostgresError {
    /// The data itself was refused (class 22 or 23, or it could not be encoded): trying again changes nothing.
    var isRefusedData: Bool { sqlState.map { $0.hasPrefix("22") || $0.hasPrefix("23") } ?? false }
}
