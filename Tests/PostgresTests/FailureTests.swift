import Foundation
import Postgres
import TestKit
import Testing

@Suite("when the database goes away")
struct FailureTests {
    @Test("a crash in the middle of statements is a lost connection, and the pool recovers by itself")
    func crash() async throws {
        let cluster = try await PostgresCluster.startOwn()
        var configuration = PostgresConfiguration(connectionString: try await cluster.makeDatabase())
        configuration.acquireTimeout = .seconds(2)
        try await withPool(configuration) { pool async throws in
            _ = try await pool.query("CREATE TABLE survived (n int8)")
            let sleepers = (0..<5).map { _ in
                Task { await error { _ = try await pool.query("SELECT pg_sleep(60)") } }
            }
            try await eventually {
                try await pool.value(
                    "SELECT count(*) = 5 FROM pg_stat_activity WHERE wait_event = 'PgSleep'", as: Bool.self)
            }
            try await cluster.stop(mode: .immediate)
            for sleeper in sleepers {
                let failure = await sleeper.value
                #expect(failure?.code == .connectionLost(mayHaveExecuted: true))
                #expect(failure?.query == "SELECT pg_sleep(60)")
            }
            try await eventually { pool.statistics.open == 0 }

            let begin = ContinuousClock.now
            let unreachable = await error { _ = try await pool.query("SELECT 1") }
            #expect(unreachable?.code == .connectionFailed)
            #expect(ContinuousClock.now - begin < .seconds(20))
            #expect(pool.statistics.connectFailures > 1)

            // Somebody who waits while the server comes back is served.
            configuration.acquireTimeout = .seconds(20)
            try await withPool(configuration) { patientPool async throws in
                async let patient = patientPool.value("SELECT 42", as: Int.self)
                try await eventually { patientPool.statistics.connectFailures > 1 }
                try await cluster.start()
                #expect(try await patient == 42)
            }
            #expect(try await pool.value("SELECT count(*) FROM survived", as: Int.self) == 0)
        }
    }

    @Test("a session that an operator ends is a lost connection, and the next statement has a new one")
    func terminated() async throws {
        try await withPool(maximumConnections: 2, ownDatabase: true) { pool async throws in
            let sleeper = Task { await error { _ = try await pool.query("SELECT pg_sleep(60), 'victim'") } }
            try await eventually {
                try await pool.query(
                    """
                    SELECT pg_terminate_backend(pid) FROM pg_stat_activity
                    WHERE datname = current_database() AND query LIKE '%''victim%' AND wait_event = 'PgSleep'
                    """
                ).count == 1
            }
            let failure = await sleeper.value
            #expect(failure?.code == .connectionLost(mayHaveExecuted: true))
            #expect(failure?.sqlState == "57P01")
            #expect(try await pool.value("SELECT 1", as: Int.self) == 1)
        }
    }

    @Test("a session that ends while it is idle is noticed, and nobody gets it")
    func terminatedIdle() async throws {
        try await withPool(maximumConnections: 3, ownDatabase: true) { pool async throws in
            for _ in 0..<8 {
                _ = try await pool.withConnection { connection in
                    // A second and a third connection, idle afterwards.
                    try await pool.withConnection { _ in _ = try await pool.query("SELECT 1") }
                    return try await connection.query(
                        """
                        SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity
                        WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'
                        """)
                }
                try await eventually { pool.statistics.open == 1 }
                #expect(try await pool.value("SELECT 1", as: Int.self) == 1)
            }
            #expect(pool.statistics.connectFailures == 0)
        }
    }

    @Test("a connection that turned out read-only is not used again")
    func readOnly() async throws {
        try await withPool(maximumConnections: 1) { pool async throws in
            _ = try await pool.query("CREATE TABLE books (n int8)")
            let pid = try await pool.value("SELECT pg_backend_pid()", as: Int.self)
            let failure = await code {
                try await pool.withConnection { connection in
                    _ = try await connection.query("SET default_transaction_read_only = on")
                    _ = try await connection.query("INSERT INTO books VALUES (1)")
                }
            }
            #expect(failure == .server(sqlState: "25006"))
            #expect(try await pool.value("SELECT pg_backend_pid()", as: Int.self) != pid)
            _ = try await pool.query("INSERT INTO books VALUES (1)")
        }
    }

    @Test("of several hosts the one that takes writes is found, past a closed one and one that says nothing")
    func severalHosts() async throws {
        let primary = try await PostgresCluster.shared()
        let standby = try await PostgresCluster.startOwn(settings: ["default_transaction_read_only": "on"])
        let silent = try FaultyProxy(target: primary.port, fault: .silence)
        defer { silent.stop() }
        let ports = "1,\(silent.port),\(standby.port),\(primary.port)"
        var configuration = PostgresConfiguration(
            connectionString:
                "host=127.0.0.1,127.0.0.1,127.0.0.1,127.0.0.1 port=\(ports) user=postgres dbname=postgres")
        configuration.connectTimeout = .milliseconds(300)
        configuration.acquireTimeout = .seconds(30)
        try await withPool(configuration) { pool async throws in
            let found = try await pool.value("SELECT current_setting('port')::int4", as: Int.self)
            #expect(found == Int(primary.port))
            // From now on the one that answered is asked first.
            let before = silent.accepted
            try await pool.withConnection { _ in _ = try await pool.query("SELECT 1") }
            #expect(pool.statistics.open == 2)
            #expect(silent.accepted == before && before > 0)
        }
        configuration.connectionString = configuration.connectionString.replacingOccurrences(
            of: ",\(primary.port)", with: ",1")
        configuration.acquireTimeout = .seconds(4)
        try await withPool(configuration) { pool async throws in
            let failure = await error { _ = try await pool.query("SELECT 1") }
            #expect(failure?.code == .connectionFailed)
            #expect(failure?.message.contains("read-only") == true)
        }
        try await standby.stop()
    }

    @Test("a line that goes dead is given up at the deadline, and found dead by the check before it is used again")
    func deadLine() async throws {
        let cluster = try await PostgresCluster.shared()
        let proxy = try FaultyProxy(target: cluster.port, fault: .none)
        defer { proxy.stop() }
        var configuration = PostgresConfiguration(connectionString: proxy.connectionString + " dbname=postgres")
        configuration.maximumConnections = 1
        configuration.idleCheckInterval = .zero
        try await withPool(configuration) { pool async throws in
            let pid = try await pool.value("SELECT pg_backend_pid()", as: Int.self)
            proxy.setFault(.hangAt("pg_sleep"))
            let failure = await error {
                _ = try await pool.query("SELECT pg_sleep(0)", deadline: .now + .milliseconds(500))
            }
            #expect(failure?.code == .timedOut)
            #expect(failure?.mayHaveExecuted == true)
            #expect(try await pool.value("SELECT pg_backend_pid()", as: Int.self) != pid)

            // The check hangs; when its time is over a new connection is opened for whoever waits.
            proxy.setFault(.hangAt("SELECT 1\u{0}"))
            let next = try await pool.value("SELECT pg_backend_pid()", as: Int.self)
            #expect(next != pid)
        }
    }

    @Test("over TLS, with the certificate checked, large pipelines and cancellations work as well")
    func tls() async throws {
        let cluster = try await PostgresCluster.startOwn(withTLS: true)
        let plain = cluster.connectionString(database: "postgres", overTCP: true)
        var configuration = PostgresConfiguration(
            connectionString: plain + " sslmode=verify-full sslrootcert=\(cluster.certificate)")
        configuration.maximumConnections = 1
        try await withPool(configuration) { pool async throws in
            #expect(try await pool.value("SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()", as: Bool.self))
            let block = Data(repeating: 1, count: 200_000)
            let results = try await pool.withConnection { connection in
                try await connection.pipeline((0..<100).map { _ in "SELECT \(block)" })
            }
            #expect(try results.allSatisfy { try $0[0].decode(Data.self) == block })
            let failure = await code {
                _ = try await pool.query("SELECT pg_sleep(20)", deadline: .now + .seconds(1))
            }
            #expect(failure == .timedOut)
            #expect(try await pool.value("SELECT 1", as: Int.self) == 1)
        }
        try await eventually { cluster.serverLog.contains("canceling statement due to user request") }
        try await cluster.stop()
    }

    @Test("a pool that is dropped without being shut down closes its connections")
    func dropped() async throws {
        let cluster = try await PostgresCluster.shared()
        let database = try await cluster.makeDatabase()
        var configuration = PostgresConfiguration(connectionString: database)
        configuration.applicationName = "dropped"
        do {
            let pool = PostgresPool(configuration)
            _ = try await pool.query("SELECT 1")
        }
        configuration.applicationName = "watcher"
        try await withPool(configuration) { pool async throws in
            try await eventually {
                try await pool.value(
                    "SELECT count(*) = 0 FROM pg_stat_activity WHERE application_name = 'dropped'", as: Bool.self)
            }
        }
    }
}
