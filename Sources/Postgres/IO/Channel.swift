import CPostgres

/// An open connection as the I/O thread sees it: one operation at a time, the next ones in a queue.
///
/// Confined to the I/O thread. Statements always go in libpq's pipeline mode, so that preparing one and running it
/// share a round trip, and a batch is one operation.
final class Channel {
    typealias Instant = ContinuousClock.Instant

    let id: ConnectionID
    let connection: OpaquePointer
    let preparesStatements: Bool
    var cache: StatementCache
    var running: Running?
    private var queue: [Operation] = []
    /// Set once; the I/O thread then forgets the channel.
    private(set) var isClosed = false
    private(set) var wantsWriting = false
    private let cancelAtServer: (OpaquePointer) -> Void

    /// - Parameter connection: is owned by the channel from now on.
    init(
        id: ConnectionID, connection: OpaquePointer, configuration: PostgresConfiguration,
        cancelAtServer: @escaping (OpaquePointer) -> Void
    ) {
        self.id = id
        self.connection = connection
        self.cancelAtServer = cancelAtServer
        preparesStatements = configuration.usesPreparedStatements
        cache = StatementCache(limit: configuration.maximumPreparedStatements)
        if PQsetnonblocking(connection, 1) != 0 || PQenterPipelineMode(connection) != 1 { close() }
    }

    /// The socket to watch; libpq keeps it while the connection is open.
    var descriptor: Int32 { PQsocket(connection) }

    var nextDeadline: Instant? {
        ([running?.operation.deadline].compactMap { $0 } + queue.map(\.deadline)).min()
    }

    // MARK: Events

    func submit(_ operation: Operation) {
        queue.append(operation)
        if isClosed { failQueue() } else { startNext() }
    }

    func serve(isReadable: Bool) {
        let isAlive = !isReadable || PQconsumeInput(connection) == 1
        collectResults()
        if isClosed { return }
        if !isAlive || PQstatus(connection) == CONNECTION_BAD { return lose() }
        flush()
        startNext()
    }

    /// The server, and what it still does, are given up at the deadline: where the statement stands can't be known in
    /// time.
    func expire(now: Instant) {
        for late in remove(where: { $0.deadline <= now }) {
            drop(late, PostgresError(.timedOut, "waiting behind another statement", query: late.name))
        }
        guard let running, running.operation.deadline <= now else { return }
        abandon(
            running.operation,
            with: PostgresError(.timedOut, "no answer in time", query: running.operation.name, mayHaveExecuted: true))
    }

    func cancel(_ operation: OperationID) {
        for cancelled in remove(where: { $0.id == operation }) { drop(cancelled, CancellationError()) }
        if let running, running.operation.id == operation {
            abandon(running.operation, with: CancellationError())
        }
    }

    /// Ends the connection; whatever is under way or waiting fails.
    func close() {
        guard !isClosed else { return }
        if running != nil { cancelAtServer(connection) }
        finish(running: PostgresError(.connectionLost(mayHaveExecuted: true), "closed by this side"))
    }

    // MARK: Endings

    /// Fails what was never sent. When that was to begin a transaction, what follows must not run without one.
    private func drop(_ operation: Operation, _ error: any Error) {
        operation.fail(error, operation.preamble > 0 ? .broken : nil)
        if operation.preamble > 0 { close() }
    }

    private func abandon(_ operation: Operation, with error: any Error) {
        cancelAtServer(connection)
        finish(running: error)
    }

    /// libpq has seen the connection break.
    func lose() {
        let words = String(cString: PQerrorMessage(connection)).inOneLine
        var error = PostgresError(.connectionLost(mayHaveExecuted: true), words)
        if let told = running?.failure, case .connectionLost = told.code { error = told }
        finish(running: error)
    }

    /// Nothing of the running operation was sent, or nothing that could take effect.
    func refuse(_ error: PostgresError) { finish(running: error) }

    private func finish(running error: any Error) {
        isClosed = true
        let unfinished = running?.operation
        running = nil
        PQfinish(connection)
        if let unfinished {
            var error = error
            if var named = error as? PostgresError {
                named.query = named.query ?? unfinished.name
                error = named
            }
            unfinished.fail(error, .broken)
        }
        failQueue()
    }

    private func failQueue() {
        for operation in remove(where: { _ in true }) {
            let lost = PostgresError(
                .connectionLost(mayHaveExecuted: false), "lost before the statement was sent", query: operation.name)
            operation.fail(lost, .broken)
        }
    }

    private func remove(where matches: (Operation) -> Bool) -> [Operation] {
        guard queue.contains(where: matches) else { return [] }
        let removed = queue.filter(matches)
        queue.removeAll(where: matches)
        return removed
    }

    // MARK: Progress

    private func startNext() {
        while !isClosed, running == nil, !queue.isEmpty {
            let operation = queue.removeFirst()
            guard operation.deadline > .now else {
                drop(operation, PostgresError(.timedOut, "too late to begin", query: operation.name))
                continue
            }
            running = Running(operation: operation)
            send()
        }
    }

    func send() {
        sendRunning()
        if !isClosed { flush() }
    }

    private func flush() {
        switch PQflush(connection) {
        case 0: wantsWriting = false
        case 1: wantsWriting = true
        default: lose()
        }
    }

    /// The state that the last operation left; libpq learns it from the server's ReadyForQuery.
    private var condition: ConnectionCondition {
        switch PQtransactionStatus(connection) {
        case PQTRANS_IDLE: .clean
        case PQTRANS_INTRANS, PQTRANS_INERROR: .inTransaction
        default: .broken
        }
    }

    /// All results of the running operation are there.
    func completeRunning() {
        guard let finished = running else { return }
        if finished.failedOnPreparedStatement {
            cache.forgetAll()
            if !finished.isSecondRun, condition == .clean {
                running = Running(operation: finished.operation, isSecondRun: true)
                return send()
            }
        }
        running = nil
        var condition = condition
        let preamble = finished.operation.preamble
        if let failure = finished.failure {
            if failure.endsConnection || preamble > 0 && condition == .clean { condition = .broken }
            finished.operation.fail(failure, condition)
        } else {
            let rows = Array(finished.rows.dropFirst(preamble))
            finished.operation.complete(Outcome(result: .success(rows), condition: condition))
        }
        // Before anything that waits in the queue is sent.
        if condition == .broken { close() }
    }
}
