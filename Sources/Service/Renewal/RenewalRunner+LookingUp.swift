import Basics
import Foundation
import Lockstep
import Store

extension RenewalRunner {
    /// What earlier runs left behind, before anything new is sent: attempts that nobody knows the outcome of, and those
    /// that were written down and whose sender died. A look-up is always due.
    ///
    /// - Returns: whether the provider can be reached, as far as it was asked.
    func lookUp(_ summary: inout RenewalSummary) async throws -> Bool {
        var place: ExecutionID?
        var inARow = 0
        while true {
            let open = try await store.listOpenAttempts(after: place, limit: 200)
            guard let last = open.last else { break }
            place = last.id
            for wasRead in await eachAtOnce(open, { await isRead($0) }) {
                inARow = wasRead ? 0 : inARow + 1
                summary.lookedUp += 1
            }
            guard inARow < Self.patience else { return false }
        }
        try await store.hastenChargeOperations()
        while true {
            let claimed = try await store.claimOperations(limit: options.batch, owner: orchestrator.owner)
            guard !claimed.isEmpty else { break }
            summary.lookedUp += await eachAtOnce(claimed, { await advance($0) }).count
        }
        // Of a backlog that is longer than that, this run does its share; workers and later runs do the rest.
        do {
            for _ in 0..<Self.settlingRounds {
                guard try await store.settleDueCharges(limit: 200) > 0 else { break }
            }
        } catch {
            // One that can't be settled doesn't keep the others from being charged.
            log.error("charges could not be settled", .error(error))
        }
        progress(summary)
        return true
    }

    private static let settlingRounds = 100

    private func isRead(_ execution: ExecutionReference) async -> Bool {
        do {
            return try await orchestrator.refreshCharge(of: execution) != nil
        } catch {
            log.error("an execution could not be read", .execution(execution.id), .error(error))
            return true
        }
    }

    private func advance(_ operation: ClaimedOperation) async {
        do {
            try await orchestrator.advance(operation)
        } catch {
            log.error("an operation could not be advanced", .operation(operation.operation.id), .error(error))
        }
    }

    /// Tells of cards that will be expired soon, ahead of time, once for each card and expiry.
    func tellExpiring(_ summary: inout RenewalSummary) async throws {
        while true {
            let told = try await store.tellExpiringInstruments(asOf: run.asOf, limit: 200)
            guard told > 0 else { return }
            summary.expiring += told
        }
    }

    private func eachAtOnce<Item: Sendable, Result: Sendable>(
        _ items: [Item], _ body: @escaping @Sendable (Item) async -> Result
    ) async -> [Result] {
        await withTaskGroup { group in
            var queue = items[...]
            var results: [Result] = []
            for item in queue.prefix(options.concurrency) { group.addTask { await body(item) } }
            queue = queue.dropFirst(options.concurrency)
            while let result = await group.next() {
                results.append(result)
                if let item = queue.popFirst() { group.addTask { await body(item) } }
            }
            return results
        }
    }
}
