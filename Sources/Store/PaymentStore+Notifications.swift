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
    /// Says nothing that can be used as it is: the execution that it may be about is read soon.
    ///
    /// - Parameter reason: why it can't be used; nil for what is known to tell nothing.
    case hint(Subject, event: String?, reason: String?)
    /// Known to need nothing, or an event nobody knows: kept and counted.
    case ignored(event: String?)
    case unreadable(reason: String)

    /// What a hint names.
    public enum Subject: Hashable, Sendable {
        case execution(ExecutionID)
        /// The reference that the execution carries at the provider.
        case reference(String)
    }
}

/// How many notifications an applying round dealt with.
public struct AppliedCount: Sendable {
    public var applied = 0
    public var parked = 0
    public var ignored = 0
    public var dead = 0
    /// The lowest number among them.
    var first: Int64?
    public var total: Int { applied + parked + ignored + dead }
}

extension PaymentStore {
    /// Makes a batch of notifications durable, in one statement. What was here before is left as it is (M3).
    /// How many were new.
    public func insertNotifications(_ batch: [IncomingNotification]) async throws -> Int {
        // In the order of their hashes, wherever they came in: two batches with the same deliveries then wait for each
        // other in one direction only.
        let rows = batch.map { (hash: Crypto.sha256($0.body), notification: $0) }
            .sorted { $0.hash.firstEightBytes < $1.hash.firstEightBytes }
        return try await pool.query(
            """
            WITH new AS (
                INSERT INTO notifications (body_hash, endpoint, body, received_at)
                SELECT * FROM unnest(\(rows.map(\.hash)), \(rows.map(\.notification.endpoint)),
                    \(rows.map(\.notification.body)), \(rows.map(\.notification.receivedAt.stored)))
                ON CONFLICT (body_hash) DO NOTHING RETURNING id, received_at
            )
            INSERT INTO waiting_notifications (id, received_at) SELECT id, received_at FROM new
            """
        ).affected
    }

    /// Applies stored notifications, oldest first; any number of processes may do so at once. One that can't be
    /// applied stops nothing: it is set aside with its error.
    ///
    /// - Parameter read: what a body says.
    public func applyNotifications(
        limit: Int, read: @Sendable (_ body: Data, _ receivedAt: Timestamp) -> NotificationMeaning
    ) async throws -> AppliedCount {
        let start = notificationFront.next()
        let count = try await apply(from: start, limit: limit, read: read)
        guard notificationFront.note(from: start, first: count.first) else { return count }
        return try await apply(from: 0, limit: limit, read: read)
    }

    private func apply(
        from start: Int64, limit: Int, read: @Sendable (_ body: Data, _ receivedAt: Timestamp) -> NotificationMeaning
    ) async throws -> AppliedCount {
        do {
            return try await applyBatch(limit: limit, from: start, read: read)
        } catch let error where error.isAboutData {
            return try await applyOneByOne(from: start, limit: limit, read: read)
        }
    }

    /// One of a batch is poisoned: each by itself, so that only that one is set aside.
    private func applyOneByOne(
        from start: Int64, limit: Int, read: @Sendable (_ body: Data, _ receivedAt: Timestamp) -> NotificationMeaning
    ) async throws -> AppliedCount {
        var count = AppliedCount()
        let waiting = try await pool.query(
            "SELECT id FROM waiting_notifications WHERE id >= \(start) ORDER BY id LIMIT \(limit)")
        for row in waiting {
            let id = try row.decode("id", as: Int64.self)
            do {
                count.add(try await applyBatch(limit: 1, only: id, read: read))
            } catch let error where error.isAboutData {
                try await setAside(id, reason: "\(error)")
                count.dead += 1
                count.first = count.first ?? id
            }
        }
        return count
    }

    /// Applies many in one transaction, in as many statements as for one. They are taken out of those that wait first:
    /// until the end of the transaction nobody else sees that, and when it fails they wait again.
    ///
    /// - Parameters:
    ///   - start: the lowest number that is looked for.
    ///   - only: the only one, if it still waits.
    private func applyBatch(
        limit: Int, from start: Int64 = 0, only: Int64? = nil,
        read: @Sendable (_ body: Data, _ receivedAt: Timestamp) -> NotificationMeaning
    ) async throws -> AppliedCount {
        try await transact { transaction in
            // One bound, not two: of a range that has both, a planner that has no statistics expects so little that it would
            // sort all that waits to find the first.
            let taken = try await transaction.query(
                """
                WITH taken AS (
                    DELETE FROM waiting_notifications WHERE id = ANY(ARRAY(SELECT id FROM waiting_notifications
                        WHERE id \(unescaped: only == nil ? ">=" : "=") \(only ?? start) ORDER BY id LIMIT \(limit)
                        FOR UPDATE SKIP LOCKED))
                    RETURNING id, attempts
                )
                SELECT id, attempts, body, received_at FROM taken JOIN notifications USING (id) ORDER BY id
                """)
            let notifications = try taken.map { row in
                let (id, attempts, body, receivedAt) = try row.decode((Int64, Int32, Data, PostgresTimestamp).self)
                return TakenNotification(id: id, attempts: attempts, meaning: read(body, receivedAt.timestamp))
            }
            guard let first = notifications.first else { return AppliedCount() }
            let known = try await transaction.learn(
                notifications.flatMap(\.meaning.facts), hints: Set(notifications.compactMap(\.meaning.hinted)))
            var count = try await transaction.finish(notifications, known: known)
            count.first = first.id
            return count
        }
    }

    private func setAside(_ id: Int64, reason: String) async throws {
        _ = try await pool.query(
            """
            WITH taken AS (DELETE FROM waiting_notifications WHERE id = \(id) RETURNING id, attempts)
            INSERT INTO notification_outcomes (id, state, attempts, error)
            SELECT id, 'dead', attempts + 1, \(String(reason.prefix(500))) FROM taken
            """)
    }
}

/// One that is being applied.
private struct TakenNotification {
    let id: Int64
    /// How often it was tried before.
    let attempts: Int32
    let meaning: NotificationMeaning
}

extension Transaction {
    /// Learns facts about many executions and settles what follows; executions that are only hinted at are read soon.
    /// Which of the executions are known here.
    fileprivate func learn(
        _ facts: [(execution: ExecutionID, fact: Fact)], hints: Set<NotificationMeaning.Subject>
    ) async throws -> Set<ExecutionID> {
        let hinted = try await executionsNamed(by: hints)
        guard !facts.isEmpty || !hinted.isEmpty else { return [] }
        let (new, owners) = try await lockAndInsertFacts(facts, besides: hinted)
        let changed = Set(new.compactMap { owners[$0] })
        // In one order with those of the facts, so that two batches can't wait for each other.
        let concerned = changed.union(hinted.compactMap { owners[$0] })
        let checkouts = try await lockCheckouts(concerned.checkouts).filter { changed.contains(.checkout($0.id)) }
        let charges = try await lockCharges(concerned.charges).filter { changed.contains(.charge($0.id)) }
        try await settle(checkouts, charges)
        try await readSoon(hinted)
        return Set(owners.keys)
    }

    /// The executions that hints name, as far as they are known here.
    private func executionsNamed(by hints: Set<NotificationMeaning.Subject>) async throws -> Set<ExecutionID> {
        guard !hints.isEmpty else { return [] }
        var (ids, references): ([UUID], [String]) = ([], [])
        for hint in hints {
            switch hint {
            case .execution(let id): ids.append(id.uuid)
            case .reference(let reference): references.append(reference)
            }
        }
        return Set(
            try await query(
                """
                SELECT id FROM executions WHERE id = ANY(\(ids)) OR merchant_reference = ANY(\(references))
                """
            ).map { ExecutionID(try $0.decode("id", as: UUID.self)) })
    }

    /// The first step of patience lets several hints, and the result that may follow them, come together.
    private func readSoon(_ executions: Set<ExecutionID>) async throws {
        guard !executions.isEmpty else { return }
        let soon = now + policy.healing.pending.delay(before: 0, jitter: .random(in: 0...255))
        _ = try await query(
            """
            UPDATE executions SET check_at = least(check_at, \(soon.stored))
            WHERE id = ANY(\(executions.map(\.uuid)))
            """)
    }

    /// Writes down what became of each notification.
    fileprivate func finish(
        _ notifications: [TakenNotification], known: Set<ExecutionID>
    ) async throws -> AppliedCount {
        var count = AppliedCount()
        var states: [String] = []
        var events: [String?] = []
        var executions: [UUID?] = []
        var errors: [String?] = []
        for notification in notifications {
            switch notification.meaning {
            case .facts(_, let execution, let event):
                let isKnown = known.contains(execution)
                count.applied += isKnown ? 1 : 0
                count.parked += isKnown ? 0 : 1
                states.append(isKnown ? "applied" : "parked")
                events.append(event)
                executions.append(execution.uuid)
                errors.append(nil)
            case .hint(let subject, let event, let reason):
                count.ignored += 1
                states.append("ignored")
                events.append(event)
                executions.append(subject.execution?.uuid)
                errors.append(reason)
            case .ignored(let event):
                count.ignored += 1
                states.append("ignored")
                events.append(event)
                executions.append(nil)
                errors.append(nil)
            case .unreadable(let reason):
                count.ignored += 1
                states.append("ignored")
                events.append(nil)
                executions.append(nil)
                errors.append(reason)
            }
        }
        _ = try await query(
            """
            INSERT INTO notification_outcomes (id, state, event, execution_id, attempts, error, applied_at)
            SELECT new.*, \(now.stored) FROM unnest(\(notifications.map(\.id)), \(states), \(events), \(executions),
                \(notifications.map { $0.attempts + 1 }), \(errors)) AS new
            """)
        return count
    }
}

extension NotificationMeaning {
    fileprivate var facts: [(execution: ExecutionID, fact: Fact)] {
        guard case .facts(let facts, let execution, _) = self else { return [] }
        return facts.map { (execution, $0) }
    }

    fileprivate var hinted: Subject? {
        guard case .hint(let subject, _, _) = self else { return nil }
        return subject
    }
}

extension NotificationMeaning.Subject {
    fileprivate var execution: ExecutionID? { if case .execution(let id) = self { id } else { nil } }
}

extension AppliedCount {
    fileprivate mutating func add(_ other: AppliedCount) {
        applied += other.applied
        parked += other.parked
        ignored += other.ignored
        dead += other.dead
        first = first ?? other.first
    }
}

extension Data {
    /// Enough of a hash to have one order for all: only the same notification has the same ones.
    fileprivate var firstEightBytes: UInt64 {
        withUnsafeBytes { $0.count < 8 ? 0 : $0.loadUnaligned(as: UInt64.self) }
    }
}
