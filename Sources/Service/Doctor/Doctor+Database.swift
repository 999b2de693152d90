import Basics
import Lockstep
import Postgres
import Store

extension Doctor {
    /// Whether the books can be reached, are of this program's version, and keep what was acknowledged.
    func database() async -> [Finding] {
        let pool = PostgresPool(settings.postgres)
        defer { Task { await pool.shutdown() } }
        do {
            var findings: [Finding] = []
            switch try await Migrator(pool: pool).status() {
            case .current: findings.append(Finding("database", .fine, "version \(Migrator.latest), as this program"))
            case .behind(let database, let program):
                return [
                    Finding(
                        "database", .wrong, "version \(database); this program needs \(program)",
                        mend: "run lockstep migrate")
                ]
            case .ahead(let database, let program):
                return [
                    Finding(
                        "database", .wrong, "version \(database); this program only knows \(program)",
                        mend: "run the newer lockstep")
                ]
            }
            findings += try await durability(pool)
            let store = PaymentStore(pool: pool, clock: clock, identifiers: .system(clock: clock))
            let active = try await store.listKeys().filter { $0.revokedAt == nil }
            findings.append(
                active.isEmpty
                    ? Finding(
                        "merchant keys", .wrong, "there is none",
                        mend: "run lockstep keys create --name shop --scopes checkouts,payments")
                    : Finding("merchant keys", .fine, "\(active.count) in force"))
            return findings
        } catch {
            let words = (error as? PostgresError).map { "\($0)" } ?? "\(type(of: error))"
            return [
                Finding(
                    "database", .wrong, "can't be used: \(words)",
                    mend: "check LOCKSTEP_DATABASE_URL, and that PostgreSQL runs and lets this machine in")
            ]
        }
    }

    /// What was answered 200 must be on disk (invariant M3), and the clocks must agree.
    private func durability(_ pool: PostgresPool) async throws -> [Finding] {
        let row = try await pool.query(
            """
            SELECT current_setting('fsync') AS fsync, current_setting('synchronous_commit') AS commits,
                current_setting('full_page_writes') AS pages, clock_timestamp() AS now
            """
        ).first
        guard let row else { return [] }
        let (fsync, commits, pages, now) = try row.decode((String, String, String, PostgresTimestamp).self)
        var findings: [Finding] = []
        let unsafe = [("fsync", fsync), ("synchronous_commit", commits), ("full_page_writes", pages)]
            .filter { $0.1 == "off" }.map(\.0)
        findings.append(
            unsafe.isEmpty
                ? Finding("durability", .fine, "the database answers after its disk does")
                : Finding(
                    "durability", .wrong, "\(unsafe.joined(separator: ", ")) off: acknowledged payments can be lost",
                    mend: "set \(unsafe.joined(separator: " and ")) to on in postgresql.conf"))
        let apart = abs(clock.now().microseconds - now.microsecondsSince1970) / 1_000_000
        findings.append(
            apart <= 2
                ? Finding("clock", .fine, "agrees with the database's")
                : Finding(
                    "clock", .wrong, "\(apart) s apart from the database's",
                    mend: "let NTP set the clock on both machines"))
        return findings
    }
}
