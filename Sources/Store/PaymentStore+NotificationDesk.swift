import Basics
import Foundation
import Lockstep
import Postgres

/// How far a stored notification has come.
public enum NotificationState: String, Sendable, CaseIterable {
    case received, applied
    /// Waits for its execution to become known.
    case parked
    /// Needs nothing, is of an unknown event, or can't be read.
    case ignored
    /// Could not be applied; a person decides.
    case dead
}

/// A stored notification, for a person. Without its body, which may hold personal data.
public struct StoredNotification: Sendable {
    public let number: Int64
    /// SHA-256 of its body.
    public let hash: Data
    public let endpoint: String
    public let state: NotificationState
    public let event: String?
    public let execution: ExecutionID?
    public let attempts: Int
    public let error: String?
    public let receivedAt: Timestamp
    public let appliedAt: Timestamp?
    /// Nil once it has outlived its retention.
    public let bodyBytes: Int?
}

/// Which notification a person means.
public enum NotificationName: Sendable, Hashable {
    case number(Int64)
    /// The first digits of its hash, in hexadecimal.
    case hashPrefix(String)

    /// Up to 18 digits are a number; anything else in hexadecimal, from 8 digits on, is the start of a hash. A hash that
    /// starts with digits only is written with `sha256:` before it.
    public init?(_ text: String) {
        let digits = text.hasPrefix("sha256:") ? String(text.dropFirst(7)).lowercased() : text.lowercased()
        if digits == text, digits.utf8.count <= 18, let number = Int64(digits), number > 0 {
            self = .number(number)
            return
        }
        guard (8...64).contains(digits.utf8.count),
            digits.utf8.allSatisfy({ (0x30...0x39).contains($0) || (0x61...0x66).contains($0) })
        else { return nil }
        self = .hashPrefix(digits)
    }

    /// The least hash that begins so, and the greatest.
    fileprivate var lowestHash: Data { hash(filledWith: "0") }
    fileprivate var highestHash: Data { hash(filledWith: "f") }

    private func hash(filledWith fill: Character) -> Data {
        guard case .hashPrefix(let digits) = self else { return Data() }
        let values = (digits + String(repeating: fill, count: 64 - digits.count)).compactMap(\.hexDigitValue)
        return Data(stride(from: 0, to: values.count, by: 2).map { UInt8(values[$0] << 4 | values[$0 + 1]) })
    }
}

/// What became of a wish to apply a notification again.
public enum ReplayResult: Sendable, Equatable {
    /// It waits to be applied, under this number.
    case replayed(Int64)
    case unknown
    /// The start of its hash fits several.
    case ambiguous
    /// Its body has outlived its retention.
    case bodyGone(Int64)
}

extension PaymentStore {
    /// Stored notifications, the newest first.
    public func readNotifications(
        _ states: Set<NotificationState>, execution: ExecutionID? = nil, limit: Int
    ) async throws -> [StoredNotification] {
        try await pool.query(
            """
            SELECT id, body_hash, endpoint, state, event, execution_id, attempts, error, received_at, applied_at,
                octet_length(body) AS body_bytes
            FROM notification_states JOIN notifications USING (id)
            WHERE state = ANY(\(states.map(\.rawValue).sorted()))
                AND (\(execution?.uuid)::uuid IS NULL OR execution_id = \(execution?.uuid))
            ORDER BY id DESC LIMIT \(limit)
            """
        ).map { row in
            let (number, hash, endpoint, state, event, about, attempts, error, receivedAt, appliedAt, bytes) =
                try row.decode(
                    (
                        Int64, Data, String, String, String?, UUID?, Int32, String?, PostgresTimestamp,
                        PostgresTimestamp?, Int32?
                    ).self)
            return StoredNotification(
                number: number, hash: hash, endpoint: endpoint, state: try legal(state, "notifications"), event: event,
                execution: about.map { ExecutionID($0) }, attempts: Int(attempts), error: error,
                receivedAt: receivedAt.timestamp, appliedAt: appliedAt?.timestamp, bodyBytes: bytes.map { Int($0) })
        }
    }

    /// Has a notification applied again by the running service. Its body and when it came stay as they are; a second
    /// effect is impossible, since facts that are known already are left as they are (M6).
    public func replayNotification(_ name: NotificationName) async throws -> ReplayResult {
        try await transact { transaction in
            let found = try await transaction.findNotifications(name)
            guard let first = found.first else { return .unknown }
            guard found.count == 1 else { return .ambiguous }
            guard first.hasBody else { return .bodyGone(first.number) }
            _ = try await transaction.replayNotifications([first.number])
            return .replayed(first.number)
        }
    }

    /// The same for all in a state whose bodies are still there. How many there were.
    public func replayNotifications(in state: NotificationState) async throws -> Int {
        let last = try await pool.query(
            "SELECT coalesce(max(id), 0) AS last FROM notification_outcomes WHERE state = \(state.rawValue)"
        ).first?.decode("last", as: Int64.self)
        var count = 0
        var after: Int64 = 0
        // By number, and only what was there at the start: what dies again meanwhile isn't taken twice.
        while let last, after < last {
            let numbers = try await pool.query(
                """
                SELECT id FROM notification_outcomes WHERE state = \(state.rawValue) AND id > \(after) AND id <= \(last)
                ORDER BY id LIMIT 500
                """
            ).map { try $0.decode(Int64.self) }
            guard let greatest = numbers.last else { break }
            after = greatest
            count += try await transact { try await $0.replayNotifications(numbers) }
        }
        return count
    }

    /// When the newest verified notification came; nil when none ever did.
    public func lastNotificationAt() async throws -> Timestamp? {
        try await pool.query("SELECT received_at FROM notifications ORDER BY id DESC LIMIT 1")
            .first?.decode("received_at", as: PostgresTimestamp.self).timestamp
    }

    /// How many notifications are in the states that should empty, and since when. Counted up to 20,000: after an outage
    /// there may be millions, and counting all of them again and again would hold up applying them.
    ///
    /// Numbers grow with time, but a batch is written in the order of its hashes: so the oldest one is looked for among
    /// the first thousand, which is more than a batch holds.
    public func notificationStanding() async throws -> [NotificationState: NotificationStanding] {
        let rows = try await pool.query(
            """
            SELECT 'received' AS state, count(*) AS count, min(received_at) AS oldest FROM
                (SELECT received_at FROM waiting_notifications ORDER BY id LIMIT 20000) AS first
            UNION ALL
            SELECT open.state,
                (SELECT count(*) FROM (SELECT FROM notification_outcomes AS outcome
                    WHERE outcome.state = open.state AND outcome.state IN ('parked','dead') LIMIT 20000) AS counted),
                (SELECT min(received_at) FROM notifications JOIN (SELECT id FROM notification_outcomes AS outcome
                    WHERE outcome.state = open.state AND outcome.state IN ('parked','dead')
                    ORDER BY id LIMIT 1000) AS first USING (id))
            FROM (VALUES ('parked'), ('dead')) AS open(state)
            """)
        var standing: [NotificationState: NotificationStanding] = [:]
        for row in rows {
            let (state, count, oldest) = try row.decode((String, Int64, PostgresTimestamp?).self)
            let name: NotificationState = try legal(state, "notifications")
            standing[name] = NotificationStanding(count: count, oldest: oldest?.timestamp)
        }
        return standing
    }
}

/// How many notifications are in a state.
public struct NotificationStanding: Sendable, Equatable {
    public let count: Int64
    /// When the first of them came.
    public let oldest: Timestamp?
}

extension Transaction {
    /// At most two, which is enough to see that a name isn't exact.
    fileprivate func findNotifications(_ name: NotificationName) async throws -> [(number: Int64, hasBody: Bool)] {
        let rows =
            switch name {
            case .number(let number):
                try await query(
                    "SELECT id, body IS NOT NULL AS has_body FROM notifications WHERE id = \(number) FOR UPDATE")
            case .hashPrefix:
                try await query(
                    """
                    SELECT id, body IS NOT NULL AS has_body FROM notifications
                    WHERE body_hash BETWEEN \(name.lowestHash) AND \(name.highestHash) LIMIT 2 FOR UPDATE
                    """)
            }
        return try rows.map { row in
            let (number, hasBody) = try row.decode((Int64, Bool).self)
            return (number: number, hasBody: hasBody)
        }
    }

    /// What waits already goes on waiting; what has no body any more stays as it is.
    fileprivate func replayNotifications(_ numbers: [Int64]) async throws -> Int {
        try await query(
            """
            WITH again AS (SELECT id, received_at FROM notifications
                WHERE id = ANY(\(numbers)) AND body IS NOT NULL ORDER BY id FOR UPDATE
            ), gone AS (DELETE FROM notification_outcomes AS outcome USING again WHERE outcome.id = again.id
                RETURNING outcome.id, again.received_at, outcome.attempts)
            INSERT INTO waiting_notifications (id, received_at, attempts) SELECT id, received_at, attempts FROM gone
            """
        ).affected
    }
}
