import Basics
import Dispatch
import Foundation
import Synchronization

/// Takes lines from any thread and hands them to the sink from one. Nobody waits for the sink: what doesn't fit into
/// the queue is dropped and counted, and the count is logged as soon as there is room.
public final class LogWriter: Sendable {
    /// Called with whole lines, newline included, one call at a time.
    public typealias Sink = @Sendable ([UInt8]) -> Void

    private struct Waiting {
        var lines: [[UInt8]] = []
        var isDraining = false
        var dropped = 0
    }

    private let sink: Sink
    private let capacity: Int
    private let clock: WallClock
    private let waiting = Mutex(Waiting())
    private let queue = DispatchQueue(label: "lockstep.log", qos: .utility)

    /// - Parameter capacity: lines that may wait, at most.
    public init(capacity: Int = 8192, clock: WallClock = .system, sink: @escaping Sink) {
        self.capacity = capacity
        self.clock = clock
        self.sink = sink
    }

    /// Standard error, by `write(2)`, until every byte is out or the descriptor is gone.
    public static func standardError() -> LogWriter {
        LogWriter { line in
            line.withUnsafeBytes { bytes in
                var rest = bytes[...]
                while !rest.isEmpty {
                    let written = write(STDERR_FILENO, UnsafeRawBufferPointer(rebasing: rest).baseAddress, rest.count)
                    if written > 0 {
                        rest = rest.dropFirst(written)
                    } else if errno != EINTR {
                        return
                    }
                }
            }
        }
    }

    /// Lines that were dropped since the last time that was logged.
    public var droppedLines: Int { waiting.withLock { $0.dropped } }

    func enqueue(_ line: [UInt8]) {
        let mustStart = waiting.withLock { waiting in
            guard waiting.lines.count < capacity else {
                waiting.dropped += 1
                return false
            }
            waiting.lines.append(line)
            defer { waiting.isDraining = true }
            return !waiting.isDraining
        }
        if mustStart { queue.async { self.drain() } }
    }

    /// Returns when everything that was logged before is with the sink, or when the limit is over: a terminal that hangs
    /// must not keep a program from ending.
    public func flush(within limit: Duration = .seconds(2)) {
        let work = DispatchWorkItem { self.drain() }
        queue.async(execute: work)
        let milliseconds = limit.components.seconds * 1000 + limit.components.attoseconds / 1_000_000_000_000_000
        _ = work.wait(timeout: .now() + .milliseconds(Int(milliseconds)))
    }

    private func drain() {
        while true {
            let (lines, dropped) = waiting.withLock { waiting in
                let batch = (waiting.lines, waiting.dropped)
                waiting.lines = []
                waiting.dropped = 0
                if batch.0.isEmpty { waiting.isDraining = false }
                return batch
            }
            if dropped > 0 {
                sink(
                    LogLine(
                        time: clock.now(), level: .warning, message: "log lines were dropped",
                        fields: [.count("dropped", dropped)]
                    ).bytes)
            }
            guard !lines.isEmpty else { return }
            for line in lines { sink(line) }
        }
    }
}
