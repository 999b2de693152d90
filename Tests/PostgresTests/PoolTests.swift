import Foundation
import Postgres
import Testing

@Suite("the pool serves")
struct PoolTests {
    /// Holds the pool's only connection until the returned closure is called.
    private func occupy(_ pool: PostgresPool) async throws -> @Sendable () async throws -> Void {
        let (stream, continuation) = AsyncStream<Void>.makeStream()
        let holder = Task { try await pool.withConnection { _ in for await _ in stream {} } }
        try await eventually { pool.statistics.inUse == 1 }
        return {
            continuation.finish()
            try await holder.value
        }
    }

    @Test("nothing is opened before somebody asks")
    func laziness() async throws {
        try await withPool { pool async throws in
            #expect(pool.statistics.open == 0)
            _ = try await pool.query("SELECT 1")
            #expect(pool.statistics.open == 1)
        }
    }

    @Test("one waiter too many is refused at once, and the others are served")
    func waitingLimit() async throws {
        try await withPool(maximumConnections: 1, configure: { $0.maximumWaiters = 2 }) { pool async throws in
            let release = try await occupy(pool)
            async let first = pool.value("SELECT 1", as: Int.self)
            async let second = pool.value("SELECT 2", as: Int.self)
            try await eventually { pool.statistics.waiting == 2 }
            #expect(await code { _ = try await pool.query("SELECT 3") } == .poolExhausted)
            try await release()
            #expect(try await [first, second] == [1, 2])
            #expect(pool.statistics.refused == 1)
        }
    }

    @Test("who waits for a connection waits no longer than the limit, nor than its own deadline")
    func deadlines() async throws {
        try await withPool(maximumConnections: 1, configure: { $0.acquireTimeout = .seconds(2) }) {
            pool async throws in
            let release = try await occupy(pool)
            let clock = ContinuousClock()
            let own = await clock.measure {
                #expect(
                    await code { _ = try await pool.query("SELECT 1", deadline: .now + .milliseconds(50)) }
                        == .acquireTimedOut)
            }
            let limit = await clock.measure {
                #expect(await code { _ = try await pool.query("SELECT 1") } == .acquireTimedOut)
            }
            #expect(own >= .milliseconds(50) && own < .seconds(2))
            #expect(limit >= .seconds(2))
            #expect(await code { _ = try await pool.query("SELECT 1", deadline: .now) } == .acquireTimedOut)
            #expect(pool.statistics.timedOut == 3)
            try await release()
            #expect(try await pool.value("SELECT 1", as: Int.self) == 1)
        }
    }

    @Test("waiters are served in the order in which they came")
    func fairness() async throws {
        try await withPool(maximumConnections: 1) { pool async throws in
            let release = try await occupy(pool)
            let served = Shared<[Int]>([])
            try await withThrowingTaskGroup(of: Void.self) { group in
                for number in 0..<20 {
                    group.addTask {
                        try await pool.withConnection { _ in served.change { $0.append(number) } }
                    }
                    try await eventually { pool.statistics.waiting == number + 1 }
                }
                try await release()
                try await group.waitForAll()
            }
            #expect(served.value == Array(0..<20))
        }
    }

    @Test("a cancelled waiter leaves the queue at once")
    func cancelledWaiter() async throws {
        try await withPool(maximumConnections: 1) { pool async throws in
            let release = try await occupy(pool)
            let waiter = Task { try await pool.value("SELECT 1", as: Int.self) }
            try await eventually { pool.statistics.waiting == 1 }
            waiter.cancel()
            await #expect(throws: CancellationError.self) { try await waiter.value }
            #expect(pool.statistics.waiting == 0)
            let late = Task {
                withUnsafeCurrentTask { $0?.cancel() }
                return try await pool.value("SELECT 1", as: Int.self)
            }
            await #expect(throws: CancellationError.self) { try await late.value }
            try await release()
            #expect(try await pool.value("SELECT 1", as: Int.self) == 1)
        }
    }

    @Test("a cancelled statement is stopped at the server, and its connection replaced")
    func cancelledStatement() async throws {
        try await withPool(maximumConnections: 2, ownDatabase: true) { pool async throws in
            let task = Task { try await pool.query("SELECT pg_sleep(60), 'cancelled'") }
            let isRunning: @Sendable () async throws -> Bool = {
                try await pool.value(
                    """
                    SELECT count(*) > 0 FROM pg_stat_activity
                    WHERE datname = current_database() AND query LIKE '%''cancelled%' AND pid <> pg_backend_pid()
                        AND state = 'active'
                    """, as: Bool.self)
            }
            try await eventually { try await isRunning() }
            task.cancel()
            await #expect(throws: CancellationError.self) { try await task.value }
            try await eventually { try await !isRunning() }
            #expect(pool.statistics.inUse == 0)
        }
    }

    @Test("tasks cancelled at any moment neither lose nor mix up connections")
    func cancellationStorm() async throws {
        try await withPool(maximumConnections: 3) { pool async throws in
            await withTaskGroup(of: Void.self) { group in
                for number in 0..<300 {
                    group.addTask {
                        let task = Task {
                            let answer = try await pool.value("SELECT \(number)", as: Int.self)
                            #expect(answer == number)
                        }
                        for _ in 0..<(number % 50) { await Task.yield() }
                        if number % 3 != 0 { task.cancel() }
                        do {
                            try await task.value
                        } catch is CancellationError {
                        } catch {
                            Issue.record(error)
                        }
                    }
                }
            }
            try await eventually { pool.statistics.inUse == 0 && pool.statistics.waiting == 0 }
            #expect(pool.statistics.open <= 3)
            for number in 0..<10 { #expect(try await pool.value("SELECT \(number)", as: Int.self) == number) }
        }
    }

    @Test("the server's limit ends a statement, and the connection lives on (Q6)")
    func statementTimeout() async throws {
        try await withPool(maximumConnections: 1, configure: { $0.statementTimeout = .milliseconds(200) }) {
            pool async throws in
            let pid = try await pool.value("SELECT pg_backend_pid()", as: Int.self)
            let failure = await error { _ = try await pool.query("SELECT pg_sleep(20)") }
            #expect(failure?.code == .timedOut)
            #expect(failure?.sqlState == "57014")
            #expect(failure?.mayHaveExecuted == false)
            #expect(try await pool.value("SELECT pg_backend_pid()", as: Int.self) == pid)
        }
    }

    @Test(
        "who waits for another's lock is told after its own limit, and the connection lives on",
        arguments: [true, false])
    func lockTimeout(_ usesPreparedStatements: Bool) async throws {
        try await withPool(
            maximumConnections: 2,
            configure: {
                $0.lockTimeout = .milliseconds(50)
                $0.statementTimeout = .seconds(600)
                $0.usesPreparedStatements = usesPreparedStatements
            }
        ) { pool async throws in
            let key = Int64.random(in: 1..<Int64.max)
            try await pool.withTransaction { holder in
                _ = try await holder.query("SELECT pg_advisory_xact_lock(\(key))")
                let failure = await error {
                    try await pool.withTransaction { _ = try await $0.query("SELECT pg_advisory_xact_lock(\(key))") }
                }
                #expect(failure?.isLockNotAvailable == true)
            }
            try await pool.withTransaction { _ = try await $0.query("SELECT pg_advisory_xact_lock(\(key))") }
        }
    }

    @Test("the caller's deadline ends a statement on this side, and the connection with it (Q6)")
    func callerDeadline() async throws {
        try await withPool(maximumConnections: 1) { pool async throws in
            let pid = try await pool.value("SELECT pg_backend_pid()", as: Int.self)
            let begin = ContinuousClock.now
            let failure = await error {
                _ = try await pool.query("SELECT pg_sleep(20)", deadline: .now + .milliseconds(500))
            }
            #expect(failure?.code == .timedOut)
            #expect(failure?.mayHaveExecuted == true)
            #expect(ContinuousClock.now - begin < .seconds(15))
            #expect(try await pool.value("SELECT pg_backend_pid()", as: Int.self) != pid)
            try await eventually {
                try await pool.value(
                    "SELECT count(*) = 0 FROM pg_stat_activity WHERE pid = \(pid)", as: Bool.self)
            }
        }
    }

    @Test("a connection that was kept after its time is of no use")
    func keptConnection() async throws {
        try await withPool(maximumConnections: 1) { pool async throws in
            let kept = try await pool.withConnection { $0 }
            #expect(await code { _ = try await kept.query("SELECT 1") } == .shutDown)
        }
    }

    @Test("a connection that goes back while somebody still waits on it is not given to another")
    func busyReturn() async throws {
        try await withPool(maximumConnections: 2) { pool async throws in
            let (pid, straggler) = try await pool.withConnection { connection in
                let pid = try await connection.query("SELECT pg_backend_pid()")[0].decode(Int.self)
                let task = Task { try await connection.query("SELECT pg_sleep(30)") }
                try await eventually {
                    try await pool.value(
                        "SELECT count(*) = 1 FROM pg_stat_activity WHERE pid = \(pid) AND wait_event = 'PgSleep'",
                        as: Bool.self)
                }
                return (pid, task)
            }
            await #expect(throws: PostgresError.self) { try await straggler.value }
            try await eventually {
                try await pool.value("SELECT count(*) = 0 FROM pg_stat_activity WHERE pid = \(pid)", as: Bool.self)
            }
        }
    }

    @Test("an idle connection is checked after a while, and replaced when it says nothing")
    func idleCheck() async throws {
        try await withPool(maximumConnections: 1, configure: { $0.idleCheckInterval = .zero }) { pool async throws in
            let pid = try await pool.value("SELECT pg_backend_pid()", as: Int.self)
            for _ in 0..<3 { #expect(try await pool.value("SELECT pg_backend_pid()", as: Int.self) == pid) }
            #expect(pool.statistics.connectFailures == 0)
        }
    }

    @Test("shutting down lets running work end and refuses new work")
    func shutdown() async throws {
        try await withPool(maximumConnections: 2) { pool async throws in
            let release = try await occupy(pool)
            async let end: Void = pool.shutdown()
            try await eventually {
                await code { _ = try await pool.query("SELECT 1") } == .shutDown
            }
            #expect(pool.statistics.inUse == 1)
            try await release()
            await end
            #expect(pool.statistics.open == 0)
            await pool.shutdown()
        }
    }

    @Test("shutting down cuts off what doesn't end in time")
    func forcedShutdown() async throws {
        try await withPool(maximumConnections: 2) { pool async throws in
            let slow = Task { try await pool.query("SELECT pg_sleep(60)") }
            try await eventually { pool.statistics.inUse == 1 }
            let begin = ContinuousClock.now
            await pool.shutdown(limit: .milliseconds(100))
            await #expect(throws: PostgresError.self) { try await slow.value }
            #expect(ContinuousClock.now - begin < .seconds(30))
        }
    }

    @Test("a connection string that can't be read is told when it is used, without the password")
    func unreadable() async throws {
        let pool = PostgresPool(PostgresConfiguration(connectionString: "password=geheim hots=nowhere"))
        let failure = await error { _ = try await pool.query("SELECT 1") }
        #expect(failure?.code == .connectionFailed)
        #expect(failure?.message.contains("hots") == true)
        #expect(failure.map { "\($0)" }?.contains("geheim") == false)
        await pool.shutdown()
        for string in ["postgres//app:geheim@host/db", "postgresql://app:geheim%zz@host", "host=a password='geheim"] {
            let pool = PostgresPool(PostgresConfiguration(connectionString: string))
            let failure = await error { _ = try await pool.query("SELECT 1") }
            #expect(failure?.code == .connectionFailed)
            #expect(failure.map { String(reflecting: $0) }?.contains("geheim") == false)
        }
    }
}
