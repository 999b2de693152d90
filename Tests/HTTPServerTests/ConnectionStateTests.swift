import Testing

@testable import HTTPServer

private struct Traffic: ConnectionTraffic {
    let bytesReceived: Int64
    let bytesAcknowledged: Int64
}

/// A state whose events come at whole seconds. A class, because expectations can't mutate a struct.
private final class Subject {
    private var state: ConnectionState
    private let start = ContinuousClock.now
    private let limits = ConnectionLimits(idle: .seconds(75), request: .seconds(20), handler: .seconds(60))

    init() { state = ConnectionState(now: start) }

    var phase: ConnectionState.Phase { state.phase }
    var mayBeRefused: Bool { state.mayBeRefused }

    func targetArrived(at seconds: Int = 0) -> Bool { state.targetArrived(path: "/p", now: start + .seconds(seconds)) }
    func handOver() -> UInt64? { state.handOver(now: start) }
    func answered(_ status: Int, to request: UInt64, at seconds: Int = 0) -> Bool {
        state.answered(HTTPServerResponse(status: status), to: request, now: start + .seconds(seconds))
    }
    func takeAnswer(at seconds: Int = 0) -> Int? { state.takeAnswer(now: start + .seconds(seconds))?.status }
    func answerAtOnce() -> Bool { state.answerAtOnce(now: start) }
    func requestEnded(bytes: Int64, at seconds: Int = 0) {
        state.requestEnded(bytes: bytes, now: start + .seconds(seconds))
    }
    func close() { state.close(now: start) }
    func closed() { state.closed(now: start) }
    func overdue(
        at seconds: Int, received: Int64 = 0, acknowledged: Int64 = 0, isDraining: Bool = false
    ) -> ConnectionState.Overdue? {
        state.overdue(
            at: start + .seconds(seconds), limits: limits, isDraining: isDraining,
            traffic: Traffic(bytesReceived: received, bytesAcknowledged: acknowledged))
    }

    /// Brings a request to its handler: the request's number.
    func handle() throws -> UInt64 {
        #expect(targetArrived())
        return try #require(handOver())
    }
}

@Suite("A connection's state")
struct ConnectionStateTests {
    private let subject = Subject()

    @Test("an idle connection is closed after the idle time, and at once while draining")
    func idle() {
        #expect(subject.overdue(at: 75) == nil)
        #expect(subject.overdue(at: 76) == .closeSilently)
        #expect(subject.overdue(at: 1, isDraining: true) == .closeSilently)
    }

    @Test("a first byte begins a request, which has its own time from then on, draining or not")
    func firstByte() {
        #expect(subject.overdue(at: 70, received: 1, isDraining: true) == nil)
        #expect(subject.phase == .reading)
        #expect(subject.overdue(at: 90, received: 1, isDraining: true) == nil)
        #expect(subject.overdue(at: 91, received: 9) == .refuseRequest(.timeout))
    }

    @Test("a request line doesn't start the time again")
    func requestLine() {
        #expect(subject.overdue(at: 0, received: 1) == nil)
        #expect(subject.targetArrived(at: 15))
        #expect(subject.overdue(at: 21, received: 90) == .refuseRequest(.timeout))
    }

    @Test("bytes of earlier requests don't count, those of a pipelined one do")
    func consumed() throws {
        let number = try subject.handle()
        #expect(subject.answered(200, to: number))
        #expect(subject.takeAnswer() == 200)
        subject.requestEnded(bytes: 100)
        #expect(subject.phase == .idle)
        #expect(subject.overdue(at: 1, received: 100) == nil)
        #expect(subject.phase == .idle)
        #expect(subject.overdue(at: 1, received: 101) == nil)
        #expect(subject.phase == .reading)
    }

    @Test("the first answer counts, and only for its own request")
    func answers() throws {
        let first = try subject.handle()
        #expect(!subject.answered(201, to: first + 1))
        #expect(subject.answered(200, to: first))
        #expect(!subject.answered(202, to: first))
        #expect(subject.takeAnswer() == 200)
        #expect(subject.takeAnswer() == nil)
        subject.requestEnded(bytes: 1)
        let second = try subject.handle()
        #expect(!subject.answered(203, to: first))
        #expect(subject.answered(204, to: second))
    }

    @Test("a handler is answered for after its time, and the writing of an answer ends after its own")
    func slow() throws {
        let number = try subject.handle()
        #expect(subject.overdue(at: 60) == nil)
        #expect(subject.overdue(at: 61) == .answerForHandler)
        #expect(subject.answered(503, to: number, at: 61))
        #expect(subject.overdue(at: 600) == nil)
        #expect(subject.takeAnswer(at: 61) == 503)
        #expect(subject.overdue(at: 81) == nil)
        #expect(subject.overdue(at: 82) == .closeSilently)
    }

    @Test("an answer that moves may take longer, but not for ever")
    func slowReader() throws {
        let number = try subject.handle()
        #expect(subject.answered(200, to: number))
        #expect(subject.takeAnswer() == 200)
        for step in 1...29 { #expect(subject.overdue(at: step * 10, acknowledged: Int64(step)) == nil) }
        #expect(subject.overdue(at: 301, acknowledged: 100) == .closeSilently)
    }

    @Test("an answer that stops moving is given up")
    func stuckReader() throws {
        let number = try subject.handle()
        #expect(subject.answered(200, to: number))
        #expect(subject.takeAnswer() == 200)
        #expect(subject.overdue(at: 15, acknowledged: 5) == nil)
        #expect(subject.overdue(at: 35, acknowledged: 5) == nil)
        #expect(subject.overdue(at: 36, acknowledged: 5) == .closeSilently)
    }

    @Test("the idle time runs from the last answer")
    func idleAgain() throws {
        let number = try subject.handle()
        #expect(subject.answered(200, to: number))
        #expect(subject.takeAnswer() == 200)
        subject.requestEnded(bytes: 10, at: 70)
        #expect(subject.overdue(at: 145, received: 10) == nil)
        #expect(subject.overdue(at: 146, received: 10) == .closeSilently)
    }

    @Test("a handler's request is neither refused nor closed by a drain")
    func drainLeavesHandlers() throws {
        _ = try subject.handle()
        #expect(!subject.mayBeRefused)
        #expect(subject.overdue(at: 1, received: 500, isDraining: true) == nil)
    }

    @Test("a closing connection takes nothing more, and is closed for good a little later")
    func closing() {
        subject.close()
        #expect(!subject.targetArrived())
        #expect(subject.handOver() == nil)
        #expect(!subject.answerAtOnce())
        subject.requestEnded(bytes: 1)
        #expect(subject.phase == .closing)
        #expect(subject.overdue(at: 1) == nil)
        #expect(subject.overdue(at: 3) == .closeSilently)
    }

    @Test("nothing happens to a closed connection")
    func closed() throws {
        let number = try subject.handle()
        subject.closed()
        #expect(!subject.answered(200, to: number))
        subject.close()
        #expect(subject.phase == .closed)
        #expect(subject.overdue(at: 1_000, received: 9, isDraining: true) == nil)
    }
}
