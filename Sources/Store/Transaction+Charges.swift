import Basics
import Foundation
import Lockstep
import Postgres

extension Transaction {
    static let chargeColumns = """
        id, subscription_id, period_index, period_start - DATE '1970-01-01' AS start_day, \
        period_end - DATE '1970-01-01' AS end_day, merchant_reference, holder_reference, instrument_id, \
        workflow_code, amount_minor, currency, expiry_policy, state, reason, next_attempt_at, created_at
        """

    /// The charge with its attempts, its row locked until the transaction ends.
    func lockCharge(_ id: ChargeID) async throws -> Charge? { try await lockCharges([id]).first }

    /// The same for many, always in the order of their ids.
    ///
    /// - Parameter claim: only those that it has taken.
    func lockCharges(_ ids: [ChargeID], claimedBy claim: UUID? = nil) async throws -> [Charge] {
        try await lockChargesAndMore(ids, claimedBy: claim).charges
    }

    /// Charges with what they belong to, all of it locked.
    struct LockedCharges {
        var charges: [Charge] = []
        var subscriptions: [SubscriptionID: Subscription] = [:]
        var operations: [OperationID: PaymentOperation] = [:]
    }

    /// The same with their subscriptions, and with operations of theirs, in one round trip.
    func lockChargesAndMore(
        _ ids: [ChargeID], operations: [OperationID] = [], claimedBy claim: UUID? = nil
    ) async throws -> LockedCharges {
        guard !ids.isEmpty else { return LockedCharges() }
        // Their subscriptions first: what becomes of a charge is told to its subscription in the same transaction.
        var queries: [PostgresQuery] = [
            Self.subscriptionsQuery(of: ids),
            """
            SELECT \(unescaped: Self.chargeColumns) FROM charges
            WHERE id = ANY(\(ids.map(\.uuid))) AND (\(claim)::uuid IS NULL OR lease_owner = \(claim))
            ORDER BY id FOR UPDATE
            """,
            Self.attemptsQuery(of: ids),
        ]
        if !operations.isEmpty { queries.append(Self.lockQuery(operations)) }
        let rows = try await pipeline(queries)
        var locked = LockedCharges(charges: try Self.charges(from: rows[1], attempts: rows[2]))
        for subscription in try rows[0].map(Self.subscription(from:)) {
            locked.subscriptions[subscription.id] = subscription
        }
        guard rows.count > 3 else { return locked }
        for operation in try rows[3].map(Self.operation(from:)) { locked.operations[operation.id] = operation }
        return locked
    }

    /// The subscriptions of these charges, locked: before the charges themselves are.
    static func subscriptionsQuery(of charges: [ChargeID]) -> PostgresQuery {
        """
        SELECT \(unescaped: subscriptionColumns) FROM subscriptions
        WHERE id IN (SELECT subscription_id FROM charges WHERE id = ANY(\(charges.map(\.uuid))))
        ORDER BY id FOR UPDATE
        """
    }

    /// Something is still to come of it, or it waits for an instrument. An index of the same words finds them.
    private static let isOpen = """
        (state IN ('scheduled','processing','unknown') OR (state = 'skipped' AND reason LIKE 'instrument-%'))
        """

    static func openChargesQuery(of subscriptions: [UUID], locks: Bool = true) -> PostgresQuery {
        """
        SELECT \(unescaped: chargeColumns) FROM charges
        WHERE subscription_id = ANY(\(subscriptions)) AND \(unescaped: isOpen)
        \(unescaped: locks ? "ORDER BY id FOR UPDATE" : "")
        """
    }

    /// The shop's own `meta` of those that have one.
    static func metaQuery(ofOpenChargesOf subscriptions: [UUID]) -> PostgresQuery {
        """
        SELECT id, meta FROM charges
        WHERE subscription_id = ANY(\(subscriptions)) AND \(unescaped: isOpen) AND meta IS NOT NULL
        """
    }

    static func meta(from rows: PostgresRows) throws -> [ChargeID: JSON] {
        var meta: [ChargeID: JSON] = [:]
        for row in rows {
            let (charge, text) = try row.decode((UUID, String).self)
            meta[ChargeID(charge)] = try JSON(parsing: Data(text.utf8))
        }
        return meta
    }

    static func attemptsQuery(ofOpenChargesOf subscriptions: [UUID]) -> PostgresQuery {
        """
        SELECT \(unescaped: attemptColumns) FROM charge_attempts
        WHERE charge_id IN (SELECT id FROM charges
            WHERE subscription_id = ANY(\(subscriptions)) AND \(unescaped: isOpen))
        ORDER BY charge_id, number
        """
    }

    private static func attemptsQuery(of charges: [ChargeID]) -> PostgresQuery {
        """
        SELECT \(unescaped: attemptColumns) FROM charge_attempts
        WHERE charge_id = ANY(\(charges.map(\.uuid))) ORDER BY charge_id, number
        """
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
    func charges(from rows: PostgresRows) async throws -> [Charge] {
        guard !rows.isEmpty else { return [] }
        let ids = try rows.map { ChargeID(try $0.decode("id", as: UUID.self)) }
        return try Self.charges(from: rows, attempts: try await query(Self.attemptsQuery(of: ids)))
    }

    /// - Parameter attempts: rows of ``attemptColumns``; nil leaves them out.
    static func charges(from rows: PostgresRows, attempts: PostgresRows?) throws -> [Charge] {
        var charges = try rows.map(Self.charge(from:))
        guard let attempts, !attempts.isEmpty else { return charges }
        let known = try Self.attempts(from: attempts)
        for index in charges.indices { charges[index].attempts = known[charges[index].id] ?? [] }
        return charges
    }

    private static let attemptColumns = """
        charge_id, number, merchant_reference, instrument_id, payment_method, amount_minor, currency, execution_id, \
        outcome, reason, begun_at
        """

    private static func attempts(from rows: PostgresRows) throws -> [ChargeID: [ChargeAttempt]] {
        var attempts: [ChargeID: [ChargeAttempt]] = [:]
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
