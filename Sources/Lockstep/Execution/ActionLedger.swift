import Basics

/// What became of an execution's captures, or of its refunds, or of its cancels. Rule 5 of the fold.
struct ActionLedger {
    /// The actions that are kept in a ledger.
    static let kinds: Set<String> = ["capture", "refund", "cancel"]

    private struct Result {
        var at: Timestamp
        let success: Bool
        let reason: String?
    }

    private struct Entry {
        let id: String?
        var requestedAt: Timestamp?
        var amount: Money?
        /// What was told, oldest first; one that only repeats the one before is left out.
        var told: [Result] = []
        /// What statuses say about an action whose result nobody told.
        var guessed: Result?
        /// Whether the guess could be about no other action.
        var isGuessCertain = false

        var result: Result? { told.last ?? guessed }
    }

    private let action: String
    private var entries: [Entry] = []
    /// Successes that only a status tells of, and that nobody is known to have asked for.
    private var anonymous: [Timestamp] = []

    /// - Parameters:
    ///   - statuses: by time.
    ///   - actions: by time.
    init(of action: String, statuses: [Fact], actions: [Fact]) {
        self.action = action
        for fact in actions where fact.action == action { enter(fact) }
        attribute(
            Self.results(of: "\(action)Successful", success: true, in: statuses)
                + Self.results(of: "\(action)Failed", success: false, in: statuses))
    }

    /// The amounts of the successful ones, as far as they are known, with the time of their status where their success
    /// is only guessed from it.
    var amounts: [(amount: Money, guessedAt: Timestamp?)] {
        entries.compactMap { entry in
            guard entry.result?.success == true, let amount = entry.amount else { return nil }
            return (amount, entry.told.isEmpty ? entry.guessed?.at : nil)
        }
    }

    /// When the last one succeeded that nothing undid; nil when none did.
    var lastSuccessAt: Timestamp? {
        (entries.compactMap { $0.result?.success == true ? $0.result?.at : nil } + anonymous).max()
    }

    /// When the last one succeeded that was undone later.
    var undoneAt: Timestamp? {
        entries.flatMap { $0.result?.success == false ? $0.told.filter(\.success).map(\.at) : [] }.max()
    }

    /// By the provider's ids.
    var results: [String: ActionResult] {
        var results: [String: ActionResult] = [:]
        for entry in entries {
            guard let id = entry.id else { continue }
            let result = entry.told.last ?? (entry.isGuessCertain ? entry.guessed : nil)
            results[id] = ActionResult(
                action: action, success: result?.success, amount: entry.amount,
                reason: result?.success == false ? result?.reason : nil)
        }
        return results
    }

    /// One for each instant: the same status can be read more than once, with and without its reason.
    private static func results(of code: String, success: Bool, in statuses: [Fact]) -> [Result] {
        Dictionary(grouping: statuses.filter { $0.code == code }, by: \.at).map { at, facts in
            Result(at: at, success: success, reason: facts.lazy.compactMap(\.reason).first)
        }
    }

    private mutating func enter(_ fact: Fact) {
        let index = entry(for: fact)
        if fact.phase == .completed, let success = fact.success {
            if entries[index].told.last?.success != success {
                entries[index].told.append(Result(at: fact.at, success: success, reason: fact.reason))
            }
            // A failure's amount may be 0.00, which is not what was asked for.
            if success { entries[index].amount = fact.amount ?? entries[index].amount }
        } else {
            entries[index].requestedAt = entries[index].requestedAt ?? fact.at
        }
        entries[index].amount = entries[index].amount ?? fact.amount
    }

    /// Where a fact belongs. A result without an id belongs to the oldest action that was asked for before it, has none
    /// yet, and isn't of another amount; if there is none, to one of its own.
    private mutating func entry(for fact: Fact) -> Int {
        let known =
            if let id = fact.actionID {
                entries.firstIndex { $0.id == id }
            } else if fact.phase == .completed {
                entries.firstIndex { entry in
                    entry.told.isEmpty && entry.requestedAt != nil
                        && (entry.amount == nil || fact.amount == nil || entry.amount == fact.amount)
                }
            } else {
                Int?.none
            }
        if let known { return known }
        entries.append(Entry(id: fact.actionID))
        return entries.count - 1
    }

    /// Matches the statuses with the results that were told, and puts the rest down to the actions without a result.
    private mutating func attribute(_ statuses: [Result]) {
        var rest = statuses.sorted { ($0.at, $0.success ? 1 : 0) < ($1.at, $1.success ? 1 : 0) }
        for (entry, place) in toldInOrder() {
            let told = entries[entry].told[place]
            let match = rest.lastIndex { status in
                status.success == told.success && status.at <= told.at.uncut && !isOfAnother(status, than: entry)
            }
            guard let match else { continue }
            entries[entry].told[place].at = rest[match].at
            rest.remove(at: match)
        }
        guess(from: &rest)
        anonymous = rest.filter(\.success).map(\.at)
    }

    /// Whether a status is from before an action was asked for, and from after another was whose result nobody told. Its
    /// own may not have been read yet.
    private func isOfAnother(_ status: Result, than entry: Int) -> Bool {
        guard let askedAt = entries[entry].requestedAt, status.at.uncut < askedAt else { return false }
        return entries.indices.contains { other in
            other != entry && entries[other].told.isEmpty
                && entries[other].requestedAt.map { $0 <= status.at.uncut } ?? false
        }
    }

    /// Takes out of the statuses what is put down to actions whose result nobody told.
    private mutating func guess(from rest: inout [Result]) {
        guard let last = rest.last else { return }
        let open = entries.indices.compactMap { index -> (index: Int, askedAt: Timestamp)? in
            guard entries[index].told.isEmpty, let askedAt = entries[index].requestedAt, askedAt <= last.at else {
                return nil
            }
            return (index, askedAt)
        }
        let possible = rest.filter { result in open.contains { $0.askedAt <= result.at } }
        let isOneKind = Set(possible.map(\.success)).count == 1
        if open.count == 1, let (index, askedAt) = open.first {
            // Whatever was tried in between, a success is how it ended.
            let success = rest.lastIndex { $0.success && $0.at >= askedAt }
            entries[index].guessed = rest.remove(at: success ?? rest.count - 1)
            entries[index].isGuessCertain = isOneKind
            return
        }
        // In the order in which they were asked for. Certain where all of them ended in the same way.
        for (index, askedAt) in open {
            guard let found = rest.firstIndex(where: { $0.at >= askedAt }) else { continue }
            entries[index].guessed = rest.remove(at: found)
        }
        let isCertain = isOneKind && open.allSatisfy { entries[$0.index].guessed != nil }
        for (index, _) in open { entries[index].isGuessCertain = isCertain }
    }

    /// Every result that was told, by its time.
    private func toldInOrder() -> [(entry: Int, place: Int)] {
        entries.indices.flatMap { entry in entries[entry].told.indices.map { (entry, $0) } }
            .sorted { (entries[$0.0].told[$0.1].at, $0.0) < (entries[$1.0].told[$1.1].at, $1.0) }
    }
}
