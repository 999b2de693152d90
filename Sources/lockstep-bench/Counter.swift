import Synchronization

/// Numbers that are handed out once.
final class Counter: Sendable {
    private let value: Atomic<Int>
    init(_ start: Int) { value = Atomic(start) }
    func next() -> Int { value.add(1, ordering: .relaxed).newValue }
}
