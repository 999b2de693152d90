import Basics
import Lockstep
import Testing

@testable import Service

@Suite("Browsers of other origins")
struct CrossOriginTests {
    private let origin = "https://shop.example"
    private let bench = Bench(
        Endpoint.all.map { $0.handled { _ in .ok([:]) } }, corsOrigins: ["https://shop.example"])
    private var checkout: String { "/v1/checkouts/\(Bench.ownCheckout)" }

    @Test("a preflight of a known origin for a client's call is allowed")
    func preflight() async {
        let answer = await bench.send(
            "OPTIONS", "\(checkout)/amount", token: nil,
            ["Origin": origin, "Access-Control-Request-Method": "PUT", "Access-Control-Request-Headers": "if-match"])
        #expect(answer.status == 204)
        #expect(answer.headers["Access-Control-Allow-Origin"] == origin)
        #expect(answer.headers["Access-Control-Allow-Headers"]?.contains("If-Match") == true)
        #expect(answer.headers["Access-Control-Allow-Methods"]?.contains("PUT") == true)
        #expect(answer.headers["Access-Control-Allow-Credentials"] == nil)
        #expect(answer.headers["Vary"] == "Origin")
    }

    @Test("one of an unknown origin, and one for a merchant's call, get no permission")
    func refused() async {
        for (target, origin, method) in [
            ("\(checkout)/amount", "https://evil.example", "PUT"), ("\(checkout)/amount", "null", "PUT"),
            ("\(checkout)/amount", "https://shop.example.evil.example", "PUT"),
            ("/v1/charges", self.origin, "POST"), ("/v1/checkouts", self.origin, "POST"),
            ("\(checkout)/amount", self.origin, "DELETE"),
        ] {
            let answer = await bench.send(
                "OPTIONS", target, token: nil, ["Origin": origin, "Access-Control-Request-Method": method])
            #expect(answer.headers["Access-Control-Allow-Origin"] == nil, "\(origin) \(target)")
        }
    }

    @Test("answers, also problems, can be read by the known origin only")
    func answers() async {
        let known = await bench.send("GET", checkout, token: Bench.client, ["Origin": origin])
        #expect(known.headers["Access-Control-Allow-Origin"] == origin)
        #expect(known.headers["Access-Control-Expose-Headers"]?.contains("ETag") == true)
        let refused = await bench.send("GET", checkout, token: nil, ["Origin": origin])
        #expect(refused.status == 401 && refused.headers["Access-Control-Allow-Origin"] == origin)
        let unknown = await bench.send("GET", checkout, token: Bench.client, ["Origin": "https://evil.example"])
        #expect(unknown.headers["Access-Control-Allow-Origin"] == nil)
        #expect(unknown.headers["Vary"] == "Origin")
    }

    @Test("without origins in the settings there is no CORS at all")
    func off() async {
        let bench = Bench([Endpoint.getCheckout.handled { _ in .ok([:]) }])
        let answer = await bench.send("GET", checkout, token: Bench.client, ["Origin": origin])
        #expect(!answer.headers.fields.contains { $0.name.hasPrefix("Access-Control") || $0.name == "Vary" })
    }

    @Test("OPTIONS names the methods of a path, and is 404 for one that isn't there")
    func options() async {
        #expect(await bench.send("OPTIONS", checkout, token: nil).headers["Allow"] == "GET, HEAD, OPTIONS")
        #expect(await bench.send("OPTIONS", "/nothing", token: nil).status == 404)
    }
}
