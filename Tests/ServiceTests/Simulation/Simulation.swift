import Basics
import Foundation
import HTTPServer
import Lockstep
import PayrailsSandbox
import Postgres
import Store
import Synchronization
import TestKit
import Testing

@testable import Service

/// A small town: a few processes of Lockstep on one database, a Payrails that misbehaves, shops and customers.
///
/// The seed decides what everybody wants and what goes wrong how often. The machine decides how it interleaves, so a
/// seed repeats a plan, not every step of it.
final class Simulation: Sendable {
    let seed: UInt64
    let plan: TroublePlan
    let sandbox: PayrailsSandbox
    let books: PostgresPool
    /// Its connection string.
    let database: String
    let store: PaymentStore
    let log = LogLines()
    let key: String
    private let environment: [String: String]
    private let state = Mutex(State())
    private let gateway: Mutex<HTTPServer?> = Mutex(nil)

    private struct State {
        var living: [SimulatedProcess] = []
        var dead: [SimulatedProcess] = []
        var started = 0
        var isCalm = false
        var isOver = false
        /// Answers that nobody should ever get.
        var faults: [String] = []
    }

    private static let notificationKey = "a-key-of-the-simulation-6f2d9c1b"
    private static let path = "/webhooks/payrails/try"

    init(seed: UInt64) async throws {
        self.seed = seed
        var dice = Dice(seed: seed, actor: -1)
        plan = TroublePlan(&dice)
        var configuration = SandboxConfiguration()
        configuration.seed = seed
        configuration.authorizeDelay = .milliseconds(dice.number(1...15))
        configuration.actionDelay = .milliseconds(dice.number(1...15))
        configuration.notificationBackoff = .milliseconds(15)
        configuration.notificationRetries = 4
        configuration.refusalStyle = dice.chance(0.5) ? .answered : .notified
        configuration.clientInitStatus = dice.pick([200, 202])
        sandbox = try PayrailsSandbox(configuration)
        try sandbox.start()
        let url = try await MigratedDatabase.make()
        database = url
        var pool = PostgresConfiguration(connectionString: url)
        pool.maximumConnections = 3
        books = PostgresPool(pool)
        store = PaymentStore(pool: books, clock: .system, identifiers: .system())
        key = try #require(try await store.createKey(name: "shop", scopes: Set(Scope.allCases))).1.reveal
        environment = [
            "LOCKSTEP_LISTEN": "127.0.0.1:0", "LOCKSTEP_DATABASE_URL": url, "PAYRAILS_BASE_URL": sandbox.baseURL,
            "PAYRAILS_CLIENT_ID": sandbox.clientID, "PAYRAILS_CLIENT_SECRET": sandbox.clientSecret,
            "PAYRAILS_WORKSPACE_ID": sandbox.workspaceID, "PAYRAILS_REQUESTS_PER_SECOND": "0",
            "PAYRAILS_WEBHOOK_KEYS": "try=\(Self.notificationKey)",
        ]
        let server = HTTPServer(HTTPServerConfiguration(host: "127.0.0.1", port: 0)) { [weak self] request in
            let answer = await self?.send(
                IncomingRequest(
                    method: request.method, path: request.path, query: request.query ?? "", headers: request.headers,
                    body: request.body, receivedAt: .systemNow))
            guard let answer else { return HTTPServerResponse(status: 502) }
            return HTTPServerResponse(status: answer.status, headers: answer.headers, body: answer.body)
        }
        try server.start()
        gateway.withLock { $0 = server }
        sandbox.setNotificationTargets([
            NotificationTarget(url: "http://127.0.0.1:\(server.port)\(Self.path)", key: Self.notificationKey)
        ])
        for _ in 0..<2 { try startProcess() }
        plan.begin(at: sandbox)
    }

    // MARK: processes

    private func startProcess() throws {
        let number = state.withLock { state in
            state.started += 1
            return state.started
        }
        let isCalm = state.withLock(\.isCalm)
        let fate = Fate(
            dice: Dice(seed: seed, actor: 1000 + number), deathProbability: isCalm ? 0 : plan.deathAtCall)
        let process = try SimulatedProcess(environment: environment, fate: fate, log: log)
        state.withLock { $0.living.append(process) }
        fate.atDeath { [weak self, weak process] in
            guard let self, let process else { return }
            let isOver = state.withLock { state in
                guard !state.isOver else { return true }
                state.living.removeAll { $0 === process }
                state.dead.append(process)
                return false
            }
            guard !isOver else { return }
            // Whatever watches over processes starts another one.
            do { try startProcess() } catch { note("a process didn't start: \(error)") }
        }
    }

    /// Kills one process.
    func kill(_ dice: inout Dice) {
        let living = state.withLock(\.living)
        guard !living.isEmpty else { return }
        dice.pick(living).fate.die()
    }

    /// Calls a process as a load balancer does. Nil when there is no answer.
    func send(_ request: IncomingRequest) async -> Answer? {
        let living = state.withLock(\.living)
        guard let process = living.randomElement() else { return nil }
        let answer = await process.answer(request)
        if let answer, answer.status == 500 { note("500 to \(request.method) \(request.path)") }
        return answer
    }

    func note(_ fault: String) { state.withLock { $0.faults.append(fault) } }
    var faults: [String] { state.withLock(\.faults) }
    /// What happened, so that a run in which nothing does is seen.
    var tally: Tally {
        var tally = Tally(runs: 1, deaths: state.withLock(\.dead.count))
        for entry in sandbox.ledger { tally.movements[entry.kind.rawValue, default: 0] += 1 }
        tally.faults = sandbox.calls.filter { !$0.faults.isEmpty }.count
        return tally
    }

    struct Tally: CustomStringConvertible {
        var runs = 0
        var deaths = 0
        var faults = 0
        var movements: [String: Int] = [:]

        static func += (left: inout Tally, right: Tally) {
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

    // MARK: the run

    /// Lets everybody act, then everything settle.
    ///
    /// - Returns: what is wrong in the end; nothing if all is well.
    func run() async throws -> [String] {
        var dice = Dice(seed: seed, actor: -2)
        let count = dice.number(5...10)
        let orders = (0..<count).map { SimulatedOrder(number: $0, simulation: self) }
        let executioner = Task {
            var dice = Dice(seed: seed, actor: -3)
            while plan.killsAtRandom, !Task.isCancelled {
                await dice.pause(30...250)
                if !Task.isCancelled { kill(&dice) }
            }
        }
        let calm = Task {
            try? await Task.sleep(for: plan.length)
            executioner.cancel()
            await executioner.value
            calmDown()
        }
        await withTaskGroup { group in
            for order in orders { group.addTask { await order.live() } }
        }
        await calm.value
        let isQuiet = await sandbox.becomesQuiet(within: .seconds(10))
        var found = try await Judge(self, orders).findings()
        let end = ContinuousClock.now + .seconds(10)
        while !found.isEmpty, ContinuousClock.now < end {
            try await Task.sleep(for: .milliseconds(20))
            found = try await Judge(self, orders).findings()
        }
        if !isQuiet { found.append("the stand-in never came to rest") }
        await stop()
        return found + faults
    }

    private func calmDown() {
        let living = state.withLock { state in
            state.isCalm = true
            return state.living
        }
        for process in living { process.fate.spare() }
        sandbox.clearFaults()
    }

    private func stop() async {
        let (living, dead) = state.withLock { state in
            state.isOver = true
            return (state.living, state.dead)
        }
        for process in dead { await process.bury() }
        for process in living { await process.stop() }
        if let server = gateway.withLock({ $0 }) { await server.drain(within: .milliseconds(200)) }
        await sandbox.stop()
        await books.shutdown()
    }
}
