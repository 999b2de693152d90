import Dispatch
import Foundation
import Synchronization

/// Waits for SIGTERM or SIGINT. A second signal ends the process at once.
public final class StopSignal: Sendable {
    // Dispatch's sources may be used from any thread; the overlay doesn't say so.
    private nonisolated(unsafe) let sources: [any DispatchSourceSignal]
    private let stream: AsyncStream<Void>

    public init() {
        let (stream, continuation) = AsyncStream.makeStream(of: Void.self)
        self.stream = stream
        let box = SignalCount()
        sources = [SIGTERM, SIGINT].map { number in
            signal(number, SIG_IGN)
            let source = DispatchSource.makeSignalSource(signal: number, queue: .global())
            source.setEventHandler {
                if box.increment() > 1 { _exit(130) }
                continuation.yield()
                continuation.finish()
            }
            source.activate()
            return source
        }
    }

    public func wait() async { for await _ in stream { return } }
}

private final class SignalCount: Sendable {
    private let count = Mutex(0)
    func increment() -> Int {
        count.withLock { count in
            count += 1
            return count
        }
    }
}
