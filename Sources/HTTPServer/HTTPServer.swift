import Basics
import CMicrohttpd
import Foundation
import Synchronization

/// An HTTP/1.1 server: libmicrohttpd owns the sockets, and every whole request goes to an async handler.
///
/// A handler is never cancelled because its client has gone: what it has begun it may finish, and its answer is dropped.
public final class HTTPServer: Sendable {
    private enum Life {
        case new
        case running(Daemon, ListeningSocket, Sweeper)
        case draining
        case stopped
    }

    private let core: ServerCore
    private let life = Mutex(Life.new)
    private let listeningPort: Atomic<UInt16>

    public init(
        _ configuration: HTTPServerConfiguration,
        handler: @escaping @Sendable (HTTPServerRequest) async -> HTTPServerResponse
    ) {
        core = ServerCore(configuration, handler: handler)
        listeningPort = Atomic(configuration.port)
    }

    deinit {
        if case .running(let daemon, let socket, let sweeper) = life.withLock({ $0 }) {
            let core = core
            core.beginDraining()
            Thread.detachNewThread { Self.stop(core, daemon, socket, sweeper) }
        }
    }

    /// Listens and serves until `drain`. Returns once connections are accepted.
    /// - Throws: `badAddress`, `addressInUse`, `cannotListen`, `cannotStart`, `alreadyStarted`.
    public func start() throws(HTTPServerError) {
        FileDescriptorLimit.raise()
        try life.withLock { life throws(HTTPServerError) in
            guard case .new = life else { throw HTTPServerError(.alreadyStarted, "a server starts once") }
            let socket = try ListeningSocket(host: core.configuration.host, port: core.configuration.port)
            guard let daemon = Daemon(core: core, socket: socket) else {
                let reason = errno
                socket.close()
                throw HTTPServerError(.cannotStart, "libmicrohttpd didn't start", systemError: reason)
            }
            listeningPort.store(socket.port, ordering: .relaxed)
            let sweeper = Sweeper(core: core)
            sweeper.start()
            life = .running(daemon, socket, sweeper)
        }
    }

    /// The port that it listens on; before `start` the configured one.
    public var port: UInt16 { listeningPort.load(ordering: .relaxed) }

    /// Stops: refuses new connections at once, closes idle ones, says `Connection: close` in the answers to what is in
    /// flight, and returns when the last connection is closed. What is left after the limit is told 503 and closed;
    /// its handlers run on, and their answers are dropped.
    public func drain(within limit: Duration) async {
        let running = life.withLock { life -> (Daemon, ListeningSocket, Sweeper)? in
            guard case .running(let daemon, let socket, let sweeper) = life else {
                if case .new = life { life = .stopped }
                return nil
            }
            life = .draining
            return (daemon, socket, sweeper)
        }
        guard let (daemon, socket, sweeper) = running else {
            while case .draining = life.withLock({ $0 }) { try? await Task.sleep(for: .milliseconds(5)) }
            return
        }
        let deadline = ContinuousClock.now + limit
        MHD_quiesce_daemon(daemon.handle)
        socket.refuseConnections()
        core.beginDraining()
        repeat {
            core.sweep()
            if core.connectionCount == 0 { break }
            try? await Task.sleep(for: .milliseconds(5))
        } while ContinuousClock.now < deadline
        let core = core
        await withCheckedContinuation { continuation in
            Thread.detachNewThread {
                Self.stop(core, daemon, socket, sweeper)
                continuation.resume()
            }
        }
        life.withLock { $0 = .stopped }
    }

    /// Blocks until the library's threads have ended.
    private static func stop(_ core: ServerCore, _ daemon: Daemon, _ socket: ListeningSocket, _ sweeper: Sweeper) {
        sweeper.end()
        core.stopSuspending()
        let deadline = ContinuousClock.now + .milliseconds(200)
        while core.connectionCount > 0, ContinuousClock.now < deadline {
            core.sweep()
            Thread.sleep(forTimeInterval: 0.002)
        }
        MHD_stop_daemon(daemon.handle)
        core.lingering.closeAll()
        socket.close()
    }
}

extension HTTPServer {
    /// What the server has done and what it is doing.
    public struct Statistics: Hashable, Sendable {
        public let connectionsOpen: Int
        public let connectionsAccepted: Int
        /// Requests at handlers, also those whose clients have gone.
        public let requestsInFlight: Int
        /// Bytes of bodies that are being collected or are at handlers.
        public let bytesBuffered: Int
        /// Answers written, refusals in the ordinary way included.
        public let requestsServed: Int
        public let refused: [HTTPServerRefusal.Kind: Int]
    }

    public var statistics: Statistics {
        Statistics(
            connectionsOpen: core.connectionCount, connectionsAccepted: core.count.accepted.load(ordering: .relaxed),
            requestsInFlight: core.count.inFlight.load(ordering: .relaxed),
            bytesBuffered: core.count.bufferedBytes.load(ordering: .relaxed),
            requestsServed: core.count.served.load(ordering: .relaxed), refused: core.count.refused)
    }
}
