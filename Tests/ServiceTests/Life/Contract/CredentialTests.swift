import Basics
import Lockstep
import Postgres
import TestKit
import Testing

@Suite("Who may call what")
struct CredentialTests {
    private static let shared = Task { try await ServiceHarness.shared() }
    private let lockstep: ServiceHarness
    init() async throws { lockstep = try await Self.shared.value }

    @Test("without a token that is in force every call is 401, and says how to ask", arguments: ContractCall.all)
    func unauthorized(_ call: ContractCall) async throws {
        let order = try await lockstep.order()
        let revoked = try await lockstep.makeKey([.checkouts, .payments])
        let name = try #require(try await lockstep.store.findKey(token: Secret(revoked))).name
        #expect(try await lockstep.store.revokeKey(name))
        let fields: [HTTPHeaders] = [
            [:], ["Authorization": ""], ["Authorization": lockstep.key], ["Authorization": "Basic \(lockstep.key)"],
            ["Authorization": "Bearer"], ["Authorization": "Bearer lsk_"], ["Authorization": "Bearer \(revoked)"],
            ["Authorization": "Bearer lsk_\(String(repeating: "A", count: 43))"],
            ["Authorization": "Bearer lsc_\(String(repeating: "A", count: 43))"],
            ["Authorization": "Bearer x \(lockstep.key)"], ["X-Api-Key": lockstep.key],
            HTTPHeaders([
                .init(name: "Authorization", value: "Bearer \(lockstep.key)"),
                .init(name: "Authorization", value: "Bearer \(lockstep.key)"),
            ]),
        ]
        for field in fields {
            let reply = try await call.make(on: .init(order), by: try lockstep.stranger, headers: field)
            #expect(reply.outcome == "401 unauthorized", "\(field)")
            #expect(reply.headers["WWW-Authenticate"]?.hasPrefix("Bearer") == true)
        }
        #expect(try await lockstep.checkout(order)["status"] == "open")
    }

    @Test("a key that lacks the scope is 403, one that has only it gets through", arguments: ContractCall.all)
    func scopes(_ call: ContractCall) async throws {
        let order = try await lockstep.order()
        guard let scope = call.scope else {
            let key = try await lockstep.makeKey([.subscriptions])
            return #expect(try await call.make(on: .init(order), by: lockstep.stranger.with(token: key)).status == 200)
        }
        let without = try await lockstep.makeKey(Set(Scope.allCases).subtracting([scope]))
        let refused = try await call.make(on: .init(order), by: try lockstep.stranger.with(token: without))
        #expect(refused.outcome == "403 forbidden")
        let with = try await lockstep.makeKey([scope])
        let allowed = try await call.make(on: .init(order), by: try lockstep.stranger.with(token: with))
        #expect(![401, 403].contains(allowed.status), "\(allowed.text)")
    }

    @Test("a client token doesn't reach what is the shop's", arguments: ContractCall.all.filter { !$0.isForClients })
    func shopsOwn(_ call: ContractCall) async throws {
        let order = try await lockstep.order()
        let reply = try await call.make(on: .init(order), by: try lockstep.app(order))
        #expect(reply.outcome == "403 forbidden")
        #expect(try await lockstep.status(order) == "open")
    }

    @Test(
        "a client token finds another checkout as little as one that isn't there",
        arguments: ContractCall.named.filter(\.isForClients))
    func anothersCheckout(_ call: ContractCall) async throws {
        let (mine, theirs) = (
            try await lockstep.order("49.99", ServiceHarness.mayUpdate),
            try await lockstep.order("49.99", ServiceHarness.mayUpdate)
        )
        let app = try lockstep.app(mine)
        let other = try await call.make(on: .init(theirs), by: app)
        let missing = try await call.make(on: .nobody, by: app)
        #expect(other.outcome == "404 not-found")
        #expect(other.anonymous == missing.anonymous)
        #expect(try await lockstep.checkout(theirs)["amountVersion"]?.integer == 1)
    }

    @Test("the gate and the search tell a client token nothing about another checkout")
    func anothersExecution() async throws {
        let (mine, theirs) = (try await lockstep.order(), try await lockstep.order())
        let nobody = ContractCall.Target.nobody
        #expect(try await lockstep.gate(theirs.execution, as: mine.token) == "unknown-execution")
        #expect(try await lockstep.gate(nobody.execution, as: mine.token) == "unknown-execution")
        #expect(try await lockstep.gate(theirs.execution, as: theirs.token) == "proceed")
        for reference in [theirs.reference, nobody.reference] {
            let found = try await lockstep.app(mine).get("/v1/checkouts?merchantReference=\(reference)")
            #expect(found.json == ["items": []])
        }
    }

    @Test("a client token's search reads its own order only, so that not even its time tells of another's")
    func searchesItsOwn() async throws {
        let lockstep = try await ServiceHarness.start(parts: .api)
        let (mine, theirs) = (try await lockstep.order(), try await lockstep.order())
        // Whoever reads this one fails.
        _ = try await lockstep.books.query(
            "UPDATE checkouts SET currency = 'QQQ' WHERE merchant_reference = \(theirs.reference)")
        let path = "/v1/checkouts?merchantReference="
        #expect(try await lockstep.shop.get(path + theirs.reference).status >= 500)
        let app = try lockstep.app(mine)
        for reference in [theirs.reference, freshWord("nobody")] {
            let found = try await app.get(path + reference)
            #expect(found.status == 200 && found.json == ["items": []], "\(found.text)")
        }
        let own = try await app.get(path + mine.reference)
        #expect(own.json["items"]?.array?.compactMap { $0["id"]?.string } == [mine.checkout])
        #expect(try await app.get(mine.path).json == own.json["items"]?[0])
        await lockstep.stop()
    }

    @Test("what isn't there is 404 for the shop too, also by an id that can't be", arguments: ContractCall.named)
    func missing(_ call: ContractCall) async throws {
        let shop = try lockstep.shop
        #expect(try await call.make(on: .nobody, by: shop).outcome == "404 not-found")
        var strange = ContractCall.Target.nobody
        strange.checkout = "1"
        strange.execution = "%00"
        let reply = try await call.make(on: strange, by: shop)
        #expect(reply.status == 404 || reply.status == 400, "\(reply.text)")
    }
}

extension JSONCaller.Reply {
    /// The answer without what is another one each time.
    fileprivate var anonymous: JSON {
        guard case .object(var members) = json else { return json }
        members["requestId"] = nil
        return .object(members)
    }
}
