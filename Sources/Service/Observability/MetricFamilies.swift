import Synchronization

/// The series of one family, by the values of its labels.
final class SeriesTable<Series: Sendable>: Sendable {
    private let labels: [String]
    private let make: @Sendable () -> Series
    private let table = Mutex<[[String]: Series]>([:])

    init(labels: [String], make: @escaping @Sendable () -> Series) {
        self.labels = labels
        self.make = make
    }

    /// The series of these values, made if it is new. Too few or too many values, and series beyond the limit, count
    /// under `other`: a wrong metric must not stop a payment.
    func series(_ values: [String]) -> Series {
        table.withLock { table in
            if let known = table[values] { return known }
            let fits = values.count == labels.count && table.count < Metrics.maximumSeries
            let key = fits ? values : labels.map { _ in "other" }
            if let known = table[key] { return known }
            let new = make()
            table[key] = new
            return new
        }
    }

    /// All series with their labels, in alphabetical order of the values.
    var all: [(labels: [(String, String)], series: Series)] {
        table.withLock { Array($0) }.sorted { $0.key.lexicographicallyPrecedes($1.key) }
            .map { (Array(zip(labels, $0.key)), $0.value) }
    }
}

/// A number that only grows.
public final class CounterFamily: MetricFamily {
    final class Counter: Sendable { let value = Atomic<Int>(0) }
    let name: String
    let help: String
    let kind = "counter"
    private let table: SeriesTable<Counter>

    init(name: String, help: String, labels: [String]) {
        self.name = name
        self.help = help
        table = SeriesTable(labels: labels) { Counter() }
        if labels.isEmpty { _ = table.series([]) }
    }

    /// Counts; the values stand in the order of the labels' names.
    public func add(_ amount: Int = 1, _ labels: String...) {
        table.series(labels).value.wrappingAdd(max(0, amount), ordering: .relaxed)
    }

    /// What it stands at.
    public func value(_ labels: String...) -> Int { table.series(labels).value.load(ordering: .relaxed) }

    func write(into out: inout String) {
        for (labels, counter) in table.all {
            out += MetricText.line(name, labels, String(counter.value.load(ordering: .relaxed)))
        }
    }
}

/// A number that goes up and down.
public final class GaugeFamily: MetricFamily {
    final class Gauge: Sendable { let value = Atomic<Int>(0) }
    let name: String
    let help: String
    let kind = "gauge"
    private let table: SeriesTable<Gauge>

    init(name: String, help: String, labels: [String]) {
        self.name = name
        self.help = help
        table = SeriesTable(labels: labels) { Gauge() }
        if labels.isEmpty { _ = table.series([]) }
    }

    public func set(_ value: Int, _ labels: String...) { table.series(labels).value.store(value, ordering: .relaxed) }
    public func add(_ amount: Int, _ labels: String...) {
        table.series(labels).value.wrappingAdd(amount, ordering: .relaxed)
    }
    public func value(_ labels: String...) -> Int { table.series(labels).value.load(ordering: .relaxed) }

    func write(into out: inout String) {
        for (labels, gauge) in table.all {
            out += MetricText.line(name, labels, String(gauge.value.load(ordering: .relaxed)))
        }
    }
}

/// A gauge that is asked when somebody looks.
final class CallbackGauge: MetricFamily {
    let name: String
    let help: String
    let kind = "gauge"
    private let labels: [String]
    private let reading: @Sendable () -> [(labels: [String], value: Double)]

    init(
        name: String, help: String, labels: [String],
        reading: @escaping @Sendable () -> [(labels: [String], value: Double)]
    ) {
        self.name = name
        self.help = help
        self.labels = labels
        self.reading = reading
    }

    func write(into out: inout String) {
        for (values, value) in reading() where values.count == labels.count {
            out += MetricText.line(name, Array(zip(labels, values)), MetricText.number(value))
        }
    }
}

/// How often durations fell into which bucket.
public final class Histogram: Sendable {
    /// Seconds, from 1 ms to 30 s: a request here takes a few of the first, one that asks Payrails some of the last.
    public static let usualBuckets: [Double] = [
        0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30,
    ]

    struct Counts {
        var buckets: [Int]
        var count = 0
        var sumMicroseconds = 0
    }
    let counts: Mutex<Counts>

    init(buckets: Int) { counts = Mutex(Counts(buckets: Array(repeating: 0, count: buckets))) }
}

/// Durations in seconds, counted into buckets.
public final class HistogramFamily: MetricFamily {
    let name: String
    let help: String
    let kind = "histogram"
    private let buckets: [Double]
    private let table: SeriesTable<Histogram>

    init(name: String, help: String, labels: [String], buckets: [Double]) {
        self.name = name
        self.help = help
        self.buckets = buckets.sorted()
        table = SeriesTable(labels: labels) { Histogram(buckets: buckets.count) }
    }

    public func observe(_ duration: Duration, _ labels: String...) {
        let (seconds, attoseconds) = duration.components
        let value = Double(seconds) + Double(attoseconds) / 1e18
        let bucket = buckets.firstIndex { value <= $0 }
        table.series(labels).counts.withLock { counts in
            counts.count += 1
            counts.sumMicroseconds += Int(seconds) * 1_000_000 + Int(attoseconds / 1_000_000_000_000)
            if let bucket { counts.buckets[bucket] += 1 }
        }
    }

    func write(into out: inout String) {
        for (labels, histogram) in table.all {
            let counts = histogram.counts.withLock { $0 }
            var cumulative = 0
            for (bound, count) in zip(buckets, counts.buckets) {
                cumulative += count
                let bounded = labels + [("le", MetricText.number(bound))]
                out += MetricText.line("\(name)_bucket", bounded, String(cumulative))
            }
            out += MetricText.line("\(name)_bucket", labels + [("le", "+Inf")], String(counts.count))
            out += MetricText.line(
                "\(name)_sum", labels, MetricText.number(Double(counts.sumMicroseconds) / 1_000_000))
            out += MetricText.line("\(name)_count", labels, String(counts.count))
        }
    }
}
