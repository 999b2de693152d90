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

    // MARK: charges

    private func charge(
        _ id: UUID = UUID(), subscription: UUID? = nil, period: Int? = nil, reference: String = freshWord("topup"),
        state: String = "processing", isDue: Bool = false
    ) async throws {
        _ = try await pool.query(
            """
            INSERT INTO charges (id, subscription_id, period_index, period_start, period_end, merchant_reference,
                holder_reference, instrument_id, workflow_code, amount_minor, currency, expiry_policy, state,
                next_attempt_at, created_at)
            VALUES (\(id), \(subscription), \(period), CASE WHEN \(period)::integer IS NULL THEN NULL ELSE DATE '2026-01-31' END,
                CASE WHEN \(period)::integer IS NULL THEN NULL ELSE DATE '2026-02-28' END, \(reference), 'cust',
                \(UUID()), 'payment-acceptance', 1000, 'EUR', 'block', \(state), CASE WHEN \(isDue) THEN now() END,
                now())
            """)
    }

    private func attempt(
        _ number: Int, of charge: UUID, outcome: String, reference: String = freshWord("topup")
    ) async throws {
        _ = try await pool.query(
            """
            INSERT INTO charge_attempts (charge_id, number, merchant_reference, instrument_id, payment_method,
                amount_minor, currency, outcome, begun_at)
            VALUES (\(charge), \(number), \(reference), \(UUID()), 'card', 1000, 'EUR', \(outcome), now())
            """)
    }

    @Test(
        "M2: a charge has one attempt that runs, is unknown or succeeded",
        arguments: ["processing", "unknown", "succeeded"])
    func oneAttempt(_ outcome: String) async throws {
        let id = UUID()
        try await charge(id)
        for (number, outcome) in [(1, "failed"), (2, "needsCustomer"), (3, "cancelled"), (4, outcome)] {
            try await attempt(number, of: id, outcome: outcome)
        }
        for other in ["processing", "unknown", "succeeded"] {
            await refuses("23505") { try await attempt(5, of: id, outcome: other) }
        }
        await refuses("23505") { try await attempt(4, of: id, outcome: "failed") }
        try await attempt(5, of: id, outcome: "failed")
        await refuses("23505") {
            _ = try await pool.query(
                "UPDATE charge_attempts SET outcome = 'succeeded' WHERE charge_id = \(id) AND number = 5")
        }
    }

    @Test("an unscheduled charge has its reference for itself; what is due is scheduled, and the other way round")
    func charges() async throws {
        let reference = freshWord("topup")
        try await charge(reference: reference)
        await refuses("23505") { try await charge(reference: reference) }
        await refuses("23514") { try await charge(state: "scheduled") }
        await refuses("23514") { try await charge(state: "failed", isDue: true) }
        await refuses("23514") { try await charge(period: 1) }
        let taken = freshWord("topup")
        let (one, other) = (UUID(), UUID())
        try await charge(one)
        try await charge(other)
        try await attempt(1, of: one, outcome: "failed", reference: taken)
        await refuses("23505") { try await attempt(1, of: other, outcome: "processing", reference: taken) }
    }

    @Test("an execution belongs to a checkout or to a charge, an operation to what its kind is about")
    func owners() async throws {
        let (order, topup) = (UUID(), UUID())
        try await checkout(order)
        try await charge(topup)
        func execution(_ checkout: UUID?, _ charge: UUID?) async throws {
            _ = try await pool.query(
                """
                INSERT INTO executions (id, checkout_id, charge_id, ordinal, workflow_code, merchant_reference, state,
                    amount_minor, currency, created_at, changed_at)
                VALUES (\(UUID()), \(checkout), \(charge), 1, 'payment-acceptance', \(freshWord("order")), 'created',
                    1000, 'EUR', now(), now())
                """)
        }
        await refuses("23514") { try await execution(nil, nil) }
        await refuses("23514") { try await execution(order, topup) }
        try await execution(nil, topup)
        await refuses("23505") { try await execution(nil, topup) }
        func operation(_ kind: String, _ checkout: UUID?, _ charge: UUID?, on execution: UUID? = UUID()) async throws {
            _ = try await pool.query(
                """
                INSERT INTO operations (id, kind, checkout_id, charge_id, execution_id, workflow_code, idempotency_key,
                    state, created_at)
                VALUES (\(UUID()), \(kind), \(checkout), \(charge), \(execution), 'payment-acceptance', \(UUID()),
                    'prepared', now())
                """)
        }
        for (kind, checkout, charge) in [
            ("capture", nil, nil), ("capture", order, topup), ("authorize", order, nil), ("createSession", nil, topup),
            ("tokenization", order, nil), ("changeInstrument", nil, nil),
        ] as [(String, UUID?, UUID?)] {
            await refuses("23514") { try await operation(kind, checkout, charge) }
        }
        await refuses("23514") { try await operation("authorize", nil, topup, on: nil) }
        try await operation("capture", nil, topup)
        try await operation("createExecution", nil, topup, on: nil)
        await refuses("23505") { try await operation("createExecution", nil, topup, on: nil) }
        let execution = UUID()
        try await operation("authorize", nil, topup, on: execution)
        await refuses("23505") { try await operation("authorize", nil, topup, on: execution) }
    }
}
