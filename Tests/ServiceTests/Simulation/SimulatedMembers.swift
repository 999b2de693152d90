import Basics
import Foundation
import Lockstep
import PayrailsSandbox
import Synchronization

@testable import Service

/// Subscribers, and the cron jobs that charge them: runs that start twice, die in the middle, come late.
///
/// Their months don't pass by the simulation's clock: each run is made as of a later day, as an operator may.
final class SimulatedMembers: Sendable {
    let count: Int
    let simulation: Simulation
    private let state = Mutex(State())

    private struct State {
        /// The ids of subscriptions that were created, by the member's number.
        var created: [Int: String] = [:]
        /// Between which moments who may not be charged: from the answer that said so to the question that ended it.
        var stops: [Int: [Range<Timestamp>]] = [:]
        /// Who was ever stopped.
        var stopped: Set<Int> = []
        /// The day of the latest run, counted from the first due day.
        var day = 0
    }

    static let periods = 3

    init(count: Int, simulation: Simulation) {
        self.count = count
        self.simulation = simulation
    }

    var references: [String] { (0..<count).map { "member-\($0)" } }
    /// Those that were never paused or cancelled.
    var faithful: [String] {
        state.withLock { state in references.filter { !state.stopped.contains(Self.number(of: $0)) } }
    }

    /// Whether nobody may begin to charge the member at that moment.
    func isStopped(_ reference: String, at moment: Timestamp) -> Bool {
        state.withLock { $0.stops[Self.number(of: reference), default: []].contains { $0.contains(moment) } }
    }

    private static func number(of reference: String) -> Int {
        reference.split(separator: "~").first?.split(separator: "-").last.flatMap { Int($0) } ?? -1
    }

    /// The first due day is that of the simulation's start.
    private func moment(_ day: Int) -> Timestamp { VirtualTime.start + .seconds(day * 86_400) }

    func live() async {
        guard count > 0 else { return }
        var dice = Dice(seed: simulation.seed, actor: -6)
        for number in 0..<count {
            await simulation.pause(dice.moment(0...50))
            await subscribe(number, &dice)
        }
        // Two jobs that know nothing of each other, and members who change their minds.
        await withTaskGroup { group in
            for number in 0..<count {
                var own = Dice(seed: simulation.seed, actor: -20 - number)
                group.addTask { [self] in await changeMind(number, &own) }
            }
            for job in 0..<2 {
                var own = Dice(seed: simulation.seed, actor: -7 - job)
                let runs = own.number(1...3)
                group.addTask { [self] in
                    for _ in 0..<runs {
                        await simulation.pause(own.moment(0...200))
                        let day = own.number(0...40)
                        state.withLock { $0.day = max($0.day, day) }
                        await simulation.renew(asOf: moment(day))
                    }
                }
            }
        }
    }

    private func subscribe(_ number: Int, _ dice: inout Dice) async {
        let holder = "holder-\(number)"
        // Pays, has too little, is blocked, times out at the provider with the money taken.
        let suffix = dice.pick(["4242", "4242", "9995", "9987", "0119"])
        let card = simulation.sandbox.tokenize(holderReference: holder, card: suffix)
        guard let instrument = card.body["id"]?.string else { return }
        let start = CivilDate(of: VirtualTime.start, in: .gmt)
        let body: JSON = [
            "merchantReference": .string("member-\(number)"), "holderReference": .string(holder),
            "instrumentId": .string(instrument), "amount": ["value": "9.90", "currency": "EUR"], "interval": "P1M",
            "startsOn": .string(start.description), "timezone": "Europe/Berlin",
            "maxCharges": JSON(Self.periods),
        ]
        for _ in 0..<100 {
            var headers: HTTPHeaders = [
                "Authorization": "Bearer \(simulation.key)", "Content-Type": "application/json",
            ]
            headers["Idempotency-Key"] = "subscribe-\(number)"
            let answer = await simulation.send(
                IncomingRequest(
                    method: "POST", path: "/v1/subscriptions", headers: headers, body: body.bytes,
                    receivedAt: simulation.time.wallClock.now()))
            if let answer, answer.status < 500, !answer.asksToRetry {
                if answer.status == 201, let id = answer.json?["id"]?.string {
                    state.withLock { $0.created[number] = id }
                } else {
                    simulation.note("member-\(number) was refused: \(answer.status) \(answer.text)")
                }
                return
            }
            await simulation.pause(dice.moment(5...30))
        }
        simulation.note("member-\(number) never got an answer")
    }

    /// Pauses and perhaps resumes, or cancels.
    private func changeMind(_ number: Int, _ dice: inout Dice) async {
        guard dice.chance(0.5), let id = state.withLock({ $0.created[number] }) else { return }
        await simulation.pause(dice.moment(0...200))
        let isForGood = dice.chance(0.5)
        state.withLock { _ = $0.stopped.insert(number) }
        guard await step(isForGood ? "cancel" : "pause", id, &dice) else { return }
        let since = simulation.time.wallClock.now() + Self.callsEnd
        func note(until end: Timestamp) {
            guard since < end else { return }
            state.withLock { $0.stops[number, default: []].append(since..<end) }
        }
        if isForGood { return note(until: VirtualTime.start + .seconds(1_000_000_000)) }
        await simulation.pause(dice.moment(0...400))
        note(until: simulation.time.wallClock.now())
        _ = await step("resume", id, &dice)
    }

    /// A call that was on its way when somebody was told that nothing more is charged has its effect by then.
    private static let callsEnd = Duration.seconds(60)

    private func step(_ name: String, _ id: String, _ dice: inout Dice) async -> Bool {
        for _ in 0..<300 {
            let answer = await simulation.send(
                IncomingRequest(
                    method: "POST", path: "/v1/subscriptions/\(id)/\(name)",
                    headers: ["Authorization": "Bearer \(simulation.key)"],
                    receivedAt: simulation.time.wallClock.now()))
            if let answer, answer.status < 500, !answer.asksToRetry {
                // A subscription whose periods are all done is over.
                if answer.status != 200, answer.status != 409 {
                    simulation.note("\(name) was refused: \(answer.status) \(answer.text)")
                }
                return answer.status == 200
            }
            await simulation.pause(dice.moment(5...30))
        }
        simulation.note("\(name) of \(id) never got an answer")
        return false
    }

    /// What timed out at the payment provider, with the money taken, is told in the end; till then it is rightly unknown.
    private func answerForProvider() async throws {
        let inDoubt = try await simulation.books.pool.query(
            "SELECT execution_id::text AS id FROM charge_attempts WHERE outcome = 'unknown' AND execution_id IS NOT NULL"
        ).map { try $0.decode("id", as: String.self) }
        for execution in inDoubt where simulation.sandbox.statusCodes(execution).contains("authorizeFailed") {
            _ = simulation.sandbox.updateResult(execution, success: true)
        }
    }

    private func isUnsettled() async throws -> Bool {
        try await simulation.books.pool.query(
            """
            SELECT EXISTS (SELECT FROM subscriptions WHERE due_at IS NOT NULL)
                OR EXISTS (SELECT FROM charges WHERE state IN ('scheduled','processing','unknown')) AS is_unsettled
            """
        ).first?.decode("is_unsettled", as: Bool.self) ?? false
    }

    /// After the trouble: a run some days later, until every period has been dealt with.
    ///
    /// - Returns: whether there was one.
    func goOn() async throws -> Bool {
        guard count > 0, try await isUnsettled() else { return false }
        // Three periods, and behind the last the days of dunning.
        let day = state.withLock { state -> Int? in
            guard state.day < 120 else { return nil }
            state.day += 8
            return state.day
        }
        guard let day else { return false }
        try await answerForProvider()
        await simulation.renew(asOf: moment(day))
        return true
    }
}
