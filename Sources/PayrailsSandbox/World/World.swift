import Basics
import Foundation
import Lockstep

/// The whole state of the stand-in, and nothing that waits: calls go in, answers and effects come out.
///
/// Deterministic: the same seed, the same clock and the same calls give the same ids, states and ledger. Whoever owns it
/// guards it with a lock, takes ``effects`` out after each call, and performs them.
struct World: Sendable {
    /// What must happen outside after a call.
    struct Effects: Sendable {
        var notifications: [OutgoingNotification] = []
        /// Executions with a new status; long polls on them look again.
        var changed: Set<String> = []
    }

    struct AccessToken: Sendable {
        let expiresAt: Timestamp
    }

    /// What an init payload's token reaches: one holder, and one execution if there is one.
    struct ClientSession: Sendable {
        let executionID: String?
        let holderReference: String
        let expiresAt: Timestamp
    }

    /// Who is calling.
    enum Caller: Sendable {
        case merchant
        case client(ClientSession)
    }

    var configuration: SandboxConfiguration
    /// Where the links of the API and of the client-facing API point.
    var baseURL = "http://127.0.0.1"
    var random: SeededGenerator
    var effects = Effects()
    var schedule = Schedule()
    var ledger = Ledger()
    var rules: [SandboxOutcomeRule]
    var targets: [NotificationTarget]

    /// Secrets by client id.
    var credentials: [String: String]
    var accessTokens: [String: AccessToken] = [:]
    var clientSessions: [String: ClientSession] = [:]
    var holders: [String: Holder] = [:]
    var instruments: [String: Instrument] = [:]
    var instrumentsByHolder: [String: [String]] = [:]
    var executions: [String: Execution] = [:]
    var executionOrder: [String] = []
    var executionsByReference: [String: [String]] = [:]
    var payments: [String: Payment] = [:]
    var paymentOrder: [String] = []
    var paymentsByReference: [String: [String]] = [:]
    var sequence = 0
    private var lastStamp = Timestamp(seconds: 0)

    init(_ configuration: SandboxConfiguration, seed: UInt64) {
        self.configuration = configuration
        random = SeededGenerator(seed: seed)
        rules = configuration.outcomeRules
        credentials = [configuration.clientID: configuration.clientSecret]
        targets = configuration.notificationTargets
    }

    var now: Timestamp { configuration.clock.now() }

    /// The time of something that happens: never the same twice, so that sorting by time is an order.
    mutating func stamp() -> Timestamp {
        let next = max(now, lastStamp + .nanoseconds(1))
        lastStamp = next
        return next
    }

    mutating func nextSequence() -> Int {
        sequence += 1
        return sequence
    }

    /// Lets everything happen whose time has come.
    mutating func settle() {
        let now = now
        while let event = schedule.takeDue(at: now) { perform(event) }
    }

    mutating func takeEffects() -> Effects {
        let taken = effects
        effects = Effects()
        return taken
    }

    /// Refuses what doesn't have the shape, with every fault at once.
    func check(_ body: JSON, against shape: Shape) throws(APIError) {
        let faults = shape.faults(in: body, at: "", refusingUnknown: configuration.refusesUnknownFields)
        guard faults.isEmpty else { throw APIError(faults: faults) }
    }

    /// An amount that has already passed its shape.
    func money(_ json: JSON) throws(APIError) -> Money {
        do { return try Money(wire: json) } catch { throw .invalid("amount \(error.detail)") }
    }

    func execution(_ id: String) throws(APIError) -> Execution {
        guard let execution = executions[id] else { throw .notFound("no such execution") }
        return execution
    }

    /// Section 10, item 10: no workspace is 401, another one knows nothing.
    func checkWorkspace(_ body: JSON) throws(APIError) {
        guard let workspace = body["workspaceId"]?.string else {
            guard configuration.requiresWorkspace else { return }
            throw .unauthorized("the client is scoped to a workspace, and workspaceId is missing")
        }
        guard workspace.lowercased() == configuration.workspaceID.lowercased() else { throw .notFound("unknown id") }
    }

    /// Section 10, item 11.
    func checkOrigins(meta: JSON?, returnInfo: JSON?) throws(APIError) {
        let context = meta?["clientContext"]
        let addresses =
            [context?["origin"]?.string, context?["returnUrl"]?.string].compactMap { $0 }
            + (returnInfo?.object?.values.compactMap(\.string) ?? [])
        guard !addresses.contains(where: Shape.hasNumericHost) else {
            throw APIError(403, "request.forbidden", "origins and return addresses must name their host")
        }
    }

    /// Section 10, item 12: lines, when there are any, add up to the amount.
    func checkLines(meta: JSON?, amount: Money) throws(APIError) {
        guard let lines = meta?["order"]?["lines"]?.array, !lines.isEmpty else { return }
        var sum: Int64 = 0
        for line in lines { sum += lineMinor(line, currency: amount.currency) ?? 0 }
        guard sum == amount.minor else { throw .invalid("meta.order.lines do not add up to the amount") }
    }

    private func lineMinor(_ line: JSON, currency: Currency) -> Int64? {
        func minor(_ name: String) -> Int64? {
            guard let member = line[name] else { return nil }
            let value = member.string ?? member["value"]?.string
            return value.flatMap { try? Money(value: $0, currency: currency).minor }
        }
        if let total = minor("total") ?? minor("amount") { return total }
        let count = line["quantity"]?.integer ?? 1
        return minor("unitPrice").flatMap { $0.multipliedReportingOverflow(by: count).partialValue }
    }
}

/// A notification as it will be sent to every target: the bytes are what is signed.
struct OutgoingNotification: Sendable {
    let id: String
    let event: String
    let action: String?
    let isSuccess: Bool?
    let executionID: String
    let merchantReference: String
    let body: Data
    /// The same without its envelope.
    let details: Data
    let targets: [NotificationTarget]
}
