import Foundation
import Synchronization

/// Waits for SIGTERM or SIGINT. A second one ends the process at once.
///
/// A handler that writes into a pipe, and not a dispatch source: a source needs the signal to be ignored, and Linux
/// throws an ignored signal away whenever some thread would have taken it.
public final class StopSignal: Sendable {
    private let stream: AsyncStream<Void>
    /// One for SIGHUPs that came since the one before: whoever acts on it acts after all of them. Only where they are
    /// taken; ends with the stop.
    public let hangUps: AsyncStream<Void>

    /// From here on the signals no longer end the process. One for each process.
    ///
    /// - Parameter takesHangUps: SIGHUP, too, is taken, and told by ``hangUps``.
    public init(takesHangUps: Bool = false) {
        let (stream, continuation) = AsyncStream.makeStream(of: Void.self)
        let (hangUps, hangUp) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
        self.stream = stream
        self.hangUps = hangUps
        var ends: [Int32] = [-1, -1]
        guard pipe(&ends) == 0 else { return }
        let reading = ends[0]
        pipeEnd.store(ends[1], ordering: .sequentiallyConsistent)
        var action = sigaction()
        action.__sigaction_handler.sa_handler = { number in
            // Only what a handler may do: no allocation, no lock.
            var byte = UInt8(truncatingIfNeeded: number)
            let saved = errno
            _ = write(pipeEnd.load(ordering: .sequentiallyConsistent), &byte, 1)
            errno = saved
        }
        action.sa_flags = SA_RESTART
        for number in [SIGTERM, SIGINT] + (takesHangUps ? [SIGHUP] : []) { sigaction(number, &action, nil) }
        Thread.detachNewThread {
            var byte: UInt8 = 0
            var count = 0
            while true {
                let got = read(reading, &byte, 1)
                if got == 1, Int32(byte) == SIGHUP {
                    hangUp.yield()
                } else if got == 1 {
                    count += 1
                    if count > 1 { _exit(130) }
                    continuation.yield()
                    continuation.finish()
                    hangUp.finish()
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
