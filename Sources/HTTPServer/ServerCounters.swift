import Synchronization

/// Counts that any thread adds to.
final class ServerCounters: Sendable {
    let accepted = Atomic(0)
    let inFlight = Atomic(0)
    let served = Atomic(0)
    let bufferedBytes = Atomic(0)
    private let refusals = Mutex<[HTTPServerRefusal.Kind: Int]>([:])

    func refused(_ kind: HTTPServerRefusal.Kind) { refusals.withLock { $0[kind, default: 0] += 1 } }
    var refused: [HTTPServerRefusal.Kind: Int] { refusals.withLock { $0 } }
}
