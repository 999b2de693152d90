import Testing

@testable import Postgres

@Suite("prepared statements")
struct StatementCacheTests {
    private func key(_ sql: String) -> StatementKey { StatementKey(sql: sql, types: []) }

    @Test("the least recently used statement makes room and is dropped at the server later")
    func eviction() {
        var cache = StatementCache(limit: 2)
        cache.insert(key("a"), name: "s1")
        cache.insert(key("b"), name: "s2")
        #expect(cache.name(for: key("a")) == "s1")
        cache.insert(key("c"), name: "s3")
        #expect(cache.name(for: key("b")) == nil)
        #expect(cache.name(for: key("a")) == "s1")
        #expect(cache.takeDiscarded() == ["s2"])
        #expect(cache.takeDiscarded() == [])
    }

    @Test("the same text with other types is another statement")
    func types() {
        var cache = StatementCache(limit: 9)
        cache.insert(StatementKey(sql: "a", types: [20]), name: "s1")
        #expect(cache.name(for: StatementKey(sql: "a", types: [23])) == nil)
    }

    private static let prepared: PostgresQuery =
        "SELECT count(*) FROM pg_prepared_statements WHERE statement LIKE '%needle%' AND statement NOT LIKE '%pg_prep%'"

    @Test("a statement is prepared once, however often it runs")
    func reuse() async throws {
        try await withPool(maximumConnections: 1) { pool async throws in
            for number in 0..<5 { _ = try await pool.query("SELECT \(number) AS needle") }
            #expect(try await pool.value(Self.prepared, as: Int.self) == 1)
            _ = try await pool.query("SELECT \(true) AS needle")
            #expect(try await pool.value(Self.prepared, as: Int.self) == 2)
        }
    }

    @Test("the server never keeps many more statements than the limit")
    func limit() async throws {
        try await withPool(maximumConnections: 1, configure: { $0.maximumPreparedStatements = 5 }) {
            pool async throws in
            for number in 0..<40 { _ = try await pool.query("SELECT \(unescaped: "\(number)") AS needle") }
            #expect(try await pool.value(Self.prepared, as: Int.self) <= 5)
            let many: [PostgresQuery] = (0..<20).map { "SELECT \(unescaped: "\($0)") AS needle" }
            let results = try await pool.withConnection { try await $0.pipeline(many + many) }
            #expect(try results.map { try $0[0].decode(Int.self) } == Array(0..<20) + Array(0..<20))
            #expect(try await pool.value(Self.prepared, as: Int.self) <= 5)
        }
    }

    @Test("without prepared statements nothing stays at the server (Q11)")
    func unprepared() async throws {
        try await withPool(maximumConnections: 1, configure: { $0.usesPreparedStatements = false }) {
            pool async throws in
            for number in 0..<5 { #expect(try await pool.value("SELECT \(number) AS needle", as: Int.self) == number) }
            let results = try await pool.withConnection { try await $0.pipeline(["SELECT \(1)", "SELECT \("x")"]) }
            #expect(try results[1][0].decode(String.self) == "x")
            #expect(try await pool.value("SELECT count(*) FROM pg_prepared_statements", as: Int.self) == 0)
        }
    }

    @Test("a statement that an altered table has outdated, or that the server has lost, is prepared anew")
    func outdated() async throws {
        try await withPool(maximumConnections: 1) { pool async throws in
            _ = try await pool.query("CREATE TABLE moved (a int8)")
            #expect(try await pool.query("SELECT * FROM moved").columns == ["a"])
            _ = try await pool.query("ALTER TABLE moved ADD b int8")
            #expect(try await pool.query("SELECT * FROM moved").columns == ["a", "b"])
            try await pool.withConnection { try await $0.executeScript("DISCARD ALL") }
            #expect(try await pool.query("SELECT * FROM moved").columns == ["a", "b"])
        }
    }

    @Test("within a transaction an outdated statement fails the transaction, which is not run twice by half")
    func outdatedInTransaction() async throws {
        try await withPool(maximumConnections: 1) { pool async throws in
            _ = try await pool.query("CREATE TABLE moved (a int8)")
            _ = try await pool.query("SELECT * FROM moved")
            _ = try await pool.query("ALTER TABLE moved ADD b int8")
            let failure = await code {
                try await pool.withTransaction { _ = try await $0.query("SELECT * FROM moved") }
            }
            #expect(failure == .server(sqlState: "0A000"))
            let columns = try await pool.withTransaction { try await $0.query("SELECT * FROM moved").columns }
            #expect(columns == ["a", "b"])
            #expect(try await pool.query("SELECT * FROM moved").columns == ["a", "b"])
        }
    }
}
