import Synchronization

/// Collects what several tasks want of the database at the same time into one piece of work, such as a transaction, and
/// tells each what became of its own once that is done.
///
/// While one batch is at work the next one fills: so the database sets the pace, many at once share the cost of round
/// trips and of a commit, and one that comes alone waits for nobody.
final class Batcher<Item: Sendable, Value: Sendable>: Sendable {
    private struct Waiting {
        let item: Item
        let continuation: CheckedContinuation<Result<Value, any Error>, Never>
    }

    private struct State {
        var waiting: [Waiting] = []
        var isWorking = false
    }

    private let state = Mutex(State())
    private let maximumBatch: Int
    private let maximumWaiting: Int
    private let work: @Sendable ([Item]) async -> [Result<Value, any Error>]

    /// - Parameters:
    ///   - maximumBatch: how many share one piece of work; few enough that what they lock isn't locked for long.
    ///   - maximumWaiting: how many may wait for the next batch; more are turned away at once, so that nothing piles up.
    ///   - work: gives as many results as it gets items, in their order.
    init(
        maximumBatch: Int = 256, maximumWaiting: Int = .max,
        work: @escaping @Sendable ([Item]) async -> [Result<Value, any Error>]
    ) {
        self.maximumBatch = maximumBatch
        self.maximumWaiting = maximumWaiting
        self.work = work
    }

    /// How many wait for the next batch.
    var waiting: Int { state.withLock(\.waiting.count) }
    /// Whether a batch is at work.
    var isWorking: Bool { state.withLock(\.isWorking) }

    /// Returns once the item's part is done; the task's cancellation doesn't take it back.
    ///
    /// - Throws: why it certainly, or possibly, wasn't done; ``TooManyWaiting`` where it wasn't tried.
    func add(_ item: Item) async throws -> Value {
        let result = await withCheckedContinuation {
            (continuation: CheckedContinuation<Result<Value, any Error>, Never>) in
            let (isFull, starts) = state.withLock { state in
                guard state.waiting.count < maximumWaiting else { return (true, false) }
                state.waiting.append(Waiting(item: item, continuation: continuation))
                defer { state.isWorking = true }
                return (false, !state.isWorking)
            }
            if isFull { return continuation.resume(returning: .failure(TooManyWaiting())) }
            if starts { Task { await workUntilEmpty() } }
        }
        return try result.get()
    }

    private func workUntilEmpty() async {
        while true {
            let batch: [Waiting] = state.withLock { state in
                let batch = Array(state.waiting.prefix(maximumBatch))
                state.waiting.removeFirst(batch.count)
                if batch.isEmpty { state.isWorking = false }
                return batch
            }
            guard !batch.isEmpty else { return }
            let results = await work(batch.map(\.item))
            for (waiting, result) in zip(batch, results) { waiting.continuation.resume(returning: result) }
        }
    }
}

/// What comes now would wait behind too many others.
struct TooManyWaiting: Error {}
