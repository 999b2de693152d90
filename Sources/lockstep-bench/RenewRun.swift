import Basics
import Foundation
import Lockstep
import Postgres
import Service
import Store

/// How fast subscriptions that are due are found among those that aren't, planned, and charged, by a provider that
/// answers at once.
struct RenewRun {
    private let options: BenchOptions
    init(_ options: BenchOptions) { self.options = options }

    func run() async throws -> Bool {
        let count = options.number("subscriptions", 1_000_000)
        let due = options.number("due", 50_000)
        let charged = options.number("charged", 20_000)
        var configuration = PostgresConfiguration(connectionString: options.database)
        configuration.statementTimeout = .seconds(600)
        configuration.avoidsSequentialScans = true
        let pool = PostgresPool(configuration)
        _ = try await Migrator(pool: pool).migrate()
        try await Books.makeSubscriptions(count, due: due, pool)
        let store = PaymentStore(pool: pool, clock: .system, identifiers: .system())

        let began = ContinuousClock.now
        let planned = try await claim(store)
        let took = ContinuousClock.now - began
        tell("claimed and planned \(planned) due of \(count): \(took.milliseconds)")
        try await Books.giveBack(pool)

        let orchestrator = Orchestrator(
            store: store, provider: InstantProvider(), owner: UUID(),
            charging: Orchestrator.Charging(returnURL: "https://shop.example/back"),
            log: Log(minimum: .error, writer: .standardError()))
        let runner = RenewalRunner(
            orchestrator, run: store.newRun(),
            options: RenewalRunner.Options(concurrency: options.number("concurrency", 16), limit: charged))
        let start = ContinuousClock.now
        let summary = try await runner.perform()
        let (seconds, attoseconds) = (ContinuousClock.now - start).components
        let perSecond = Double(summary.looked) / max(0.001, Double(seconds) + Double(attoseconds) / 1e18)
        let paid = summary.charged[.succeeded] ?? 0
        tell("charged \(paid) of \(summary.looked) to their end: \(Int(perSecond)) a second")
        await pool.shutdown()
        return planned == due && took < .seconds(5) && paid == summary.looked && perSecond >= 1500
    }

    private func claim(_ store: PaymentStore) async throws -> Int {
        let run = store.newRun()
        var place: RenewalPlace?
        var count = 0
        while true {
            let batch = try await store.claimRenewals(run, after: place, limit: 500)
            guard let last = batch.place else { return count }
            place = last
            count += batch.claimed.count
        }
    }
}

extension Books {
    /// What every subscription costs.
    static let price = Money(minor: 990, currency: Currency(code: "EUR") ?? Currency.all[0])

    /// Monthly subscriptions, some of them due since yesterday, the others in the month to come.
    static func makeSubscriptions(_ count: Int, due: Int, _ pool: PostgresPool) async throws {
        for start in stride(from: 0, to: count, by: 50_000) {
            _ = try await pool.query(
                """
                INSERT INTO subscriptions (id, merchant_reference, holder_reference, instrument_id, workflow_code,
                    amount_minor, currency, every, starts_on, anchor_index, timezone, expiry_policy, status, next_index,
                    due_at, created_by, creation_key, created_at)
                SELECT gen_random_uuid(), 'bench-' || n, 'holder', gen_random_uuid(), 'payment-acceptance', 990, 'EUR',
                    'P1M', CASE WHEN n % \(Int64(max(1, count / due))) = 0 THEN current_date - 1
                        ELSE current_date + 2 + (n % 28)::integer END, 1, 'Europe/Berlin', 'block', 'active', 1,
                    CASE WHEN n % \(Int64(max(1, count / due))) = 0 THEN now() - interval '1 day'
                        ELSE now() + interval '2 days' + n * interval '1 second' END,
                    gen_random_uuid(), 'key', now()
                FROM generate_series(\(Int64(start)), \(Int64(min(count, start + 50_000) - 1))) AS n
                """)
        }
        _ = try await pool.query("ANALYZE subscriptions")
    }

    static func giveBack(_ pool: PostgresPool) async throws {
        _ = try await pool.query("UPDATE subscriptions SET lease_until = NULL WHERE lease_until IS NOT NULL")
        _ = try await pool.query("VACUUM ANALYZE subscriptions")
    }
}
