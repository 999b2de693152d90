import Basics
import Foundation
import Lockstep
import Store

extension RenewalRunner {
    /// What earlier runs left behind, before anything new is sent: attempts that nobody knows the outcome of, and those
    /// that were written down and whose sender died. A look-up is always due.
    ///
    /// A run does its share of them, and leaves those alone that another run has: what is due now isn't held up for long.
    func lookUp(_ summary: inout RenewalSummary, isStopping: @Sendable () -> Bool) async throws {
        let isAnswered = try await readAttempts(&summary, isStopping)
        try await store.hastenChargeOperations()
        // Where nothing was answered, one batch must do.
        var left = isAnswered ? Self.share : options.batch
        while !isStopping() {
            guard left > 0 else {
                summary.leftLookUps = true
                break
            }
            let claimed = try await store.claimOperations(limit: min(left, options.batch), owner: orchestrator.owner)
            guard !claimed.isEmpty else { break }
            left -= claimed.count
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
    }

    /// How many attempts, and how many calls that were left behind, a run looks into: at ten calls a second, the usual
    /// limit, each is about a minute.
    private static let share = 600
    private static let settlingRounds = 100

    /// - Returns: whether the provider answered, as far as it was asked.
    private func readAttempts(_ summary: inout RenewalSummary, _ isStopping: @Sendable () -> Bool) async throws -> Bool
    {
        let began = store.now
        var (left, inARow) = (Self.share, 0)
        while !isStopping() {
            guard left > 0, inARow < Self.patience else {
                summary.leftLookUps = true
                break
            }
            let claimed = try await store.claimLookUps(run, since: began, limit: min(left, options.batch))
            guard !claimed.isEmpty else { break }
            left -= claimed.count
            for found in await eachAtOnce(claimed, { await look(into: $0) }) {
                summary.lookedUp += 1
                if found != .read { summary.unanswered += 1 }
                switch found {
                case .read, .refused: inARow = 0
                case .silent: inARow += 1
                case .failed: break
                }
            }
            try await store.releaseLookUps(run, claimed.map(\.id))
        }
        guard inARow < Self.patience else {
            log.warning("attempts of before can't be looked up now", .count("tries", Self.patience))
            return false
        }
        return true
    }

    private enum Look {
        case read
        /// The provider can be reached, and doesn't show this one.
        case refused
        case silent
        /// Nothing that the provider has to do with.
        case failed
    }

    private func look(into execution: ExecutionReference) async -> Look {
        do {
            switch try await orchestrator.readCharge(of: execution) {
            case .done: return .read
            case .refused(let refusal): return refusal.isAnswer ? .refused : .silent
            case .unknown: return .silent
            }
        } catch {
            log.error("an execution could not be read", .execution(execution.id), .error(error))
            return .failed
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

extension Refusal {
    /// The provider itself has looked at what was asked and turned it down: it isn't down, and another may go through.
    var isAnswer: Bool { kind == .notFound || !isPassing && isAboutIntent }
}
