import Synchronization

/// Collects what several tasks want to write at the same time into one transaction, and tells each what became of its
/// own once that is on disk.
///
/// While one batch is being written the next one fills: so the database sets the pace, many at once share the cost of a
/// transaction, and one that comes alone waits for nobody.
final class GroupCommit<Item: Sendable, Value: Sendable>: Sendable {
    private struct Waiting {
        let item: Item
        let continuation: CheckedContinuation<Result<Value, any Error>, Never>
    }

    private struct State {
        var waiting: [Waiting] = []
        var isWriting = false
    }

    private let state = Mutex(State())
    private let maximumBatch: Int
    private let maximumWaiting: Int
    private let write: @Sendable ([Item]) async -> [Result<Value, any Error>]

    /// - Parameters:
    ///   - maximumBatch: how many share a transaction; few enough that what they lock isn't locked for long.
    ///   - maximumWaiting: how many may wait for the next batch; more are turned away at once, so that nothing piles up.
    ///   - write: gives as many results as it gets items, in their order.
    init(
        maximumBatch: Int = 256, maximumWaiting: Int = .max,
        write: @escaping @Sendable ([Item]) async -> [Result<Value, any Error>]
    ) {
        self.maximumBatch = maximumBatch
        self.maximumWaiting = maximumWaiting
        self.write = write
    }

    /// How many wait for the next batch.
    var waiting: Int { state.withLock(\.waiting.count) }
    /// Whether a batch is being written.
    var isWriting: Bool { state.withLock(\.isWriting) }

    /// Returns once the item is written; the task's cancellation doesn't take it back.
    ///
    /// - Throws: why it certainly, or possibly, isn't; ``TooManyWaiting`` where it wasn't tried.
    func add(_ item: Item) async throws -> Value {
        let result = await withCheckedContinuation {
            (continuation: CheckedContinuation<Result<Value, any Error>, Never>) in
            let (isFull, starts) = state.withLock { state in
                guard state.waiting.count < maximumWaiting else { return (true, false) }
                state.waiting.append(Waiting(item: item, continuation: continuation))
                defer { state.isWriting = true }
                return (false, !state.isWriting)
            }
            if isFull { return continuation.resume(returning: .failure(TooManyWaiting())) }
            if starts { Task { await writeUntilEmpty() } }
        }
        return try result.get()
    }

    private func writeUntilEmpty() async {
        while true {
            let batch: [Waiting] = state.withLock { state in
                let batch = Array(state.waiting.prefix(maximumBatch))
                state.waiting.removeFirst(batch.count)
                if batch.isEmpty { state.isWriting = false }
                return batch
            }
            guard !batch.isEmpty else { return }
            let results = await write(batch.map(\.item))
            for (waiting, result) in zip(batch, results) { waiting.continuation.resume(returning: result) }
        }
    }
}

/// What comes now would wait behind too many others.
struct TooManyWaiting: Error {}
