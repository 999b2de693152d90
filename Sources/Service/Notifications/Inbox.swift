import Basics
import Foundation
import Lockstep
import Store
import Synchronization

/// Takes verified notifications in: collects what comes at once into a batch, and tells each sender when its batch is
/// on disk (invariant M3). While one batch is being written the next one fills, so that the database sets the pace.
public final class Inbox: Sendable {
    public enum Receipt: Sendable {
        case stored
        /// Too much waits already, or the database failed: the sender must come again.
        case notStored
    }

    private struct Waiting {
        let notification: IncomingNotification
        let continuation: CheckedContinuation<Receipt, Never>
    }

    private struct State {
        var waiting: [Waiting] = []
        var isWriting = false
    }

    private let state = Mutex(State())
    private let store: PaymentStore
    private let log: Log
    private let bell: Bell
    /// How many may wait for the next batch; more are turned away at once, so that nothing piles up.
    private let maximumWaiting: Int
    /// How many go into one statement.
    private let maximumBatch: Int

    public init(store: PaymentStore, log: Log, bell: Bell, maximumWaiting: Int = 4096, maximumBatch: Int = 512) {
        self.store = store
        self.log = log
        self.bell = bell
        self.maximumWaiting = maximumWaiting
        self.maximumBatch = maximumBatch
    }

    /// How many wait to be written.
    public var backlog: Int { state.withLock(\.waiting.count) }
    /// Whether a batch is being written.
    var isWriting: Bool { state.withLock(\.isWriting) }

    /// Returns once the notification is on disk, or certainly isn't.
    public func add(_ notification: IncomingNotification) async -> Receipt {
        await withCheckedContinuation { continuation in
            let (isFull, starts) = state.withLock { state in
                guard state.waiting.count < maximumWaiting else { return (true, false) }
                state.waiting.append(Waiting(notification: notification, continuation: continuation))
                defer { state.isWriting = true }
                return (false, !state.isWriting)
            }
            if isFull { return continuation.resume(returning: .notStored) }
            if starts { Task { await writeUntilEmpty() } }
        }
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
            let receipt = await write(batch.map(\.notification))
            for waiting in batch { waiting.continuation.resume(returning: receipt) }
        }
    }

    private func write(_ batch: [IncomingNotification]) async -> Receipt {
        do {
            _ = try await store.insertNotifications(batch)
            bell.ring()
            return .stored
        } catch {
            log.error("notifications could not be stored", .error(error), .count("notifications", batch.count))
            return .notStored
        }
    }
}
