import Basics
import Foundation
import Lockstep
import Testing

@testable import Service

@Suite("The router")
struct RouterTests {
    private static let echo: Route.Handler = { request in
        .ok(
            .compact([
                "route": .string(request.endpoint.name), "id": request.parameters["id"].map { .string($0) },
                "body": request.body, "trace": request.trace.map { .string($0.text) },
            ]))
    }
    private let bench = Bench(Endpoint.all.map { $0.handled(by: RouterTests.echo) })

    @Test("an unknown path is 404 in the form of RFC 9457, with the request's id in body and header")
    func unknownPath() async {
        let answer = await bench.send("GET", "/v1/nothing", ["X-Request-Id": "abc-1"])
        #expect(answer.status == 404)
        #expect(answer.headers["Content-Type"] == "application/problem+json")
        #expect(answer.json?["type"] == "urn:lockstep:problem:not-found")
        #expect(answer.json?["status"] == 404)
        #expect(answer.json?["title"]?.string?.isEmpty == false)
        #expect(answer.json?["detail"]?.string?.isEmpty == false)
        #expect(answer.json?["requestId"] == "abc-1")
        #expect(answer.headers["X-Request-Id"] == "abc-1")
    }

    @Test("a known path with another method is 405 and names the methods")
    func otherMethod() async {
        let answer = await bench.send("DELETE", "/v1/checkouts")
        #expect(answer.status == 405)
        #expect(answer.headers["Allow"] == "GET, HEAD, OPTIONS, POST")
        #expect(await bench.send("TRACE", "/healthz").status == 405)
        #expect(await bench.send("get", "/healthz").status == 405)
    }

    @Test("HEAD is answered as GET")
    func head() async {
        let answer = await bench.send("HEAD", "/healthz", token: nil)
        #expect(answer.status == 200)
        #expect(await bench.send("HEAD", "/v1/charges").status == 405)
    }

    @Test("a trailing slash, an empty segment and an empty parameter are other paths")
    func strictSegments() async {
        for path in ["/v1/checkouts/", "//v1/checkouts", "/v1//checkouts", "/v1/checkouts//session", "/", "", "*"] {
            let status = await bench.send("POST", path, body: "{}").status
            #expect(status == 404 || status == 400, "\(path)")
        }
    }

    @Test("a parameter is decoded after the path is split, and broken escapes are 400")
    func decoding() async {
        #expect(await bench.send("GET", "/v1/charges/a%2Fb").json?["id"] == "a/b")
        #expect(await bench.send("GET", "/v1/charges/%C3%BC").json?["id"] == "ü")
        #expect(await bench.send("GET", "/%761/charges/x").json?["id"] == "x")
        for path in [
            "/v1/charges/%", "/v1/charges/%4", "/v1/charges/%zz", "/v1/charges/%ff", "/v1/charges/%00",
            "/v1/charges/a%0Ab", "/v1/charges/%C0%AF",
        ] {
            let answer = await bench.send("GET", path)
            #expect(answer.status == 400 && answer.slug == "malformed-request", "\(path)")
        }
    }

    @Test("a path that is written out wins over one with a parameter")
    func literalsFirst() async {
        let literal = Endpoint("literal", "GET", "/v1/things/all", access: .open, summary: "", responses: [])
        let parameter = Endpoint("parameter", "GET", "/v1/things/{id}", access: .open, summary: "", responses: [])
        let post = Endpoint("post", "POST", "/v1/things/{id}", access: .open, summary: "", responses: [])
        for order in [[literal, parameter, post], [post, parameter, literal]] {
            let bench = Bench(order.map { $0.handled(by: Self.echo) })
            #expect(await bench.send("GET", "/v1/things/all").json?["route"] == "literal")
            #expect(await bench.send("GET", "/v1/things/one").json?["route"] == "parameter")
            #expect(await bench.send("POST", "/v1/things/all").status == 405)
        }
    }

    @Test("a sane request id is taken, an insane or doubled one is replaced by a UUID of version 7")
    func requestIDs() async throws {
        for insane in [
            "", " ", "a b", "ü", String(repeating: "a", count: 129), "a\u{7F}", "4111111111111111", "{}",
            Bench.merchant.text.reveal,
        ] {
            let answer = await bench.send("GET", "/healthz", ["X-Request-Id": insane])
            let id = try #require(answer.headers["X-Request-Id"])
            #expect(id != insane)
            #expect(UUID(uuidString: id) != nil && id.dropFirst(14).first == "7", "\(insane)")
        }
        var doubled: HTTPHeaders = ["X-Request-Id": "one"]
        doubled.add("x-request-id", "two")
        #expect(await bench.send("GET", "/healthz", doubled).headers["X-Request-Id"]?.count == 36)
        let longest = String(repeating: "a", count: 128)
        #expect(await bench.send("GET", "/healthz", ["X-Request-Id": longest]).headers["X-Request-Id"] == longest)
    }

    @Test("a good traceparent reaches the handler, a bad one doesn't")
    func traces() async {
        let good = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
        #expect(await bench.send("GET", "/healthz", ["traceparent": good]).json?["trace"]?.string == good)
        for bad in [
            "", "00-x", "ff" + good.dropFirst(2), good.uppercased(), good + "-1",
            "00-" + String(repeating: "0", count: 32) + "-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-" + String(repeating: "0", count: 16) + "-01", " " + good,
        ] { #expect(await bench.send("GET", "/healthz", ["traceparent": bad]).json?["trace"] == nil, "\(bad)") }
    }

    @Test(
        "an error that nobody foresaw is a plain 500: nothing of it reaches the caller, and of its text nothing the log"
    )
    func unforeseen() async {
        struct Leaky: Error, CustomStringConvertible { let description = "password=hunter2 4111111111111111" }
        let bench = Bench([Endpoint.health.handled { _ in throw Leaky() }])
        let answer = await bench.send("GET", "/healthz")
        #expect(answer.status == 500 && answer.slug == "internal")
        #expect(!String(decoding: answer.body, as: UTF8.self).contains("hunter2"))
        #expect(bench.logged().contains("Leaky"))
        #expect(!bench.logged().contains("hunter2"))
    }

    @Test("an error that the surroundings can explain is what they say, with Retry-After for a 503")
    func explained() async {
        struct DatabaseGone: Error {}
        let bench = Bench(
            [Endpoint.health.handled { _ in throw DatabaseGone() }],
            explain: { $0 is DatabaseGone ? Problem(.unavailable, "the database can't be reached") : nil })
        let answer = await bench.send("GET", "/healthz")
        #expect(answer.status == 503 && answer.slug == "unavailable")
        #expect(answer.headers["Retry-After"].flatMap { Int($0) } ?? 0 > 0)
    }

    @Test("every problem has its own slug, a 4xx or 5xx, and a title")
    func registry() {
        for kind in ProblemKind.allCases {
            #expect((400...599).contains(kind.status))
            #expect(kind.rawValue.wholeMatch(of: /[a-z]+(-[a-z]+)*/) != nil, "\(kind.rawValue)")
            #expect(!kind.title.isEmpty)
            let answer = Problem(kind).answer(requestID: RequestID(UUID()))
            #expect(answer.status == kind.status && answer.problemKind == kind)
            if kind.status == 503 || kind.status == 429 { #expect(answer.headers["Retry-After"] != nil, "\(kind)") }
        }
        #expect(Set(ProblemKind.allCases.map(\.title)).count == ProblemKind.allCases.count)
    }

    @Test("answers are counted by pattern and status, logged once, with the id touched, without path, query or body")
    func observed() async {
        let id = UUID().lowercased
        _ = await bench.send("GET", "/v1/charges/\(id)", ["X-Request-Id": "seen-1"])
        _ = await bench.send("GET", "/v1/nothing-\(id)")
        let text = bench.metrics.text
        #expect(text.contains(#"lockstep_http_requests_total{method="GET",route="/v1/charges/{id}",status="200"} 1"#))
        #expect(text.contains(#"lockstep_http_requests_total{method="-",route="-",status="404"} 1"#))
        #expect(text.contains(#"lockstep_http_problems_total{problem="not-found"} 1"#))
        #expect(text.contains("lockstep_http_requests_in_flight 0"))
        #expect(
            text.contains(#"lockstep_http_request_duration_seconds_count{method="GET",route="/v1/charges/{id}"} 1"#))
        #expect(!text.contains(id))
        // Of a path only the id shows that is one of ours by its form, under its own name.
        let lines = bench.loggedLines()
        #expect(lines.filter { $0.text.contains(id) }.map { $0["chargeId"]?.string } == [id])
        #expect(lines.count { $0["requestId"] == "seen-1" } == 1)
        #expect(lines.first { $0["requestId"] == "seen-1" }?["route"] == "GET /v1/charges/{id}")
    }
}
