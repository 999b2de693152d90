import Foundation
import Lockstep
import Postgres
import Store
import TestKit
import Testing

@Suite("What the database itself refuses, whatever the program does")
struct ConstraintTests {
    private static let shared = Task {
        let pool = PostgresPool(
            PostgresConfiguration(connectionString: try await PostgresCluster.shared().makeDatabase()))
        _ = try await Migrator(pool: pool).migrate()
        return pool
    }
    private let pool: PostgresPool
    init() async throws { pool = try await Self.shared.value }

    /// A row of `checkouts`; the columns that a test is about are given.
    private func checkout(
        _ id: UUID = UUID(), reference: String = freshWord("order"), status: String = "open", kept: UUID? = nil,
        minor: Int64 = 4999, isReleased: Bool = false
    ) async throws {
        _ = try await pool.query(
            """
            INSERT INTO checkouts (id, merchant_reference, holder_reference, workflow_code, status, amount_minor,
                currency, amount_version, amount_state, client_may_update, created_by, creation_key,
                kept_execution_id, released_at, created_at, expires_at)
            VALUES (\(id), \(reference), 'cust', 'payment-acceptance', \(status), \(minor), 'EUR', 1, 'inStep', false,
                \(UUID()), 'key', \(kept), CASE WHEN \(isReleased) THEN now() END, now(), now())
            """)
    }

    private func operation(_ kind: String, of checkout: UUID, execution: UUID?, state: String) async throws {
        _ = try await pool.query(
            """
            INSERT INTO operations (id, kind, checkout_id, execution_id, workflow_code, idempotency_key, state,
                created_at, finished_at)
            VALUES (\(UUID()), \(kind), \(checkout), \(execution), 'payment-acceptance', \(UUID()), \(state), now(),
                CASE WHEN \(state) IN ('succeeded', 'failed') THEN now() END)
            """)
    }

    private func refuses(_ state: String, _ statement: () async throws -> Void) async {
        do {
            try await statement()
            Issue.record("it was taken")
        } catch {
            #expect((error as? PostgresError)?.sqlState == state)
        }
    }

    @Test("the execution that paid an order is never replaced, and never taken away")
    func keptOnce() async throws {
        let id = UUID()
        try await checkout(id)
        _ = try await pool.query(
            "UPDATE checkouts SET status = 'paid', kept_execution_id = \(UUID()) WHERE id = \(id)")
        for other in [UUID(), nil] {
            await refuses("23514") {
                _ = try await pool.query("UPDATE checkouts SET kept_execution_id = \(other) WHERE id = \(id)")
            }
        }
        _ = try await pool.query("UPDATE checkouts SET status = 'refunded' WHERE id = \(id)")
    }

    @Test("paid without an execution that paid, open with one, and amounts of nothing or too much are no rows")
    func checks() async throws {
        await refuses("23514") { try await checkout(status: "paid") }
        await refuses("23514") { try await checkout(status: "open", kept: UUID()) }
        await refuses("23514") { try await checkout(status: "lost") }
        await refuses("23514") { try await checkout(minor: 0) }
        await refuses("23514") { try await checkout(minor: 1_000_000_000_000_000) }
    }

    @Test("an order has one checkout, besides those whose creation was refused")
    func oneCheckout() async throws {
        let reference = freshWord("order")
        try await checkout(reference: reference, isReleased: true)
        try await checkout(reference: reference)
        try await checkout(reference: reference, isReleased: true)
        await refuses("23505") { try await checkout(reference: reference) }
    }

    @Test("a checkout has one open change of its amount and one open session, an execution one open cancel")
    func oneOfEach() async throws {
        let id = UUID()
        try await checkout(id)
        let execution = UUID()
        for (kind, execution) in [("moveAmount", execution), ("createSession", nil)] {
            try await operation(kind, of: id, execution: execution, state: "failed")
            try await operation(kind, of: id, execution: execution, state: "unknown")
            await refuses("23505") { try await operation(kind, of: id, execution: execution, state: "sent") }
        }
        // One that worked can be undone, and then there is money to take back again.
        try await operation("cancel", of: id, execution: execution, state: "failed")
        try await operation("cancel", of: id, execution: execution, state: "succeeded")
        try await operation("cancel", of: id, execution: execution, state: "acknowledged")
        await refuses("23505") { try await operation("cancel", of: id, execution: execution, state: "prepared") }
        await refuses("23514") { try await operation("capture", of: id, execution: nil, state: "prepared") }
    }

    @Test("a discrepancy is open once, and isn't opened again after a person has dealt with it")
    func discrepancyOnce() async throws {
        let subject = UUID()
        func open(_ kind: String = "duplicate-payment") async throws {
            _ = try await pool.query(
                """
                INSERT INTO discrepancies (id, class, subject, state, first_seen_at, last_seen_at)
                VALUES (\(UUID()), \(kind), \(subject), 'open', now(), now())
                """)
        }
        func resolve(note: String?) async throws {
            _ = try await pool.query(
                """
                UPDATE discrepancies SET state = 'resolved', resolved_at = now(), note = \(note)
                WHERE subject = \(subject) AND state = 'open'
                """)
        }
        try await open()
        try await open("amount-mismatch")
        await refuses("23505") { try await open() }
        try await resolve(note: nil)
        try await open()
        await refuses("23514") { try await resolve(note: "") }
        try await resolve(note: "refunded by hand")
        await refuses("23505") { try await open() }
        await refuses("23514") { try await open("something-else") }
    }
}
