/// How a call goes wrong on request.
public struct SandboxFault: Hashable, Sendable {
    public enum Kind: Hashable, Sendable {
        /// Nothing happens for so long, then the call goes on. The idempotency key counts as running meanwhile.
        case delay(milliseconds: Int)
        /// The effect happens, its answer comes so much later.
        case delayAfter(milliseconds: Int)
        /// An error without the effect; `stored` keeps it under the idempotency key, as Payrails' own 5xx is.
        case errorBefore(status: Int, stored: Bool = false)
        /// The effect happens, and the answer, kept under the key, is this error.
        case errorAfter(status: Int)
        /// The answer, kept under the key, is this error; the effect comes so much later.
        case lateEffect(status: Int, milliseconds: Int)
        /// The connection ends without an answer, and nothing happened.
        case closeBefore
        /// The connection ends without an answer, and the effect happened.
        case closeAfter
        /// A page of HTML, as from something in front of the API; with `effect` the call went through all the same.
        case html(status: Int, effect: Bool = false)
        /// The effect happened, and the connection ends in the middle of the answer.
        case halfBody
        /// 429.
        case rateLimited(retryAfterSeconds: Int?)
        /// The access token ends here: 401, and the same token never works again.
        case expiredToken
        /// The header names of the answer are in lower case.
        case lowercaseHeaders
        /// A lookup is answered as always, and the new amount that it brought isn't taken over. Other calls go on as ever.
        case amountIgnored
    }

    /// Which call; nil: any call of the API.
    public var route: SandboxRoute?
    public var kind: Kind
    /// How often; nil: until it is taken away.
    public var times: Int?
    /// How likely each time, 0 to 1, by the sandbox's seed.
    public var probability: Double
    /// Only calls whose path or body holds this text, like an execution's id or a reference.
    public var containing: String?

    public init(
        _ kind: Kind, on route: SandboxRoute? = nil, times: Int? = 1, probability: Double = 1,
        containing: String? = nil
    ) {
        self.kind = kind
        self.route = route
        self.times = times
        self.probability = probability
        self.containing = containing
    }

    var isDelay: Bool {
        switch kind {
        case .delay, .delayAfter: true
        default: false
        }
    }

    /// The word for the record of calls.
    var name: String {
        switch kind {
        case .delay: "delay"
        case .delayAfter: "delayAfter"
        case .errorBefore: "errorBefore"
        case .errorAfter: "errorAfter"
        case .lateEffect: "lateEffect"
        case .closeBefore: "closeBefore"
        case .closeAfter: "closeAfter"
        case .html: "html"
        case .halfBody: "halfBody"
        case .rateLimited: "rateLimited"
        case .expiredToken: "expiredToken"
        case .lowercaseHeaders: "lowercaseHeaders"
        case .amountIgnored: "amountIgnored"
        }
    }
}

/// How a notification goes wrong on request.
public struct SandboxNotificationFault: Hashable, Sendable {
    public enum Kind: Hashable, Sendable {
        case late(milliseconds: Int)
        case twice
        /// Held back with the others of its kind for so long, then sent in another order.
        case shuffled(milliseconds: Int)
        /// Never sent.
        case lost
        /// Signed with another key.
        case wrongSignature
        /// Only what is in `details`, as several official examples print it (section 5.2).
        case bare
    }

    public var kind: Kind
    public var event: String?
    public var action: String?
    public var executionID: String?
    public var merchantReference: String?
    /// Only results of success, or only those of failure.
    public var success: Bool?
    /// How often; nil: until it is taken away.
    public var times: Int?
    public var probability: Double

    public init(
        _ kind: Kind, event: String? = nil, action: String? = nil, executionID: String? = nil,
        merchantReference: String? = nil, success: Bool? = nil, times: Int? = 1, probability: Double = 1
    ) {
        self.kind = kind
        self.event = event
        self.action = action
        self.executionID = executionID
        self.merchantReference = merchantReference
        self.success = success
        self.times = times
        self.probability = probability
    }

    func matches(_ notification: OutgoingNotification) -> Bool {
        (event == nil || event == notification.event) && (action == nil || action == notification.action)
            && (executionID == nil || executionID == notification.executionID)
            && (merchantReference == nil || merchantReference == notification.merchantReference)
            && (success == nil || success == notification.isSuccess)
    }
}

/// The faults that were asked for and aren't used up.
struct FaultBox: Sendable {
    private(set) var calls: [SandboxFault] = []
    private(set) var notifications: [SandboxNotificationFault] = []
    private var random: SeededGenerator

    init(seed: UInt64) { random = SeededGenerator(seed: seed) }

    mutating func add(_ fault: SandboxFault) { calls.append(fault) }
    mutating func add(_ fault: SandboxNotificationFault) { notifications.append(fault) }
    mutating func clear() {
        calls = []
        notifications = []
    }

    /// Every delay that matches, and the first fault of another kind.
    mutating func take(for route: SandboxRoute, text: () -> String) -> [SandboxFault] {
        guard !calls.isEmpty else { return [] }
        var taken: [SandboxFault] = []
        for index in calls.indices {
            let fault = calls[index]
            guard fault.times != 0, fault.route == nil || fault.route == route,
                fault.isDelay || !taken.contains(where: { !$0.isDelay }),
                fault.containing.map({ text().contains($0) }) ?? true, random.chance(fault.probability)
            else { continue }
            if let times = fault.times { calls[index].times = times - 1 }
            taken.append(fault)
        }
        calls.removeAll { $0.times == 0 }
        return taken
    }

    /// Every fault that matches, each kind once.
    mutating func take(for notification: OutgoingNotification) -> [SandboxNotificationFault.Kind] {
        guard !notifications.isEmpty else { return [] }
        var taken: [SandboxNotificationFault.Kind] = []
        for index in notifications.indices {
            let fault = notifications[index]
            guard fault.times != 0, fault.matches(notification), random.chance(fault.probability) else { continue }
            if let times = fault.times { notifications[index].times = times - 1 }
            taken.append(fault.kind)
        }
        notifications.removeAll { $0.times == 0 }
        return taken
    }
}
