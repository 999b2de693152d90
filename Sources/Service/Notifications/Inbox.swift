import Lockstep
import Store

/// Takes verified notifications in: what comes at once shares a statement, and each sender is told when its own is on
/// disk (invariant M3).
public final class Inbox: Sendable {
    public enum Receipt: Sendable {
        case stored
        /// Too much waits already, or the database failed: the sender must come again.
        case notStored
    }

    private let batcher: Batcher<IncomingNotification, Void>

    /// - Parameters:
    ///   - maximumWaiting: how many may wait for the next batch; more are turned away at once.
    ///   - maximumBatch: how many go into one statement.
    public init(store: PaymentStore, log: Log, bell: Bell, maximumWaiting: Int = 4096, maximumBatch: Int = 512) {
        batcher = Batcher(maximumBatch: maximumBatch, maximumWaiting: maximumWaiting) { batch in
            do {
                _ = try await store.insertNotifications(batch)
                bell.ring()
                return batch.map { _ in .success(()) }
            } catch {
                log.error("notifications could not be stored", .error(error), .count("notifications", batch.count))
                return batch.map { _ in .failure(error) }
            }
        }
    }

    /// How many wait to be written.
    public var backlog: Int { batcher.waiting }
    /// Whether a batch is being written.
    var isWriting: Bool { batcher.isWorking }

    /// Returns once the notification is on disk, or may not be.
    public func add(_ notification: IncomingNotification) async -> Receipt {
        do {
            try await batcher.add(notification)
            return .stored
        } catch {
            // Why a batch wasn't written is in the log; that too many wait is counted by the answers' status.
            return .notStored
        }
    }
}
