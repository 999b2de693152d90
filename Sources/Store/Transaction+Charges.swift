import Basics
import Foundation
import Lockstep
import Postgres

extension Transaction {
    private static let chargeColumns = """
        id, subscription_id, period_index, period_start - DATE '1970-01-01' AS start_day, \
        period_end - DATE '1970-01-01' AS end_day, merchant_reference, holder_reference, instrument_id, \
        workflow_code, amount_minor, currency, expiry_policy, state, reason, next_attempt_at, created_at
        """

    /// The charge with its attempts, its row locked until the transaction ends.
    func lockCharge(_ id: ChargeID) async throws -> Charge? { try await lockCharges([id]).first }

    /// The same for many, always in the order of their ids.
    func lockCharges(_ ids: [ChargeID]) async throws -> [Charge] {
        guard !ids.isEmpty else { return [] }
        // Their subscriptions first: what becomes of a charge is told to its subscription in the same transaction.
        let rows = try await pipeline([
            """
            SELECT FROM subscriptions
            WHERE id IN (SELECT subscription_id FROM charges WHERE id = ANY(\(ids.map(\.uuid))))
            ORDER BY id FOR UPDATE
            """,
            """
            SELECT \(unescaped: Self.chargeColumns) FROM charges WHERE id = ANY(\(ids.map(\.uuid)))
            ORDER BY id FOR UPDATE
            """,
        ])
        return try await charges(from: rows[1])
    }

    /// The same without a lock.
    func readCharges(_ ids: [ChargeID]) async throws -> [Charge] {
        guard !ids.isEmpty else { return [] }
        let rows = try await query(
            "SELECT \(unescaped: Self.chargeColumns) FROM charges WHERE id = ANY(\(ids.map(\.uuid)))")
        return try await charges(from: rows)
    }

    func readCharge(_ id: ChargeID) async throws -> Charge? {
        let rows = try await query(
            "SELECT \(unescaped: Self.chargeColumns) FROM charges WHERE id = \(id.uuid)")
        return try await charges(from: rows).first
    }

    /// The unscheduled charge of a reference.
    func readCharge(merchantReference: String) async throws -> Charge? {
        let rows = try await query(
            """
            SELECT \(unescaped: Self.chargeColumns) FROM charges
            WHERE merchant_reference = \(merchantReference) AND subscription_id IS NULL
            """)
        return try await charges(from: rows).first
    }

    /// Charges from rows of ``chargeColumns``, with their attempts.
    private func charges(from rows: PostgresRows) async throws -> [Charge] {
        var charges = try rows.map(Self.charge(from:))
        guard !charges.isEmpty else { return [] }
        let attempts = try await readAttempts(of: charges.map(\.id))
        for index in charges.indices { charges[index].attempts = attempts[charges[index].id] ?? [] }
        return charges
    }

    private func readAttempts(of charges: [ChargeID]) async throws -> [ChargeID: [ChargeAttempt]] {
        var attempts: [ChargeID: [ChargeAttempt]] = [:]
        let rows = try await query(
            """
            SELECT charge_id, number, merchant_reference, instrument_id, payment_method, amount_minor, currency,
                execution_id, outcome, reason, begun_at
            FROM charge_attempts WHERE charge_id = ANY(\(charges.map(\.uuid))) ORDER BY charge_id, number
            """)
        for row in rows {
            let (charge, number, reference, instrument, method, minor, code, execution, outcome, reason, begunAt) =
                try row.decode(
                    (
                        UUID, Int, String, UUID, String, Int64, String, UUID?, String, String?, PostgresTimestamp
                    ).self)
            attempts[ChargeID(charge), default: []].append(
                ChargeAttempt(
                    number: number, merchantReference: reference, instrument: InstrumentID(instrument),
                    paymentMethod: method, amount: try Money(minor: minor, code: code, table: "charge_attempts"),
                    execution: execution.map { ExecutionID($0) }, outcome: try legal(outcome, "charge_attempts"),
                    reason: reason, begunAt: begunAt.timestamp))
        }
        return attempts
    }

    private static func charge(from row: PostgresRow) throws -> Charge {
        let (
            id, subscription, index, startDay, endDay, reference, holder, instrument, workflowCode, minor, code, policy,
            state, reason, nextAttemptAt, createdAt
        ) = try row.decode(
            (
                UUID, UUID?, Int?, Int?, Int?, String, String, UUID, String, Int64, String, String, String, String?,
                PostgresTimestamp?, PostgresTimestamp
            ).self)
        var period: Charge.Period?
        if let index, let startDay, let endDay {
            period = Charge.Period(
                index: index, start: CivilDate(daysSince1970: startDay), end: CivilDate(daysSince1970: endDay))
        }
        return Charge(
            id: ChargeID(id), subscription: subscription.map { SubscriptionID($0) }, period: period,
            merchantReference: reference, holderReference: holder, instrument: InstrumentID(instrument),
            workflowCode: workflowCode, amount: try Money(minor: minor, code: code, table: "charges"),
            expiryPolicy: try legal(policy, "charges"), state: try legal(state, "charges"), reason: reason,
            nextAttemptAt: nextAttemptAt?.timestamp, createdAt: createdAt.timestamp)
    }

    /// The shop's own `meta` of a charge.
    func readMeta(of charge: ChargeID) async throws -> JSON? {
        let meta =
            try await query("SELECT meta FROM charges WHERE id = \(charge.uuid)")
            .first?.decode("meta", as: String?.self) ?? nil
        return try meta.map { try JSON(parsing: Data($0.utf8)) }
    }

    /// References are one space at the provider: those of orders, of unscheduled charges and of subscriptions. Whoever
    /// takes one holds this until the end of the transaction, so that no two take it at once. Before any other lock.
    func lockReference(_ reference: String) async throws {
        _ = try await query("SELECT pg_advisory_xact_lock(hashtextextended(\(reference), 0))")
    }

    /// Whether a checkout, a charge or a subscription has this reference.
    func isTaken(_ reference: String) async throws -> Bool {
        try await query(
            """
            SELECT EXISTS (SELECT FROM checkouts WHERE merchant_reference = \(reference) AND released_at IS NULL)
                OR EXISTS (SELECT FROM charges WHERE merchant_reference = \(reference) AND subscription_id IS NULL)
                OR EXISTS (SELECT FROM subscriptions WHERE merchant_reference = \(reference))
                AS taken
            """
        ).first?.decode("taken", as: Bool.self) ?? false
    }
}
