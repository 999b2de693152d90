/// What is counted and logged about every answer: by the route's pattern, never by the path.
public struct HTTPMetrics: Sendable {
    let requests: CounterFamily
    let durations: HistogramFamily
    let problems: CounterFamily
    let inFlight: GaugeFamily
    let turnedAway: CounterFamily
    let limited: CounterFamily

    public init(_ metrics: Metrics) {
        requests = metrics.counter(
            "lockstep_http_requests_total", help: "Answered requests by route and status.",
            labels: ["method", "route", "status"])
        durations = metrics.histogram(
            "lockstep_http_request_duration_seconds", help: "Time from the request to its answer, by route.",
            labels: ["method", "route"])
        problems = metrics.counter(
            "lockstep_http_problems_total", help: "Answers that were a problem, by slug.", labels: ["problem"])
        turnedAway = metrics.counter(
            "lockstep_http_turned_away_total",
            help: "Requests for which there was no room, by lane and by what was full.", labels: ["lane", "by"])
        limited = metrics.counter(
            "lockstep_http_rate_limited_total", help: "Requests beyond a token's quota, by policy.",
            labels: ["policy"])
        inFlight = metrics.gauge("lockstep_http_requests_in_flight", help: "Requests that are being served.")
    }

    func record(_ answer: Answer, _ endpoint: Endpoint?, took duration: Duration, at path: String, _ log: Log) {
        let method = endpoint?.method ?? "-"
        let route = endpoint?.pattern.description ?? "-"
        requests.add(1, method, route, String(answer.status))
        durations.observe(duration, method, route)
        let problem = answer.problemKind
        if let problem { problems.add(1, problem.rawValue) }
        let level = level(of: answer, endpoint)
        guard log.writes(level) else { return }
        var fields: [LogField] = [.status(answer.status), .took(duration)]
        if let endpoint { fields.insert(.endpoint(endpoint), at: 0) }
        let touched = answer.touched.map(LogField.execution) ?? .touched(answer.headers["Location"] ?? path)
        if let touched { fields.append(touched) }
        if let problem { fields.append(.problem(problem)) }
        log.write(level, "request", fields)
    }

    /// Probes, scrapes and notifications come by the thousand, and are counted; one that went well isn't news.
    private func level(of answer: Answer, _ endpoint: Endpoint?) -> LogLevel {
        if answer.status >= 500 { return .warning }
        return endpoint?.access == .open && answer.status < 400 ? .debug : .info
    }
}

extension Answer {
    /// Which problem the body tells of.
    var problemKind: ProblemKind? {
        guard headers["Content-Type"] == "application/problem+json", let type = json?["type"]?.string else {
            return nil
        }
        return ProblemKind(rawValue: String(type.dropFirst("urn:lockstep:problem:".count)))
    }
}
