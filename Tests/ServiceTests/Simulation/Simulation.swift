import Basics
import Foundation
import HTTPClient
import Lockstep
import Postgres
import Store
import Synchronization
import TestKit
import Testing

@testable import PayrailsSandbox
@testable import Service

/// A small town: a few processes of Lockstep on one database, a Payrails that misbehaves, shops, customers, subscribers.
///
/// The seed decides what everybody wants, when, and what goes wrong how often, and time is the simulation's own. What the
/// seed doesn't decide is the order in which those go on who go on at the same moment: threads, and the locks of a real
/// database, do. A seed repeats a plan, not every step of it.
final class Simulation: Sendable {
    let seed: UInt64
    let plan: TroublePlan
    let time: VirtualTime
    let sandbox: PayrailsSandbox
    let books: SimulatedBooks
    let store: PaymentStore
    let log = LogLines()
    let key: String
    private let surroundings: SimulatedProcess.Surroundings
    private let state: Mutex<State>

    private struct State {
        var living: [SimulatedProcess] = []
        var dead: [SimulatedProcess] = []
        var started = 0
        var isCalm = false
        var isOver = false
        /// Nobody starts processes.
        var isDark = false
        /// Who answers a request.
        var dice: Dice
        /// Answers that nobody should ever get.
        var faults: [String] = []
    }

    private static let notificationKey = "a-key-of-the-simulation-6f2d9c1b"
    private static let path = "/webhooks/payrails/try"
    /// After the trouble, by then everything must have come to its end.
    private static let patience = Duration.seconds(600)

    /// - Parameters:
    ///   - books: empty.
    ///   - isLogged: whether everything that processes log is kept.
    init(seed: UInt64, books: SimulatedBooks, isLogged: Bool) async throws {
        self.seed = seed
        self.books = books
        var dice = Dice(seed: seed, actor: -1)
        plan = TroublePlan(&dice)
        time = VirtualTime(stride: dice.pick([.zero, .milliseconds(100), .seconds(1)]))
        let door = Door()
        sandbox = try PayrailsSandbox(Self.sandbox(seed, &dice, time, door))
        sandbox.state.withLock { $0.world.baseURL = "http://127.0.0.1:9" }
        sandbox.setNotificationTargets([
            NotificationTarget(url: "http://127.0.0.1:8\(Self.path)", key: Self.notificationKey)
        ])
        time.watch(books.pool)
        store = PaymentStore(
            pool: books.pool, clock: time.wallClock, identifiers: .system(clock: time.wallClock))
        key = try #require(try await store.createKey(name: "shop", scopes: Set(Scope.allCases))).1.reveal
        surroundings = SimulatedProcess.Surroundings(
            settings: try Settings(environment: Self.environment(books, sandbox, &dice)), time: time,
            link: SimulatedLink(
                sandbox: sandbox, time: time,
                trouble: LinkTrouble(Dice(seed: seed, actor: -4), unreachable: plan.unreachable)),
            log: Log(minimum: isLogged ? .debug : .error, clock: time.wallClock, writer: log.writer()))
        state = Mutex(State(dice: Dice(seed: seed, actor: -5)))
        door.open { [weak self] in await self?.send($0) }
        for _ in 0..<2 { try startProcess() }
        plan.begin(at: sandbox)
    }

    private static func sandbox(
        _ seed: UInt64, _ dice: inout Dice, _ time: VirtualTime, _ door: Door
    ) -> SandboxConfiguration {
        var configuration = SandboxConfiguration()
        configuration.seed = seed
        configuration.clock = time.wallClock
        configuration.pacing = time.steadyClock
        configuration.latency = .milliseconds(dice.number(0...400))
        configuration.authorizeDelay = .milliseconds(dice.number(100...1500))
        configuration.actionDelay = .milliseconds(dice.number(100...1500))
        configuration.notificationBackoff = .milliseconds(1500)
        configuration.notificationRetries = 4
        configuration.refusalStyle = dice.chance(0.5) ? .answered : .notified
        configuration.clientInitStatus = dice.pick([200, 202])
        configuration.minimumDecimals = dice.pick([0, 2])
        let (timeout, path) = (configuration.notificationTimeout, path)
        configuration.courier = { request in
            let inTime = await time.race(within: timeout) {
                await door.pass(
                    IncomingRequest(
                        method: request.method, path: path, headers: request.headers, body: request.body ?? Data(),
                        receivedAt: time.wallClock.now()))
            }
            guard let answer = inTime ?? nil else { throw CancellationError() }
            return HTTPClientResponse(
                status: answer.status, headers: answer.headers, body: answer.body, httpVersion: "1.1")
        }
        return configuration
    }

    /// What an operator would set, with less patience than usual, so that much happens in little time.
    private static func environment(
        _ books: SimulatedBooks, _ sandbox: PayrailsSandbox, _ dice: inout Dice
    ) -> [String: String] {
        [
            "LOCKSTEP_LISTEN": "127.0.0.1:0", "LOCKSTEP_DATABASE_URL": books.url,
            "LOCKSTEP_DATABASE_POOL_SIZE": dice.pick(["2", "4"]),
            "PAYRAILS_BASE_URL": sandbox.baseURL, "PAYRAILS_CLIENT_ID": sandbox.clientID,
            "PAYRAILS_CLIENT_SECRET": sandbox.clientSecret, "PAYRAILS_WORKSPACE_ID": sandbox.workspaceID,
            "PAYRAILS_REQUESTS_PER_SECOND": "0", "PAYRAILS_WEBHOOK_KEYS": "try=\(notificationKey)",
            "LOCKSTEP_HEAL_PENDING": "2s,4s,8s,16s,32s,2m", "LOCKSTEP_HEAL_UNKNOWN": "1s,2s,4s,8s,16s,1m",
            "LOCKSTEP_GATE_LEASE_SECONDS": "30", "LOCKSTEP_INIT_FRESH_SECONDS": "15",
            "LOCKSTEP_FAILURE_SETTLE_SECONDS": "10", "LOCKSTEP_UNRESOLVED_AFTER": "3m",
            "LOCKSTEP_RETURN_URL": "https://shop.example/return",
            // Where reading doesn't ask Payrails, what was lost is found by healing alone.
            "LOCKSTEP_STALE_SECONDS": dice.pick(["0", "10"]),
        ]
    }

    // MARK: processes

    @discardableResult
    private func startProcess() throws -> SimulatedProcess {
        let (number, isCalm) = state.withLock { state in
            state.started += 1
            return (state.started, state.isCalm)
        }
        let fate = Fate(
            dice: Dice(seed: seed, actor: 1000 + number), deathProbability: isCalm ? 0 : plan.deathAtCall)
        let process = try SimulatedProcess(surroundings, fate: fate, worksByItself: !isCalm)
        let isCalmNow = state.withLock { state in
            state.living.append(process)
            return state.isCalm
        }
        // The trouble may have ended while it was being started.
        if isCalmNow { fate.spare() }
        fate.atDeath { [weak self, weak process] in
            guard let self, let process else { return }
            // One that was stopped in order is no longer among the living.
            let isMissed = state.withLock { state in
                guard let index = state.living.firstIndex(where: { $0 === process }), !state.isOver else {
                    return false
                }
                state.dead.append(state.living.remove(at: index))
                return !state.isDark
            }
            guard isMissed else { return }
            // Whatever watches over processes starts another one.
            do { try startProcess() } catch { note("a process didn't start: \(error)") }
        }
        return process
    }

    /// Kills one process.
    private func kill(_ dice: inout Dice) {
        let living = state.withLock(\.living)
        guard !living.isEmpty else { return }
        dice.pick(living).fate.die()
    }

    /// Everything of Lockstep stops at once, and comes back much later.
    private func suffer(_ outage: TroublePlan.Outage) throws {
        guard outage.kills else { return time.jump(outage.length) }
        let living = state.withLock { state in
            state.isDark = true
            return state.living
        }
        for process in living { process.fate.die() }
        time.jump(outage.length)
        state.withLock { $0.isDark = false }
        for _ in 0..<2 { try startProcess() }
    }

    private var anyProcess: SimulatedProcess? {
        state.withLock { state in state.living.isEmpty ? nil : state.dice.pick(state.living) }
    }

    /// Calls a process as a load balancer does. Nil when there is no answer.
    func send(_ request: IncomingRequest) async -> Service.Answer? {
        guard let answer = await anyProcess?.answer(request) else { return nil }
        if answer.status == 500 { note("500 to \(request.method) \(request.path)") }
        return answer
    }

    /// Renews what is due by then, on one of the processes.
    func renew(asOf: Timestamp) async { await anyProcess?.renew(asOf: asOf) }

    /// Waits in the simulation's time.
    func pause(_ duration: Duration) async { try? await time.sleep(duration) }

    func note(_ fault: String) { state.withLock { $0.faults.append(fault) } }
    var faults: [String] { state.withLock(\.faults) }

    // MARK: the run

    /// Lets everybody act, then everything settle.
    ///
    /// - Returns: what is wrong in the end; nothing if all is well.
    func run() async -> [String] {
        let flow = Task { await time.run() }
        var dice = Dice(seed: seed, actor: -2)
        let orders = (0..<dice.number(2...6)).map { SimulatedOrder(number: $0, simulation: self) }
        let members = SimulatedMembers(count: dice.chance(0.4) ? dice.number(1...3) : 0, simulation: self)
        let executioner = Task {
            var dice = Dice(seed: seed, actor: -3)
            while plan.killsAtRandom, !Task.isCancelled {
                try? await time.sleep(dice.moment(30...250))
                if !Task.isCancelled { kill(&dice) }
            }
        }
        let calm = Task {
            if let outage = plan.outage {
                await pause(outage.after)
                do { try suffer(outage) } catch { note("a process didn't start: \(error)") }
            }
            await pause(plan.length)
            executioner.cancel()
            calmDown()
        }
        await withTaskGroup { group in
            for order in orders { group.addTask { await order.live() } }
            group.addTask { await members.live() }
        }
        await calm.value
        do {
            if try await !settle(members) { note("the stand-in never came to rest") }
            for finding in try await Judge(self, orders, members).findings() { note(finding) }
        } catch {
            note("what was left to do failed: \(error)")
        }
        await stop()
        await flow.value
        return faults
    }

    private func calmDown() {
        let living = state.withLock { state in
            state.isCalm = true
            return state.living
        }
        for process in living { process.fate.spare() }
        sandbox.clearFaults()
        surroundings.link.trouble.end()
    }

    /// Those that are left end in order, and another one does what is due, moment by moment.
    ///
    /// - Returns: whether the stand-in has nothing more to do.
    private func settle(_ members: SimulatedMembers) async throws -> Bool {
        let living = state.withLock { state in
            defer { state.living = [] }
            return state.living
        }
        let last = try startProcess()
        for process in living { await process.stop() }
        try await rest(last, within: Self.patience)
        while try await members.goOn() { try await rest(last, within: Self.patience / 4) }
        return sandbox.isQuiet
    }

    /// Until nothing is due any more, or so long.
    private func rest(_ process: SimulatedProcess, within patience: Duration) async throws {
        let end = time.now + patience
        while time.now < end {
            if try await process.workOnce() > 0 { continue }
            let now = time.wallClock.now()
            var wait = try await books.nextDue(now: PostgresTimestamp(microsecondsSince1970: now.microseconds))
            if !sandbox.isQuiet {
                // What the stand-in does next, it does by itself.
                let next = time.nextMoment.map { $0 - time.now } ?? .milliseconds(1)
                wait = min(wait ?? next, next)
            }
            guard let wait, time.now + wait < end else { return }
            await pause(max(wait, .zero) + .milliseconds(1))
        }
    }

    private func stop() async {
        let (living, dead) = state.withLock { state in
            state.isOver = true
            return (state.living, state.dead)
        }
        for process in dead { await process.bury() }
        for process in living { await process.stop() }
        await sandbox.stop()
        time.end()
    }
}

/// Where notifications come in; nobody answers before it is open.
private final class Door: Sendable {
    typealias Handler = @Sendable (IncomingRequest) async -> Service.Answer?
    private let handler: Mutex<Handler?> = Mutex(nil)

    func open(_ handler: @escaping Handler) { self.handler.withLock { $0 = handler } }
    func pass(_ request: IncomingRequest) async -> Service.Answer? { await handler.withLock { $0 }?(request) }
}

/// What happened, so that a run in which nothing does is seen.
struct SimulationTally: CustomStringConvertible {
    var runs = 0
    var deaths = 0
    var faults = 0
    var movements: [String: Int] = [:]

    static func += (left: inout SimulationTally, right: SimulationTally) {
        left.runs += right.runs
        left.deaths += right.deaths
        left.faults += right.faults
        left.movements.merge(right.movements, uniquingKeysWith: +)
    }

    var description: String {
        let moved = movements.sorted { $0.key < $1.key }.map { "\($0.value) \($0.key)" }.joined(separator: ", ")
        return "\(runs) runs, \(faults) calls went wrong, \(deaths) processes killed; money: \(moved)"
    }
}

extension Simulation {
    var tally: SimulationTally {
        var tally = SimulationTally(runs: 1, deaths: state.withLock(\.dead.count))
        for entry in sandbox.ledger { tally.movements[entry.kind.rawValue, default: 0] += 1 }
        tally.faults = sandbox.calls.filter { !$0.faults.isEmpty }.count
        return tally
    }
}

extension PayrailsSandbox {
    /// Nothing is scheduled, and every delivery is over.
    var isQuiet: Bool {
        settle()
        return state.withLock { $0.world.schedule.isEmpty && $0.dispatching == 0 } && notifier.isQuiet
    }
}
