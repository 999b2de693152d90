import CPostgres
import Foundation
import Glibc

/// What the I/O thread tells its pool.
protocol IOThreadDelegate: Sendable {
    func opened(_ connection: ConnectionID)
    func failedToOpen(_ connection: ConnectionID, _ error: PostgresError)
    /// An open connection is gone, whoever ended it.
    func lost(_ connection: ConnectionID)
    func timerFired()
}

/// The one thread that owns all connections of a pool: it alone calls libpq on them, and it waits in `poll` only.
///
/// Not `Sendable`, and made inside the thread, so that nothing of it can be reached from elsewhere.
final class IOThread {
    typealias Instant = ContinuousClock.Instant

    private let mailbox: Mailbox
    private let connector: Connector
    private let delegate: any IOThreadDelegate
    private let configuration: PostgresConfiguration
    private var openings: [ConnectionID: Opening] = [:]
    private var channels: [ConnectionID: Channel] = [:]
    /// The host that answered last is tried first; the next one, when that fails.
    private var preferredHost = 0
    private var timer: Instant?
    private var isStopped = false

    private init(
        mailbox: Mailbox, connector: Connector, delegate: any IOThreadDelegate, _ configuration: PostgresConfiguration
    ) {
        self.mailbox = mailbox
        self.connector = connector
        self.delegate = delegate
        self.configuration = configuration
    }

    /// Starts the thread, which lives until ``Command/stop``.
    static func start(
        mailbox: Mailbox, connector: Connector, delegate: any IOThreadDelegate, _ configuration: PostgresConfiguration
    ) {
        let thread = Thread {
            IOThread(mailbox: mailbox, connector: connector, delegate: delegate, configuration).run()
        }
        thread.name = "postgres"
        thread.start()
    }

    private func run() {
        while !isStopped {
            let commands = mailbox.fetch()
            for command in commands { perform(command) }
            expire(now: .now)
            forgetClosed()
            // Commands may have come meanwhile: only after an empty mailbox will one of them interrupt a sleep.
            if !isStopped { wait(mayBlock: commands.isEmpty) }
        }
        end()
    }

    // MARK: Commands

    private func perform(_ command: Command) {
        switch command {
        case .open(let id):
            openings[id] = Opening(deadline: .now + configuration.connectTimeout, firstHost: preferredHost)
            connector.begin(Attempt(connection: id, host: preferredHost, earlier: 0))
        case .begun(let attempt, let connection):
            begun(attempt, connection)
        case .run(let id, let operation):
            if let channel = channels[id] {
                channel.submit(operation)
            } else {
                let lost = PostgresError(
                    .connectionLost(mayHaveExecuted: false), "lost before the statement", query: operation.name)
                operation.fail(lost, .broken)
            }
        case .cancel(let id, let operation):
            channels[id]?.cancel(operation)
        case .close(let id):
            if let connection = openings.removeValue(forKey: id)?.connection { PQfinish(connection) }
            channels[id]?.close()
        case .wake(let instant):
            timer = min(instant, timer ?? instant)
        case .stop:
            isStopped = true
        }
    }

    private func end() {
        for opening in openings.values { if let connection = opening.connection { PQfinish(connection) } }
        for channel in channels.values { channel.close() }
        for command in mailbox.close() {
            switch command {
            case .begun(_, let connection?): PQfinish(connection.pointer)
            case .run(_, let operation):
                operation.fail(PostgresError(.shutDown, "the pool has been shut down"), .broken)
            default: break
            }
        }
    }

    // MARK: Opening

    private func begun(_ attempt: Attempt, _ connection: PGConnection?) {
        let id = attempt.connection
        // Given up meanwhile, or overtaken by an attempt at the next host.
        guard var opening = openings[id], opening.failures.count == attempt.earlier else {
            if let connection { PQfinish(connection.pointer) }
            return
        }
        opening.connection = connection?.pointer
        opening.direction = PGRES_POLLING_WRITING
        openings[id] = opening
        guard let connection, PQstatus(connection.pointer) != CONNECTION_BAD else { return nextHost(id) }
    }

    /// Follows `PQconnectPoll` as far as it goes without waiting.
    private func advance(_ id: ConnectionID) {
        guard var opening = openings[id], let connection = opening.connection else { return }
        opening.direction = PQconnectPoll(connection)
        openings[id] = opening
        switch opening.direction {
        case PGRES_POLLING_OK:
            openings[id] = nil
            preferredHost = opening.host(of: connector.hostCount)
            let channel = Channel(
                id: id, connection: connection, configuration: configuration,
                cancelAtServer: { [connector] in connector.cancel($0) })
            channels[id] = channel
            delegate.opened(id)
        case PGRES_POLLING_FAILED:
            nextHost(id)
        default:
            break
        }
    }

    private func nextHost(_ id: ConnectionID, because words: String? = nil) {
        guard var opening = openings[id] else { return }
        let failedHost = opening.host(of: connector.hostCount)
        // Others that open a connection needn't wait for it first.
        if preferredHost == failedHost { preferredHost = (failedHost + 1) % connector.hostCount }
        let libpqWords = opening.connection.map { String(cString: PQerrorMessage($0)).inOneLine }
        opening.failures.append(words ?? libpqWords ?? "out of memory")
        if let connection = opening.connection { PQfinish(connection) }
        let earlier = opening.failures.count
        guard earlier < connector.hostCount else {
            openings[id] = nil
            return delegate.failedToOpen(
                id, PostgresError(.connectionFailed, opening.failures.joined(separator: "; ")))
        }
        opening.connection = nil
        opening.deadline = .now + configuration.connectTimeout
        openings[id] = opening
        let host = opening.host(of: connector.hostCount)
        connector.begin(Attempt(connection: id, host: host, earlier: earlier))
    }

    // MARK: Time

    private func expire(now: Instant) {
        for (id, opening) in openings where opening.deadline <= now {
            let host = connector.name(ofHost: opening.host(of: connector.hostCount))
            nextHost(id, because: "\(host): no answer in time")
        }
        for channel in channels.values { channel.expire(now: now) }
        if let due = timer, due <= now {
            timer = nil
            delegate.timerFired()
        }
    }

    private func forgetClosed() {
        for (id, channel) in channels where channel.isClosed {
            channels[id] = nil
            delegate.lost(id)
        }
    }

    private var nextDeadline: Instant? {
        let deadlines = openings.values.map(\.deadline) + channels.values.compactMap(\.nextDeadline)
        return (deadlines + [timer].compactMap { $0 }).min()
    }

    // MARK: Waiting

    private func wait(mayBlock: Bool) {
        var watched = [pollfd(fd: mailbox.descriptor, events: Int16(POLLIN), revents: 0)]
        var owners: [ConnectionID] = []
        for (id, opening) in openings {
            guard let connection = opening.connection else { continue }
            let events = opening.direction == PGRES_POLLING_READING ? POLLIN : POLLOUT
            watched.append(pollfd(fd: PQsocket(connection), events: Int16(events), revents: 0))
            owners.append(id)
        }
        for (id, channel) in channels {
            let events = channel.wantsWriting ? POLLIN | POLLOUT : POLLIN
            watched.append(pollfd(fd: channel.descriptor, events: Int16(events), revents: 0))
            owners.append(id)
        }
        guard poll(&watched, nfds_t(watched.count), mayBlock ? timeoutMilliseconds() : 0) > 0 else { return }
        if watched[0].revents != 0 { mailbox.clear() }
        for (entry, id) in zip(watched.dropFirst(), owners) where entry.revents != 0 {
            if let channel = channels[id] {
                channel.serve(isReadable: entry.revents & ~Int16(POLLOUT) != 0)
            } else {
                advance(id)
            }
        }
        forgetClosed()
    }

    /// For `poll`: rounded up, so that it doesn't wake a moment too early and spin.
    private func timeoutMilliseconds() -> Int32 {
        // Without an eventfd nobody can wake the thread.
        let longest: Int32 = mailbox.descriptor < 0 ? 5 : 60_000
        guard let nextDeadline else { return mailbox.descriptor < 0 ? longest : -1 }
        let (seconds, attoseconds) = (nextDeadline - .now).components
        guard seconds >= 0, attoseconds >= 0 else { return 0 }
        return Int32(min(seconds * 1000 + attoseconds / 1_000_000_000_000_000 + 1, Int64(longest)))
    }
}

/// A connection on its way to being open.
private struct Opening {
    /// Of the attempt at the present host.
    var deadline: ContinuousClock.Instant
    let firstHost: Int
    /// nil while the connector looks up the host's name.
    var connection: OpaquePointer?
    /// What to wait for; at first, for the socket to become writable.
    var direction = PGRES_POLLING_WRITING
    /// What each host said so far.
    var failures: [String] = []

    /// The one that is tried now.
    func host(of count: Int) -> Int { (firstHost + failures.count) % count }
}
