import Basics
import Foundation
import Synchronization
import Testing

@testable import Service

@Suite("Who is let in")
struct AdmissionTests {
    private let body = #"{"executionId":"0197c0de-0000-7000-8000-000000000001","paymentMethodCode":"card"}"#
    private var path: String { "/v1/checkouts/\(Bench.ownCheckout)" }

    /// Reading a checkout lasts until the gate opens.
    private func bench(_ admission: Admission, _ shut: Gate = Gate(), _ tally: Tally = Tally()) -> Bench {
        let others = Endpoint.all.filter { $0.name != "getCheckout" && $0.lane != .gate }
        var routes = others.map { $0.handled { _ in .ok([:]) } }
        routes.append(
            Endpoint.getCheckout.handled { _ in
                tally.hit()
                await shut.wait()
                return .ok([:])
            })
        routes.append(
            Endpoint.prePayment.handled { _ in .ok(["decision": "proceed"]) }
                .answeringAnyway(within: .seconds(60)) { _ in .ok(["decision": "refuse"]) })
        return Bench(routes, admission: admission)
    }

    @Test(
        "beyond its limit a lane says 503 with Retry-After at once; the others go on, and a place that is left is free")
    func full() async {
        let (shut, tally) = (Gate(), Tally())
        let bench = bench(Admission([.ordinary: 2]), shut, tally)
        async let one = bench.send("GET", path)
        async let two = bench.send("GET", path)
        while tally.hits < 2 { await Task.yield() }
        let asked = bench.doorman.asked
        let third = await bench.send("GET", path)
        #expect(third.status == 503 && third.slug == "unavailable" && third.headers["Retry-After"] == "2")
        #expect(bench.doorman.asked == asked, "nothing is done for it")
        #expect(await bench.send("GET", "/v1/events").status == 200)
        #expect(await bench.send("POST", "/v1/pre-payment", body: body).json?["decision"] == "proceed")
        #expect(await bench.send("POST", "/webhooks/payrails", token: nil, body: "{}").status == 200)
        #expect(await bench.send("GET", "/healthz", token: nil).status == 200)
        await shut.open()
        #expect(await [one, two].map(\.status) == [200, 200])
        #expect(await bench.send("GET", path).status == 200)
        #expect(bench.metrics.text.contains(#"lockstep_http_turned_away_total{lane="ordinary",by="full"} 1"#))
    }

    @Test("a gate that is full refuses with 200")
    func fullGate() async {
        let bench = bench(Admission([.gate: 0]))
        let answer = await bench.send("POST", "/v1/pre-payment", body: body)
        #expect(answer.status == 200 && answer.json?["decision"] == "refuse")
        #expect(await bench.send("POST", "/v1/pre-payment", body: "{").status == 400)
    }

    @Test("while as many wait for the database as may, nobody new is let in who would")
    func database() async {
        let shut = Gate()
        await shut.open()
        let busy = BusyFlag()
        let bench = bench(Admission { busy.isSet }, shut)
        #expect(await bench.send("GET", path).status == 503)
        #expect(await bench.send("GET", "/v1/events").status == 503)
        #expect(await bench.send("POST", "/v1/pre-payment", body: body).json?["decision"] == "proceed")
        #expect(await bench.send("POST", "/webhooks/payrails", token: nil, body: "{}").status == 200)
        #expect(await bench.send("GET", "/metrics", token: nil).status == 200)
        busy.clear()
        #expect(await bench.send("GET", path).status == 200)
    }

    @Test("a place is left however the request ends")
    func left() async {
        struct Broken: Error {}
        let admission = Admission([.ordinary: 1, .gate: 1])
        let bench = Bench(
            [
                Endpoint.getCheckout.handled { _ in throw Broken() },
                Endpoint.prePayment.handled { _ in throw Broken() }
                    .answeringAnyway(within: .milliseconds(20)) { _ in .ok([:]) },
            ], admission: admission)
        for _ in 0..<3 {
            #expect(await bench.send("GET", path).status == 500)
            #expect(await bench.send("GET", path, token: nil).status == 401)
            #expect(await bench.send("GET", "\(path)?x=1").status == 422)
            #expect(await bench.send("POST", "/v1/pre-payment", body: body).status == 200)
        }
        #expect(admission.standing.allSatisfy { $0.count == 0 })
    }

    private final class BusyFlag: Sendable {
        private let value = Mutex(true)
        var isSet: Bool { value.withLock { $0 } }
        func clear() { value.withLock { $0 = false } }
    }
}
