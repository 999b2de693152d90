import Basics

/// What will happen later, in the order of time; what is due at the same time, in the order it was put in.
struct Schedule: Sendable {
    /// Something that the stand-in does by itself once its time has come.
    enum Event: Sendable {
        case authorizationRequested(execution: String, action: String)
        case authorizationOutcome(execution: String, action: String)
        case captureOutcome(execution: String, action: String)
        case cancelOutcome(execution: String, action: String)
        case refundOutcome(execution: String, action: String)
        case delayedCapture(execution: String)
        case delayedCancel(execution: String, action: String)
        /// `meta.order.pendingStateDuration` has passed.
        case pendingExpiry(execution: String, action: String)
    }

    private struct Entry {
        let due: Timestamp
        let sequence: Int
        let event: Event
    }

    /// Latest first, so that the next one is cheap to take.
    private var entries: [Entry] = []
    private var sequence = 0

    var nextDue: Timestamp? { entries.last?.due }
    var isEmpty: Bool { entries.isEmpty }

    mutating func add(_ event: Event, due: Timestamp) {
        sequence += 1
        var low = 0
        var high = entries.count
        while low < high {
            let middle = (low + high) / 2
            if entries[middle].due > due { low = middle + 1 } else { high = middle }
        }
        entries.insert(Entry(due: due, sequence: sequence, event: event), at: low)
    }

    mutating func takeDue(at now: Timestamp) -> Event? {
        guard let last = entries.last, last.due <= now else { return nil }
        entries.removeLast()
        return last.event
    }
}
