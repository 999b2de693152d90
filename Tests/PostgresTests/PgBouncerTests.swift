import Foundation
import Postgres
import TestKit
import Testing

@Suite("behind PgBouncer in transaction mode")
struct PgBouncerTests {
    @Test(
        "many tasks share few sessions, each with its own answers, limits and transactions (Q11)",
        .enabled(if: PgBouncer.program != nil, "needs pgbouncer"))
    func sharedSessions() async throws {
        let program = try #require(PgBouncer.program)
        let cluster = try await PostgresCluster.shared()
        try await withPool(ownDatabase: true) { direct async throws in
            _ = try await direct.query("CREATE TABLE books (id int8 PRIMARY KEY, amount int8 NOT NULL)")
            _ = try await direct.query("INSERT INTO books SELECT generate_series(1, 8), 0")
            let database = try await direct.value("SELECT current_database()", as: String.self)
            let bouncer = try PgBouncer(before: cluster, program: program, poolSize: 2)
            defer { bouncer.stop() }

            var configuration = PostgresConfiguration(
                connectionString: bouncer.connectionString(database: database))
            configuration.usesPreparedStatements = false
            configuration.maximumConnections = 8
            configuration.acquireTimeout = .seconds(20)
            try await withPool(configuration) { pool async throws in
                try await withThrowingTaskGroup(of: Void.self) { group in
                    for task in 1...8 {
                        group.addTask {
                            for turn in 1...20 {
                                #expect(
                                    try await pool.value("SELECT \(task * 1000 + turn)", as: Int.self) == task * 1000
                                        + turn)
                                try await pool.withTransaction { connection in
                                    let limit = try await connection.query("SHOW statement_timeout")[0]
                                    #expect(try limit.decode(String.self) == "15s")
                                    let results = try await connection.pipeline([
                                        "UPDATE books SET amount = amount + 1 WHERE id = \(task)",
                                        "SELECT amount FROM books WHERE id = \(task)",
                                    ])
                                    #expect(try results[1][0].decode(Int.self) == turn)
                                }
                            }
                        }
                    }
                    try await group.waitForAll()
                }
                let failure = await error { _ = try await pool.query("INSERT INTO books VALUES (1, 1)") }
                #expect(failure?.isUniqueViolation(constraint: "books_pkey") == true)
                let late = await code {
                    _ = try await pool.query("SELECT pg_sleep(30)", deadline: .now + .milliseconds(200))
                }
                #expect(late == .timedOut)
            }
            #expect(try await direct.value("SELECT sum(amount) FROM books", as: Int.self) == 160)
            #expect(
                try await direct.value(
                    "SELECT count(*) <= 4 FROM pg_stat_activity WHERE datname = current_database()", as: Bool.self))
            #expect(try await direct.value("SHOW statement_timeout", as: String.self) == "15s")
        }
    }
}
