import Foundation

/// Questions to the gate from `wrk`, which measures them itself and knows nothing of what it measures.
struct WrkLoad {
    let port: UInt16
    let key: String
    let connections: Int
    /// How many a second, about: each connection pauses after its answer, by chance, so that they don't ask all at once.
    let rate: Int

    struct Result {
        let asked: Int
        let perSecond: Int
        /// Answered `proceed`.
        let proceeds: Int
        /// Connections that failed, time-outs, other statuses and other decisions.
        let failures: Int
        /// Of a hundred, within the limit.
        let within: Double
        /// In milliseconds.
        let median, thousandth, longest: Double
    }

    struct Failure: Error, CustomStringConvertible {
        let description: String
    }

    private static let threads = 2

    /// Each thread asks about every second number, in order, and from the beginning when it has asked about all.
    private static let script = """
        local threads = {}
        function setup(thread)
            thread:set("number", #threads)
            table.insert(threads, thread)
        end
        function init(arguments)
            first, count, pause = tonumber(arguments[1]), tonumber(arguments[2]), tonumber(arguments[3])
            headers = {["Content-Type"] = "application/json", Authorization = "Bearer " .. arguments[4]}
            asked, proceeds, others = 0, 0, 0
            math.randomseed(number + 1)
        end
        function delay() return math.random(0, 2 * pause) end
        function request()
            local id = first + 2 * asked % count + number
            asked = asked + 1
            return wrk.format("POST", "/v1/pre-payment", headers, string.format(
                '{"amount":{"currency":"EUR","value":"49.99"},"executionId":"00000001-0000-4000-8000-%012x",'
                    .. '"paymentMethodCode":"card"}', id))
        end
        function response(status, _, body)
            if status == 200 and body:find('"proceed"', 1, true) then proceeds = proceeds + 1 else others = others + 1 end
        end
        function done(summary, latency)
            local proceeds, others, within, all = 0, 0, 0, 0
            for _, thread in ipairs(threads) do
                proceeds, others = proceeds + thread:get("proceeds"), others + thread:get("others")
            end
            for index = 1, #latency do
                local microseconds, times = latency(index)
                all = all + times
                if microseconds <= 25000 then within = within + times end
            end
            local errors = summary.errors
            io.write(string.format(
                "\\nresult %d %d %d %d %.4f %.3f %.3f %.3f\\n", summary.requests, summary.duration, proceeds,
                others + errors.connect + errors.read + errors.write + errors.timeout, 100 * within / math.max(1, all),
                latency:percentile(50) / 1000, latency:percentile(99.9) / 1000, latency.max / 1000))
        end
        """

    func run(about numbers: Range<Int>, seconds: Int) throws -> Result {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("lockstep-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: false)
        defer { try? FileManager.default.removeItem(at: folder) }
        let script = folder.appendingPathComponent("ask.lua")
        try Self.script.write(to: script, atomically: false, encoding: .utf8)
        let wrk = Process()
        wrk.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        wrk.arguments = [
            "wrk", "-t", "\(Self.threads)", "-c", "\(connections)", "-d", "\(seconds)", "-s", script.path,
            "http://127.0.0.1:\(port)", "--", "\(numbers.lowerBound)", "\(numbers.count)",
            // An answer takes about five milliseconds of each round.
            "\(max(1, connections * 1000 / rate - 5))", key,
        ]
        let output = Pipe()
        wrk.standardOutput = output
        try wrk.run()
        let text = String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
        wrk.waitUntilExit()
        let figures = text.split(separator: "\n").last { $0.hasPrefix("result ") }?
            .split(separator: " ").dropFirst().compactMap { Double($0) }
        guard wrk.terminationStatus == 0, let figures, figures.count == 8 else {
            throw Failure(description: "wrk, which the run needs, ended with \(wrk.terminationStatus): \(text)")
        }
        return Result(
            asked: Int(figures[0]), perSecond: Int(figures[0] * 1_000_000 / max(1, figures[1])),
            proceeds: Int(figures[2]), failures: Int(figures[3]), within: figures[4], median: figures[5],
            thousandth: figures[6], longest: figures[7])
    }
}
