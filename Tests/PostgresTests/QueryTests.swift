import Foundation
import Postgres
import Testing

@Suite("statements")
struct QueryTests {
    @Test("what is interpolated is never SQL")
    func injection() async throws {
        try await withPool { pool async throws in
            _ = try await pool.query("CREATE TABLE orders (id int8 PRIMARY KEY, reference text)")
            let attack = "x'); DROP TABLE orders; --"
            _ = try await pool.query("INSERT INTO orders VALUES (\(1), \(attack))")
            let found = try await pool.query("SELECT reference FROM orders WHERE reference = \(attack)")
            #expect(try found.map { try $0.decode(String.self) } == [attack])
            let none = try await pool.query("SELECT 1 FROM orders WHERE reference = \("' OR '1'='1")")
            #expect(none.isEmpty)
            #expect(none.first == nil)
        }
    }

    @Test("rows come in order, with counts of what was touched")
    func rows() async throws {
        try await withPool(maximumConnections: 1) { pool async throws in
            let rows = try await pool.query("SELECT n, n::text FROM generate_series(1, 50000) AS n")
            #expect(rows.count == 50000)
            for (place, row) in rows.enumerated() {
                let (number, text) = try row.decode((Int, String).self)
                guard number == place + 1, text == "\(number)" else {
                    Issue.record("row \(place) is \(number)")
                    break
                }
            }
            _ = try await pool.query("CREATE TABLE counted (n int8)")
            let inserted = try await pool.query("INSERT INTO counted SELECT generate_series(1, 7)")
            #expect(inserted.affected == 7)
            #expect(try await pool.query("UPDATE counted SET n = 0 WHERE n > \(4)").affected == 3)
            #expect(try await pool.query("DELETE FROM counted").affected == 7)
            #expect(try await pool.query("CREATE TABLE other ()").affected == 0)
        }
    }

    @Test("an error has its SQLSTATE, its constraint and its statement, and its description has no data")
    func errors() async throws {
        try await withPool(maximumConnections: 1) { pool async throws in
            _ = try await pool.query(
                "CREATE TABLE people (mail text CONSTRAINT one_mail UNIQUE, age int8 CONSTRAINT adult CHECK (age >= 18))"
            )
            _ = try await pool.query("INSERT INTO people VALUES (\("ann@example.com"), 20)")
            let twice = await error {
                _ = try await pool.query(
                    """

                      INSERT INTO people
                      VALUES (\("ann@example.com"), 30)
                    """)
            }
            #expect(twice?.code == .server(sqlState: "23505"))
            #expect(twice?.isUniqueViolation() == true)
            #expect(twice?.isUniqueViolation(constraint: "one_mail") == true)
            #expect(twice?.isUniqueViolation(constraint: "another") == false)
            #expect(twice?.table == "people")
            #expect(twice?.query == "INSERT INTO people")
            #expect(twice?.detail?.contains("ann@example.com") == true)
            #expect(twice.map { "\($0)" }?.contains("ann@") == false)
            #expect(twice?.describe(includingData: true).contains("ann@") == true)
            var dumped = ""
            dump(twice, to: &dumped)
            dump("SELECT \("ann@example.com")" as PostgresQuery, to: &dumped)
            #expect(!dumped.contains("ann@") && !dumped.contains("97"))

            let check = await error { _ = try await pool.query("INSERT INTO people VALUES ('b', 3)") }
            #expect(check?.isCheckViolation(constraint: "adult") == true)
            let input = await error { _ = try await pool.query("SELECT \("4111 1111 1111 1111")::uuid") }
            #expect(input?.sqlState == "22P02")
            #expect(input.map { "\($0)" }?.contains("4111") == false)
            #expect(input?.message.contains("4111") == true)
        }
    }

    @Test("an error leaves the connection as good as it was")
    func afterError() async throws {
        try await withPool(maximumConnections: 1) { pool async throws in
            let before = try await pool.value("SELECT pg_backend_pid()", as: Int.self)
            for _ in 0..<3 {
                #expect(await code { _ = try await pool.query("SELECT 1/0") } == .server(sqlState: "22012"))
                #expect(await code { _ = try await pool.query("SELEKT") } == .server(sqlState: "42601"))
            }
            #expect(try await pool.value("SELECT pg_backend_pid()", as: Int.self) == before)
        }
    }

    @Test("a pipeline of 1,000 inserts is done and answered in order")
    func pipeline() async throws {
        try await withPool(maximumConnections: 1) { pool async throws in
            _ = try await pool.query("CREATE TABLE lines (n int8 PRIMARY KEY, body bytea)")
            let body = Data(repeating: 7, count: 3000)
            let results = try await pool.withConnection { connection in
                try await connection.pipeline(
                    (0..<1000).map { "INSERT INTO lines VALUES (\($0), \(body)) RETURNING n" })
            }
            #expect(try results.map { try $0[0].decode(Int.self) } == Array(0..<1000))
            #expect(try await pool.value("SELECT count(*) FROM lines", as: Int.self) == 1000)
            #expect(try await pool.withConnection { try await $0.pipeline([]).count } == 0)
        }
    }

    @Test("one failure in a pipeline undoes all of it, and the connection goes on")
    func failingPipeline() async throws {
        try await withPool(maximumConnections: 1) { pool async throws in
            _ = try await pool.query("CREATE TABLE lines (n int8 PRIMARY KEY)")
            let queries: [PostgresQuery] = (0..<1000).map { "INSERT INTO lines VALUES (\($0 == 500 ? 3 : $0))" }
            try await pool.withConnection { connection in
                let pid = try await connection.query("SELECT pg_backend_pid()")[0].decode(Int.self)
                let failure = await error { _ = try await connection.pipeline(queries) }
                #expect(failure?.isUniqueViolation(constraint: "lines_pkey") == true)
                #expect(try await connection.query("SELECT pg_backend_pid()")[0].decode(Int.self) == pid)
                #expect(try await connection.query("SELECT count(*) FROM lines")[0].decode(Int.self) == 0)
                let unprepared = await error { _ = try await connection.pipeline(["SELECT 1", "SELEKT", "SELECT 2"]) }
                #expect(unprepared?.sqlState == "42601")
                #expect(unprepared?.query == "SELEKT")
                #expect(try await connection.pipeline(["SELECT 1", "SELECT 2"])[1][0].decode(Int.self) == 2)
            }
        }
    }

    @Test("answers that are large both ways don't lock up a pipeline")
    func largePipeline() async throws {
        try await withPool(maximumConnections: 1) { pool async throws in
            let block = Data(repeating: 1, count: 200_000)
            let results = try await pool.withConnection { connection in
                try await connection.pipeline((0..<100).map { _ in "SELECT \(block)" })
            }
            #expect(try results.allSatisfy { try $0[0].decode(Data.self) == block })
        }
    }

    @Test("a script runs several statements as one, and says where it failed")
    func scripts() async throws {
        try await withPool(maximumConnections: 1) { pool async throws in
            try await pool.withConnection { connection in
                try await connection.executeScript(
                    "CREATE TABLE a (n int8); INSERT INTO a VALUES (1); SELECT * FROM a; INSERT INTO a VALUES (2);")
                #expect(try await connection.query("SELECT count(*) FROM a")[0].decode(Int.self) == 2)
                let failure = await error {
                    try await connection.executeScript(
                        "-- second\nINSERT INTO a VALUES (3);\nINSERT INTO missing VALUES (1);")
                }
                #expect(failure?.sqlState == "42P01")
                #expect(failure?.query == "-- second")
                #expect(failure?.position == 49)
                #expect(try await connection.query("SELECT count(*) FROM a")[0].decode(Int.self) == 2)
                try await connection.executeScript("")
                #expect(
                    await code { try await connection.executeScript("COPY a FROM STDIN") } == .server(sqlState: "0A000")
                )
            }
            #expect(try await pool.value("SELECT 1", as: Int.self) == 1)
        }
    }

    @Test("notices and notifications by the thousand disturb nobody")
    func notices() async throws {
        try await withPool(maximumConnections: 1) { pool async throws in
            _ = try await pool.query("LISTEN everything")
            try await pool.withConnection { connection in
                try await connection.executeScript(
                    "DO $$ BEGIN FOR i IN 1..5000 LOOP RAISE NOTICE 'spam %', repeat('x', 100); END LOOP; END $$")
                _ = try await connection.query(
                    "SELECT count(pg_notify('everything', n::text)) FROM generate_series(1, 5000) AS n")
            }
            #expect(try await pool.value("SELECT 1", as: Int.self) == 1)
        }
    }

    @Test("statements of several tasks on one connection run one after another, each with its own answer")
    func sharedConnection() async throws {
        try await withPool(maximumConnections: 1) { pool async throws in
            try await pool.withConnection { connection in
                try await withThrowingTaskGroup(of: (Int, Int).self) { group in
                    for number in 0..<200 {
                        group.addTask { (number, try await connection.query("SELECT \(number)")[0].decode(Int.self)) }
                    }
                    for try await (asked, answered) in group { #expect(asked == answered) }
                }
            }
        }
    }

    @Test("10,000 statements of 256 tasks over 8 connections, each with its own answer")
    func load() async throws {
        try await withPool(maximumConnections: 8) { pool async throws in
            try await withThrowingTaskGroup(of: Void.self) { group in
                for task in 0..<256 {
                    group.addTask {
                        for turn in 0..<40 {
                            let asked = task * 1000 + turn
                            let (number, text) = try await pool.query("SELECT \(asked), \("\(asked)")::text")[0]
                                .decode((Int, String).self)
                            guard number == asked, text == "\(asked)" else { throw CancellationError() }
                        }
                    }
                }
                try await group.waitForAll()
            }
            let statistics = pool.statistics
            #expect(statistics.acquired == 256 * 40)
            #expect(statistics.open <= 8 && statistics.connectFailures == 0)
        }
    }
}
