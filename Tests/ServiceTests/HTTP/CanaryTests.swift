import Basics
import Foundation
import Lockstep
import Testing

@testable import Service

@Suite("A secret that is put anywhere comes out nowhere (M9, P1)")
struct CanaryTests {
    private static let canaries = [
        "4111111111111111", "lsk_CanaryCanaryCanaryCanaryCanaryCanaryCanary1", "canary@example.com-Muster",
    ]
    private static let headers = [
        "Authorization", "Idempotency-Key", "X-Request-Id", "If-Match", "traceparent", "Origin", "Content-Type",
        "Accept",
        "User-Agent", "X-Signature", "Cookie",
    ]

    @Test("P1: through every call, in every place: not in the log, not in the metrics", arguments: Endpoint.all)
    func everywhere(endpoint: Endpoint) async {
        struct Leaky: Error, CustomStringConvertible { let description: String }
        let bench = Bench([
            endpoint.handled { request in
                throw Leaky(description: "\(request.body?.text ?? "") \(request.parameters)")
            }
        ])
        for canary in Self.canaries {
            let path = endpoint.pattern.description.replacing(/\{[A-Za-z]+\}/, with: canary)
            let body = endpoint.body == .none ? nil : #"{"a":{"b":["\#(canary)"]}}"#
            let key: HTTPHeaders = ["Idempotency-Key": "k"]
            _ = await bench.send(endpoint.method, path, key, body: body)
            _ = await bench.send(endpoint.method, "\(path)?after=\(canary)&\(canary)=1", key, body: body)
            for header in Self.headers {
                var headers = key
                headers[header] = header == "Authorization" ? "Bearer \(canary)" : canary
                _ = await bench.send(endpoint.method, path, headers, body: body)
            }
        }
        let traces = bench.logged() + bench.metrics.text
        #expect(traces.contains("request"))
        for canary in Self.canaries where canary.hasPrefix("canary") == false {
            #expect(!traces.contains(canary), "\(canary)")
        }
        // An address is a sane request id neither, because of its @.
        #expect(!traces.contains("canary@"))
    }
}
