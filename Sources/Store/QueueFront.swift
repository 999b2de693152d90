import Synchronization

/// Where the search for the first waiting notifications begins.
///
/// A row that has gone stays in the index for as long as any transaction may still see it, and a backup or a long report
/// may for hours; a search from the first number would pass over all of them, each time. So it begins a little before
/// where the last one found something. What waits further back (it was written down late, its worker died, or a person
/// had it applied again) is found by a search of the whole: now and then, and when twice in a row there was nothing.
///
/// Kept for each process, and only to save work: whatever it says, nothing is lost.
final class QueueFront: Sendable {
    /// How much further back it begins, in notifications: more than are being written down, or applied by others, at a time.
    static let margin: Int64 = 2048
    /// How many searches until one of the whole.
    static let wholeEvery = 256

    private struct State {
        var front: Int64 = 0
        var searches = 0
        var wasEmpty = false
    }
    private let state = Mutex(State())

    /// The number from which on to look; 0: all of them.
    func next() -> Int64 {
        state.withLock { state in
            state.searches += 1
            return state.searches.isMultiple(of: Self.wholeEvery) ? 0 : state.front
        }
    }

    /// - Parameters:
    ///   - start: where the search began.
    ///   - first: the lowest number that it found; nil: none.
    /// - Returns: whether the whole must be searched to know that nothing waits.
    func note(from start: Int64, first: Int64?) -> Bool {
        state.withLock { state in
            defer { state.wasEmpty = first == nil }
            guard let first else { return start > 0 && state.wasEmpty }
            let front = max(0, first - Self.margin)
            state.front = start == 0 ? front : max(state.front, front)
            return false
        }
    }
}
