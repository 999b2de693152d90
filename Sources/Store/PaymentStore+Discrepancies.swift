import Basics
import Foundation
import Lockstep
import Postgres

extension PaymentStore {
    /// A page of discrepancies, oldest first.
    public func listDiscrepancies(
        state: Discrepancy.State?, kind: Discrepancy.Class?, after: DiscrepancyID?, limit: Int
    ) async throws -> [Discrepancy] {
        try await pool.query(
            """
            SELECT \(unescaped: Transaction.discrepancyColumns) FROM discrepancies
            WHERE (\(state?.rawValue)::text IS NULL OR state = \(state?.rawValue))
                AND (\(kind?.rawValue)::text IS NULL OR class = \(kind?.rawValue))
                AND (\(after?.uuid)::uuid IS NULL OR id > \(after?.uuid))
            ORDER BY id LIMIT \(limit)
            """
        ).map { try Transaction.discrepancy(from: $0).discrepancy }
    }

    /// How many are open, by class.
    public func countOpenDiscrepancies() async throws -> [Discrepancy.Class: Int] {
        var counts: [Discrepancy.Class: Int] = [:]
        for row in try await pool.query(
            "SELECT class, count(*) AS count FROM discrepancies WHERE state = 'open' GROUP BY class")
        {
            let (kind, count) = try row.decode((String, Int64).self)
            counts[try legal(kind, "discrepancies")] = Int(count)
        }
        return counts
    }

    /// A person has dealt with it; said again, it stays as it was. Nil where there is none.
    public func resolveDiscrepancy(_ id: DiscrepancyID, note: String) async throws -> Discrepancy? {
        try await transact { transaction in
            guard let (owner, _) = try await transaction.readDiscrepancy(id) else { return nil }
            // Facts may resolve it at the same time; they hold the checkout or the charge.
            var locked: LockedOwner?
            if let owner { locked = try await transaction.lock(owner) }
            guard var (_, discrepancy) = try await transaction.readDiscrepancy(id) else { return nil }
            guard discrepancy.state == .open else { return discrepancy }
            discrepancy.resolve(at: transaction.now, note: note)
            let taken = try await transaction.query(
                """
                UPDATE discrepancies SET state = 'resolved', resolved_at = \(transaction.now.stored), note = \(note)
                WHERE id = \(id.uuid) AND state = 'open'
                """)
            // One that is about neither has no lock but its own.
            guard taken.affected == 1 else { return try await transaction.readDiscrepancy(id)?.discrepancy }
            try await transaction.insertEvent(
                .discrepancyResolved, checkout: owner?.checkout, subject: locked?.subject,
                execution: discrepancy.cause.execution,
                data: ["discrepancy": discrepancy.json])
            return discrepancy
        }
    }

    /// Opens what time alone makes a discrepancy: an operation whose outcome nobody could find out, and what stays in
    /// flight. How many checkouts, charges and changes of instruments had such a thing; each is found once.
    public func openAgedDiscrepancies(limit: Int) async throws -> Int {
        let now = clock.now()
        let rules = policy.discrepancies
        let unresolved = (now - rules.unresolvedAfter).stored
        let lost = (now - rules.lostAfter).stored
        let overdue = (now - rules.overdueAfter).stored
        let youngest = (now - min(rules.unresolvedAfter, rules.overdueAfter)).stored
        let found = try await pool.query(
            """
            SELECT DISTINCT checkout_id, charge_id,
                CASE WHEN num_nonnulls(checkout_id, charge_id) = 0 THEN id END AS operation_id
            FROM (
                SELECT checkout_id, charge_id, id, CASE state WHEN 'acknowledged' THEN 'overdue-final-state'
                    ELSE 'unresolved-operation' END AS class
                FROM operations WHERE finished_at IS NULL AND created_at <= \(youngest) AND kind <> 'tokenization'
                    AND CASE WHEN state = 'acknowledged' THEN coalesce(sent_at, created_at) <= \(overdue)
                        WHEN state = 'sent' AND attempts <= 1 THEN created_at <= \(lost)
                        ELSE created_at <= \(unresolved) END
                UNION ALL SELECT checkout_id, charge_id, id, 'overdue-final-state' FROM executions
                WHERE state IN ('processing','needsCustomer','unknown') AND changed_at <= \(overdue)) AS aged
            WHERE NOT EXISTS (SELECT FROM discrepancies AS known
                WHERE known.class = aged.class AND known.subject = aged.id
                    AND (known.state = 'open' OR known.note IS NOT NULL))
            LIMIT \(limit)
            """
        ).map { try $0.decode((UUID?, UUID?, UUID?).self) }
        return try await each(of: found) { transaction, aged in
            let (checkout, charge, operation) = aged
            if let owner = ExecutionOwner(checkout: checkout, charge: charge) {
                guard let locked = try await transaction.lock(owner) else { return false }
                try await transaction.settle(locked)
                return true
            }
            guard let operation else { return false }
            return try await transaction.openUnresolved(OperationID(operation))
        }
    }
}

extension Transaction {
    static let discrepancyColumns = """
        id, checkout_id, charge_id, class, subject, state, merchant_reference, execution_id, payment_id, amount_minor, currency, \
        here, there, first_seen_at, last_seen_at, resolved_at, note
        """

    fileprivate func readDiscrepancy(
        _ id: DiscrepancyID
    ) async throws -> (owner: ExecutionOwner?, discrepancy: Discrepancy)? {
        try await query(
            "SELECT \(unescaped: Self.discrepancyColumns) FROM discrepancies WHERE id = \(id.uuid)"
        ).first.map(Self.discrepancy(from:))
    }

    /// Those of checkouts and charges that are open, or that a person has dealt with.
    static func discrepanciesQuery(of owners: [ExecutionOwner]) -> PostgresQuery {
        """
        SELECT \(unescaped: discrepancyColumns) FROM discrepancies
        WHERE (checkout_id = ANY(\(owners.checkouts.map(\.uuid))) OR charge_id = ANY(\(owners.charges.map(\.uuid))))
            AND (state = 'open' OR note IS NOT NULL)
        ORDER BY id
        """
    }

    /// Opens that nobody could find out what became of an operation that belongs to no order.
    ///
    /// - Returns: false where that is known already, or isn't so any more.
    fileprivate func openUnresolved(_ id: OperationID) async throws -> Bool {
        guard let operation = try await lockOperation(id), !operation.state.isFinal,
            try await lockDiscrepancies(of: id).isEmpty
        else { return false }
        var changes = SettlementChanges(now: now, policy: policy, identifiers: identifiers)
        changes.open(DiscrepancyCause(unresolved: operation), of: nil, about: operation.subject)
        try await write(Decision(changes: changes))
        return true
    }

    /// What became of an operation is known: then nothing about it is open any more. Where an order or a charge is settled
    /// with it, that does the same.
    ///
    /// - Parameter subject: whose events are told one after the other; nil: of one that belongs to no order.
    func resolveDiscrepancies(of operation: PaymentOperation, about subject: EventSubject? = nil) async throws {
        let open = try await lockDiscrepancies(of: operation.id).filter { $0.state == .open }
        guard !open.isEmpty else { return }
        var changes = SettlementChanges(now: now, policy: policy, identifiers: identifiers)
        for discrepancy in open { changes.resolve(discrepancy, about: subject ?? operation.subject) }
        try await write(Decision(changes: changes))
    }

    /// What is open about an operation, and what a person has dealt with. A person may do that at the same time.
    private func lockDiscrepancies(of operation: OperationID) async throws -> [Discrepancy] {
        try await query(
            """
            SELECT \(unescaped: Self.discrepancyColumns) FROM discrepancies
            WHERE class = 'unresolved-operation' AND subject = \(operation.uuid)
                AND (state = 'open' OR note IS NOT NULL)
            ORDER BY id FOR UPDATE
            """
        ).map { try Self.discrepancy(from: $0).discrepancy }
    }

    /// What a settlement opened and resolved.
    func write(
        opened: [(owner: ExecutionOwner?, discrepancy: Discrepancy)], resolved: [Discrepancy]
    ) -> [PostgresQuery] {
        var queries: [PostgresQuery] = []
        for (owner, discrepancy) in opened {
            let cause = discrepancy.cause
            queries.append(
                """
                INSERT INTO discrepancies (id, class, subject, state, merchant_reference, checkout_id, charge_id,
                    execution_id, payment_id, amount_minor, currency, here, there, first_seen_at, last_seen_at)
                VALUES (\(discrepancy.id.uuid), \(cause.kind.rawValue), \(cause.subject), 'open',
                    \(cause.merchantReference), \(owner?.checkout?.uuid), \(owner?.charge?.uuid), \(cause.execution?.uuid), \(cause.paymentID),
                    \(cause.amount?.minor), \(cause.amount?.currency.code), \(cause.here), \(cause.there),
                    \(discrepancy.firstSeenAt.stored), \(discrepancy.lastSeenAt.stored))
                """)
        }
        for discrepancy in resolved {
            queries.append(
                """
                UPDATE discrepancies SET state = 'resolved', resolved_at = \(discrepancy.resolvedAt?.stored)
                WHERE id = \(discrepancy.id.uuid)
                """)
        }
        return queries
    }

    static func discrepancy(from row: PostgresRow) throws -> (owner: ExecutionOwner?, discrepancy: Discrepancy) {
        let (
            id, checkout, charge, kind, subject, state, reference, execution, payment, minor, code, here, there, first,
            last,
            resolvedAt, note
        ) = try row.decode(
            (
                UUID, UUID?, UUID?, String, UUID, String, String?, UUID?, String?, Int64?, String?, String?, String?,
                PostgresTimestamp, PostgresTimestamp, PostgresTimestamp?, String?
            ).self)
        let cause = DiscrepancyCause(
            kind: try legal(kind, "discrepancies"), subject: subject, merchantReference: reference,
            execution: execution.map { ExecutionID($0) }, paymentID: payment,
            amount: try .optional(minor: minor, code: code, table: "discrepancies"), here: here, there: there)
        return (
            ExecutionOwner(checkout: checkout, charge: charge),
            Discrepancy(
                id: DiscrepancyID(id), cause: cause, state: try legal(state, "discrepancies"),
                firstSeenAt: first.timestamp, lastSeenAt: last.timestamp, resolvedAt: resolvedAt?.timestamp, note: note)
        )
    }
}

extension PaymentOperation {
    /// Whose events are told one after the other, of one that belongs to no order.
    fileprivate var subject: EventSubject { .other(instrument?.uuid ?? id.uuid) }
}

extension Discrepancy {
    /// Times as they will be read back, so that an event shows what the list shows.
    static func open(_ id: DiscrepancyID, _ cause: DiscrepancyCause, at now: Timestamp) -> Discrepancy {
        let now = now.stored.timestamp
        return Discrepancy(id: id, cause: cause, firstSeenAt: now, lastSeenAt: now)
    }

    /// - Parameter note: a person's; facts leave none.
    mutating func resolve(at now: Timestamp, note: String? = nil) {
        state = .resolved
        resolvedAt = now.stored.timestamp
        self.note = note
    }
}
