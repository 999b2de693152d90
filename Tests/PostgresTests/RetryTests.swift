import TestKit
import Testing

@testable import Postgres

@Suite("how often a transaction is tried again")
struct RetryTests {
    @Test("Q8: one that meets a conflict each time is run four times at most, where nobody says how often")
    func byDefault() async throws {
        try await withPool { pool async throws in
            _ = try await pool.query("CREATE TABLE books (id int8 PRIMARY KEY, amount int8 NOT NULL)")
            _ = try await pool.query("INSERT INTO books VALUES (1, 0)")
            let runs = Shared(0)
            let failure = await code {
                try await pool.withTransaction(isolation: .repeatableRead) { connection in
                    runs.change { $0 += 1 }
                    _ = try await connection.query("SELECT amount FROM books WHERE id = 1")
                    _ = try await pool.query("UPDATE books SET amount = amount + 100 WHERE id = 1")
                    _ = try await connection.query("UPDATE books SET amount = amount + 1 WHERE id = 1")
                }
            }
            #expect(failure == .server(sqlState: "40001"))
            #expect(runs.value == 4)
            #expect(pool.statistics.retriedTransactions == 3)
        }
    }

    @Test("Q8: the pause before each try grows to a limit, and chance spreads it over its second half")
    func pauses() {
        let longest = [5, 10, 20, 40, 80, 160, 160, 160]
        for (index, milliseconds) in longest.enumerated() {
            let whole = Duration.milliseconds(milliseconds)
            #expect(PostgresPool.pause(beforeRetry: index + 1, spread: 0) == whole / 2)
            #expect(PostgresPool.pause(beforeRetry: index + 1, spread: 1) == whole)
        }
    }
}
