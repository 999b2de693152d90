import Foundation

/// Mixed traffic: what the machine can do at most, then a share of it for a long time. Nothing may fail, and memory
/// must stay flat after the first minutes.
struct MixedTraffic: Sendable {
    private let options: BenchOptions
    init(_ options: BenchOptions) { self.options = options }

    func run() async throws -> Bool {
        let rig = try await Rig(options)
        let figures = Figures()
        let watcher = FeedWatcher(rig, figures)
        let follower = Task { await watcher.follow() }
        let most = await measureMost(rig, figures, watcher)
        let rate = max(1, most * options.number("share", 50) / 100)
        tell("at most \(most) customers a second; now \(rate) a second for \(options.number("minutes", 30)) min")
        let isFlat = await hold(rate, rig, figures, watcher)
        follower.cancel()
        await rig.stop()
        for error in figures.errors { tell("error: \(error.what) x \(error.count)") }
        return isFlat && figures.errorCount == 0
    }

    /// As many customers at once as told, one after the other, for 20 s after 5 s of warming up: customers a second.
    private func measureMost(_ rig: Rig, _ figures: Figures, _ watcher: FeedWatcher) async -> Int {
        let numbers = Counter(1_000_000_000)
        let end = ContinuousClock.now + .seconds(25)
        var before = 0
        await withTaskGroup { group in
            for _ in 0..<options.number("customers", 64) {
                group.addTask {
                    while ContinuousClock.now < end {
                        await Customer(rig: rig, figures: figures, watcher: watcher, number: numbers.next()).buy()
                    }
                }
            }
            try? await Task.sleep(for: .seconds(5))
            before = figures.finished
            await group.waitForAll()
        }
        report("most", figures.take())
        return (figures.finished - before) / 20
    }

    /// Customers come at the rate, whether or not earlier ones are through.
    private func hold(_ rate: Int, _ rig: Rig, _ figures: Figures, _ watcher: FeedWatcher) async -> Bool {
        let minutes = options.number("minutes", 30)
        var memory: [Int] = []
        var number = 0
        let start = ContinuousClock.now
        await withDiscardingTaskGroup { group in
            for minute in 1...minutes {
                let before = figures.finished
                while ContinuousClock.now < start + .seconds(60 * minute) {
                    let due = Int((ContinuousClock.now - start) / .milliseconds(1)) * rate / 1000
                    while number < due {
                        number += 1
                        let mine = number
                        group.addTask {
                            await Customer(rig: rig, figures: figures, watcher: watcher, number: mine).buy()
                        }
                    }
                    try? await Task.sleep(for: .milliseconds(5))
                }
                memory.append(rig.service.residentMebibytes)
                let durations = figures.take()
                let paid = durations["paid (from paying to the feed)"] ?? []
                let gate = durations["gate"] ?? []
                tell(
                    "minute \(minute): \((figures.finished - before) / 60) customers/s, \(memory[minute - 1]) MiB, "
                        + "gate p50 \(gate.quantile(500).milliseconds) p99 \(gate.quantile(990).milliseconds), "
                        + "paid p50 \(paid.quantile(500).milliseconds) p99 \(paid.quantile(990).milliseconds), "
                        + "errors \(figures.errorCount)")
                if minute == minutes { report("held", durations) }
            }
        }
        // After the first fifth it has seen everything that it will see.
        let settled = memory[min(minutes / 5, memory.count - 1)]
        let last = memory.last ?? 0
        tell("memory: \(settled) MiB after minute \(minutes / 5 + 1), \(last) MiB at the end")
        return last * 100 <= settled * 115 + 400
    }

    private func report(_ title: String, _ durations: [String: [Duration]]) {
        for (step, all) in durations.sorted(by: { $0.key < $1.key }) {
            tell(
                "\(title): \(step): \(all.count) times, p50 \(all.quantile(500).milliseconds), "
                    + "p99 \(all.quantile(990).milliseconds), p99.9 \(all.quantile(999).milliseconds)")
        }
    }
}
