import Basics
import Foundation
import Lockstep
import Testing

@testable import Service

@Suite("Reading the members of a body")
struct FieldReaderTests {
    enum Colour: String, CaseIterable { case red, green }

    private func faults<Value>(_ text: String, _ reading: (FieldReader) -> Value) -> [String: String] {
        do {
            _ = try FieldReader.read(try JSON(parsing: Data(text.utf8)), unknownMembers: .refused, reading)
            return [:]
        } catch let problem as Problem {
            return Dictionary(problem.faults.map { ($0.pointer, $0.detail) }, uniquingKeysWith: { $0 + "; " + $1 })
        } catch {
            return ["?": "\(error)"]
        }
    }

    @Test("all faults are told at once, each with its pointer")
    func allAtOnce() {
        let found = faults(
            #"{"merchantReference":"","amount":{"value":"1.999","currency":"EUR"},"kind":"blue","count":"3","typo":1}"#
        ) { body in
            (
                body.reference("merchantReference"), body.reference("holderReference"), body.money("amount"),
                body.choice("kind", of: Colour.self), body.integer("count", in: 1...5)
            )
        }
        #expect(
            found.keys.sorted() == [
                "/amount/value", "/count", "/holderReference", "/kind", "/merchantReference", "/typo",
            ])
        #expect(found["/holderReference"] == "is required")
        #expect(found["/kind"] == "must be one of red, green")
    }

    @Test(
        "money that isn't the contract's is told at its own place",
        arguments: [
            (#"{"value":"1.005","currency":"EUR"}"#, ["/a/value"]),
            (#"{"value":"1.0","currency":"JPY"}"#, ["/a/value"]),
            (#"{"value":"-1","currency":"EUR"}"#, ["/a/value"]), (#"{"value":"+1","currency":"EUR"}"#, ["/a/value"]),
            (#"{"value":"1e3","currency":"EUR"}"#, ["/a/value"]), (#"{"value":" 1","currency":"EUR"}"#, ["/a/value"]),
            (#"{"value":"01","currency":"EUR"}"#, ["/a/value"]), (#"{"value":1,"currency":"EUR"}"#, ["/a/value"]),
            (#"{"value":49.99,"currency":"EUR"}"#, ["/a/value"]), (#"{"value":"0","currency":"EUR"}"#, ["/a/value"]),
            (#"{"value":"0.00","currency":"EUR"}"#, ["/a/value"]), (#"{"value":"1.","currency":"EUR"}"#, ["/a/value"]),
            (#"{"value":".5","currency":"EUR"}"#, ["/a/value"]), (#"{"value":"","currency":"EUR"}"#, ["/a/value"]),
            (#"{"value":"1,5","currency":"EUR"}"#, ["/a/value"]), (#"{"value":"１","currency":"EUR"}"#, ["/a/value"]),
            (#"{"value":"10000000000000","currency":"EUR"}"#, ["/a/value"]),
            (#"{"value":"1000000000000000","currency":"JPY"}"#, ["/a/value"]),
            (#"{"value":"1","currency":"eur"}"#, ["/a/currency"]),
            (#"{"value":"1","currency":"XXX"}"#, ["/a/currency"]),
            (#"{"value":"1","currency":"EU"}"#, ["/a/currency"]), (#"{"value":"1","currency":978}"#, ["/a/currency"]),
            (#"{"value":"x","currency":"eur"}"#, ["/a/currency", "/a/value"]), (#"{}"#, ["/a/currency", "/a/value"]),
            (#"{"value":"1","currency":"EUR","extra":1}"#, ["/a/extra"]), (#""1.00 EUR""#, ["/a"]), ("[]", ["/a"]),
            (#"{"value":null,"currency":"EUR"}"#, ["/a/value"]),
        ])
    func badMoney(money: String, pointers: [String]) {
        #expect(faults("{\"a\":\(money)}") { $0.money("a") }.keys.sorted() == pointers)
        #expect(faults("{\"a\":\(money)}") { $0.optional.money("a") }.keys.sorted() == pointers)
    }

    @Test("money that is the contract's is read exactly")
    func goodMoney() throws {
        func read(_ value: String, _ currency: String) throws -> Money {
            let body: JSON = ["a": ["value": .string(value), "currency": .string(currency)]]
            return try FieldReader.read(body, unknownMembers: .refused) { $0.money("a") }
        }
        #expect(try read("49.9", "EUR").value == "49.90")
        #expect(try read("500", "JPY").value == "500")
        #expect(try read("1.25", "KWD").value == "1.250")
        #expect(try read("9999999999999.99", "EUR").minor == Money.maximumMinor)
        let here = try FieldReader.read(["value": "1", "currency": "EUR"], unknownMembers: .refused) { $0.moneyHere() }
        #expect(here.value == "1.00")
        #expect(faults(#"{"value":"0","currency":"EUR","x":1}"#) { $0.moneyHere() }.keys.sorted() == ["/value", "/x"])
    }

    @Test(
        "references are 1 to 128 visible characters",
        arguments: [
            "", " ", "a b", "a\\tb", "a\\nb", "\\u0000", "a\\u0007", "\\u200b", "\\u202e", "a\\u00a0b", "\\u2028",
            String(repeating: "a", count: 129),
        ])
    func badReferences(text: String) {
        #expect(faults("{\"a\":\"\(text)\"}") { $0.reference("a") }.keys.sorted() == ["/a"])
    }

    @Test("good references pass, in any script, to the last character")
    func goodReferences() {
        for text in ["a", "order-1001/2:3", "Bestellung-ü", "注文一", String(repeating: "é", count: 128)] {
            #expect(faults("{\"a\":\"\(text)\"}") { $0.reference("a") }.isEmpty, "\(text)")
        }
        // Two scalars that show as one character count as the two that the database counts.
        #expect(!faults("{\"a\":\"\(String(repeating: "e\u{301}", count: 65))\"}") { $0.reference("a") }.isEmpty)
    }

    @Test("null is as good as missing, for optional members and for required ones")
    func nulls() {
        #expect(faults(#"{"a":null}"#) { $0.optional.string("a") }.isEmpty)
        #expect(faults(#"{"a":null}"#) { $0.string("a") } == ["/a": "is required"])
        #expect(faults(#"{"a":null}"#) { $0.money("a") } == ["/a": "is required"])
    }

    @Test(
        "integers are whole numbers of JSON in their range, never strings or fractions",
        arguments: ["1.5", "\"3\"", "0", "6", "1e2", "99999999999999999999", "true", "[]", "-1"])
    func badIntegers(text: String) {
        #expect(faults("{\"a\":\(text)}") { $0.integer("a", in: 1...5) }.count == 1)
    }

    @Test(
        "days are days that exist",
        arguments: [
            "2026-02-29", "2026-13-01", "2026-00-10", "2026-1-1", "26-01-01", "2026-12-31T00:00:00Z", "2026/12/31", "",
            "２026-12-31",
        ])
    func badDates(text: String) { #expect(faults("{\"a\":\"\(text)\"}") { $0.date("a") }.count == 1) }

    @Test("UUIDs are written in full")
    func uuids() {
        // Foundation would read the last one, with a 0 for the digit that is none.
        for text in [
            "", "x", "0197c0de00007000800000000000001", "{0197c0de-0000-7000-8000-000000000001}",
            "0197c0de-0000-7000-8000-00000000000g",
        ] {
            #expect(faults("{\"a\":\"\(text)\"}") { $0.uuid("a") }.count == 1)
            #expect(faults("{\"a\":\"\(text)\"}") { $0.id("a", as: CheckoutID.self) }.count == 1)
        }
        #expect(faults(#"{"a":"0197C0DE-0000-7000-8000-000000000001"}"#) { $0.id("a", as: CheckoutID.self) }.isEmpty)
    }

    @Test("lists tell of each item that is wrong")
    func lists() {
        let wrong = faults(#"{"a":["x",1,"b c","ok"]}"#) { $0.optional.strings("a", .code, count: 1...5) }
        #expect(wrong.keys.sorted() == ["/a/1", "/a/2"])
        #expect(faults(#"{"a":[]}"#) { $0.optional.strings("a", .code, count: 1...5) }.keys.sorted() == ["/a"])
        #expect(faults(#"{"a":"x"}"#) { $0.optional.strings("a", .code, count: 1...5) }.keys.sorted() == ["/a"])
    }

    @Test("nested objects have their place in the pointer, and their own unknown members")
    func nested() {
        let found = faults(#"{"policy":{"min":"1.999","mx":"2"}}"#) { body in
            body.optional.object("policy") { policy in
                (policy.flag("clientMayUpdate"), policy.optional.amount("min", in: StandIn.money.currency))
            }
        }
        #expect(found.keys.contains("/policy/clientMayUpdate") && found.keys.contains("/policy/mx"))
    }

    @Test("a body that isn't an object is told as a whole")
    func notAnObject() {
        for text in ["[]", "1", "\"x\"", "true", "null"] {
            #expect(faults(text) { $0.optional.string("a") } == ["": "must be an object"])
        }
    }

    @Test("no stand-in ever gets out: one fault and there is no value")
    func standIns() {
        let value = try? FieldReader.read([:], unknownMembers: .refused) { body in body.money("amount") }
        #expect(value == nil)
    }

    @Test("a PATCH can leave, clear and set")
    func changes() throws {
        func change(_ body: JSON) throws -> Change<CivilDate> {
            try FieldReader.read(body, unknownMembers: .refused) { $0.optional.change("endsOn") { $0.date($1) } }
        }
        #expect(try change([:]) == .leave)
        #expect(try change(["endsOn": .null]) == .clear)
        #expect(try change(["endsOn": "2026-12-31"]) == .set(CivilDate(year: 2026, month: 12, day: 31)))
        #expect(throws: Problem.self) { try change(["endsOn": "2026-02-30"]) }
    }

    @Test("meta may hold anything, up to 16 KiB")
    func meta() {
        #expect(faults(#"{"meta":{"a":[1,{"b":null}]}}"#) { $0.optional.freeObject("meta") }.isEmpty)
        #expect(faults(#"{"meta":[]}"#) { $0.optional.freeObject("meta") }.count == 1)
        let long = String(repeating: "x", count: 16_400)
        #expect(faults("{\"meta\":{\"a\":\"\(long)\"}}") { $0.optional.freeObject("meta") }.count == 1)
    }

    @Test("a thousand faults are told as a hundred")
    func limited() {
        let members = (0..<1000).map { "\"m\($0)\":1" }.joined(separator: ",")
        #expect(faults("{\(members)}") { _ in () }.count == 100)
    }

    @Test("unknown members can be ignored or allowed by name")
    func unknown() throws {
        _ = try FieldReader.read(["x": 1], unknownMembers: .ignored) { _ in () }
        _ = try FieldReader.read(["x": 1], unknownMembers: .refused) { $0.allow("x") }
        #expect(throws: Problem.self) { try FieldReader.read(["x": 1], unknownMembers: .refused) { _ in () } }
    }

    @Test("limits of pages are 1 to their maximum, digits only")
    func limits() throws {
        func limit(_ text: String) throws -> Int {
            try QueryReader.read([("limit", text)]) { $0.limit() }
        }
        #expect(try limit("1") == 1 && limit("200") == 200 && limit("") == 50)
        #expect(try QueryReader.read([]) { $0.limit() } == 50)
        for text in ["0", "201", "-1", "+5", "5.0", "x", "٣", "99999999999999999999", " 5"] {
            #expect(throws: Problem.self, "\(text)") { try limit(text) }
        }
    }

    @Test("If-Match is one strong version in quotes: missing is 428, everything else that it could be is 412")
    func versions() async {
        let bench = Bench([
            Endpoint.changeAmount.handled { request in .ok(["version": JSON(try request.requiredVersion())]) }
        ])
        func put(_ values: [String]) async -> Answer {
            var headers = HTTPHeaders()
            for value in values { headers.add("If-Match", value) }
            return await bench.send("PUT", "/v1/checkouts/\(Bench.ownCheckout)/amount", headers, body: "{}")
        }
        #expect(await put(["\"7\""]).json?["version"] == 7)
        #expect(await put([]).status == 428)
        #expect(await put(["*"]).status == 428)
        for wrong in [
            "7", "W/\"7\"", "\"\"", "\"x\"", "\"-1\"", "\"07\"", "\"+7\"", "\"7\", \"8\"", "\"99999999999999999999\"",
        ] {
            #expect(await put([wrong]).status == 412, "\(wrong)")
        }
        #expect(await put(["\"7\"", "\"7\""]).status == 412)
    }
}
