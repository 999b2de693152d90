import Basics
import Crypto
import Foundation
import Lockstep
import Postgres

extension Transaction {
    /// Holds an execution's facts still, also where no row of it exists yet: whoever makes it known and whoever learns
    /// something about it must not miss each other.
    func lockFacts(of execution: ExecutionID) async throws {
        let high = withUnsafeBytes(of: execution.uuid.uuid) { $0.loadUnaligned(as: Int64.self) }
        let low = withUnsafeBytes(of: execution.uuid.uuid) { $0.loadUnaligned(fromByteOffset: 8, as: Int64.self) }
        _ = try await query("SELECT pg_advisory_xact_lock(\(high ^ low))")
    }

    /// Adds facts; what was known before is left as it is. How many were new.
    func insertFacts(_ facts: [Fact], of execution: ExecutionID) async throws -> Int {
        guard !facts.isEmpty else { return 0 }
        let currency = facts.map { ($0.amount ?? $0.captured ?? $0.refunded)?.currency.code }
        return try await query(
            """
            INSERT INTO facts (execution_id, identity, kind, code, action, action_id, phase, success, amount_minor,
                captured_minor, refunded_minor, currency, reason, action_required, payment_id, payment_method_code,
                instrument_id, dispute_id, at_seconds, at_nanoseconds, source, learned_at)
            SELECT \(execution.uuid), fact.*, \(now.stored) FROM unnest(\(facts.map(\.storedIdentity)),
                \(facts.map(\.kind.rawValue)), \(facts.map(\.code)), \(facts.map(\.action)), \(facts.map(\.actionID)),
                \(facts.map { $0.phase?.rawValue }), \(facts.map(\.success)), \(facts.map { $0.amount?.minor }),
                \(facts.map { $0.captured?.minor }), \(facts.map { $0.refunded?.minor }), \(currency),
                \(facts.map(\.reason)), \(facts.map(\.actionRequired)), \(facts.map(\.paymentID)),
                \(facts.map(\.paymentMethodCode)), \(facts.map(\.instrumentID)), \(facts.map(\.disputeID)),
                \(facts.map(\.at.seconds)), \(facts.map(\.at.nanoseconds)), \(facts.map(\.source.rawValue))) AS fact
            ON CONFLICT DO NOTHING
            """
        ).affected
    }

    /// All that is known of these executions.
    func readFacts(of executions: [ExecutionID]) async throws -> [ExecutionID: [LearnedFact]] {
        var facts: [ExecutionID: [LearnedFact]] = [:]
        let rows = try await query(
            """
            SELECT execution_id, kind, code, action, action_id, phase, success, amount_minor, captured_minor,
                refunded_minor, currency, reason, action_required, payment_id, payment_method_code, instrument_id,
                dispute_id, at_seconds, at_nanoseconds, source, learned_at
            FROM facts WHERE execution_id = ANY(\(executions.map(\.uuid)))
            """)
        for row in rows {
            let (execution, fact) = try Self.fact(from: row)
            facts[execution, default: []].append(fact)
        }
        return facts
    }

    private static func fact(from row: PostgresRow) throws -> (ExecutionID, LearnedFact) {
        let (
            execution, kind, code, action, actionID, phase, success, amount, captured, refunded, currency, reason,
            actionRequired, paymentID, methodCode, instrumentID, disputeID, seconds, nanoseconds, source, learnedAt
        ) = try row.decode(
            (
                UUID, String, String?, String?, String?, String?, Bool?, Int64?, Int64?, Int64?, String?, String?,
                String?, String?, String?, String?, String?, Int64, Int32, String, PostgresTimestamp
            ).self)
        let fact = Fact(
            kind: try legal(kind, "facts"), code: code, action: action, actionID: actionID,
            phase: try phase.map { try legal($0, "facts") }, success: success,
            amount: try .optional(minor: amount, code: currency, table: "facts"),
            captured: try .optional(minor: captured, code: currency, table: "facts"),
            refunded: try .optional(minor: refunded, code: currency, table: "facts"), reason: reason,
            actionRequired: actionRequired, paymentID: paymentID, paymentMethodCode: methodCode,
            instrumentID: instrumentID, disputeID: disputeID,
            at: Timestamp(seconds: seconds, nanoseconds: nanoseconds), source: try legal(source, "facts"))
        return (ExecutionID(execution), LearnedFact(fact: fact, learnedAt: learnedAt.timestamp))
    }
}

extension Fact {
    /// Half a SHA-256 of the fact's identity: enough to never collide, small in the key.
    var storedIdentity: Data { Crypto.sha256(Data(identity.utf8)).prefix(16) }
}
