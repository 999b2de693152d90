import Synchronization

/// A connection on loan from a ``PostgresPool``.
///
/// Statements run one after another in the order in which they were asked for, also when several tasks ask.
public final class PostgresConnection: Sendable {
    private struct Lease {
        var condition = ConnectionCondition.clean
        var running = 0
        var hasEnded = false
        /// Sent with the first statement, to save a round trip.
        var preamble: [PostgresQuery] = []
        /// Of the last statement; the next one that succeeds clears it.
        var lastFailure: PostgresError?
    }

    private let id: ConnectionID
    private let core: PoolCore
    private let deadline: ContinuousClock.Instant?
    private let lease = Mutex(Lease())
    /// How much later than the server this side ends a statement: the server's way keeps the connection.
    private static let grace: Duration = .milliseconds(500)

    init(id: ConnectionID, core: PoolCore, deadline: ContinuousClock.Instant?) {
        self.id = id
        self.core = core
        self.deadline = deadline
    }

    /// Runs one statement.
    /// - Throws: ``PostgresError`` or `CancellationError`. After a cancellation the connection is of no more use, and
    ///   the statement may have taken effect.
    public nonisolated(nonsending) func query(_ query: PostgresQuery) async throws -> PostgresRows {
        try await pipeline([query])[0]
    }

    /// Sends all statements at once and gathers their results, in order.
    ///
    /// Outside of a transaction they are one: either all take effect or none. The first error ends them.
    /// - Throws: as ``query(_:)``; ``PostgresError/query`` names the statement that failed.
    public nonisolated(nonsending) func pipeline(_ queries: [PostgresQuery]) async throws -> [PostgresRows] {
        if queries.isEmpty { return [] }
        for query in queries {
            if var failure = query.bindings.failure {
                failure.query = query.name
                throw failure
            }
        }
        return try await run(.queries(queries), within: core.configuration.statementTimeout + Self.grace)
    }

    /// Runs several statements from one text, by the simple protocol; for migrations.
    ///
    /// Without `BEGIN` in it, the text is one transaction. `statement_timeout` applies unless the text sets another.
    /// - Parameter limit: how long the whole of it may take.
    /// - Throws: as ``query(_:)``; ``PostgresError/position`` says where.
    public nonisolated(nonsending) func executeScript(_ sql: String, limit: Duration = .seconds(600)) async throws {
        if sql.utf8.contains(0) { throw PostgresError(.encoding, "a script with a zero byte") }
        _ = try await run(.script(sql), within: limit)
    }

    private nonisolated(nonsending) func run(
        _ work: Operation.Work, within limit: Duration, isCancellable: Bool = true
    ) async throws -> [PostgresRows] {
        if isCancellable { try Task.checkCancellation() }
        let operation = OperationID(value: core.nextIdentifier())
        let latest = ContinuousClock.now + limit
        let end = min(latest, deadline ?? latest)
        let outcome = await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                submit(operation, work, end) { continuation.resume(returning: $0) }
                // The handler below may have run before there was anything to cancel.
                if isCancellable, Task.isCancelled { core.mailbox.post(.cancel(id, operation)) }
            }
        } onCancel: {
            if isCancellable { core.mailbox.post(.cancel(id, operation)) }
        }
        return try outcome.result.get()
    }

    /// Hands the work to the I/O thread, with what must go before it.
    private func submit(
        _ id: OperationID, _ work: Operation.Work, _ end: ContinuousClock.Instant,
        _ complete: @escaping @Sendable (Outcome) -> Void
    ) {
        // Here, not in the task: states must be noted in the order in which the connection had them.
        let note: @Sendable (Outcome) -> Void = { [self] outcome in
            finish(outcome)
            complete(outcome)
        }
        let refusal = lease.withLock { lease -> PostgresError? in
            if lease.hasEnded { return PostgresError(.shutDown, "a connection used after it was given back") }
            let preamble = lease.preamble
            lease.preamble = []
            var operation = Operation(id: id, work: work, deadline: end, complete: note)
            switch work {
            case .queries(let queries) where !preamble.isEmpty:
                operation = Operation(
                    id: id, work: .queries(preamble + queries), preamble: preamble.count, deadline: end, complete: note)
            case .script where !preamble.isEmpty:
                let opening = Operation(
                    id: OperationID(value: core.nextIdentifier()), work: .queries(preamble), preamble: preamble.count,
                    deadline: end, complete: { [self] in finish($0) })
                lease.running += 1
                core.mailbox.post(.run(self.id, opening))
            default: break
            }
            lease.running += 1
            // Posted under the lock, so that nothing of another task comes between a preamble and its place.
            if core.mailbox.post(.run(self.id, operation)) { return nil }
            lease.running -= 1
            return PostgresError(.shutDown, "the pool has been shut down")
        }
        if let refusal { complete(Outcome(result: .failure(refusal), condition: nil)) }
    }

    // MARK: The lease

    private func finish(_ outcome: Outcome) {
        lease.withLock { lease in
            lease.running -= 1
            if lease.condition != .broken { lease.condition = outcome.condition ?? lease.condition }
            if case .failure(let error) = outcome.result {
                lease.lastFailure = error as? PostgresError
            } else {
                lease.lastFailure = nil
            }
        }
    }

    /// Ends the lease.
    /// - Returns: the state in which the connection goes back. One that a task still waits on isn't given to another.
    func end() -> ConnectionCondition {
        lease.withLock { lease in
            lease.hasEnded = true
            return lease.running > 0 ? .broken : lease.condition
        }
    }

    // MARK: Transactions

    /// The last statement failed because of other transactions.
    var conflict: PostgresError? {
        lease.withLock { lease in
            lease.lastFailure.flatMap { $0.isSerializationFailure ? $0 : nil }
        }
    }

    /// The transaction begins with the first statement.
    func begin(_ isolation: IsolationLevel) {
        var preamble = ["BEGIN ISOLATION LEVEL \(isolation.rawValue)"]
        if !core.configuration.usesPreparedStatements {
            // The session may be another one in the next transaction, so the limits are set for this one only.
            preamble += ConnectionParameters.limits(core.configuration)
                .map { "SET LOCAL \($0.name) = \($0.milliseconds)" }
        }
        let queries = preamble.map(PostgresQuery.init(unescaped:))
        lease.withLock { $0.preamble = queries }
    }

    /// Not cancellable: a commit that was sent must be heard out.
    nonisolated(nonsending) func commit() async throws {
        let (failed, hasBegun) = lease.withLock { ($0.lastFailure, $0.preamble.isEmpty) }
        guard hasBegun else { return }
        let rows: PostgresRows
        do {
            rows = try await run(
                .queries(["COMMIT"]), within: core.configuration.statementTimeout + Self.grace, isCancellable: false)[0]
        } catch let error as PostgresError where error.mayHaveExecuted {
            var unknown = error
            unknown.code = .commitUnknown
            throw unknown
        }
        // COMMIT of a failed transaction succeeds as a ROLLBACK.
        if rows.commandTag != "COMMIT" {
            if let failed { throw failed }
            var aborted = PostgresError(
                .server(sqlState: "25P02"), "a statement had failed, so the transaction was rolled back")
            aborted.serverState = "25P02"
            throw aborted
        }
    }

    /// What can't be rolled back is closed, which comes to the same.
    nonisolated(nonsending) func rollBack() async {
        guard lease.withLock({ $0.condition == .inTransaction && $0.running == 0 }) else { return }
        _ = try? await run(.queries(["ROLLBACK"]), within: .seconds(2), isCancellable: false)
    }
}
