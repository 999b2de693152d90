import Lockstep
import Postgres

extension PaymentStore {
    /// Does many things in one transaction. Where one of them is bad, each in a transaction of its own, so that only that
    /// one fails.
    ///
    /// - Parameters:
    ///   - deadline: after which nobody waits for it any more; nil: the pool's own.
    ///   - body: gives as many results as it gets items, in their order.
    func together<Item: Sendable, Value: Sendable>(
        _ items: [Item], deadline: ContinuousClock.Instant? = nil,
        _ body: @Sendable (Transaction, [Item]) async throws -> [Value]
    ) async -> [Result<Value, any Error>] {
        guard !items.isEmpty else { return [] }
        do {
            let values = try await transact(deadline: deadline) { try await body($0, items) }
            precondition(values.count == items.count, "as many results as items")
            return values.map { .success($0) }
        } catch let error where error.isAboutOne && items.count > 1 {
            var results: [Result<Value, any Error>] = []
            for item in items { results += await together([item], deadline: deadline, body) }
            return results
        } catch {
            return items.map { _ in .failure(error) }
        }
    }
}

extension Error {
    /// The data itself was refused (class 22, a CHECK, a value that PostgreSQL has no form for), or a row can't be read:
    /// trying again changes nothing. Anything else is the database's trouble, or a race (a unique index), and passes.
    var isAboutData: Bool {
        guard let error = self as? PostgresError else { return self is CorruptRow }
        if error.code == .encoding || error.code == .decoding { return true }
        return error.sqlState.map { $0.hasPrefix("22") || $0 == "23514" || $0 == "23502" } ?? false
    }

    /// One of several that share a transaction is to blame: bad data, or a constraint that only it breaks.
    fileprivate var isAboutOne: Bool {
        isAboutData || (self as? PostgresError)?.sqlState?.hasPrefix("23") ?? false
    }
}
