import Foundation
import Synchronization

/// Waits for SIGTERM or SIGINT. A second one ends the process at once.
///
/// A handler that writes into a pipe, and not a dispatch source: a source needs the signal to be ignored, and Linux
/// throws an ignored signal away whenever some thread would have taken it.
public final class StopSignal: Sendable {
    private let stream: AsyncStream<Void>

    /// From here on the signals no longer end the process. One for each process.
    public init() {
        let (stream, continuation) = AsyncStream.makeStream(of: Void.self)
        self.stream = stream
        var ends: [Int32] = [-1, -1]
        guard pipe(&ends) == 0 else { return }
        let reading = ends[0]
        pipeEnd.store(ends[1], ordering: .sequentiallyConsistent)
        var action = sigaction()
        action.__sigaction_handler.sa_handler = { _ in
            // Only what a handler may do: no allocation, no lock.
            var byte: UInt8 = 1
            let saved = errno
            _ = write(pipeEnd.load(ordering: .sequentiallyConsistent), &byte, 1)
            errno = saved
        }
        action.sa_flags = SA_RESTART
        for number in [SIGTERM, SIGINT] { sigaction(number, &action, nil) }
        Thread.detachNewThread {
            var byte: UInt8 = 0
            var count = 0
            while true {
                let got = read(reading, &byte, 1)
                if got == 1 {
                    count += 1
                    if count > 1 { _exit(130) }
                    continuation.yield()
                    continuation.finish()
                } else if got == 0 || errno != EINTR {
                    return
                }
            }
        }
    }

    /// Returns once a signal has come, also if it came before.
    public func wait() async { for await _ in stream { return } }
}

/// Where the handler writes; a global, since a handler can carry nothing.
private let pipeEnd = Atomic<Int32>(-1)
