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

    @Test("the transaction begins with the first statement, whatever that is, and without one there is none")
    func firstStatement() async throws {
        try await withPool(maximumConnections: 1) { pool async throws in
            try await Self.prepare(pool)
            #expect(try await pool.withTransaction { _ in 7 } == 7)
            await #expect(throws: Refused.self) {
                try await pool.withTransaction { connection in
                    try await connection.executeScript("UPDATE books SET amount = 1; UPDATE books SET amount = 2")
                    throw Refused()
                }
            }
            await #expect(throws: Refused.self) {
                try await pool.withTransaction { connection in
                    let results = try await connection.pipeline(["UPDATE books SET amount = 1", "SELECT 5"])
                    #expect(results.count == 2)
                    #expect(try results[1][0].decode(Int.self) == 5)
                    throw Refused()
                }
            }
            // The first statement fails, and the body goes on all the same.
            let failure = await code {
                try await pool.withTransaction { connection in
                    _ = try? await connection.query("SELECT 1/0")
                    _ = try? await connection.query("UPDATE books SET amount = 3")
                }
            }
            #expect(failure == .server(sqlState: "25P02"))
            #expect(try await Self.amounts(pool) == [0, 0])
            #expect(pool.statistics.open == 1)
        }
    }

    @Test("statements of several tasks are all within the transaction, whichever comes first")
    func concurrentFirstStatements() async throws {
        try await withPool(maximumConnections: 1) { pool async throws in
            try await Self.prepare(pool)
            for _ in 0..<50 {
                await #expect(throws: Refused.self) {
                    try await pool.withTransaction { connection in
                        try await withThrowingTaskGroup(of: Void.self) { group in
                            for id in [1, 2] {
                                group.addTask {
                                    _ = try await connection.query("UPDATE books SET amount = 1 WHERE id = \(id)")
                                }
                            }
                            try await group.waitForAll()
                        }
                        throw Refused()
                    }
                }
            }
            #expect(try await Self.amounts(pool) == [0, 0])
        }
    }

    @Test("a first statement that came too late takes its transaction with it")
    func lateFirstStatement() async throws {
        try await withPool(maximumConnections: 1) { pool async throws in
            try await Self.prepare(pool)
            let failure = await error {
                try await pool.withTransaction(deadline: .now + .milliseconds(50)) { connection in
                    try await Task.sleep(for: .milliseconds(60))
                    _ = try? await connection.query("UPDATE books SET amount = 3")
                    _ = try? await connection.query("UPDATE books SET amount = 4")
                }
            }
            #expect(failure != nil && failure?.code != .commitUnknown)
            #expect(try await Self.amounts(pool) == [0, 0])
        }
    }

    private actor Till {
        var count = 0
        func take(_ pool: PostgresPool) async throws -> Int {
            try await pool.withTransaction { connection in
                count += try await connection.query("SELECT 1")[0].decode(Int.self)
            }
            return count
        }
    }

    @Test("an actor may change its own state in the body")
    func actors() async throws {
        try await withPool(maximumConnections: 1) { pool async throws in
            let till = Till()
            #expect(try await till.take(pool) == 1)
            #expect(try await till.take(pool) == 2)
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

    @Test("when no try is left, the error itself comes out; other errors are never tried again (Q8)")
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

    @Test("two transactions in a deadlock both succeed, because one of them is tried again (Q8)")
    func deadlock() async throws {
        try await withPool(ownDatabase: true) { pool async throws in
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
            // More than once where the second try takes its row before the first transaction is woken.
            #expect(pool.statistics.retriedTransactions >= 1)
            // And other tests would see one of theirs.
            let name = try await pool.query("SELECT current_database()").first?.decode(String.self)
            let met = try await PostgresCluster.shared().deadlocks(in: "dbname=\(try #require(name))")
            #expect(met.count >= 1)
            #expect(met.first?.contains("UPDATE books") == true)
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

    @Test("without prepared statements the limits are set for the transaction alone (Q11)")
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
