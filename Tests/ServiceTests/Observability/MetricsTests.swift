import Testing

@testable import Service

@Suite("Metrics")
struct MetricsTests {
    @Test("counters, gauges and histograms are written as Prometheus reads them")
    func text() {
        let metrics = Metrics()
        let counter = metrics.counter("a_total", help: "Counts\nthings \\.", labels: ["kind"])
        counter.add(2, "x\"y\\z\nw")
        counter.add(1, "b")
        metrics.gauge("b_now", help: "Now.").set(-3)
        metrics.gauge("c_pool", help: "Pool.", labels: ["state"]) { [(["idle"], 1.5), (["wrong", "count"], 1)] }
        let histogram = metrics.histogram("d_seconds", help: "Time.", buckets: [0.1, 1])
        for milliseconds in [50, 100, 500, 5000] { histogram.observe(.milliseconds(milliseconds)) }
        #expect(
            metrics.text == """
                # HELP a_total Counts\\nthings \\\\.
                # TYPE a_total counter
                a_total{kind="b"} 1
                a_total{kind="x\\"y\\\\z\\nw"} 2
                # HELP b_now Now.
                # TYPE b_now gauge
                b_now -3
                # HELP c_pool Pool.
                # TYPE c_pool gauge
                c_pool{state="idle"} 1.5
                # HELP d_seconds Time.
                # TYPE d_seconds histogram
                d_seconds_bucket{le="0.1"} 2
                d_seconds_bucket{le="1"} 3
                d_seconds_bucket{le="+Inf"} 4
                d_seconds_sum 5.65
                d_seconds_count 4

                """)
    }

    @Test("a counter never goes down, and one without labels is there from the start")
    func counters() {
        let metrics = Metrics()
        let counter = metrics.counter("x_total", help: "X.")
        #expect(metrics.text.contains("x_total 0\n"))
        counter.add(5)
        counter.add(-3)
        #expect(counter.value() == 5)
    }

    @Test("the same name is the same counter")
    func sameName() {
        let metrics = Metrics()
        metrics.counter("x_total", help: "X.").add()
        #expect(metrics.counter("x_total", help: "X.").value() == 1)
    }

    @Test("nothing is lost when many count at once")
    func concurrent() async {
        let metrics = Metrics()
        let counter = metrics.counter("x_total", help: "X.", labels: ["k"])
        let histogram = metrics.histogram("y_seconds", help: "Y.")
        await withTaskGroup { group in
            for task in 0..<8 {
                group.addTask {
                    for _ in 0..<1000 {
                        counter.add(1, "\(task % 2)")
                        histogram.observe(.milliseconds(1))
                    }
                }
            }
        }
        #expect(counter.value("0") == 4000 && counter.value("1") == 4000)
        #expect(metrics.text.contains("y_seconds_count 8000\n"))
        #expect(metrics.text.contains("y_seconds_sum 8\n"))
    }

    @Test("a family doesn't grow without an end, and the wrong number of labels is no crash")
    func bounded() {
        let metrics = Metrics()
        let counter = metrics.counter("x_total", help: "X.", labels: ["k"])
        for index in 0..<(Metrics.maximumSeries + 500) { counter.add(1, "\(index)") }
        #expect(metrics.text.split(separator: "\n").count { $0.hasPrefix("x_total") } <= Metrics.maximumSeries + 1)
        #expect(counter.value("other") == 500)
        counter.add(1)
        counter.add(1, "a", "b")
        #expect(counter.value("other") == 502)
    }
}
