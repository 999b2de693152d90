import Synchronization

/// Numbers for Prometheus: named once with their help, counted from any thread, written on request.
///
/// Label values come from the code (a route's pattern, a status, a state), never from a caller, and a family stops at
/// ``maximumSeries`` of them: what comes after is counted under `other`.
public final class Metrics: Sendable {
    /// Series that one family may have.
    public static let maximumSeries = 2000

    private let families = Mutex<[String: any MetricFamily]>([:])

    public init() {}

    /// A number that only grows. The name ends in `_total`. The same name again gives the same counter.
    public func counter(_ name: String, help: String, labels: [String] = []) -> CounterFamily {
        register(name) { CounterFamily(name: name, help: help, labels: labels) }
    }

    /// A number that goes up and down.
    public func gauge(_ name: String, help: String, labels: [String] = []) -> GaugeFamily {
        register(name) { GaugeFamily(name: name, help: help, labels: labels) }
    }

    /// A gauge that is asked when somebody looks: a pool's size, a queue's length. Each reading is label values and a
    /// value.
    public func gauge(
        _ name: String, help: String, labels: [String] = [],
        reading: @escaping @Sendable () -> [(labels: [String], value: Double)]
    ) {
        _ = register(name) { CallbackGauge(name: name, help: help, labels: labels, reading: reading) }
    }

    /// Durations in seconds, counted into buckets. The name ends in `_seconds`.
    public func histogram(
        _ name: String, help: String, labels: [String] = [], buckets: [Double] = Histogram.usualBuckets
    ) -> HistogramFamily {
        register(name) { HistogramFamily(name: name, help: help, labels: labels, buckets: buckets) }
    }

    private func register<Family: MetricFamily>(_ name: String, _ make: () -> Family) -> Family {
        families.withLock { families in
            if let known = families[name] as? Family { return known }
            precondition(families[name] == nil, "two kinds of metric have one name")
            let family = make()
            families[name] = family
            return family
        }
    }

    /// The text format 0.0.4, families in alphabetical order.
    public var text: String {
        let all = families.withLock { $0.values.sorted { $0.name < $1.name } }
        var out = ""
        for family in all {
            out += "# HELP \(family.name) \(MetricText.escapedHelp(family.help))\n"
            out += "# TYPE \(family.name) \(family.kind)\n"
            family.write(into: &out)
        }
        return out
    }

    /// For `Content-Type`.
    public static let contentType = "text/plain; version=0.0.4; charset=utf-8"
}

protocol MetricFamily: AnyObject, Sendable {
    var name: String { get }
    var help: String { get }
    var kind: String { get }
    func write(into out: inout String)
}

enum MetricText {
    static func escapedHelp(_ text: String) -> String {
        text.replacing("\\", with: "\\\\").replacing("\n", with: "\\n")
    }

    static func line(_ name: String, _ labels: [(String, String)], _ value: String) -> String {
        guard !labels.isEmpty else { return "\(name) \(value)\n" }
        let pairs = labels.map { name, value in
            let escaped = value.replacing("\\", with: "\\\\").replacing("\"", with: "\\\"").replacing("\n", with: "\\n")
            return "\(name)=\"\(escaped)\""
        }
        return "\(name){\(pairs.joined(separator: ","))} \(value)\n"
    }

    static func number(_ value: Double) -> String {
        if value.isNaN { return "NaN" }
        if value.isInfinite { return value < 0 ? "-Inf" : "+Inf" }
        return value == value.rounded() && abs(value) < 1e15 ? String(Int64(value)) : String(value)
    }
}
