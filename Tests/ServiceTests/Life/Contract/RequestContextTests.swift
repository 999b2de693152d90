import Basics
import Foundation
import PayrailsSandbox
import TestKit
import Testing

@testable import Service

@Suite("What a caller sends along, for whoever looks for the request later")
struct RequestContextTests {
    private static let shared = Task { try await ServiceHarness.shared() }
    private let lockstep: ServiceHarness
    init() async throws { lockstep = try await Self.shared.value }

    private static let trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

    @Test("every answer has the caller's X-Request-Id, also where no handler saw the request")
    func requestID() async throws {
        let path = "/v1/checkouts"
        let cases: [(HTTPHeaders, Int)] = [
            ([:], 400), (["Content-Encoding": "gzip"], 415), (["Authorization": "Bearer x"], 401),
        ]
        for (extra, status) in cases {
            var headers = extra
            headers["X-Request-Id"] = "mine-1"
            let reply = try await lockstep.shop.post(path, [:], headers: headers)
            #expect(reply.status == status && reply.headers["X-Request-Id"] == "mine-1", "\(reply.text)")
            #expect(reply.json["requestId"] == "mine-1")
        }
        let long = try await lockstep.shop.call(
            "POST", path, body: Data(repeating: UInt8(ascii: " "), count: 262_145), headers: ["X-Request-Id": "mine-2"])
        #expect(long.status == 413 && long.headers["X-Request-Id"] == "mine-2" && long.json["requestId"] == "mine-2")
        let insane = try await lockstep.shop.post(
            path, [:], headers: ["Content-Encoding": "gzip", "X-Request-Id": "a b"])
        #expect(insane.status == 415 && insane.headers["X-Request-Id"]?.count == 36)
    }

    @Test("traceparent goes on to Payrails with every call for the request, and with no other")
    func trace() async throws {
        let traced = freshWord("traced")
        let created = try await lockstep.shop.post(
            "/v1/checkouts", lockstep.newCheckout(traced), key: freshWord("key"),
            headers: ["traceparent": Self.trace])
        let order = try lockstep.order(traced, created)
        func traces(_ route: SandboxRoute, _ word: String) -> [String?] {
            lockstep.sandbox.calls(to: route).filter {
                $0.path.contains(word) || $0.body?["merchantReference"]?.string == word
            }.map(\.trace)
        }
        #expect(traces(.clientInit, traced) == [Self.trace])
        try lockstep.pay(order.execution)
        #expect(try await lockstep.becomes("paid", order))
        let path = "/v1/executions/\(order.execution)/capture"
        let capture = try await lockstep.shop.post(
            path, ["amount": lockstep.money("10.00"), "final": false], key: freshWord("key"),
            headers: ["traceparent": Self.trace])
        #expect(capture.status == 202)
        #expect(traces(.capture, order.execution) == [Self.trace])
        // A request without one, and one that isn't of the form, have none to pass on.
        for headers: HTTPHeaders in [[:], ["traceparent": "00-x"]] {
            let other = freshWord("other")
            let reply = try await lockstep.shop.post(
                "/v1/checkouts", lockstep.newCheckout(other), key: freshWord("key"), headers: headers)
            #expect(reply.status == 201)
            #expect(traces(.clientInit, other) == [nil])
        }
    }
}
