import Basics
import Crypto
import Foundation
import Lockstep
import Postgres

extension Transaction {
    /// Holds an execution's facts still, also where no row of it exists yet: whoever makes it known and whoever learns
    /// something about it must not miss each other.
    func lockFacts(of execution: ExecutionID) async throws { try await lockFacts(of: [execution]) }

    /// The same for many, always in one order, so that two who take several can't wait for each other.
    func lockFacts(of executions: some Collection<ExecutionID>) async throws {
        _ = try await query(Self.lockQuery(executions))
    }

    static func lockQuery(_ executions: some Collection<ExecutionID>) -> PostgresQuery {
        "SELECT pg_advisory_xact_lock(key) FROM unnest(\(Set(executions.map(\.lockKey)).sorted())) AS key"
    }

    /// Locks, adds, and looks to whom the executions belong, in one round trip.
    ///
    /// - Parameter others: executions that are locked and looked for as well.
    /// - Returns: the executions about which something was new, and the owners of those that are known here.
    func lockAndInsertFacts(
        _ learned: [(execution: ExecutionID, fact: Fact)], besides others: Set<ExecutionID> = []
    ) async throws -> (new: Set<ExecutionID>, owners: [ExecutionID: ExecutionOwner]) {
        let executions = others.union(learned.map(\.execution))
        let results = try await pipeline([
            Self.lockQuery(executions), insertQuery(learned), Self.ownersQuery(executions),
        ])
        let new = try results[1].map { ExecutionID(try $0.decode("execution_id", as: UUID.self)) }
        return (Set(new), try Self.owners(from: results[2]))
    }

    /// Adds facts; what was known before is left as it is. How many were new.
    func insertFacts(_ facts: [Fact], of execution: ExecutionID) async throws -> Int {
        try await insertFacts(facts.map { (execution, $0) }).count
    }

    /// The same for many executions; the execution of each fact that was new.
    func insertFacts(_ learned: [(execution: ExecutionID, fact: Fact)]) async throws -> [ExecutionID] {
        guard !learned.isEmpty else { return [] }
        return try await query(insertQuery(learned)).map { ExecutionID(try $0.decode("execution_id", as: UUID.self)) }
    }

    func insertQuery(_ learned: [(execution: ExecutionID, fact: Fact)]) -> PostgresQuery {
        let facts = learned.map(\.fact)
        let currency = facts.map { ($0.amount ?? $0.captured ?? $0.refunded)?.currency.code }
        return """
            INSERT INTO facts (execution_id, identity, kind, code, action, action_id, phase, success, amount_minor,
                captured_minor, refunded_minor, currency, reason, action_required, payment_id, payment_method_code,
                instrument_id, dispute_id, at_seconds, at_nanoseconds, is_dated, source, learned_at)
            SELECT fact.*, \(now.stored) FROM unnest(\(learned.map(\.execution.uuid)),
                \(facts.map(\.storedIdentity)), \(facts.map(\.kind.rawValue)), \(facts.map(\.code)),
                \(facts.map(\.action)), \(facts.map(\.actionID)), \(facts.map { $0.phase?.rawValue }),
                \(facts.map(\.success)), \(facts.map { $0.amount?.minor }), \(facts.map { $0.captured?.minor }),
                \(facts.map { $0.refunded?.minor }), \(currency), \(facts.map(\.reason)),
                \(facts.map(\.actionRequired)), \(facts.map(\.paymentID)), \(facts.map(\.paymentMethodCode)),
                \(facts.map(\.instrumentID)), \(facts.map(\.disputeID)), \(facts.map(\.at.seconds)),
                \(facts.map(\.at.nanoseconds)), \(facts.map(\.isDated)), \(facts.map(\.source.rawValue))) AS fact
            ON CONFLICT DO NOTHING RETURNING execution_id
            """
    }

    private static let columns = """
        execution_id, kind, code, action, action_id, phase, success, amount_minor, captured_minor, refunded_minor, \
        currency, reason, action_required, payment_id, payment_method_code, instrument_id, dispute_id, at_seconds, \
        at_nanoseconds, is_dated, source, learned_at
        """

    /// All that is known of the executions of these checkouts, or charges.
    ///
    /// - Parameter column: which of the two: `checkout_id` or `charge_id`.
    static func factsQuery(_ column: String, _ owners: [UUID]) -> PostgresQuery {
        """
        SELECT \(unescaped: columns) FROM facts
        WHERE execution_id IN (SELECT id FROM executions WHERE \(unescaped: column) = ANY(\(owners)))
        """
    }

    /// The facts of all executions of the checkout that one of them belongs to.
    static func factsQuery(beside execution: ExecutionID) -> PostgresQuery {
        """
        SELECT \(unescaped: columns) FROM facts
        WHERE execution_id IN (
            SELECT id FROM executions
            WHERE checkout_id = (SELECT checkout_id FROM executions WHERE id = \(execution.uuid)))
        """
    }

    /// What one of these found.
    static func facts(from rows: PostgresRows) throws -> [ExecutionID: [LearnedFact]] {
        var facts: [ExecutionID: [LearnedFact]] = [:]
        for row in rows {
            let (execution, fact) = try fact(from: row)
            facts[execution, default: []].append(fact)
        }
        return facts
    }

    private static func fact(from row: PostgresRow) throws -> (ExecutionID, LearnedFact) {
        let (
            execution, kind, code, action, actionID, phase, success, amount, captured, refunded, currency, reason,
            actionRequired, paymentID, methodCode, instrumentID, disputeID, seconds, nanoseconds, isDated,
            source, learnedAt
        ) = try row.decode(
            (
                UUID, String, String?, String?, String?, String?, Bool?, Int64?, Int64?, Int64?, String?, String?,
                String?, String?, String?, String?, String?, Int64, Int32, Bool, String, PostgresTimestamp
            ).self)
        let fact = Fact(
            kind: try legal(kind, "facts"), code: code, action: action, actionID: actionID,
            phase: try phase.map { try legal($0, "facts") }, success: success,
            amount: try .optional(minor: amount, code: currency, table: "facts"),
            captured: try .optional(minor: captured, code: currency, table: "facts"),
            refunded: try .optional(minor: refunded, code: currency, table: "facts"), reason: reason,
            actionRequired: actionRequired, paymentID: paymentID, paymentMethodCode: methodCode,
            instrumentID: instrumentID, disputeID: disputeID,
            at: Timestamp(seconds: seconds, nanoseconds: nanoseconds), isDated: isDated,
            source: try legal(source, "facts"))
        return (ExecutionID(execution), LearnedFact(fact: fact, learnedAt: learnedAt.timestamp))
    }
}

extension Fact {
    /// Half a SHA-256 of the fact's identity: enough to never collide, small in the key.
    var storedIdentity: Data { Crypto.sha256(Data(identity.utf8)).prefix(16) }
}

extension ExecutionID {
    /// What stands for it among the advisory locks: two executions with the same key only wait for each other.
    fileprivate var lockKey: Int64 {
        withUnsafeBytes(of: uuid.uuid) { bytes in
            bytes.loadUnaligned(as: Int64.self) ^ bytes.loadUnaligned(fromByteOffset: 8, as: Int64.self)
        }
    }
}
