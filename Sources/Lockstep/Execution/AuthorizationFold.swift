import Basics

/// The authorization's part of the fold: which of its results counts. Rules 1 to 4 of the fold.
struct AuthorizationFold {
    private(set) var state: ExecutionState = .created
    /// The latest failure, while nothing succeeded after it.
    private(set) var failure: (at: Timestamp, reason: String?)?
    /// Whether one of the failures is one behind which a charge can hide: the provider was asked, and nobody knows what it
    /// did (reference 6.6).
    private(set) var mayHideCharge = false
    /// When the success that counts happened.
    private(set) var succeededAt: Timestamp?

    /// - Parameters:
    ///   - statuses: by time.
    ///   - actions: by time.
    init(statuses: [Fact], actions: [Fact]) {
        var timeline = Timeline(statuses: statuses)
        for action in actions { timeline.place(action) }
        // The success that counts.
        var success: Timeline.Step?
        for step in timeline.ordered {
            switch step.signal {
            case .success:
                success = state == .authorized ? success.map(step.joined) ?? step : step
                state = .authorized
            case .failure:
                if state != .authorized || success.map(step.takesBack) ?? true { fail(step) }
            case .confirmFailure where state != .authorized: fail(step)
            case .requested where state != .authorized: state = .processing
            case .running where state == .created || state == .needsCustomer: state = .processing
            case .pending where state != .authorized && state != .failed: state = .needsCustomer
            case .noMeaning where state != .authorized: state = .unknown
            case .confirmFailure, .requested, .running, .pending, .noMeaning: break
            }
        }
        // What is taken back had succeeded, so it isn't the provider that nobody heard of.
        if success != nil { mayHideCharge = false }
        if state == .authorized { failure = nil }
        succeededAt = state == .authorized ? success?.at : nil
    }

    private mutating func fail(_ step: Timeline.Step) {
        state = .failed
        failure = (step.at, step.reason)
        let result = step.reason.map { DeclinePolicy.plain(DeclinePolicy.result(of: $0)) }
        if let result, Self.doubtful.contains(result) { mayHideCharge = true }
    }

    /// Not from the table of declines, which people change: what an execution's state is must not depend on that.
    private static let doubtful = Set(
        [
            "Timeout", "ProviderTimeout", "UnexpectedProviderResponse", "ProviderUnknownError",
            "UnexpectedProviderError",
        ].map(DeclinePolicy.plain))
}

/// The steps of an authorization in the provider's time.
private struct Timeline {
    /// Ordered by what counts for more at the same instant: a result more than a request, a success more than a failure.
    enum Signal: Int { case noMeaning, requested, running, pending, confirmFailure, failure, success }

    struct Step {
        let at: Timestamp
        let signal: Signal
        var reason: String?
        /// The actions that are known to have made this step.
        var actionIDs: Set<String> = []
        /// Whether a status tells of it.
        var isStamped: Bool
        /// Whether an action's result was put down to this status.
        var isTold = false

        /// This success, told again after an earlier one.
        func joined(with earlier: Step) -> Step {
            var both = self
            both.actionIDs.formUnion(earlier.actionIDs)
            both.isStamped = isStamped || earlier.isStamped
            return both
        }

        /// Whether this failure is a later result of that success.
        func takesBack(_ success: Step) -> Bool {
            if !actionIDs.isDisjoint(with: success.actionIDs) { return true }
            let isAnothers = !actionIDs.isEmpty && !success.actionIDs.isEmpty
            return !isAnothers && (isStamped || !success.isStamped)
        }
    }

    private var stamped: [Step] = []
    private var told: [Step] = []
    /// The latest result of each action, and its place in time.
    private var lastResults: [String: (signal: Signal, at: Timestamp)] = [:]

    init(statuses: [Fact]) {
        for status in statuses {
            guard let signal = Self.signal(ofStatus: status.code ?? "") else { continue }
            // The same entry can be read more than once, with and without its reason.
            if let index = stamped.lastIndex(where: { $0.at == status.at && $0.signal == signal }) {
                stamped[index].reason = stamped[index].reason ?? status.reason
            } else {
                stamped.append(Step(at: status.at, signal: signal, reason: status.reason, isStamped: true))
            }
        }
    }

    var ordered: [Step] {
        (stamped + told).sorted {
            ($0.at, $0.signal.rawValue, $0.reason ?? "", $0.actionIDs.min() ?? "")
                < ($1.at, $1.signal.rawValue, $1.reason ?? "", $1.actionIDs.min() ?? "")
        }
    }

    /// Puts what an action's fact says where its status stands, or at its own time where that isn't known.
    mutating func place(_ fact: Fact) {
        guard let signal = Self.signal(ofAction: fact) else { return }
        let previous = fact.actionID.flatMap { lastResults[$0] }
        // Told again, or told later of the same result: nothing new.
        if let previous, previous.signal == signal { return }
        let isResult = signal.rawValue >= Signal.confirmFailure.rawValue
        let own = stamped.indices.filter { stamped[$0].signal == signal && stamped[$0].at <= fact.at.uncut }
        var index = own.last { place in !isResult || previous.map { stamped[place].at > $0.at } ?? true }
        if index == nil, isResult, !fact.isDated {
            // Without a time of its own it has that of its arrival, and may come after what came later. Where each status of
            // its kind is told of already, it is one of those again, or a status that isn't read yet.
            index = own.last { !stamped[$0].isTold }
            if index == nil, !own.isEmpty { return }
        }
        let at: Timestamp
        if let index {
            at = stamped[index].at
            stamped[index].reason = stamped[index].reason ?? fact.reason
            if let id = fact.actionID, fact.isDated || own.count == 1 { stamped[index].actionIDs.insert(id) }
            if isResult { stamped[index].isTold = true }
        } else {
            // A time that was cut off comes after the statuses of the rest of its second.
            at = stamped.last { $0.at > fact.at && $0.at <= fact.at.uncut }?.at ?? fact.at
            told.append(
                Step(
                    at: at, signal: signal, reason: fact.reason, actionIDs: Set([fact.actionID].compactMap(\.self)),
                    isStamped: false))
        }
        if isResult, let id = fact.actionID, previous.map({ $0.at <= at }) ?? true { lastResults[id] = (signal, at) }
    }

    /// Nil: known, and no part of the authorization. The list is the official one of reference 2.7.
    private static func signal(ofStatus code: String) -> Signal? {
        switch code {
        case "authorizeRequested": .requested
        case "authorizePending": .pending
        case "authorizeSuccessful": .success
        case "authorizeFailed": .failure
        case "confirmFailed": .confirmFailure
        case "confirmRequested", "confirmSuccessful": .running
        case "created", "captureSuccessful", "captureFailed", "captureRequested", "captureScheduled",
            "captureUnscheduled", "cancelSuccessful", "cancelFailed", "cancelRequested", "cancelScheduled",
            "cancelUnscheduled", "refundSuccessful", "refundFailed", "refundRequested", "fraudScoreSuccessful",
            "fraudScoreFailed", "fraudScoreRequested", "fraudScorePending", "payoutSuccessful", "payoutFailed",
            "payoutRequested", "payoutPending":
            nil
        default: .noMeaning
        }
    }

    private static func signal(ofAction fact: Fact) -> Signal? {
        switch (fact.action, fact.phase) {
        case ("authorize", .completed): fact.success.map { $0 ? .success : .failure } ?? .noMeaning
        case ("authorize", .requested): .requested
        case ("authorize", .pending): .pending
        case ("confirm", .completed): fact.success == false ? .confirmFailure : .running
        case ("confirm", .requested), ("confirm", .pending): .running
        default: nil
        }
    }
}
