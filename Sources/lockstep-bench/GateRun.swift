import Foundation

/// How fast the gate answers at a rate, and that it answers with the database gone.
struct GateRun {
    private let options: BenchOptions
    init(_ options: BenchOptions) { self.options = options }

    /// What a customer doesn't notice; and the usual LOCKSTEP_PREPAYMENT_BUDGET_MS.
    private static let limit = Duration.milliseconds(25)
    private static let budget = Duration.seconds(3)

    func run() async throws -> Bool {
        raiseDescriptorLimit()
        let rate = options.number("rate", 2000)
        let seconds = options.number("seconds", 10)
        let count = rate * seconds
        // What wrk asks about: a tenth more than it comes to, since it paces itself only about.
        let others = (count + rate)..<(count + rate + count * 11 / 10 / 2 * 2)
        // Nobody pays what is asked about here, so that the workers would look into all of it.
        let rig = try await Rig(options, serve: ["serve", "--no-workers"])
        let books = Books(options.database)
        try await books.makeExecutions(0..<others.upperBound)
        await books.close()

        var probes = PreparedRequests()
        for _ in 0..<count { probes.append("GET", "/healthz") }
        let questions = questions(0..<count, rig.key)
        // The first requests open connections and prepare statements.
        _ = try load(rig, rate: max(1, rate / 4), connections: 64, "proceed")
            .run(self.questions(count..<(count + rate), rig.key), atMost: .seconds(4))
        let base = try load(rig, rate: rate, connections: 64, "ok").run(probes, atMost: .seconds(600))
        report("/healthz", base, base)
        let first = try load(rig, rate: rate, connections: 64, "proceed").run(questions, atMost: .seconds(600))
        report("asked for the first time", first, base)
        let again = try load(rig, rate: rate, connections: 64, "proceed").run(questions, atMost: .seconds(600))
        report("asked again", again, base)
        var isGood = [first, again].allSatisfy { $0.found == count && perMille(of: $0) >= 999 }
        let wrk = WrkLoad(port: rig.service.port, key: rig.key, connections: 128, rate: rate)
        for what in ["for the first time", "again"] {
            let result = try wrk.run(about: others, seconds: seconds)
            report("asked \(what), by wrk", result)
            isGood = isGood && result.failures == 0 && result.within >= 99.9
        }
        if let stop = options.stop { isGood = try measureStopped(rig, stop, rate, questions) && isGood }
        await rig.stop()
        return isGood
    }

    private func measureStopped(_ rig: Rig, _ stop: String, _ rate: Int, _ questions: PreparedRequests) throws -> Bool {
        let shell = Process()
        shell.executableURL = URL(fileURLWithPath: "/bin/sh")
        shell.arguments = ["-c", stop]
        try shell.run()
        shell.waitUntilExit()
        guard shell.terminationStatus == 0 else { throw Rig.Failure(description: "the database was not stopped") }
        // As many as the gate lets wait, and those that it refuses meanwhile.
        let result = try load(rig, rate: rate, connections: 2048, "\"refuse\"").run(questions, atMost: .seconds(600))
        let longest = result.latencies.max() ?? .zero
        tell(
            "with the database stopped: \(result.accepted) answers of 200, \(result.found) of them refusals, "
                + "\(result.refused) others; p50 \(result.latencies.quantile(500).milliseconds), longest "
                + "\(longest.milliseconds) of a budget of \(Self.budget.milliseconds)")
        return result.refused == 0 && result.found == questions.count && longest <= Self.budget
    }

    private func load(_ rig: Rig, rate: Int, connections: Int, _ text: String) -> RequestLoad {
        RequestLoad(port: rig.service.port, connections: connections, rate: rate, text: text)
    }

    private func questions(_ numbers: Range<Int>, _ key: String) -> PreparedRequests {
        var requests = PreparedRequests()
        for number in numbers {
            let digits = String(number, radix: 16)
            let id = "00000001-0000-4000-8000-" + String(repeating: "0", count: 12 - digits.count) + digits
            requests.append(
                "POST", "/v1/pre-payment", ["Authorization": "Bearer \(key)"],
                body:
                    #"{"amount":{"currency":"EUR","value":"49.99"},"executionId":"\#(id)","paymentMethodCode":"card"}"#)
        }
        return requests
    }

    /// How many of 1,000 were within the limit.
    private func perMille(of result: LoadResult) -> Int {
        result.latencies.count { $0 <= Self.limit } * 1000 / max(1, result.accepted + result.refused)
    }

    private func report(_ what: String, _ result: WrkLoad.Result) {
        tell(
            "\(what): \(result.perSecond) a second, \(String(format: "%.3f", result.within)) of 100 within "
                + "\(Self.limit.milliseconds); p50 \(result.median) ms, p99.9 \(result.thousandth) ms, longest "
                + "\(result.longest) ms; \(result.proceeds) of \(result.asked) proceed, \(result.failures) failed")
    }

    private func report(_ what: String, _ result: LoadResult, _ base: LoadResult) {
        let within = result.latencies.count { $0 <= Self.limit }
        let share = 100 * Double(within) / Double(max(1, result.accepted + result.refused))
        let ratio = result.latencies.quantile(500) / base.latencies.quantile(500)
        tell(
            "\(what): \(result.perSecond) a second, \(String(format: "%.3f", share)) of 100 within "
                + "\(Self.limit.milliseconds); p50 \(result.latencies.quantile(500).milliseconds) "
                + "(\(String(format: "%.1f", ratio)) of /healthz), p99 \(result.latencies.quantile(990).milliseconds), "
                + "p99.9 \(result.latencies.quantile(999).milliseconds); \(result.found) as expected, "
                + "\(result.refused) not 2xx")
    }
}
