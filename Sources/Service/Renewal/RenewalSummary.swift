import Basics
import Lockstep

/// What became of one subscription in a run.
enum Dealt: Sendable {
    /// An attempt was made; where its charge stands.
    case charged(Charge.State, skipped: Int)
    case skipped(Int)
    /// Nothing was due any more, or somebody else has it.
    case lost
    /// It was due, and the provider couldn't be asked. Nothing is burnt.
    case untried
    /// It was due, and the provider can be asked but doesn't show its instrument. Nothing is burnt.
    case unread
    case failed
    case ended
}

/// What a run did, by state.
public struct RenewalSummary: Sendable {
    public let asOf: Timestamp
    /// Subscriptions that were taken.
    public internal(set) var looked = 0
    /// Attempts of this run, by the state that their charges are in now.
    public internal(set) var charged: [Charge.State: Int] = [:]
    public internal(set) var skipped = 0
    public internal(set) var untried = 0
    public internal(set) var failed = 0
    public internal(set) var ended = 0
    /// Rows that can't be read and were set aside.
    public internal(set) var broken = 0
    /// Attempts of before that were looked up.
    public internal(set) var lookedUp = 0
    /// Of these, those of which the provider told nothing.
    public internal(set) var unanswered = 0
    /// There were more than a run's share, or they weren't answered: later runs and workers go on.
    public internal(set) var leftLookUps = false
    /// Charges whose outcome nobody knows at the end, whoever made them.
    public internal(set) var stillUnknown = 0
    /// Cards whose expiry was told ahead of time.
    public internal(set) var expiring = 0
    public internal(set) var stoppedEarly = false
    /// `--limit` ended it while more was due.
    public internal(set) var isLimited = false

    init(asOf: Timestamp) { self.asOf = asOf }

    mutating func add(_ dealt: Dealt) {
        looked += 1
        switch dealt {
        case .charged(let state, let skipped):
            charged[state, default: 0] += 1
            self.skipped += skipped
        case .skipped(let count): skipped += count
        case .lost: break
        case .untried, .unread: untried += 1
        case .failed: failed += 1
        case .ended: ended += 1
        }
    }

    /// Something that was due was not tried, or nobody knows what became of it. A declined charge is done.
    public var isUnfinished: Bool {
        untried + failed + broken + unanswered + stillUnknown > 0 || leftLookUps || stoppedEarly || isLimited
    }

    /// What is there to tell, with its numbers; zeros left out.
    public var lines: [(name: String, count: Int)] {
        let states = Charge.State.allCases.map { ($0.rawValue, charged[$0] ?? 0) }
        let rest = [
            ("skippedPeriods", skipped), ("ended", ended), ("notTried", untried), ("failedToProcess", failed),
            ("setAside", broken), ("lookedUp", lookedUp), ("unanswered", unanswered), ("stillUnknown", stillUnknown),
            ("expiringTold", expiring),
        ]
        return (states + rest).filter { $0.1 > 0 }.map { (name: $0.0, count: $0.1) }
    }

    public var json: JSON {
        [
            "asOf": .string(asOf.rfc3339), "subscriptions": JSON(looked),
            "charges": .object(
                Dictionary(
                    Charge.State.allCases.compactMap { state in charged[state].map { (state.rawValue, JSON($0)) } },
                    uniquingKeysWith: { first, _ in first })),
            "skippedPeriods": JSON(skipped), "ended": JSON(ended), "notTried": JSON(untried),
            "failedToProcess": JSON(failed), "setAside": JSON(broken), "lookedUp": JSON(lookedUp),
            "unanswered": JSON(unanswered), "leftLookUps": .bool(leftLookUps), "stillUnknown": JSON(stillUnknown),
            "expiringTold": JSON(expiring), "stoppedEarly": .bool(stoppedEarly),
            "limited": .bool(isLimited),
        ]
    }
}
