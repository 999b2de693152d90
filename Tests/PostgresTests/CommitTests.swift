import Foundation
import Postgres
import TestKit
import Testing

@Suite("what a caller knows after a commit")
struct CommitTests {
    /// A table with the rows 1 and 2, each with the amount 0.
    private func prepare(_ pool: PostgresPool) async throws {
        _ = try await pool.query("CREATE TABLE books (id int8 PRIMARY KEY, amount int8 NOT NULL)")
        _ = try await pool.query("INSERT INTO books VALUES (1, 0), (2, 0)")
    }

    private func amounts(_ pool: PostgresPool) async throws -> [Int] {
        try await pool.query("SELECT amount FROM books ORDER BY id").map { try $0.decode(Int.self) }
    }

    @Test("an error that COMMIT itself brings is an error, not an unknown outcome")
    func deferredConstraint() async throws {
        try await withPool(maximumConnections: 1) { pool async throws in
            _ = try await pool.query("CREATE TABLE late (n int8 CONSTRAINT once UNIQUE DEFERRABLE INITIALLY DEFERRED)")
            let failure = await error {
                try await pool.withTransaction { connection in
                    _ = try await connection.query("INSERT INTO late VALUES (1), (1)")
                }
            }
            #expect(failure?.isUniqueViolation(constraint: "once") == true)
            #expect(failure?.code == .server(sqlState: "23505"))
            #expect(try await pool.value("SELECT count(*) FROM late", as: Int.self) == 0)
        }
    }

    @Test("a commit whose answer was lost is unknown, though it happened")
    func commitAnswerLost() async throws {
        let cluster = try await PostgresCluster.shared()
        try await withPool(ownDatabase: true) { direct async throws in
            try await prepare(direct)
            let database = try await direct.value("SELECT current_database()", as: String.self)
            let proxy = try FaultyProxy(target: cluster.port, fault: .cutAfter("COMMIT\u{0}"))
            defer { proxy.stop() }
            let configuration = PostgresConfiguration(connectionString: proxy.connectionString + " dbname=\(database)")
            try await withPool(configuration) { pool async throws in
                let failure = await error {
                    try await pool.withTransaction { _ = try await $0.query("UPDATE books SET amount = 7") }
                }
                #expect(failure?.code == .commitUnknown)
                #expect(failure?.mayHaveExecuted == true)
                #expect(try await amounts(direct) == [7, 7])
                #expect(pool.statistics.unknownCommits == 1)
                proxy.setFault(.none)
                #expect(try await amounts(pool) == [7, 7])
            }
        }
    }

    @Test("a commit that gets no answer in time is unknown, though it never arrived")
    func commitLost() async throws {
        let cluster = try await PostgresCluster.shared()
        try await withPool(ownDatabase: true) { direct async throws in
            try await prepare(direct)
            let database = try await direct.value("SELECT current_database()", as: String.self)
            let proxy = try FaultyProxy(target: cluster.port, fault: .hangAt("COMMIT\u{0}"))
            defer { proxy.stop() }
            let configuration = PostgresConfiguration(connectionString: proxy.connectionString + " dbname=\(database)")
            try await withPool(configuration) { pool async throws in
                let failure = await code {
                    try await pool.withTransaction(deadline: .now + .seconds(3)) {
                        _ = try await $0.query("UPDATE books SET amount = 7")
                    }
                }
                #expect(failure == .commitUnknown)
                #expect(try await amounts(direct) == [0, 0])
            }
        }
    }

    @Test("a session that is ended while it commits leaves an unknown outcome")
    func terminatedCommit() async throws {
        try await withPool(ownDatabase: true) { pool async throws in
            try await prepare(pool)
            try await pool.withConnection { connection in
                try await connection.executeScript(
                    """
                    CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS
                        $$ BEGIN PERFORM pg_sleep(30); RETURN NULL; END $$;
                    CREATE CONSTRAINT TRIGGER slow AFTER UPDATE ON books DEFERRABLE INITIALLY DEFERRED
                        FOR EACH ROW EXECUTE FUNCTION slow();
                    """)
            }
            async let outcome = code {
                try await pool.withTransaction { _ = try await $0.query("UPDATE books SET amount = 7 WHERE id = 1") }
            }
            try await eventually {
                try await pool.query(
                    """
                    SELECT pg_terminate_backend(pid) FROM pg_stat_activity
                    WHERE datname = current_database() AND query = 'COMMIT' AND wait_event = 'PgSleep'
                    """
                ).count == 1
            }
            #expect(await outcome == .commitUnknown)
            #expect(try await amounts(pool) == [0, 0])
        }
    }

    private enum Told: Sendable { case done, undone, unknown }

    /// Runs `body` and says what its caller may believe.
    private func tell(_ body: () async throws -> Void) async -> Told {
        do {
            try await body()
            return .done
        } catch let error as PostgresError {
            return error.mayHaveExecuted ? .unknown : .undone
        } catch {
            Issue.record(error)
            return .unknown
        }
    }

    @Test(
        "whatever sessions are killed at whatever moment, what was told done is there and what was told undone is not")
    func killedAtRandom() async throws {
        let database = try await PostgresCluster.shared().makeDatabase()
        var configuration = PostgresConfiguration(connectionString: database)
        configuration.maximumConnections = 6
        configuration.acquireTimeout = .seconds(10)
        try await withPool(configuration) { pool async throws in
            _ = try await pool.query(
                "CREATE TABLE entries (id int8 NOT NULL, half int8 NOT NULL, PRIMARY KEY (id, half))")
            var operatorConfiguration = PostgresConfiguration(connectionString: database)
            operatorConfiguration.applicationName = "operator"
            let told = Shared<[Int: Told]>([:])
            try await withPool(operatorConfiguration) { operatorPool async throws in
                let isOver = Shared(false)
                async let kills: Int = {
                    var kills = 0
                    while !isOver.value {
                        kills += try await operatorPool.query(
                            """
                            SELECT pg_terminate_backend(pid) FROM pg_stat_activity
                            WHERE datname = current_database() AND application_name <> 'operator'
                                AND backend_type = 'client backend' ORDER BY random() LIMIT 1
                            """
                        ).count
                        try await Task.sleep(for: .milliseconds(3))
                    }
                    return kills
                }()
                await withTaskGroup(of: Void.self) { group in
                    for task in 0..<12 {
                        group.addTask {
                            for turn in 0..<40 {
                                let id = task * 1000 + turn
                                let outcome = await tell {
                                    if turn % 2 == 0 {
                                        try await pool.withTransaction { connection in
                                            _ = try await connection.query("INSERT INTO entries VALUES (\(id), 1)")
                                            _ = try await connection.query("INSERT INTO entries VALUES (\(id), 2)")
                                        }
                                    } else {
                                        _ = try await pool.query("INSERT INTO entries VALUES (\(id), 1), (\(id), 2)")
                                    }
                                }
                                told.change { $0[id] = outcome }
                            }
                        }
                    }
                }
                isOver.change { $0 = true }
                #expect(try await kills > 0)
                // A statement told unknown may still be under way.
                try await eventually {
                    try await operatorPool.value(
                        """
                        SELECT count(*) = 0 FROM pg_stat_activity WHERE datname = current_database()
                            AND application_name <> 'operator' AND state <> 'idle'
                        """, as: Bool.self)
                }
                let rows = try await operatorPool.query("SELECT id, count(*) FROM entries GROUP BY id")
                let halves = try Dictionary(uniqueKeysWithValues: rows.map { try $0.decode((Int, Int).self) })
                for (id, outcome) in told.value {
                    switch outcome {
                    case .done: #expect(halves[id] == 2)
                    case .undone: #expect(halves[id] == nil)
                    case .unknown: #expect(halves[id] == nil || halves[id] == 2)
                    }
                }
                #expect(told.value.count == 480)
                #expect(told.value.values.contains(.done))
                #expect(pool.statistics.inUse == 0)
            }
        }
    }
}
