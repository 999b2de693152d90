import CPostgres
import Glibc
import Synchronization

/// What any thread may ask of the I/O thread.
enum Command: Sendable {
    case open(ConnectionID)
    /// A connector has begun an attempt that ``open`` asked for.
    case begun(Attempt, PGConnection?)
    case run(ConnectionID, Operation)
    case cancel(ConnectionID, OperationID)
    case close(ConnectionID)
    /// Asks for a call of the pool's timer.
    case wake(ContinuousClock.Instant)
    case stop
}

/// The queue before the I/O thread, and the eventfd that interrupts its `poll`.
final class Mailbox: Sendable {
    private struct Inbox {
        var commands: [Command] = []
        var isReaderAsleep = false
        var isClosed = false
    }

    private let inbox = Mutex(Inbox())
    /// Readable when there is something to fetch; -1 when the system had none to give, and then the reader must look by
    /// itself.
    let descriptor: Int32 = lockstep_eventfd()

    deinit { if descriptor >= 0 { Glibc.close(descriptor) } }

    /// - Returns: false when the I/O thread has ended and nobody will ever read the command.
    @discardableResult
    func post(_ command: Command) -> Bool {
        let (isOpen, mustWake) = inbox.withLock { inbox in
            guard !inbox.isClosed else { return (false, false) }
            inbox.commands.append(command)
            defer { inbox.isReaderAsleep = false }
            return (true, inbox.isReaderAsleep)
        }
        if mustWake, descriptor >= 0 { eventfd_write(descriptor, 1) }
        return isOpen
    }

    /// Everything posted so far. When that is nothing, the next ``post(_:)`` will make ``descriptor`` readable.
    func fetch() -> [Command] {
        inbox.withLock { inbox in
            inbox.isReaderAsleep = inbox.commands.isEmpty
            defer { inbox.commands.removeAll() }
            return inbox.commands
        }
    }

    /// After a `poll` that ended by itself.
    func clear() {
        var count: eventfd_t = 0
        if descriptor >= 0 { eventfd_read(descriptor, &count) }
    }

    /// Takes nothing more.
    /// - Returns: what nobody has read.
    func close() -> [Command] {
        inbox.withLock { inbox in
            inbox.isClosed = true
            defer { inbox.commands.removeAll() }
            return inbox.commands
        }
    }
}
