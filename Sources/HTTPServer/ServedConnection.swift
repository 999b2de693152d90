import Basics
import CMicrohttpd
import Foundation
import Synchronization

/// One TCP connection, from accept to close.
///
/// Unchecked because of the members marked so below: those are touched by the one thread that owns the socket, and by
/// no other. All else is immutable or behind the lock.
final class ServedConnection: @unchecked Sendable {
    let core: ServerCore
    /// The library's connection. Valid until `closed`; while suspended the library leaves it alone.
    let handle: OpaquePointer
    let remoteAddress: String
    let state: Mutex<ConnectionState>
    private let socket: Int32

    // Only on the thread that owns the socket:
    private var target: RequestTarget?
    private var isTaken = false
    private var incoming: IncomingRequest?
    private var headBytes = 0
    private var bodyBytes = 0

    init(core: ServerCore, handle: OpaquePointer) {
        self.core = core
        self.handle = handle
        socket = lockstep_mhd_socket(handle)
        remoteAddress = SocketAddress.text(lockstep_mhd_client_address(handle))
        state = Mutex(ConnectionState(now: .now))
    }

    // MARK: What the library calls, on the thread that owns the socket

    /// Whether the next call without a body brings the head.
    private(set) var headIsMissing = true

    /// The request line is there, its target still as it came.
    func targetArrived(_ bytes: UnsafeRawBufferPointer) {
        target = RequestTarget(bytes)
        headIsMissing = true
        headBytes = 0
        bodyBytes = 0
        isTaken = state.withLock { $0.targetArrived(path: target?.path, now: .now) }
    }

    /// The head is there: `bytes` as `RequestHead` reads them.
    func headArrived(_ bytes: UnsafeRawBufferPointer, fieldCount: Int) -> MHD_Result {
        headBytes = bytes.count
        headIsMissing = false
        guard isTaken else { return .YES }
        let refusal: HTTPServerRefusal.Kind
        do {
            incoming = try accept(bytes, fieldCount: fieldCount)
            return .YES
        } catch {
            refusal = error
        }
        refuse(refusal, isHead: bytes.starts(with: "HEAD\0".utf8))
        return .YES
    }

    private func accept(
        _ bytes: UnsafeRawBufferPointer, fieldCount: Int
    ) throws(HTTPServerRefusal.Kind) -> IncomingRequest {
        let configuration = core.configuration
        // Before anything is refused, so that a refusal knows the request's fields.
        let head = target.flatMap {
            RequestHead(splitByNULs: bytes, targetByteCount: $0.byteCount, fieldCount: fieldCount)
        }
        if let head { state.withLock { $0.headArrived(head.headers) } }
        guard bytes.count <= configuration.maximumHeaderBytes else { throw .headersTooLarge }
        guard let target else { throw .malformedRequest }
        guard target.byteCount <= configuration.maximumTargetBytes else { throw .uriTooLong }
        guard let head else { throw .malformedRequest }
        let framing = try BodyFraming(head)
        guard !core.isDraining || configuration.servesWhileDraining(head.method, target.path) else { throw .draining }
        let limit = configuration.maximumBodyBytes(head.method, target.path)
        if case .length(let length) = framing, length > limit { throw .bodyTooLarge }
        return IncomingRequest(head: head, target: target, framing: framing, bodyLimit: limit, receivedAt: .now)
    }

    /// Some of the body is there. Where nothing is taken any more it is thrown away.
    func bodyArrived(_ bytes: UnsafeRawBufferPointer) -> MHD_Result {
        bodyBytes += bytes.count
        guard let before = incoming?.bodyBytes else { return .YES }
        if !core.mayBuffer(bytes.count, before: before) {
            dropIncoming()
            refuse(.overloaded)
        } else if incoming?.append(bytes) != true {
            core.release(bytes.count)
            dropIncoming()
            refuse(.bodyTooLarge)
        }
        return .YES
    }

    private func dropIncoming() {
        if let incoming { core.release(incoming.bodyBytes) }
        incoming = nil
    }

    /// The request is whole, or its connection was resumed because the answer is there.
    func requestArrived() -> MHD_Result {
        if let answer = state.withLock({ $0.takeAnswer(now: .now) }) { return queue(answer) }
        guard let incoming else { return .NO }
        self.incoming = nil
        let bodyBytes = incoming.bodyBytes
        guard core.mayTakeRequest() else {
            core.release(bodyBytes)
            return answerAtOnce(.overloaded, incoming)
        }
        let number = state.withLock { state -> UInt64? in
            guard !core.isStopping, let number = state.handOver(now: .now) else { return nil }
            MHD_suspend_connection(handle)
            return number
        }
        guard let number else {
            core.requestLeft()
            core.release(bodyBytes)
            return .NO
        }
        let request = incoming.request(from: remoteAddress)
        let closes = incoming.closesConnection
        Task.detached { [self] in
            var response = await core.handler(request)
            if closes { response.closesConnection = true }
            core.requestLeft()
            core.release(bodyBytes)
            answer(response, to: number)
        }
        return .YES
    }

    /// The answer is written, or the request came to nothing.
    func requestEnded() {
        dropIncoming()
        target = nil
        state.withLock { $0.requestEnded(bytes: Int64(headBytes + bodyBytes), now: .now) }
    }

    /// The library is about to close the socket.
    func closed() { state.withLock { $0.closed(now: .now) } }

    private func answerAtOnce(_ kind: HTTPServerRefusal.Kind, _ incoming: IncomingRequest) -> MHD_Result {
        guard state.withLock({ $0.answerAtOnce(now: .now) }) else { return .NO }
        return queue(core.response(refusing: kind, path: incoming.path, headers: incoming.headers))
    }

    private func queue(_ response: HTTPServerResponse) -> MHD_Result {
        var response = response.sendable
        if core.isDraining { response.closesConnection = true }
        core.count.served.add(1, ordering: .relaxed)
        if let cut = response.cut { return breakOff(response, after: cut) }
        return LibraryResponse.queue(response, on: handle)
    }

    /// Sends a part of the response past the library, which then closes the connection.
    private func breakOff(_ response: HTTPServerResponse, after cut: Int) -> MHD_Result {
        guard cut > 0 else { return .NO }
        let bytes = RawResponse.bytes(response, withBody: true)
        let count = bytes.count - response.body.count + min(cut, response.body.count)
        _ = bytes.withUnsafeBytes { send(socket, $0.baseAddress, count, Int32(MSG_NOSIGNAL | MSG_DONTWAIT)) }
        return .NO
    }

    // MARK: What any thread may call

    /// An answer to the request of that number; the first one counts.
    func answer(_ response: HTTPServerResponse, to request: UInt64) {
        state.withLock { state in
            // Under the lock, so that whoever stops the daemon finds no connection that is answered but still suspended.
            if state.answered(response, to: request, now: .now) { MHD_resume_connection(handle) }
        }
    }

    /// Answers past the library, which can't once a body has begun, and lets the client go on sending for a while.
    /// - Parameter closesAtOnce: the library is about to close the socket, so that somebody else must read on.
    func refuse(_ kind: HTTPServerRefusal.Kind, isHead: Bool = false, closesAtOnce: Bool = false) {
        let known = state.withLock { state -> (path: String?, headers: HTTPHeaders)? in
            guard state.mayBeRefused else { return nil }
            return (state.path, state.headers)
        }
        guard let known else { return }
        let response = core.response(refusing: kind, path: known.path, headers: known.headers)
        let bytes = RawResponse.bytes(response, withBody: !isHead)
        state.withLock { state in
            guard state.mayBeRefused else { return }
            state.close(now: .now)
            let flags = Int32(MSG_NOSIGNAL | MSG_DONTWAIT)
            _ = bytes.withUnsafeBytes { send(socket, $0.baseAddress, $0.count, flags) }
            if closesAtOnce { core.lingering.keepOpen(socket) }
            shutdown(socket, Int32(SHUT_WR))
        }
    }

    /// Answers in place of the handler, if one has the request.
    func answerForHandler(_ kind: HTTPServerRefusal.Kind) {
        let (phase, request, path, headers) = state.withLock { ($0.phase, $0.request, $0.path, $0.headers) }
        guard phase == .handling else { return }
        var response = core.response(refusing: kind, path: path, headers: headers)
        response.closesConnection = true
        answer(response, to: request)
    }

    /// Does what is overdue. Called again and again by the sweeper.
    func sweep(now: ContinuousClock.Instant, limits: ConnectionLimits, isDraining: Bool) {
        let overdue = state.withLock { state -> ConnectionState.Overdue? in
            let overdue = state.overdue(
                at: now, limits: limits, isDraining: isDraining, traffic: SocketTraffic(socket: socket))
            if overdue == .closeSilently {
                state.close(now: now)
                shutdown(socket, Int32(SHUT_RDWR))
            }
            return overdue
        }
        switch overdue {
        case .refuseRequest(let kind): refuse(kind)
        case .answerForHandler: answerForHandler(.overloaded)
        case .closeSilently, nil: break
        }
    }
}

private struct SocketTraffic: ConnectionTraffic {
    let socket: Int32
    var bytesReceived: Int64 { lockstep_tcp_bytes_received(socket) }
    var bytesAcknowledged: Int64 { lockstep_tcp_bytes_acknowledged(socket) }
}
