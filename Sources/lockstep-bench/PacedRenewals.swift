import Basics
import Foundation
import Lockstep
import PayrailsSandbox
import Postgres
import Service
import Store

/// Several `lockstep renew` at once, each a process of its own, under one limit of calls a second, against the sandbox,
/// which notes when each call came.
struct PacedRenewals {
    private let options: BenchOptions
    init(_ options: BenchOptions) { self.options = options }

    func run() async throws -> Bool {
        let rate = options.number("rate", 10)
        let processes = options.number("processes", 4)
        let count = options.number("paced", 40)
        let sandbox = try PayrailsSandbox(SandboxConfiguration())
        try sandbox.start()
        let pool = PostgresPool(PostgresConfiguration(connectionString: options.database))
        // What the runs before left due would take turns away.
        _ = try await pool.query("UPDATE subscriptions SET due_at = NULL WHERE due_at <= now()")
        try await makeSubscriptions(count, sandbox, pool)
        let environment = environment(sandbox, rate)
        let began = ContinuousClock.now
        let before = sandbox.calls.count
        await withTaskGroup { group in
            for _ in 0..<processes {
                group.addTask { await ServiceProcess.runBeside(["renew"], environment) }
            }
        }
        let (seconds, _) = (ContinuousClock.now - began).components
        let calls = sandbox.calls.dropFirst(before).map(\.time).sorted()
        let paid = try await pool.query(
            "SELECT count(*) AS paid FROM charges WHERE state = 'succeeded' AND merchant_reference LIKE 'paced-%'"
        ).first?.decode("paid", as: Int.self)
        await pool.shutdown()
        await sandbox.stop()
        let most = Self.most(of: calls, within: .seconds(1))
        tell(
            "\(processes) runs at once, \(rate) calls a second allowed: \(paid ?? 0) of \(count) charged in \(seconds) s, "
                + "\(calls.count) calls, \(most) at most in any second")
        return most <= rate && paid == count
    }

    /// The most calls that any window of that length holds.
    static func most(of times: [Timestamp], within window: Duration) -> Int {
        var (most, first) = (0, 0)
        for last in times.indices {
            while times[first] + window <= times[last] { first += 1 }
            most = max(most, last - first + 1)
        }
        return most
    }

    private func makeSubscriptions(_ count: Int, _ sandbox: PayrailsSandbox, _ pool: PostgresPool) async throws {
        for number in 0..<count {
            let holder = "paced-holder-\(number)"
            guard let card = sandbox.tokenize(holderReference: holder).body["id"]?.string.flatMap({ InstrumentID($0) })
            else { throw Rig.Failure(description: "the sandbox made no card") }
            _ = try await pool.query(
                """
                INSERT INTO subscriptions (id, merchant_reference, holder_reference, instrument_id, workflow_code,
                    amount_minor, currency, every, starts_on, anchor_index, timezone, expiry_policy, status, next_index,
                    due_at, created_by, creation_key, created_at)
                VALUES (gen_random_uuid(), \("paced-\(number)"), \(holder), \(card.uuid), 'payment-acceptance', 990,
                    'EUR', 'P1M', current_date - 1, 1, 'Europe/Berlin', 'block', 'active', 1,
                    now() - interval '1 hour', gen_random_uuid(), 'key', now())
                """)
        }
    }

    private func environment(_ sandbox: PayrailsSandbox, _ rate: Int) -> [String: String] {
        [
            "LOCKSTEP_DATABASE_URL": options.database, "LOCKSTEP_LOG_LEVEL": "error",
            "LOCKSTEP_RETURN_URL": "https://shop.example/back", "PAYRAILS_BASE_URL": sandbox.baseURL,
            "PAYRAILS_CLIENT_ID": sandbox.clientID, "PAYRAILS_CLIENT_SECRET": sandbox.clientSecret,
            "PAYRAILS_WORKSPACE_ID": sandbox.workspaceID,
            "PAYRAILS_SHARED_REQUESTS_PER_SECOND": String(rate),
            "PATH": ProcessInfo.processInfo.environment["PATH"] ?? "/usr/bin:/bin",
        ]
    }
}
