import Synchronization

/// Carries out what ``PoolState`` says: the lock around it, the continuations of those who wait, the I/O thread.
final class PoolCore: Sendable {
    typealias Instant = ContinuousClock.Instant
    typealias WaiterID = PoolState.WaiterID

    private struct Guarded {
        var state: PoolState
        var waiters: [WaiterID: CheckedContinuation<ConnectionID, any Error>] = [:]
        var drainWaiters: [CheckedContinuation<Void, Never>] = []
        var isDrained = false
        var lastOpenFailure: PostgresError?
        var retriedTransactions = 0
        var unknownCommits = 0
    }

    let configuration: PostgresConfiguration
    let mailbox = Mailbox()
    private let guarded: Mutex<Guarded>
    private let identifiers = Atomic<UInt64>(0)
    /// A check or a rollback that takes longer means that the connection is of no use.
    private static let preparationLimit: Duration = .seconds(2)

    init(_ configuration: PostgresConfiguration) {
        self.configuration = configuration
        let limits = PoolState.Limits(
            maximumConnections: max(1, configuration.maximumConnections), maximumWaiters: configuration.maximumWaiters,
            idleCheckInterval: configuration.idleCheckInterval)
        guarded = Mutex(Guarded(state: PoolState(limits: limits)))
    }

    func start(_ parameters: ConnectionParameters) {
        let connector = Connector(parameters: parameters, mailbox: mailbox)
        IOThread.start(mailbox: mailbox, connector: connector, delegate: self, configuration)
    }

    func nextIdentifier() -> UInt64 { identifiers.add(1, ordering: .relaxed).newValue }

    // MARK: Leases

    /// - Throws: ``PostgresError`` or `CancellationError`.
    nonisolated(nonsending) func acquire(deadline: Instant?) async throws -> ConnectionID {
        try Task.checkCancellation()
        let waiter = WaiterID(value: nextIdentifier())
        return try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                let now = Instant.now
                let latest = now + configuration.acquireTimeout
                handle(registering: (waiter, continuation)) {
                    $0.acquire(waiter, deadline: min(latest, deadline ?? latest), now: now)
                }
                // The handler below may have run before there was anything to cancel.
                if Task.isCancelled { cancel(waiter) }
            }
        } onCancel: {
            cancel(waiter)
        }
    }

    private func cancel(_ waiter: WaiterID) { handle { $0.cancel(waiter) } }

    func release(_ connection: ConnectionID, _ condition: ConnectionCondition) {
        handle { $0.released(connection, condition, now: .now) }
    }

    // MARK: The state machine's shell

    private func handle(
        registering waiter: (WaiterID, CheckedContinuation<ConnectionID, any Error>)? = nil,
        _ event: (inout PoolState) -> [PoolState.Action]
    ) {
        let resumptions = guarded.withLock { guarded in
            if let waiter { guarded.waiters[waiter.0] = waiter.1 }
            // Commands are posted under the lock, so that they arrive in the order in which they were decided.
            return event(&guarded.state).compactMap { perform($0, &guarded) }
        }
        for resume in resumptions { resume() }
    }

    /// - Returns: what is to be done outside of the lock.
    private func perform(_ action: PoolState.Action, _ guarded: inout Guarded) -> (@Sendable () -> Void)? {
        switch action {
        case .open(let id): mailbox.post(.open(id))
        case .close(let id): mailbox.post(.close(id))
        case .check(let id): prepare(id, "SELECT 1")
        case .rollBack(let id): prepare(id, "ROLLBACK")
        case .wake(let instant): mailbox.post(.wake(instant))
        case .grant(let waiter, let id):
            if let continuation = guarded.waiters.removeValue(forKey: waiter) {
                return { continuation.resume(returning: id) }
            }
        case .fail(let waiter, let refusal):
            if let continuation = guarded.waiters.removeValue(forKey: waiter) {
                let error = error(for: refusal, guarded)
                return { continuation.resume(throwing: error) }
            }
        case .drained:
            guarded.isDrained = true
            mailbox.post(.stop)
            let waiting = guarded.drainWaiters
            guarded.drainWaiters = []
            return { for continuation in waiting { continuation.resume() } }
        }
        return nil
    }

    private func prepare(_ id: ConnectionID, _ script: String) {
        let operation = Operation(
            id: OperationID(value: nextIdentifier()), work: .script(script), deadline: .now + Self.preparationLimit
        ) { [self] outcome in
            let isUsable = if case .success = outcome.result { outcome.condition == .clean } else { false }
            handle { $0.prepared(id, isUsable: isUsable, now: .now) }
        }
        if !mailbox.post(.run(id, operation)) { return }
    }

    private func error(for refusal: PoolState.Refusal, _ guarded: Guarded) -> any Error {
        switch refusal {
        case .exhausted:
            PostgresError(.poolExhausted, "\(configuration.maximumWaiters) tasks are waiting for a connection already")
        case .timedOut:
            PostgresError(.acquireTimedOut, "all \(configuration.maximumConnections) connections were in use")
        case .unreachable:
            guarded.lastOpenFailure ?? PostgresError(.connectionFailed, "no connection could be opened in time")
        case .cancelled: CancellationError()
        case .shutDown: PostgresError(.shutDown, "the pool has been shut down")
        }
    }

    // MARK: Counting and ending

    var statistics: PostgresPool.Statistics {
        guarded.withLock { guarded in
            var snapshot = guarded.state.snapshot
            snapshot.retriedTransactions = guarded.retriedTransactions
            snapshot.unknownCommits = guarded.unknownCommits
            return snapshot
        }
    }

    func countRetry() { guarded.withLock { $0.retriedTransactions += 1 } }
    func countUnknownCommit() { guarded.withLock { $0.unknownCommits += 1 } }

    func shutDown() { handle { $0.shutDown() } }
    func closeAll() { handle { $0.closeAll() } }

    func waitUntilDrained() async {
        await withCheckedContinuation { continuation in
            let isDrained = guarded.withLock { guarded in
                if !guarded.isDrained { guarded.drainWaiters.append(continuation) }
                return guarded.isDrained
            }
            if isDrained { continuation.resume() }
        }
    }
}

extension PoolCore: IOThreadDelegate {
    func opened(_ connection: ConnectionID) { handle { $0.opened(connection, now: .now) } }

    func failedToOpen(_ connection: ConnectionID, _ error: PostgresError) {
        guarded.withLock { $0.lastOpenFailure = error }
        handle { $0.failedToOpen(connection, now: .now, spread: .random(in: 0...1)) }
    }

    func lost(_ connection: ConnectionID) { handle { $0.lost(connection, now: .now) } }

    func timerFired() { handle { $0.tick(now: .now) } }
}
