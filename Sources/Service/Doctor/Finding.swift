import Basics

/// One line of the doctor: what was looked at, how it is, and how to mend it.
public struct Finding: Hashable, Sendable {
    public enum State: String, Sendable {
        case fine
        /// Works, and may surprise.
        case note
        case wrong
    }

    public let subject: String
    public let state: State
    public let detail: String
    /// What to do; nil where nothing is to be done.
    public let mend: String?

    public init(_ subject: String, _ state: State, _ detail: String, mend: String? = nil) {
        self.subject = subject
        self.state = state
        self.detail = detail
        self.mend = mend
    }

    /// `wrong  database: … -> run lockstep migrate`
    public var line: String {
        let gap = String(repeating: " ", count: 7 - state.rawValue.count)
        return "\(state.rawValue)\(gap)\(subject): \(detail)" + (mend.map { " -> \($0)" } ?? "")
    }

    public var json: JSON {
        .compact([
            "subject": .string(subject), "state": .string(state.rawValue), "detail": .string(detail),
            "mend": mend.map(JSON.string),
        ])
    }
}
