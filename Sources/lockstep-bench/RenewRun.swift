import Basics
import Foundation
import Lockstep
import Postgres
import Service
import Store

/// How fast subscriptions that are due are found among those that aren't, planned, and charged, by a provider that
/// answers at once; then how many calls a second several runs make together where there is a limit.
struct RenewRun {
    private let options: BenchOptions
    init(_ options: BenchOptions) { self.options = options }

    func run() async throws -> Bool {
        var configuration = PostgresConfiguration(connectionString: options.database)
        configuration.statementTimeout = .seconds(600)
        configuration.avoidsSequentialScans = true
        let pool = PostgresPool(configuration)
        _ = try await Migrator(pool: pool).migrate()
        let store = PaymentStore(pool: pool, clock: .system, identifiers: .system())
        let isFound = try await find(store)
        let isCharged = try await charge(store)
        await pool.shutdown()
        let isPaced = try await PacedRenewals(options).run()
        return isFound && isCharged && isPaced
    }

    /// Claims and plans the same number of due ones, first with hardly any others around them.
    private func find(_ store: PaymentStore) async throws -> Bool {
        let count = options.number("subscriptions", 1_000_000)
        let due = options.number("due", 50_000)
        try await Books.makeSubscriptions(due, due: due, store.pool)
        let alone = try await claim(store, expecting: due)
        tell("claimed and planned \(due) due, and nothing else there: \(alone.milliseconds)")
        _ = try await store.pool.query("TRUNCATE subscriptions CASCADE")
        try await Books.makeSubscriptions(count, due: due, store.pool)
        let among = try await claim(store, expecting: due)
        tell("claimed and planned \(due) due of \(count): \(among.milliseconds)")
        return among < .seconds(5)
    }

    private func claim(_ store: PaymentStore, expecting due: Int) async throws -> Duration {
        let run = store.newRun()
        var place: RenewalPlace?
        var count = 0
        let began = ContinuousClock.now
        while true {
            let batch = try await store.claimRenewals(run, after: place, limit: 500)
            guard let last = batch.place else { break }
            place = last
            count += batch.claimed.count
        }
        let took = ContinuousClock.now - began
        guard count == due else { throw Rig.Failure(description: "\(count) were found, and \(due) are due") }
        try await Books.giveBack(store.pool)
        return took
    }

    private func charge(_ store: PaymentStore) async throws -> Bool {
        let orchestrator = Orchestrator(
            store: store, provider: InstantProvider(), owner: UUID(),
            charging: Orchestrator.Charging(returnURL: "https://shop.example/back"),
            log: Log(minimum: .error, writer: .standardError()))
        func runner(_ limit: Int) -> RenewalRunner {
            RenewalRunner(
                orchestrator, run: store.newRun(),
                options: RenewalRunner.Options(concurrency: options.number("concurrency", 128), limit: limit))
        }
        // Statements are prepared, and the tables' pages are there.
        _ = try await runner(500).perform()
        let before = Memory.resident
        let charged = options.number("charged", 20_000)
        let start = ContinuousClock.now
        let summary = try await runner(charged).perform()
        let (seconds, attoseconds) = (ContinuousClock.now - start).components
        let perSecond = Double(summary.looked) / max(0.001, Double(seconds) + Double(attoseconds) / 1e18)
        let paid = summary.charged[.succeeded] ?? 0
        tell("charged \(paid) of \(summary.looked) to their end: \(Int(perSecond)) a second")
        tell("resident memory: \(before) MiB before them, \(Memory.resident) MiB after")
        return paid == charged && perSecond >= 1500
    }
}

extension Books {
    /// What every subscription costs.
    static let price = Money(minor: 990, currency: Currency(code: "EUR") ?? Currency.all[0])

    /// Monthly subscriptions, some of them due since yesterday, spread among the others, which are due in the month to
    /// come.
    static func makeSubscriptions(_ count: Int, due: Int, _ pool: PostgresPool) async throws {
        let step = Int64(max(1, count / due))
        for start in stride(from: 0, to: count, by: 50_000) {
            _ = try await pool.query(
                """
                INSERT INTO subscriptions (id, merchant_reference, holder_reference, instrument_id, workflow_code,
                    amount_minor, currency, every, starts_on, anchor_index, timezone, expiry_policy, status, next_index,
                    due_at, created_by, creation_key, created_at)
                SELECT gen_random_uuid(), 'bench-' || n, 'holder', gen_random_uuid(), 'payment-acceptance', 990, 'EUR',
                    'P1M', CASE WHEN n % \(step) = 0 THEN current_date - 1
                        ELSE current_date + 2 + (n % 28)::integer END, 1, 'Europe/Berlin', 'block', 'active', 1,
                    CASE WHEN n % \(step) = 0 THEN now() - interval '1 day'
                        ELSE now() + interval '2 days' + n * interval '1 second' END,
                    gen_random_uuid(), 'key', now()
                FROM generate_series(\(Int64(start)), \(Int64(min(count, start + 50_000) - 1))) AS n
                """)
        }
        _ = try await pool.query("VACUUM ANALYZE subscriptions")
    }

    static func giveBack(_ pool: PostgresPool) async throws {
        _ = try await pool.query("UPDATE subscriptions SET lease_until = NULL WHERE lease_until IS NOT NULL")
        _ = try await pool.query("VACUUM ANALYZE subscriptions")
    }
}

enum Memory {
    /// This process's, in MiB, by the kernel's account.
    static var resident: Int {
        let status = (try? String(contentsOfFile: "/proc/self/status", encoding: .utf8)) ?? ""
        let line = status.split(separator: "\n").first { $0.hasPrefix("VmRSS:") } ?? ""
        return (line.split(separator: " ").compactMap { Int($0) }.first ?? 0) / 1024
    }
}
