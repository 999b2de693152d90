import Basics
import Foundation
import Synchronization
import Testing

@testable import Service

@Suite("Rate limits")
struct RateLimitsTests {
    /// A clock that stands until it is moved.
    private final class Watch: Sendable {
        private let time = Mutex(Duration.zero)
        var now: @Sendable () -> Duration { { self.time.withLock { $0 } } }
        func advance(by duration: Duration) { time.withLock { $0 += duration } }
    }
    private let watch = Watch()
    private static let client = RateLimitPolicy(name: "client", quota: 3, windowSeconds: 6)

    private func limits(
        _ policies: [BearerToken.Kind: RateLimitPolicy] = [.client: RateLimitsTests.client], maximumTokens: Int = 100
    ) -> RateLimits { RateLimits(policies, maximumTokens: maximumTokens, now: watch.now) }

    @Test("the quota is there at once, comes back bit by bit, and never grows beyond itself")
    func quota() throws {
        let limits = limits()
        let token = BearerToken.make(.client)
        var standings = try (0..<4).map { _ in try #require(limits.count(token)) }
        #expect(standings.map(\.isRefused) == [false, false, false, true])
        #expect(standings.map(\.remaining) == [2, 1, 0, 0])
        #expect(standings.map(\.resetSeconds) == [2, 4, 6, 2])
        // A refusal costs nothing: after as long as it said, there is a place.
        watch.advance(by: .milliseconds(1999))
        #expect(limits.count(token)?.isRefused == true)
        watch.advance(by: .milliseconds(1))
        #expect(limits.count(token)?.isRefused == false)
        #expect(limits.count(token)?.isRefused == true)
        watch.advance(by: .seconds(3600))
        standings = try (0..<4).map { _ in try #require(limits.count(token)) }
        #expect(standings.map(\.isRefused) == [false, false, false, true])
    }

    @Test("each token has its own, and a kind without a policy has no end")
    func separate() {
        let limits = limits()
        let (one, other, key) = (BearerToken.make(.client), BearerToken.make(.client), BearerToken.make(.merchantKey))
        for _ in 0..<4 { _ = limits.count(one) }
        #expect(limits.count(one)?.isRefused == true)
        #expect(limits.count(other)?.isRefused == false)
        for _ in 0..<100 { #expect(limits.count(key) == nil) }
        #expect(limits.remembered == 2)
    }

    @Test("the fields are structured fields of the draft")
    func fields() throws {
        let standing = try #require(limits().count(BearerToken.make(.client)))
        #expect(standing.fields["RateLimit-Policy"] == #""client";q=3;w=6"#)
        #expect(standing.fields["RateLimit"] == #""client";r=2;t=2"#)
    }

    @Test("a quota that doesn't divide its window still has as many places as it says", arguments: [1, 7, 997, 10_000])
    func uneven(_ quota: Int) {
        let limits = limits([.client: RateLimitPolicy(name: "client", quota: quota, windowSeconds: 10)])
        let token = BearerToken.make(.client)
        for place in 1...quota { #expect(limits.count(token)?.remaining == quota - place) }
        #expect(limits.count(token)?.isRefused == true)
    }

    @Test("memory is bounded: those who went away are forgotten, and while all stay new ones aren't limited")
    func bounded() {
        let limits = limits(maximumTokens: 5)
        let first = BearerToken.make(.client)
        for _ in 0..<4 { _ = limits.count(first) }
        for _ in 0..<1000 { _ = limits.count(BearerToken.make(.client)) }
        #expect(limits.remembered == 5)
        #expect(limits.count(first)?.isRefused == true)
        watch.advance(by: .seconds(10))
        let late = BearerToken.make(.client)
        #expect((0..<4).map { _ in limits.count(late)?.isRefused } == [false, false, false, true])
        #expect(limits.remembered == 1)
    }

    @Test("beyond the quota the answer is 429 with Retry-After, and nobody is asked who it is")
    func router() async {
        let limits = limits([.client: RateLimitPolicy(name: "client", quota: 2, windowSeconds: 60)])
        let bench = Bench(Endpoint.all.map { $0.handled { _ in .ok([:]) } }, rateLimits: limits)
        let path = "/v1/checkouts/\(Bench.ownCheckout)"
        for left in [1, 0] {
            let answer = await bench.send("GET", path, token: Bench.client)
            #expect(answer.status == 200)
            #expect(answer.headers["RateLimit"]?.hasPrefix("\"client\";r=\(left);t=") == true)
            #expect(answer.headers["RateLimit-Policy"] == #""client";q=2;w=60"#)
            #expect(answer.headers["Retry-After"] == nil)
        }
        let asked = bench.doorman.asked
        let refused = await bench.send("GET", path, token: Bench.client)
        #expect(refused.status == 429 && refused.slug == "too-many-requests")
        #expect(refused.headers["Retry-After"] == "30" && refused.headers["RateLimit"] == #""client";r=0;t=30"#)
        #expect(bench.doorman.asked == asked)
        // Another call by the same token is no way around it; the gate and the merchant's key are other things.
        #expect(await bench.send("POST", "\(path)/session", token: Bench.client, body: "{}").status == 429)
        #expect(await bench.send("POST", "/v1/pre-payment", token: Bench.client, body: "{}").status == 200)
        let merchant = await bench.send("GET", path)
        #expect(merchant.status == 200 && merchant.headers["RateLimit"] == nil)
        #expect(bench.metrics.text.contains(#"lockstep_http_rate_limited_total{policy="client"} 2"#))
    }

    @Test("an unknown token learns of no quota, and one without a token has none")
    func unknown() async {
        let bench = Bench(Endpoint.all.map { $0.handled { _ in .ok([:]) } }, rateLimits: limits())
        let path = "/v1/checkouts/\(Bench.ownCheckout)"
        for token in [BearerToken.make(.client), nil] {
            let answer = await bench.send("GET", path, token: token)
            #expect(answer.status == 401 && answer.headers["RateLimit"] == nil)
        }
    }

    @Test("every call with a token but the gate's is limited, and the document says so")
    func documented() {
        let document = OpenAPIDocument.make(Endpoint.all, version: "1")
        for endpoint in Endpoint.all {
            let isLimited = endpoint.access != .open && endpoint.name != "prePayment"
            #expect(endpoint.isRateLimited == isLimited, "\(endpoint.name)")
            let responses = document["paths"]?[endpoint.pattern.description]?[endpoint.method.lowercased()]?[
                "responses"]
            #expect((responses?["429"] != nil) == isLimited, "\(endpoint.name)")
            for (status, response) in responses?.object ?? [:] where status.hasPrefix("2") {
                #expect((response["headers"]?["RateLimit"] != nil) == isLimited, "\(endpoint.name)")
            }
        }
    }
}
