import Basics
import Foundation
import Lockstep
import Postgres
import Store
import TestKit
import Testing

@Suite("Retention of charges and instruments")
struct ChargeRetentionTests {
    @Test("what is long over loses its personal data, what isn't over keeps it, and counting deletes nothing")
    func retention() async throws {
        let pool = PostgresPool(
            PostgresConfiguration(connectionString: try await PostgresCluster.shared().makeDatabase()))
        _ = try await Migrator(pool: pool).migrate()
        let now = Timestamp.systemNow
        func charge(_ state: String, days: Int) async throws -> UUID {
            let id = UUID()
            _ = try await pool.query(
                """
                INSERT INTO charges (id, merchant_reference, holder_reference, instrument_id, workflow_code,
                    amount_minor, currency, expiry_policy, meta, state, created_at)
                VALUES (\(id), \(freshWord("topup")), 'cust', \(UUID()), 'payment-acceptance', 1000, 'EUR', 'block',
                    '{"a": 1}', \(state), now() - make_interval(days => \(days)::integer))
                """)
            return id
        }
        func instrument(_ status: String, days: Int) async throws {
            _ = try await pool.query(
                """
                INSERT INTO instruments (id, holder_reference, payment_method, status, is_default, has_network_token,
                    read_at)
                VALUES (\(UUID()), 'cust', 'card', \(status), false, false,
                    now() - make_interval(days => \(days)::integer))
                """)
        }
        func subscription(_ status: String, closed days: Int?) async throws -> UUID {
            let id = UUID()
            _ = try await pool.query(
                """
                INSERT INTO subscriptions (id, merchant_reference, holder_reference, instrument_id, workflow_code,
                    amount_minor, currency, every, starts_on, anchor_index, timezone, expiry_policy, meta, status,
                    next_index, created_by, creation_key, created_at, closed_at)
                VALUES (\(id), \(freshWord("member")), 'cust', \(UUID()), 'payment-acceptance', 990, 'EUR', 'P1M',
                    '2024-01-31', 1, 'Europe/Berlin', 'block', '{"a": 1}', \(status), 9, \(UUID()), 'key',
                    now() - interval '900 days', now() - make_interval(days => \(days)::integer))
                """)
            return id
        }
        let closed = try await subscription("ended", closed: 500)
        let inUse = [
            try await subscription("cancelled", closed: 10), try await subscription("active", closed: nil),
            try await subscription("cancelled", closed: 500),
        ]
        // Nobody knows what became of its last charge.
        _ = try await pool.query(
            """
            INSERT INTO charges (id, subscription_id, period_index, period_start, period_end, merchant_reference,
                holder_reference, instrument_id, workflow_code, amount_minor, currency, expiry_policy, state, created_at)
            SELECT gen_random_uuid(), id, 8, '2024-08-31', '2024-09-30', merchant_reference, 'cust', instrument_id,
                workflow_code, 990, 'EUR', 'block', 'unknown', now() FROM subscriptions WHERE id = \(inUse[2])
            """)
        let old = try await charge("succeeded", days: 500)
        let kept = [try await charge("failed", days: 10), try await charge("unknown", days: 500)]
        for id in [old] + kept {
            _ = try await pool.query(
                """
                INSERT INTO operations (id, kind, charge_id, execution_id, workflow_code, idempotency_key, state,
                    intent_reason, created_at, finished_at)
                VALUES (\(UUID()), 'refund', \(id), \(UUID()), 'payment-acceptance', \(UUID()), 'succeeded',
                    'she asked', now(), now())
                """)
        }
        for (status, days) in [("deleted", 500), ("deleted", 10), ("enabled", 500)] {
            try await instrument(status, days: days)
        }
        let store = PaymentStore(pool: pool, clock: .system, identifiers: .system())
        let limit = now + .seconds(-400 * 86_400)
        let limits = RetentionLimits(notifications: limit, personalData: limit, events: limit)
        var expected = RetentionCount()
        expected.charges = 1
        expected.subscriptions = 1
        expected.instruments = 1
        #expect(try await store.countOutlived(limits) == expected)
        #expect(try await store.retain(limits) == expected)
        #expect(try await store.retain(limits) == RetentionCount())
        func holder(of id: UUID, in table: String = "charges") async throws -> String? {
            try await pool.query(
                """
                SELECT holder_reference FROM \(unescaped: table)
                WHERE id = \(id) AND (meta IS NULL) = (holder_reference = '')
                """
            ).first?.decode("holder_reference", as: String.self)
        }
        #expect(try await holder(of: old) == "")
        for id in kept { #expect(try await holder(of: id) == "cust") }
        let said = try await pool.query("SELECT charge_id FROM operations WHERE intent_reason = 'she asked'")
        #expect(Set(try said.map { try $0.decode(UUID.self) }) == Set(kept))
        #expect(try await holder(of: closed, in: "subscriptions") == "")
        for id in inUse { #expect(try await holder(of: id, in: "subscriptions") == "cust") }
        #expect(try await pool.query("SELECT id FROM instruments").count == 2)
        await pool.shutdown()
    }
}
