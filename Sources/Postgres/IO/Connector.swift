import CPostgres
import Dispatch
import Glibc
import Synchronization

/// A `PGconn`, or its `PGcancel`, on its way from one thread to another.
///
/// `@unchecked Sendable`: whoever makes one gives it away with the command that carries it, so only one thread ever has
/// it.
struct PGConnection: @unchecked Sendable {
    let pointer: OpaquePointer
}

/// One try to open a connection to one host.
struct Attempt: Sendable, Equatable {
    let connection: ConnectionID
    /// Index into ``ConnectionParameters/hosts``.
    let host: Int
    /// Hosts tried before this one.
    let earlier: Int
}

/// The two calls of libpq that can block: `PQconnectStartParams`, which looks up names, and `PQcancel`, which opens a
/// connection of its own. They run on dispatch's threads, which are not those of Swift's tasks, so that neither the I/O
/// thread nor any task ever waits for them.
final class Connector: Sendable {
    private let parameters: ConnectionParameters
    private let mailbox: Mailbox
    private let opening = DispatchQueue(label: "postgres.connect", attributes: .concurrent)
    private let cancelling = DispatchQueue(label: "postgres.cancel")
    private let pendingCancels = Mutex(0)
    /// Cancelling is a courtesy to the server, which has its own limit; so a server that doesn't answer may not gather
    /// a queue here.
    private static let maximumPendingCancels = 32

    init(parameters: ConnectionParameters, mailbox: Mailbox) {
        self.parameters = parameters
        self.mailbox = mailbox
    }

    var hostCount: Int { parameters.hosts.count }

    /// For messages, as libpq names hosts.
    func name(ofHost host: Int) -> String {
        let options = parameters.hosts[host]
        let address = options["host"] ?? options["hostaddr"] ?? "the default host"
        return "connection to server at \"\(address)\", port \(options["port"] ?? "5432")"
    }

    /// Answers with ``Command/begun(_:_:)``.
    func begin(_ attempt: Attempt) {
        let options = parameters.hosts[attempt.host]
        opening.async { [mailbox] in
            let connection = Self.start(options).map(PGConnection.init)
            if !mailbox.post(.begun(attempt, connection)), let connection { PQfinish(connection.pointer) }
        }
    }

    private static func start(_ options: [String: String]) -> OpaquePointer? {
        // strdup and free, because the lists must hold pointers that outlive every closure.
        var keywords = options.keys.map { UnsafePointer(strdup($0)) }
        var values = options.values.map { UnsafePointer(strdup($0)) }
        defer { (keywords + values).forEach { free(UnsafeMutablePointer(mutating: $0)) } }
        keywords.append(nil)
        values.append(nil)
        guard let connection = PQconnectStartParams(keywords, values, 0) else { return nil }
        // Notices are for people at a terminal; the default would print them.
        PQsetNoticeReceiver(connection, { _, _ in }, nil)
        return connection
    }

    /// Asks the server to stop what the connection is doing. To be called before the connection is closed.
    func cancel(_ connection: OpaquePointer) {
        let mayQueue = pendingCancels.withLock { pending in
            guard pending < Self.maximumPendingCancels else { return false }
            pending += 1
            return true
        }
        guard mayQueue else { return }
        let handle = PQgetCancel(connection).map(PGConnection.init)
        cancelling.async { [self] in
            var words = [CChar](repeating: 0, count: 256)
            if let handle {
                _ = PQcancel(handle.pointer, &words, Int32(words.count))
                PQfreeCancel(handle.pointer)
            }
            pendingCancels.withLock { $0 -= 1 }
        }
    }
}
