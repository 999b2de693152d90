import Basics
import CMicrohttpd
import Foundation
import Synchronization

/// What the threads of one server share: its settings, its connections, its counters, and whether it is going.
final class ServerCore: Sendable {
    let configuration: HTTPServerConfiguration
    let handler: @Sendable (HTTPServerRequest) async -> HTTPServerResponse
    let count = ServerCounters()
    let lingering = Lingering()
    private let connections = Mutex<[ObjectIdentifier: ServedConnection]>([:])
    private let draining = Atomic(false)
    private let stopping = Atomic(false)

    init(
        _ configuration: HTTPServerConfiguration,
        handler: @escaping @Sendable (HTTPServerRequest) async -> HTTPServerResponse
    ) {
        self.configuration = configuration
        self.handler = handler
    }

    var limits: ConnectionLimits {
        ConnectionLimits(
            idle: configuration.idleTimeout, request: configuration.requestTimeout,
            handler: configuration.handlerTimeout)
    }

    /// No new requests are taken; those in flight are finished.
    var isDraining: Bool { draining.load(ordering: .acquiring) }
    /// No connection may be suspended any more, since the library can't stop while one is.
    var isStopping: Bool { stopping.load(ordering: .sequentiallyConsistent) }

    func beginDraining() { draining.store(true, ordering: .releasing) }

    // MARK: Connections

    func opened(_ connection: ServedConnection) {
        count.accepted.add(1, ordering: .relaxed)
        let open = connections.withLock { connections in
            connections[ObjectIdentifier(connection)] = connection
            return connections.count
        }
        if open > configuration.maximumConnections { connection.refuse(.overloaded) }
    }

    func closed(_ connection: ServedConnection) {
        connection.closed()
        _ = connections.withLock { $0.removeValue(forKey: ObjectIdentifier(connection)) }
    }

    var openConnections: [ServedConnection] { connections.withLock { Array($0.values) } }
    var connectionCount: Int { connections.withLock { $0.count } }

    func sweep() {
        let now = ContinuousClock.now
        let limits = limits
        let isDraining = isDraining
        lingering.sweep(now: now)
        for connection in openConnections { connection.sweep(now: now, limits: limits, isDraining: isDraining) }
    }

    /// Answers for every handler, and lets no connection be suspended afterwards.
    func stopSuspending() {
        stopping.store(true, ordering: .sequentiallyConsistent)
        for connection in openConnections { connection.answerForHandler(.draining) }
    }

    // MARK: Requests

    /// Takes a place for one more request in flight, if there is one.
    func mayTakeRequest() -> Bool {
        let now = count.inFlight.add(1, ordering: .relaxed).newValue
        if now <= configuration.maximumRequestsInFlight { return true }
        requestLeft()
        return false
    }

    func requestLeft() { count.inFlight.subtract(1, ordering: .relaxed) }

    /// Takes room for so many bytes more of a body of which `before` are there, if there is any.
    func mayBuffer(_ bytes: Int, before: Int) -> Bool {
        let all = count.bufferedBytes.add(bytes, ordering: .relaxed).newValue
        if all <= configuration.maximumBufferedBytes || before + bytes <= configuration.reservedBodyBytes {
            return true
        }
        release(bytes)
        return false
    }

    func release(_ bytes: Int) { count.bufferedBytes.subtract(bytes, ordering: .relaxed) }

    func response(
        refusing kind: HTTPServerRefusal.Kind, path: String?, headers: HTTPHeaders
    ) -> HTTPServerResponse {
        count.refused(kind)
        let refusal = HTTPServerRefusal(kind: kind, path: path, headers: headers)
        var response = configuration.refusalResponse(refusal)
        response.status = refusal.status
        return response
    }
}
