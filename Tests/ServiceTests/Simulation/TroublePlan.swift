import PayrailsSandbox

/// What goes wrong in a run: first which kinds of trouble there are at all, then how often each comes.
struct TroublePlan: Sendable, CustomStringConvertible {
    private(set) var calls: [SandboxFault] = []
    private(set) var notifications: [SandboxNotificationFault] = []
    /// The chance that a connection to Payrails can't be made.
    private(set) var unreachable = 0.0
    /// The chance of a process to end at each point before or after a call; a tenth of it at each statement.
    private(set) var deathAtCall = 0.0
    private(set) var killsAtRandom = false
    private(set) var outage: Outage?

    /// Nothing of Lockstep runs for so long: keys are forgotten meanwhile, tokens and sessions end, orders expire.
    struct Outage: Sendable {
        let after: Duration
        let length: Duration
        /// Processes end; else they go on where they were, like those of a machine that was suspended.
        let kills: Bool
    }
    /// How long the trouble lasts.
    private(set) var length: Duration = .seconds(30)
    private var words: [String] = []

    var description: String { words.isEmpty ? "no trouble" : words.joined(separator: ", ") }

    private static let callKinds: [(name: String, kind: SandboxFault.Kind)] = [
        ("delay", .delay(milliseconds: 4000)), ("long delay", .delayAfter(milliseconds: 13_000)),
        ("errorBefore", .errorBefore(status: 500)), ("stored errorBefore", .errorBefore(status: 500, stored: true)),
        ("errorAfter", .errorAfter(status: 500)), ("timeout before", .errorBefore(status: 408)),
        ("closeBefore", .closeBefore), ("closeAfter", .closeAfter), ("html", .html(status: 403)),
        ("html after", .html(status: 200, effect: true)), ("halfBody", .halfBody),
        ("rateLimited", .rateLimited(retryAfterSeconds: nil)), ("expiredToken", .expiredToken),
    ]
    private static let notificationKinds: [(name: String, kind: SandboxNotificationFault.Kind)] = [
        ("late", .late(milliseconds: 6000)), ("twice", .twice), ("shuffled", .shuffled(milliseconds: 4000)),
        ("lost", .lost), ("wrongSignature", .wrongSignature), ("bare", .bare),
    ]

    init(_ dice: inout Dice) {
        // Some runs are quiet, so that a failure of the simulation itself shows.
        guard !dice.chance(0.1) else { return }
        length = dice.moment(300...900)
        for (name, kind) in Self.callKinds where dice.chance(0.2) {
            let often = dice.pick([0.03, 0.1, 0.3])
            calls.append(SandboxFault(kind, times: nil, probability: often))
            words.append("\(name) \(often)")
        }
        if dice.chance(0.2) {
            let often = dice.pick([0.1, 0.3])
            calls.append(SandboxFault(.amountIgnored, on: .lookup, times: nil, probability: often))
            words.append("amount ignored \(often)")
        }
        if dice.chance(0.2) {
            let (often, milliseconds) = (dice.pick([0.1, 0.3]), dice.number(500...3000))
            for route in [SandboxRoute.capture, .refund, .cancel] {
                calls.append(
                    SandboxFault(
                        .lateEffect(status: 500, milliseconds: milliseconds), on: route, times: nil,
                        probability: often))
            }
            words.append("effects \(milliseconds) ms after an error \(often)")
        }
        for (name, kind) in Self.notificationKinds where dice.chance(0.25) {
            let often = dice.pick([0.1, 0.3, 1])
            notifications.append(SandboxNotificationFault(kind, times: nil, probability: often))
            words.append("notifications \(name) \(often)")
        }
        if dice.chance(0.2) {
            unreachable = dice.pick([0.03, 0.1, 0.3])
            words.append("unreachable \(unreachable)")
        }
        if dice.chance(0.3) {
            deathAtCall = dice.pick([0.01, 0.05])
            words.append("deaths at calls \(deathAtCall)")
        }
        if dice.chance(0.3) {
            killsAtRandom = true
            words.append("kills")
        }
        if dice.chance(0.15) {
            let hours = dice.pick([2, 23, 25, 49])
            outage = Outage(
                after: dice.moment(50...400), length: .seconds(hours * 3600), kills: dice.chance(0.7))
            words.append("\(outage?.kills == true ? "an outage" : "a suspension") of \(hours) hours")
        }
    }

    func begin(at sandbox: PayrailsSandbox) {
        for fault in calls { sandbox.add(fault) }
        for fault in notifications { sandbox.add(fault) }
    }
}
