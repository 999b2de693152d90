import Foundation
import Postgres
import TestKit
import Testing

@Suite("transactions")
struct TransactionTests {
    private struct Refused: Error {}

    private func increment(_ number: Shared<Int>) -> Int {
        number.change { number in
            number += 1
            return number
        }
    }

    /// A table with the rows 1 and 2, each with the amount 0.
    private static func prepare(_ pool: PostgresPool) async throws {
        _ = try await pool.query("CREATE TABLE books (id int8 PRIMARY KEY, amount int8 NOT NULL)")
        _ = try await pool.query("INSERT INTO books VALUES (1, 0), (2, 0)")
    }

    private static func amounts(_ pool: PostgresPool) async throws -> [Int] {
        try await pool.query("SELECT amount FROM books ORDER BY id").map { try $0.decode(Int.self) }
    }

    @Test("what returns is committed, what throws is not")
    func outcome() async throws {
        try await withPool(maximumConnections: 1) { pool async throws in
            try await Self.prepare(pool)
            let value = try await pool.withTransaction { connection in
                try await connection.query("UPDATE books SET amount = 5 RETURNING id").count
            }
            #expect(value == 2)
            await #expect(throws: Refused.self) {
                try await pool.withTransaction { connection in
                    _ = try await connection.query("UPDATE books SET amount = 6")
                    throw Refused()
                }
            }
            #expect(try await Self.amounts(pool) == [5, 5])
            #expect(pool.statistics.open == 1)
        }
    }

    @Test("a transaction that somebody left open is not leaked to the next user")
    func leftover() async throws {
        try await withPool(maximumConnections: 1) { pool async throws in
            try await Self.prepare(pool)
            try await pool.withConnection { connection in
                _ = try await connection.query("BEGIN")
                _ = try await connection.query("UPDATE books SET amount = 9")
            }
            try await pool.withConnection { connection in
                #expect(try await connection.query("SELECT amount FROM books")[0].decode(Int.self) == 0)
                _ = try await connection.query("BEGIN")
                _ = await error { _ = try await connection.query("SELECT 1/0") }
            }
            #expect(try await Self.amounts(pool) == [0, 0])
        }
    }

    @Test("a failure that the body kept to itself is not taken for a commit")
    func swallowedFailure() async throws {
        try await withPool(maximumConnections: 1) { pool async throws in
            try await Self.prepare(pool)
            let failure = await code {
                try await pool.withTransaction { connection in
                    _ = try await connection.query("UPDATE books SET amount = 9")
                    _ = try? await connection.query("SELECT 1/0")
                }
            }
            #expect(failure == .server(sqlState: "22012"))
            #expect(try await Self.amounts(pool) == [0, 0])
        }
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

    @Test("the isolation level is the one asked for", arguments: IsolationLevel.allCases)
    func isolation(_ level: IsolationLevel) async throws {
        try await withPool(maximumConnections: 1) { pool async throws in
            let shown = try await pool.withTransaction(isolation: level) { connection in
                try await connection.query("SHOW transaction_isolation")[0].decode(String.self)
            }
            #expect(shown.uppercased() == level.rawValue)
        }
    }

    @Test("40001 is tried again from the start and counted, also when the body wraps it in its own error")
    func serializationFailure() async throws {
        struct Wrapped: Error { let cause: any Error }
        try await withPool { pool async throws in
            try await Self.prepare(pool)
            let runs = Shared(0)
            try await pool.withTransaction(isolation: .repeatableRead) { connection in
                let run = increment(runs)
                _ = try await connection.query("SELECT amount FROM books WHERE id = 1")
                if run <= 2 { _ = try await pool.query("UPDATE books SET amount = amount + 100 WHERE id = 1") }
                do {
                    _ = try await connection.query("UPDATE books SET amount = amount + 1 WHERE id = 1")
                } catch {
                    throw Wrapped(cause: error)
                }
            }
            #expect(runs.value == 3)
            #expect(try await Self.amounts(pool) == [201, 0])
            #expect(pool.statistics.retriedTransactions == 2)
        }
    }

    @Test("when no try is left, the error itself comes out; other errors are never tried again")
    func retriesEnd() async throws {
        try await withPool { pool async throws in
            try await Self.prepare(pool)
            let runs = Shared(0)
            let failure = await code {
                try await pool.withTransaction(isolation: .repeatableRead, retries: 1) { connection in
                    runs.change { $0 += 1 }
                    _ = try await connection.query("SELECT amount FROM books WHERE id = 1")
                    _ = try await pool.query("UPDATE books SET amount = amount + 100 WHERE id = 1")
                    _ = try await connection.query("UPDATE books SET amount = amount + 1 WHERE id = 1")
                }
            }
            #expect(failure == .server(sqlState: "40001"))
            #expect(runs.value == 2)
            runs.change { $0 = 0 }
            _ = await error {
                try await pool.withTransaction { connection in
                    runs.change { $0 += 1 }
                    _ = try await connection.query("SELECT 1/0")
                }
            }
            #expect(runs.value == 1)
        }
    }

    @Test("two transactions in a deadlock both succeed, one of them at the second try")
    func deadlock() async throws {
        try await withPool { pool async throws in
            try await Self.prepare(pool)
            let arrived = Shared(0)
            try await withThrowingTaskGroup(of: Void.self) { group in
                for order in [[1, 2], [2, 1]] {
                    group.addTask {
                        let runs = Shared(0)
                        try await pool.withTransaction { connection in
                            let isFirstRun = increment(runs) == 1
                            _ = try await connection.query(
                                "UPDATE books SET amount = amount + 1 WHERE id = \(order[0])")
                            if isFirstRun {
                                // Both hold their first row before either asks for its second.
                                arrived.change { $0 += 1 }
                                try await eventually { arrived.value == 2 }
                            }
                            _ = try await connection.query(
                                "UPDATE books SET amount = amount + 1 WHERE id = \(order[1])")
                        }
                    }
                }
                try await group.waitForAll()
            }
            #expect(try await Self.amounts(pool) == [2, 2])
            #expect(pool.statistics.retriedTransactions == 1)
        }
    }

    @Test("a commit whose answer was lost is unknown, though it happened")
    func commitAnswerLost() async throws {
        let cluster = try await PostgresCluster.shared()
        try await withPool { direct async throws in
            try await Self.prepare(direct)
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
                #expect(try await Self.amounts(direct) == [7, 7])
                #expect(pool.statistics.unknownCommits == 1)
                proxy.setFault(.none)
                #expect(try await Self.amounts(pool) == [7, 7])
            }
        }
    }

    @Test("a commit that gets no answer in time is unknown, though it never arrived")
    func commitLost() async throws {
        let cluster = try await PostgresCluster.shared()
        try await withPool { direct async throws in
            try await Self.prepare(direct)
            let database = try await direct.value("SELECT current_database()", as: String.self)
            let proxy = try FaultyProxy(target: cluster.port, fault: .hangAt("COMMIT\u{0}"))
            defer { proxy.stop() }
            let configuration = PostgresConfiguration(connectionString: proxy.connectionString + " dbname=\(database)")
            try await withPool(configuration) { pool async throws in
                let failure = await code {
                    try await pool.withTransaction(deadline: .now + .milliseconds(700)) {
                        _ = try await $0.query("UPDATE books SET amount = 7")
                    }
                }
                #expect(failure == .commitUnknown)
                #expect(try await Self.amounts(direct) == [0, 0])
            }
        }
    }

    @Test("a session that is ended while it commits leaves an unknown outcome")
    func terminatedCommit() async throws {
        try await withPool { pool async throws in
            try await Self.prepare(pool)
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
            #expect(try await Self.amounts(pool) == [0, 0])
        }
    }

    @Test("a cancelled task's transaction is rolled back and its connection not reused half-way")
    func cancellation() async throws {
        try await withPool(maximumConnections: 1) { pool async throws in
            try await Self.prepare(pool)
            let task = Task {
                try await pool.withTransaction { connection in
                    _ = try await connection.query("UPDATE books SET amount = 7")
                    _ = try await connection.query("SELECT pg_sleep(30)")
                }
            }
            try await eventually { pool.statistics.inUse == 1 }
            task.cancel()
            await #expect(throws: CancellationError.self) { try await task.value }
            #expect(try await Self.amounts(pool) == [0, 0])
        }
    }

    @Test("without prepared statements the limits are set for the transaction alone")
    func localLimits() async throws {
        try await withPool(maximumConnections: 1, configure: { $0.usesPreparedStatements = false }) {
            pool async throws in
            let inside = try await pool.withTransaction { connection in
                try await connection.query("SHOW statement_timeout")[0].decode(String.self)
            }
            #expect(inside == "15s")
            #expect(try await pool.value("SHOW statement_timeout", as: String.self) == "0")
        }
        try await withPool(maximumConnections: 1) { pool async throws in
            #expect(try await pool.value("SHOW statement_timeout", as: String.self) == "15s")
            #expect(try await pool.value("SHOW idle_in_transaction_session_timeout", as: String.self) == "1min")
        }
    }
}
