import Basics
import Foundation
import HTTPClient
import Postgres

/// How fast stored notifications come into effect: each pays an order.
struct ApplyRun {
    private let options: BenchOptions
    init(_ options: BenchOptions) { self.options = options }

    func run() async throws -> Bool {
        raiseDescriptorLimit()
        let rig = try await Rig(options, serve: ["serve", "--no-workers"])
        let books = Books(options.database)
        let count = options.number("notifications", 100_000)
        let rate = options.number("rate", 5000)
        let seconds = options.number("seconds", 15)
        try await books.makeExecutions(0..<(count + rate * seconds))
        try await books.storeNotifications(0..<count)
        let drained = try await drain(rig, books, count)
        tell("applied to the final state: \(drained.perSecond) a second (\(count) of them)")

        let workers = try startWorkers(rig)
        defer { workers.stop() }
        let from = count
        let requests = PreparedRequests.notifications(from..<(from + rate * seconds)) {
            NotificationBody.authorized(execution: $0, known: true)
        }
        let load = try RequestLoad(port: rig.service.port, connections: 64, rate: rate)
            .run(requests, atMost: .seconds(seconds))
        try await books.waitUntilApplied()
        let lag = try await books.lagMilliseconds(after: count)
        tell(
            "at \(rate) a second (\(load.accepted) stored, \(load.refused) refused), by a process of its own: lag "
                + "p50 \(lag.half) ms, p99 \(lag.most) ms; answers p99 \(load.latencies.quantile(990).milliseconds); "
                + "workers \(workers.residentMebibytes) MiB")
        let paid = try await books.paid()
        tell("orders paid: \(paid)")
        await books.close()
        await rig.stop()
        return drained.perSecond >= 8000 && lag.most < 1000 && paid == Int64(count + load.accepted)
    }

    func runBacklog() async throws -> Bool {
        let rig = try await Rig(options, serve: ["serve", "--no-workers"])
        let books = Books(options.database)
        let few = options.number("few", 100_000)
        let many = options.number("many", 1_000_000)
        try await books.makeExecutions(0..<(few + many))
        try await books.storeNotifications(0..<few)
        let small = try await drain(rig, books, few)
        tell("a backlog of \(few): \(small.perSecond) a second")
        try await books.storeNotifications(few..<(few + many))
        let large = try await drain(rig, books, many)
        let ratio = String(format: "%.2f", Double(large.perSecond) / Double(max(1, small.perSecond)))
        tell("a backlog of \(many): \(large.perSecond) a second, \(ratio) of that; \(large.mebibytes) MiB")
        await books.close()
        await rig.stop()
        return large.perSecond * 10 >= small.perSecond * 9 && large.mebibytes < 256
    }

    private func startWorkers(_ rig: Rig) throws -> ServiceProcess {
        let port = try FreePort.find()
        var environment = rig.environment(port: port)
        // The sandbox doesn't know these executions, and a long run isn't to be about asking for them.
        environment["LOCKSTEP_HEAL_PENDING"] = "6h"
        return try ServiceProcess(port: port, environment, ["serve", "--only-workers"])
    }

    private func drain(_ rig: Rig, _ books: Books, _ count: Int) async throws -> (perSecond: Int, mebibytes: Int) {
        let workers = try startWorkers(rig)
        defer { workers.stop() }
        try await workers.waitUntilReady(rig.client)
        let waiting = try await books.unapplied()
        let began = ContinuousClock.now
        try await books.waitUntilApplied()
        let (seconds, attoseconds) = (ContinuousClock.now - began).components
        let took = Double(seconds) + Double(attoseconds) / 1e18
        return (Int(Double(waiting) / max(0.001, took)), workers.residentMebibytes)
    }
}

/// Whether a million open executions hide the thousand that are due.
struct HealRun {
    private let options: BenchOptions
    init(_ options: BenchOptions) { self.options = options }

    func run() async throws -> Bool {
        let rig = try await Rig(options, serve: ["serve", "--no-workers"])
        let books = Books(options.database)
        let count = options.number("executions", 1_000_000)
        let due = options.number("due", 1000)
        try await books.makeExecutions(0..<count)
        try await books.makeDue(due)
        for line in try await books.explainDue(due) { tell(line) }
        let began = ContinuousClock.now
        let claimed = try await books.claimDue(due)
        let took = ContinuousClock.now - began
        tell("claimed \(claimed) of \(due) due among \(count) open: \(took.milliseconds)")
        await books.close()
        await rig.stop()
        return claimed == due && took < .milliseconds(50)
    }
}
