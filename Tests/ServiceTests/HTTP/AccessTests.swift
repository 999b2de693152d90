import Basics
import Foundation
import Lockstep
import Testing

@testable import Service

@Suite("Who may call what (M10)")
struct AccessTests {
    private let bench = Bench(Endpoint.all.map { $0.handled { _ in .ok([:]) } })

    @Test(
        "no, malformed, unknown or doubled credentials are 401 with WWW-Authenticate",
        arguments: [
            "", "Bearer", "Bearer ", "Basic YWJj", "Bearer abc", "Bearer lsk_short",
            "Bearer lsk_" + String(repeating: "a", count: 44), "Bearer lsk_" + String(repeating: "!", count: 43),
            "Bearer lsx_" + String(repeating: "a", count: 43), "lsk_" + String(repeating: "a", count: 43),
            "Bearer lsk_" + String(repeating: "a", count: 43), "Bearer lsk_" + String(repeating: "a", count: 43) + " ",
            "Bearer LSK_" + String(repeating: "a", count: 43),
        ])
    func badCredentials(header: String) async {
        let answer = await bench.send("GET", "/v1/events", token: nil, ["Authorization": header])
        #expect(answer.status == 401 && answer.slug == "unauthorized")
        #expect(answer.headers["WWW-Authenticate"] == "Bearer")
    }

    @Test("no Authorization at all, and two good ones, are 401")
    func noneAndTwo() async {
        #expect(await bench.send("GET", "/v1/events", token: nil).status == 401)
        var two: HTTPHeaders = ["Authorization": "Bearer \(Bench.merchant.text.reveal)"]
        two.add("authorization", "Bearer \(Bench.merchant.text.reveal)")
        #expect(await bench.send("GET", "/v1/events", two).status == 401)
    }

    @Test("the scheme's name is the same in either case")
    func schemeCase() async {
        let answer = await bench.send(
            "GET", "/v1/events", token: nil, ["Authorization": "bearer \(Bench.merchant.text.reveal)"])
        #expect(answer.status == 200)
    }

    @Test("nobody is asked about a token that can't exist")
    func notAsked() async {
        _ = await bench.send("GET", "/v1/events", token: nil, ["Authorization": "Bearer nonsense"])
        #expect(bench.doorman.asked == 0)
    }

    @Test("who can't be asked makes a 500 or what the surroundings say, never a 401")
    func asleep() async {
        let bench = Bench(
            [Endpoint.readEvents.handled { _ in .ok([:]) }],
            explain: { $0 is Doorman.Asleep ? Problem(.unavailable) : nil })
        bench.doorman.fallAsleep()
        #expect(await bench.send("GET", "/v1/events").status == 503)
    }

    @Test("a key reaches exactly the calls of its scopes, and a client token exactly its own", arguments: Endpoint.all)
    func matrix(endpoint: Endpoint) async {
        let path = endpoint.pattern.description
            .replacing("{id}", with: Bench.ownCheckout.description)
            .replacing("{executionId}", with: UUID().lowercased)
            .replacing("{holderReference}", with: "holder").replacing("{endpoint}", with: "shop")
        let query = endpoint.query.filter(\.required).map { "\($0.name)=x" }.joined(separator: "&")
        let target = query.isEmpty ? path : "\(path)?\(query)"
        func status(_ token: BearerToken?) async -> Int {
            let headers: HTTPHeaders = endpoint.idempotency == .required ? ["Idempotency-Key": UUID().lowercased] : [:]
            return await bench.send(
                endpoint.method, target, token: token, headers, body: endpoint.body == .none ? nil : "{}"
            ).status
        }
        let isOpen = endpoint.access == .open
        #expect(await status(Bench.merchant) == 200)
        #expect(await status(nil) == (isOpen ? 200 : 401))
        switch endpoint.access {
        case .open: break
        case .anyKey:
            #expect(await status(Bench.narrow) == 200)
            #expect(await status(Bench.client) == 403)
        case .scope(let scope):
            #expect(await status(Bench.narrow) == (Bench.narrowScopes.contains(scope) ? 200 : 403))
            #expect(await status(Bench.client) == 403)
        case .scopeOrClient(let scope, _):
            #expect(await status(Bench.narrow) == (Bench.narrowScopes.contains(scope) ? 200 : 403))
            #expect(await status(Bench.client) == 200)
        }
    }

    @Test("a client token of another checkout gets the same 404 as for one that isn't there")
    func anotherCheckout() async {
        for path in ["", "/session", "/amount"] {
            let method = path == "" ? "GET" : path == "/session" ? "POST" : "PUT"
            for id in [UUID().lowercased, "nonsense", "00000000-0000-0000-0000-000000000000"] {
                let answer = await bench.send(
                    method, "/v1/checkouts/\(id)\(path)", token: Bench.client, body: path == "" ? nil : "{}")
                #expect(answer.status == 404 && answer.json?["detail"] == .string(ProblemKind.notFound.title))
            }
        }
    }

    @Test("credentials are looked at before the body, so that strangers learn nothing about it")
    func credentialsFirst() async {
        #expect(await bench.send("POST", "/v1/checkouts", token: nil, body: "{").status == 401)
        #expect(await bench.send("POST", "/v1/checkouts", token: Bench.narrow, body: "{").status == 403)
    }

    @Test("a restricted probe needs a key with the scope ops")
    func restricted() async {
        let bench = Bench([Endpoint.metrics.restricted(to: .scope(.ops)).handled { _ in .text("x") }])
        #expect(await bench.send("GET", "/metrics", token: nil).status == 401)
        #expect(await bench.send("GET", "/metrics", token: Bench.narrow).status == 403)
        #expect(await bench.send("GET", "/metrics").status == 200)
    }

    @Test("a made token has 47 characters, reads back, and shows dots")
    func tokens() {
        for kind in [BearerToken.Kind.merchantKey, .client] {
            let token = BearerToken.make(kind)
            #expect(token.text.reveal.utf8.count == 47)
            #expect(BearerToken(token.text.reveal) == token)
            #expect(!"\(token)".contains(token.text.reveal.dropFirst(4)))
            #expect(token.hash.count == 32)
            #expect(token.hash != BearerToken.make(kind).hash)
        }
        let known = BearerToken.make(.client) { Data(repeating: 0, count: $0) }
        #expect(known.text.reveal == "lsc_" + String(repeating: "A", count: 43))
        #expect(known.hash.hexadecimal.count == 64)
    }
}
