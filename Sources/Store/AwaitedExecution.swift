import Basics
import Lockstep

/// An execution of which something is still to be heard: its payment has begun, or its customer was let through the gate.
public struct AwaitedExecution: Hashable, Sendable {
    public let reference: ExecutionReference
    /// When something was last heard of it, or done about it.
    public let heardAt: Timestamp

    public init(reference: ExecutionReference, heardAt: Timestamp) {
        self.reference = reference
        self.heardAt = heardAt
    }
}

extension StoredExecution {
    /// Nil where nothing is to be heard soon.
    ///
    /// - Parameter letThroughAt: when the gate last let its customer through.
    func awaited(letThroughAt: Timestamp? = nil) -> AwaitedExecution? {
        guard execution.state.isInFlight || letThroughAt != nil, !execution.state.holdsMoney else { return nil }
        let times = [changedAt, letThroughAt].compactMap(\.self) + facts.map(\.learnedAt)
        return AwaitedExecution(reference: execution.reference, heardAt: times.max() ?? changedAt)
    }
}
