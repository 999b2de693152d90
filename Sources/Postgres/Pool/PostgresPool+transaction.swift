/// How much of what others do at the same time a transaction sees (section 13.2 of PostgreSQL's manual).
public enum IsolationLevel: String, Sendable, CaseIterable {
    case readCommitted = "READ COMMITTED"
    case repeatableRead = "REPEATABLE READ"
    case serializable = "SERIALIZABLE"
}

extension PostgresPool {
    /// Runs `body` in a transaction: committed when it returns, rolled back when it throws.
    ///
    /// When PostgreSQL ends the transaction because of others (40001, 40P01), the whole of `body` runs again in a new
    /// one, after a short pause. So `body` must do nothing but database work.
    /// - Parameters:
    ///   - deadline: the end of all waiting, tries again included.
    ///   - retries: how often it may run again.
    /// - Throws: ``PostgresError``, `CancellationError`, or what `body` throws. With the code `commitUnknown` the
    ///   transaction may have been committed; with every other error it was not.
    public nonisolated(nonsending) func withTransaction<R: Sendable>(
        isolation: IsolationLevel = .readCommitted, deadline: ContinuousClock.Instant? = nil, retries: Int = 3,
        _ body: (PostgresConnection) async throws -> R
    ) async throws -> R {
        var attempt = 0
        while true {
            do {
                return try await withConnection(deadline: deadline) { connection in
                    try await Self.run(body, on: connection, isolation)
                }
            } catch let conflict as TransactionConflict {
                attempt += 1
                let pause = Self.pause(beforeRetry: attempt, spread: .random(in: 0...1))
                guard attempt <= retries, deadline.map({ .now + pause < $0 }) ?? true else { throw conflict.error }
                core.countRetry()
                try await Task.sleep(for: pause)
            } catch let error as PostgresError where error.code == .commitUnknown {
                core.countUnknownCommit()
                throw error
            }
        }
    }

    /// 5 ms, doubling up to 160 ms, times a random part between a half and the whole: two that met in a deadlock must
    /// not meet again in step.
    static func pause(beforeRetry attempt: Int, spread: Double) -> Duration {
        .milliseconds(5 << min(max(attempt, 1) - 1, 5)) * (0.5 + spread / 2)
    }

    private nonisolated(nonsending) static func run<R: Sendable>(
        _ body: (PostgresConnection) async throws -> R, on connection: PostgresConnection, _ isolation: IsolationLevel
    ) async throws -> R {
        connection.begin(isolation)
        let value: R
        do {
            value = try await body(connection)
        } catch {
            // `body` may have wrapped the error in one of its own.
            let conflict = connection.conflict
            await connection.rollBack()
            if let conflict { throw TransactionConflict(error: error, cause: conflict) }
            throw error
        }
        do {
            try await connection.commit()
        } catch let error as PostgresError where error.isSerializationFailure {
            throw TransactionConflict(error: error, cause: error)
        }
        return value
    }
}

/// PostgreSQL ended the transaction because of others; it may be run again.
private struct TransactionConflict: Error {
    /// What the caller is told when there is no other try.
    let error: any Error
    let cause: PostgresError
}
