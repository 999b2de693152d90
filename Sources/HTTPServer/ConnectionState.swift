import Basics

/// Where a connection stands between two requests, without I/O: who may answer, and what is overdue.
struct ConnectionState {
    enum Phase: Equatable {
        /// Nothing in flight.
        case idle
        /// From a request's first byte to its last.
        case reading
        /// At a handler; the library has the connection suspended.
        case handling
        /// The answer is there, and waits for the thread that owns the socket.
        case answered
        /// The answer is being written.
        case answering
        /// Told to go; what still comes in is thrown away.
        case closing
        /// The socket is closed, and its number may be another connection's by now.
        case closed
    }

    enum Overdue: Equatable {
        case closeSilently
        case refuseRequest(HTTPServerRefusal.Kind)
        case answerForHandler
    }

    private(set) var phase = Phase.idle
    private(set) var since: ContinuousClock.Instant
    /// Numbers this connection's requests, so that a late answer doesn't answer the next one.
    private(set) var request: UInt64 = 0
    private(set) var path: String?
    /// The fields of the request whose head was read last, while it lasts.
    private(set) var headers = HTTPHeaders()
    private(set) var answer: HTTPServerResponse?
    /// Bytes of requests that were read whole. More than that received means that another request has begun.
    private(set) var bytesConsumed: Int64 = 0
    /// What the peer had acknowledged of its answers, and when that last grew.
    private var acknowledged: (bytes: Int64, at: ContinuousClock.Instant)

    init(now: ContinuousClock.Instant) {
        since = now
        acknowledged = (0, now)
    }

    /// No handler has a request, and no answer is being written.
    var mayBeRefused: Bool { phase == .idle || phase == .reading }

    /// A request line came in. False where nothing is taken any more.
    mutating func targetArrived(path: String?, now: ContinuousClock.Instant) -> Bool {
        guard mayBeRefused else { return false }
        if phase == .idle { enter(.reading, now) }
        self.path = path
        headers = HTTPHeaders()
        return true
    }

    /// The head that belongs to the request line is there.
    mutating func headArrived(_ headers: HTTPHeaders) { self.headers = headers }

    /// The request is whole and goes to a handler: its number. Nil where nothing is taken any more.
    mutating func handOver(now: ContinuousClock.Instant) -> UInt64? {
        guard phase == .reading else { return nil }
        request += 1
        enter(.handling, now)
        return request
    }

    /// An answer to that request. Only the first one counts: true means that the caller must resume the connection.
    mutating func answered(_ response: HTTPServerResponse, to request: UInt64, now: ContinuousClock.Instant) -> Bool {
        guard phase == .handling, request == self.request else { return false }
        answer = response
        enter(.answered, now)
        return true
    }

    /// Takes the answer in order to write it.
    mutating func takeAnswer(now: ContinuousClock.Instant) -> HTTPServerResponse? {
        guard phase == .answered, let answer else { return nil }
        self.answer = nil
        enter(.answering, now)
        return answer
    }

    /// The server answers by itself, in the ordinary way. False where nothing is answered any more.
    mutating func answerAtOnce(now: ContinuousClock.Instant) -> Bool {
        guard phase == .reading else { return false }
        enter(.answering, now)
        return true
    }

    /// The answer is written, or the request came to nothing.
    mutating func requestEnded(bytes: Int64, now: ContinuousClock.Instant) {
        bytesConsumed += bytes
        path = nil
        headers = HTTPHeaders()
        answer = nil
        guard phase != .closing, phase != .closed else { return }
        enter(.idle, now)
    }

    mutating func close(now: ContinuousClock.Instant) {
        if phase != .closed { enter(.closing, now) }
    }

    mutating func closed(now: ContinuousClock.Instant) {
        answer = nil
        enter(.closed, now)
    }

    /// What has taken too long.
    /// - Parameter traffic: asked for only where it matters, since it costs a system call.
    mutating func overdue(
        at now: ContinuousClock.Instant, limits: ConnectionLimits, isDraining: Bool, traffic: some ConnectionTraffic
    ) -> Overdue? {
        switch phase {
        case .idle:
            if traffic.bytesReceived > bytesConsumed {
                enter(.reading, now)
                return nil
            }
            return isDraining || now - since > limits.idle ? .closeSilently : nil
        case .reading: return now - since > limits.request ? .refuseRequest(.timeout) : nil
        case .handling: return now - since > limits.handler ? .answerForHandler : nil
        case .answering: return isStuck(at: now, limits: limits, traffic: traffic) ? .closeSilently : nil
        case .closing: return now - since > ConnectionLimits.goodbye ? .closeSilently : nil
        case .answered, .closed: return nil
        }
    }

    /// A long answer to a slow client takes its time as long as it moves, but not for ever.
    private mutating func isStuck(
        at now: ContinuousClock.Instant, limits: ConnectionLimits, traffic: some ConnectionTraffic
    ) -> Bool {
        let bytes = traffic.bytesAcknowledged
        if bytes > acknowledged.bytes { acknowledged = (bytes, now) }
        return now - max(since, acknowledged.at) > limits.request || now - since > limits.request * 15
    }

    private mutating func enter(_ phase: Phase, _ now: ContinuousClock.Instant) {
        self.phase = phase
        since = now
    }
}

/// What the system knows of a TCP connection's payload, over its whole life.
protocol ConnectionTraffic {
    var bytesReceived: Int64 { get }
    var bytesAcknowledged: Int64 { get }
}

/// The times of `HTTPServerConfiguration`, as the state asks for them.
struct ConnectionLimits {
    let idle: Duration
    let request: Duration
    let handler: Duration
    /// How long a refused client may go on sending: closing at once would reset the connection, and the client might
    /// lose the refusal that it hasn't read yet.
    static let goodbye = Duration.seconds(2)
}
