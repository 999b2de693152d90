import Lockstep
import Synchronization

/// An attempt that failed by our own set-up at the provider. It counts for nothing, and somebody must mend the cause.
public struct ConfigurationFailure: Hashable, Sendable {
    public let charge: ChargeID
    /// The attempt's.
    public let number: Int
    public let reason: String?
}

/// What a transaction found of these; told once it is committed, and so once for each.
final class FoundFailures: Sendable {
    private let found = Mutex<[ConfigurationFailure]>([])

    var all: [ConfigurationFailure] { found.withLock { $0 } }
    func add(_ failures: [ConfigurationFailure]) {
        if !failures.isEmpty { found.withLock { $0 += failures } }
    }
    /// The transaction begins anew.
    func forget() { found.withLock { $0 = [] } }
}

extension RenewalPlan.Rules {
    /// Attempts that were open before, and failed by our own set-up.
    func configurationFailures(_ before: Charge, _ after: Charge) -> [ConfigurationFailure] {
        let open = Set(before.attempts.filter(\.outcome.isOpen).map(\.number))
        return after.attempts.filter { open.contains($0.number) && failedByConfiguration($0) }
            .map { ConfigurationFailure(charge: after.id, number: $0.number, reason: $0.reason) }
    }
}
