import Basics
import Foundation
import Lockstep
import Testing

@testable import Service

@Suite("Bodies")
struct BodyTests {
    private let bench = Bench([
        Endpoint.changeInstrument.handled { .ok(["body": $0.body ?? .null]) },
        Endpoint.openSession.handled { .ok(["body": $0.body ?? .null]) },
        Endpoint.receiveNotification.handled { .ok(["size": JSON($0.rawBody.count)]) },
        Endpoint.getCharge.handled { _ in .ok([:]) },
        Endpoint.listDiscrepancies.handled { _ in .ok([:]) },
    ])
    private func patch(_ body: String, _ type: String = "application/json") async -> Answer {
        await bench.send("PATCH", "/v1/instruments/x", ["Content-Type": type], body: body)
    }

    @Test(
        "types that are JSON are taken",
        arguments: [
            "application/json", "Application/JSON", "application/json; charset=utf-8", "application/json;charset=UTF-8",
            "application/json; charset=\"utf-8\"", "application/json;",
        ])
    func jsonTypes(type: String) async { #expect(await patch("{}", type).status == 200) }

    @Test(
        "others are 415",
        arguments: [
            "", "text/plain", "application/x-www-form-urlencoded", "application/json; charset=utf-16",
            "application/jsonx", "application/json, text/plain", "application/problem+json",
            "application/json; charset=latin-1",
        ])
    func otherTypes(type: String) async {
        let answer = await patch("{}", type)
        #expect(answer.status == 415 && answer.slug == "unsupported-media-type")
    }

    @Test("no type, and two, are 415; an empty body needs none where every member is optional")
    func typeCount() async {
        let untyped = await bench.send("PATCH", "/v1/instruments/x", bytes: Data("{}".utf8), hasBody: false)
        #expect(untyped.status == 415)
        var two: HTTPHeaders = ["Content-Type": "application/json"]
        two.add("Content-Type", "application/json")
        #expect(await bench.send("PATCH", "/v1/instruments/x", two, body: "{}").status == 415)
        #expect(await bench.send("POST", "/v1/checkouts/\(Bench.ownCheckout)/session").status == 200)
        #expect(await bench.send("PATCH", "/v1/instruments/x").status == 415)
        #expect(await patch("").status == 400)
    }

    @Test(
        "what isn't JSON in UTF-8 is 400",
        arguments: [
            "{", "", " ", "{'a':1}", "{\"a\":}", "[1,]", "nul", "{\"a\":1}x", "\u{FEFF}\u{FEFF}{}", "{\"a\":01}",
            "{\"a\":NaN}",
            "{\"a\":1e999}", "\"\\ud800\"x",
        ])
    func malformed(body: String) async {
        let answer = await patch(body)
        #expect(answer.status == 400 && answer.slug == "not-json", "\(body)")
    }

    @Test("bytes that aren't UTF-8, or are UTF-16, are 400 and never a crash")
    func malformedBytes() async throws {
        let utf16 = try #require("{\"a\":1}".data(using: .utf16LittleEndian))
        let utf32 = try #require("{\"a\":1}".data(using: .utf32BigEndian))
        for bytes in [
            Data([0xFF, 0xFE]), Data([0x22, 0xC3, 0x28, 0x22]), utf16, utf32, Data([0x30, 0x00]),
            Data(repeating: 0, count: 9),
        ] {
            let answer = await bench.send("PATCH", "/v1/instruments/x", bytes: bytes)
            #expect(answer.status == 400)
        }
    }

    @Test("a body nested ten thousand deep is 400 and takes no stack with it")
    func deep() async {
        let deep = String(repeating: "[", count: 10_000) + String(repeating: "]", count: 10_000)
        #expect(await patch(deep).status == 400)
        let objects = String(repeating: "{\"a\":", count: 10_000) + "1" + String(repeating: "}", count: 10_000)
        #expect(await patch(objects).status == 400)
    }

    @Test("256 KiB are taken, one byte more is 413; notifications may have 1 MiB")
    func sizes() async {
        func text(_ count: Int) -> String { "\"" + String(repeating: "a", count: count - 2) + "\"" }
        #expect(await patch(text(262_144)).status == 200)
        #expect(await patch(text(262_145)).status == 413)
        let notification = Data(repeating: 0x61, count: 1_048_577)
        #expect(await bench.send("POST", "/webhooks/payrails", bytes: notification.dropLast()).status == 200)
        #expect(await bench.send("POST", "/webhooks/payrails", bytes: notification).status == 413)
    }

    @Test("a NUL in a text or a name is 422 with its place")
    func nul() async {
        let answer = await patch(#"{"a":{"b":["x","y\u0000"]},"c\u0000":1}"#)
        #expect(answer.status == 422 && answer.pointers == ["", "/a/b/1"])
    }

    @Test(
        "a number that no database column holds is 422 with its place",
        arguments: [
            "1e-20000", "1e-401", "-1E-16384", "0e99999999999999999999", "0e-99999999999999999999", "0e401",
            "0." + String(repeating: "1", count: 999),
        ])
    func unmeasured(number: String) async {
        let answer = await patch(#"{"a":{"b":[1,\#(number)]},"c":1}"#)
        #expect(answer.status == 422 && answer.slug == "invalid", "\(number)")
        #expect(answer.pointers == ["/a/b/1"])
    }

    @Test(
        "every number that a double holds is taken, and more",
        arguments: [
            "0", "-0.0", "1e308", "5e-324", "1E+5", "1e-400", "0e400", "1e-0400",
            "0." + String(repeating: "1", count: 998),
        ])
    func measured(number: String) async { #expect(await patch("{\"a\":\(number)}").status == 200, "\(number)") }

    @Test(
        "a card number anywhere is 422 with its place, and leaves no trace in answer, log or metrics",
        arguments: [
            (#"{"a":"4111111111111111"}"#, "/a"), (#"{"a":["x",{"b":"4111 1111 1111 1111"}]}"#, "/a/1/b"),
            (#"{"a":4111111111111111}"#, "/a"), (#"{"a":4.111111111111111e15}"#, "/a"),
            (#"{"a":4111111111111111.0}"#, "/a"), (#"{"a":{"4111111111111111":1}}"#, "/a"),
            (#""4111111111111111""#, ""),
            (#"{"note":"my card is 4111-1111-1111-1111 ok"}"#, "/note"),
            (#"{"a/b":{"c~d":"4111111111111111"}}"#, "/a~1b/c~0d"),
            (#"{"a":"\u0034111111111111111"}"#, "/a"),
        ])
    func cards(body: String, pointer: String) async {
        let answer = await patch(body)
        #expect(answer.status == 422 && answer.slug == "card-number")
        #expect(answer.pointers == [pointer])
        let traces = String(decoding: answer.body, as: UTF8.self) + bench.logged() + bench.metrics.text
        #expect(!traces.contains("4111"))
    }

    @Test("a card number in the path or the query is 422, and leaves no trace")
    func cardsInAddresses() async {
        for target in [
            "/v1/charges/4111111111111111", "/v1/discrepancies?after=4111111111111111",
            "/v1/discrepancies?4111111111111111=1", "/v1/charges/4111%201111%201111%201111",
        ] {
            let answer = await bench.send("GET", target)
            #expect(answer.status == 422 && answer.slug == "card-number", "\(target)")
            #expect(!(String(decoding: answer.body, as: UTF8.self) + bench.logged()).contains("4111"))
        }
    }

    @Test("times in milliseconds, order numbers and money pass")
    func innocent() async {
        let answer = await patch(
            #"{"at":1767225599999,"order":"2026-000123456789","amount":{"value":"1234567890.12"}}"#)
        #expect(answer.status == 200)
    }

    @Test("an unknown, doubled or undecodable parameter of the query is refused")
    func queries() async {
        let unknown = await bench.send("GET", "/v1/discrepancies?statte=open&limit=1")
        #expect(unknown.status == 422 && unknown.pointers == ["/statte"])
        let doubled = await bench.send("GET", "/v1/discrepancies?limit=1&limit=2")
        #expect(doubled.status == 422 && doubled.pointers == ["/limit"])
        #expect(await bench.send("GET", "/v1/discrepancies?limit=%zz").status == 400)
        #expect(await bench.send("GET", "/v1/discrepancies?").status == 200)
        #expect(await bench.send("GET", "/v1/discrepancies?&&limit=1&").status == 200)
    }

    @Test("random bytes never get anything but an answer below 500")
    func fuzz() async {
        var generator = SystemRandomNumberGenerator()
        let alphabet = Array("{}[]\":,0123456789.eE+-tfn\\u \u{0}\u{FF}aA".utf8)
        for _ in 0..<2000 {
            let bytes = Data(
                (0..<Int.random(in: 0...40, using: &generator)).map { _ in
                    alphabet.randomElement(using: &generator) ?? 0
                })
            let answer = await bench.send("PATCH", "/v1/instruments/x", bytes: bytes)
            #expect(answer.status < 500, "\(bytes.hexadecimal)")
        }
    }
}
