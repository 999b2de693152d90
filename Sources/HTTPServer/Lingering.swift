import Glibc
import Synchronization

/// Sockets that the library has closed, kept open a little for the client to finish sending: a close with unread bytes
/// resets the connection, and the client might lose the refusal that it hasn't read yet.
final class Lingering: Sendable {
    /// More than these are simply closed.
    private static let maximumCount = 256
    private let sockets = Mutex<[(descriptor: Int32, until: ContinuousClock.Instant)]>([])

    /// Duplicates the descriptor (`F_DUPFD_CLOEXEC`), so that the caller's can be closed.
    func keepOpen(_ descriptor: Int32) {
        sockets.withLock { sockets in
            guard sockets.count < Self.maximumCount else { return }
            let duplicate = fcntl(descriptor, F_DUPFD_CLOEXEC, 0)
            guard duplicate >= 0 else { return }
            sockets.append((duplicate, .now + ConnectionLimits.goodbye))
        }
    }

    /// Throws away what has come in, and closes where the client has closed or the time is up.
    func sweep(now: ContinuousClock.Instant) {
        sockets.withLock { sockets in
            sockets.removeAll { descriptor, until in
                let isOver = until < now || !Self.discard(descriptor)
                if isOver { close(descriptor) }
                return isOver
            }
        }
    }

    func closeAll() {
        sockets.withLock { sockets in
            for (descriptor, _) in sockets { close(descriptor) }
            sockets = []
        }
    }

    /// False at the end of the stream.
    private static func discard(_ descriptor: Int32) -> Bool {
        withUnsafeTemporaryAllocation(byteCount: 64 * 1024, alignment: 1) { buffer in
            // At most what a socket's buffer holds; a fast sender shall not keep the sweeper.
            for _ in 0..<64 {
                let count = recv(descriptor, buffer.baseAddress, buffer.count, Int32(MSG_DONTWAIT))
                if count == 0 { return false }
                if count < 0 { return errno == EAGAIN || errno == EINTR }
            }
            return true
        }
    }
}
