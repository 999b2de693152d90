import Basics
import Foundation
import Lockstep
import PayrailsSandbox
import TestKit
import Testing

@testable import Service

@Suite("A client token reaches its own checkout and nothing else (M10)")
struct IsolationTests {
    /// Two orders that have everything an order can have: a payment, an operation, a session that was replaced.
    private struct Neighbours {
        let lockstep: ServiceHarness
        let mine: Order
        let theirs: Order
        /// Whatever names something of an order's.
        let myIDs: [String]
        let theirIDs: [String]
        let routed: Set<String>

        static let shared = Task {
            let lockstep = try await ServiceHarness.shared()
            let (mine, myIDs) = try await live(lockstep)
            let (theirs, theirIDs) = try await live(lockstep)
            let document = try await lockstep.stranger.get("/openapi.json").json
            let operations = (document["paths"]?.object ?? [:]).values.flatMap { ($0.object ?? [:]).values }
            return Neighbours(
                lockstep: lockstep, mine: mine, theirs: theirs, myIDs: myIDs, theirIDs: theirIDs,
                routed: Set(operations.compactMap { $0["operationId"]?.string }))
        }

        private static func live(_ lockstep: ServiceHarness) async throws -> (Order, [String]) {
            let order = try await lockstep.order("49.99", ServiceHarness.mayUpdate)
            let next = try #require(try await lockstep.session(order).json["executionId"]?.string)
            try lockstep.pay(next)
            #expect(try await lockstep.becomes("paid", order))
            let capture = try await lockstep.shop.post(
                "/v1/executions/\(next)/capture", ["amount": lockstep.money("10.00")], key: freshWord("key"))
            let operation = try #require(capture.json["id"]?.string)
            #expect(try await lockstep.becomes("succeeded", operation: operation))
            let payments = try await lockstep.execution(next)["paymentIds"]?.array?.compactMap(\.string) ?? []
            return (
                order,
                [order.checkout, order.execution, next, operation] + payments.filter { UUID(uuidString: $0) != nil }
            )
        }
    }

    private let all: Neighbours
    init() async throws { all = try await Neighbours.shared.value }

    @Test(
        "every call of the catalogue, with every id of another checkout, is answered as for an id that isn't there",
        arguments: Endpoint.withToken)
    func anothers(_ endpoint: Endpoint) async throws {
        let app = try all.lockstep.app(all.mine)
        let before = try await all.lockstep.checkout(all.theirs)
        for id in all.theirIDs {
            let nobodys = CatalogueCall(
                endpoint: endpoint, id: UUID().uuidString.lowercased(), reference: freshWord("nobody"))
            let theirs = CatalogueCall(endpoint: endpoint, id: id, reference: all.theirs.reference)
            let reply = try await theirs.make(by: app)
            #expect(theirs.shown(reply) == nobodys.shown(try await nobodys.make(by: app)))
            switch (all.routed.contains(endpoint.name), endpoint.isForClients) {
            case (false, _): #expect(reply.outcome == "404 not-found")
            case (true, false): #expect(reply.outcome == "403 forbidden")
            case (true, true):
                let isNothing = reply.json["reason"] == "unknown-execution" || reply.json["items"] == []
                #expect(reply.outcome == "404 not-found" || (reply.status == 200 && isNothing), "\(reply.text)")
            }
        }
        #expect(try await all.lockstep.checkout(all.theirs) == before)
    }

    @Test(
        "the same calls with its own ids get through, so that the answers above say something",
        arguments: Endpoint.withToken.filter(\.isForClients))
    func own(_ endpoint: Endpoint) async throws {
        let app = try all.lockstep.app(all.mine)
        var outcomes: [String] = []
        for id in all.myIDs {
            let reply = try await CatalogueCall(endpoint: endpoint, id: id, reference: all.mine.reference).make(by: app)
            outcomes.append(reply.json["reason"]?.string ?? (reply.json["items"] == [] ? "none" : reply.outcome))
        }
        let nothing = ["unknown-execution", "none", "404 not-found", "403 forbidden", "401 unauthorized"]
        #expect(!Set(outcomes).subtracting(nothing).isEmpty, "\(outcomes)")
    }

    @Test("a merchant key is worth what its scopes say, on every call of the catalogue", arguments: Endpoint.withToken)
    func scopes(_ endpoint: Endpoint) async throws {
        guard all.routed.contains(endpoint.name) else { return }
        let scope: Scope
        switch endpoint.access {
        case .scope(let needed), .scopeOrClient(let needed, _): scope = needed
        case .open, .anyKey: return
        }
        let stranger = try all.lockstep.stranger
        let call = CatalogueCall(
            endpoint: endpoint, id: UUID().uuidString.lowercased(), reference: freshWord("nobody"))
        let without = try await all.lockstep.makeKey(Set(Scope.allCases).subtracting([scope]))
        #expect(try await call.make(by: stranger.with(token: without)).outcome == "403 forbidden")
        let with = try await all.lockstep.makeKey([scope])
        #expect(![401, 403].contains(try await call.make(by: stranger.with(token: with)).status))
    }

    @Test("P4: nothing about requests, orders or payments is open to strangers, and the rest can be closed by setting")
    func openPaths() async throws {
        let open = Set(Endpoint.all.filter { $0.access == .open }.map(\.name))
        let probes: Set = ["health", "readiness", "metrics", "openAPI"]
        #expect(open == probes.union(["receiveNotification", "receiveNotificationAtEndpoint"]))
        let closed = try await all.lockstep.startService(
            .api, ["LOCKSTEP_RESTRICTED_PATHS": "healthz,readyz,metrics,openapi"])
        let stranger = all.lockstep.caller(of: closed)
        for endpoint in Endpoint.all where probes.contains(endpoint.name) {
            let path = endpoint.pattern.description
            #expect(try await stranger.get(path).outcome == "401 unauthorized")
            #expect(try await stranger.with(token: all.mine.token).get(path).outcome == "403 forbidden")
            #expect(try await stranger.with(token: all.lockstep.key).get(path).status == 200)
        }
    }
}

extension Endpoint {
    fileprivate static let withToken = all.filter { $0.access != .open }
    fileprivate var isForClients: Bool { if case .scopeOrClient = access { true } else { false } }
}
