/// Names a connection for the life of its pool; never used twice.
struct ConnectionID: Hashable, Sendable { let value: UInt64 }

/// Names one run of statements, so that it can be cancelled.
struct OperationID: Hashable, Sendable { let value: UInt64 }

/// What a connection is asked to do, on its way to the I/O thread.
struct Operation: Sendable {
    enum Work: Sendable {
        /// Sent in one go (libpq's pipeline mode), answered in order.
        case queries([PostgresQuery])
        /// Several statements in one text, by the simple protocol.
        case script(String)
    }

    let id: OperationID
    let work: Work
    /// How many of the statements, from the first, only prepare the ground (`BEGIN`). Their results are dropped; and
    /// when they didn't take effect, neither may anything that comes after, so the connection is closed.
    var preamble = 0
    let deadline: ContinuousClock.Instant
    /// Called once, on the I/O thread; must not block.
    let complete: @Sendable (Outcome) -> Void

    /// The statements' name in errors.
    var name: String {
        switch work {
        case .queries(let queries): (queries.dropFirst(preamble).first ?? queries.first)?.name ?? ""
        case .script(let text): PostgresQuery.name(of: text)
        }
    }

    func fail(_ error: any Error, _ condition: ConnectionCondition?) {
        complete(Outcome(result: .failure(error), condition: condition))
    }
}

/// What an operation came to, and what it left the connection in.
struct Outcome: Sendable {
    var result: Result<[PostgresRows], any Error>
    /// nil when the operation was never sent, so that it changed nothing.
    var condition: ConnectionCondition?
}

/// Whether a connection may be given to the next user.
enum ConnectionCondition: Sendable {
    case clean
    /// A transaction is open, perhaps a failed one.
    case inTransaction
    /// Gone, or not to be trusted.
    case broken
}
