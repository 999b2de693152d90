import Foundation
import Testing

@testable import Basics

@Suite("JSON is read strictly and written in one way")
struct JSONTests {
    private func parse(_ text: String) throws -> JSON { try JSON(parsing: Data(text.utf8)) }

    @Test("numbers and truths are kept apart")
    func numbersAndBools() throws {
        let json = try parse(#"{"t":true,"f":false,"one":1,"zero":0,"n":null,"s":"true","list":[true,1,0,false]}"#)
        #expect(json["t"] == .bool(true) && json["f"] == .bool(false))
        #expect(json["one"] == .number("1") && json["zero"] == .number("0"))
        #expect(json["t"] != json["one"] && json["f"] != json["zero"])
        #expect(json["n"] == .null && json["n"]?.isNull == true)
        #expect(json["s"] == .string("true"))
        #expect(json["list"] == [true, 1, 0, false])
        #expect(json["one"]?.bool == nil && json["t"]?.integer == nil && json["s"]?.bool == nil)
    }

    @Test(
        "integers of 64 bits keep every digit",
        arguments: [
            Int64.max, .min, 0, -1, 999_999_999_999_999, 9_007_199_254_740_993, -9_007_199_254_740_993,
        ])
    func integers(value: Int64) throws {
        #expect(try parse("[\(value)]")[0]?.integer == value)
        #expect(try JSON(parsing: JSON(value).bytes).integer == value)
    }

    @Test(
        "a number keeps the digits that it came with",
        arguments: ["1.10", "1.0", "-0", "0.1", "1e2", "1E+400", "-1.5e-7", "123456789012345678901234567890", "19.990"])
    func digits(text: String) throws {
        #expect(try parse("[\(text)]")[0] == .number(text))
        #expect(try parse(text).text == text)
    }

    @Test("a fraction is no integer", arguments: ["1.5", "0.1", "19.99", "1e-2"])
    func fractions(text: String) throws {
        #expect(try parse(text).integer == nil)
    }

    @Test("what is written is JSON and reads back equal")
    func roundTrip() throws {
        var generator = Seeded(seed: 5)
        for _ in 0..<500 {
            let json = random(depth: 4, using: &generator)
            #expect(try JSON(parsing: json.bytes) == json)
            #expect(try JSON(parsing: json.bytes).bytes == json.bytes)
        }
    }

    private func random(depth: Int, using generator: inout Seeded) -> JSON {
        switch Int.random(in: 0...(depth > 0 ? 6 : 4), using: &generator) {
        case 0: return .null
        case 1: return .bool(.random(using: &generator))
        case 2: return JSON(Int64.random(in: .min ... .max, using: &generator))
        case 3, 4: return .string(text(using: &generator))
        case 5: return .array((0..<3).map { _ in random(depth: depth - 1, using: &generator) })
        default:
            var members: [String: JSON] = [:]
            for _ in 0..<3 { members[text(using: &generator)] = random(depth: depth - 1, using: &generator) }
            return .object(members)
        }
    }

    private func text(using generator: inout Seeded) -> String {
        let alphabet: [Unicode.Scalar] = [
            "a", "\"", "\\", "/", "\n", "\r", "\t", "\u{0}", "\u{1}", "\u{1F}", "\u{7F}", "é", "\u{301}", "\u{2028}",
            "\u{FEFF}", "\u{FFFF}", "😀", "\u{10FFFF}",
        ]
        var text = String.UnicodeScalarView()
        for _ in 0..<Int.random(in: 0...6, using: &generator) {
            text.append(alphabet[Int.random(in: 0..<alphabet.count, using: &generator)])
        }
        return String(text)
    }

    @Test("the writer escapes what must be escaped, and nothing else")
    func escapes() {
        #expect(JSON.string("\" \\ / \n \r \t").text == #""\" \\ / \n \r \t""#)
        #expect(JSON.string("\u{0}\u{1}\u{8}\u{C}\u{1F}").text == #""\u0000\u0001\u0008\u000c\u001f""#)
        #expect(JSON.string("\u{7F}é😀\u{2028}").text == "\"\u{7F}é😀\u{2028}\"")
        #expect(JSON.object(["a\"b": 1]).text == #"{"a\"b":1}"#)
    }

    @Test("members are written by name, so that equal values give equal bytes")
    func order() throws {
        let left = try parse(#"{"b":[1,2],"a":{"y":1,"x":2}}"#)
        let right = try parse(#" { "a" : { "x" : 2 , "y" : 1 } , "b" : [ 1 , 2 ] } "#)
        #expect(left == right)
        #expect(left.bytes == right.bytes)
        #expect(left.text == #"{"a":{"x":2,"y":1},"b":[1,2]}"#)
    }

    @Test("texts of other bytes are other values, although they look the same")
    func canonicalEquivalence() {
        let composed = JSON.string("\u{E9}")
        let decomposed = JSON.string("e\u{301}")
        #expect(composed.bytes != decomposed.bytes)
        #expect(composed != decomposed)
        #expect(Set([composed, decomposed]).count == 2)
        #expect(JSON.array([composed]) != JSON.array([decomposed]))
        #expect(JSON.object(["k": composed]) != JSON.object(["k": decomposed]))
        #expect(JSON.object(["\u{E9}": 1]) != JSON.object(["e\u{301}": 1]))
    }

    @Test(
        "what is not JSON is refused",
        arguments: [
            "", " ", "{", "}", "[1,]", "{\"a\":}", "{\"a\" 1}", "{a:1}", "'a'", "\"a", "01", "1.", ".5", "+1", "0x1",
            "NaN", "Infinity", "nul", "tru", "truefalse", "1 2", "[1] x", "\"\u{1}\"", "\"\\x\"", "\"\\u12\"",
            "<html>502 Bad Gateway</html>", "[1}", "{\"a\":1,}", "/* c */ 1", "\u{0}", "1\u{0}", "-", "--1", "1e",
            "1e+", "00", "-01", "1.e1", "[,1]", "[1 2]", "{,}",
            "{\"a\":1 \"b\":2}", "{\"a\"}", "{1:2}", "\u{A0}1", "\"\\u00g0\"", "\"\\", "[[]", "nullnull", "\"\n\"",
        ])
    func malformed(text: String) {
        #expect(throws: JSON.Malformed.self) { try parse(text) }
    }

    @Test(
        "bytes that aren't UTF-8 are refused",
        arguments: [
            [0x22, 0xFF, 0x22], [0x22, 0xC3, 0x22], [0x22, 0xC0, 0xAF, 0x22], [0x22, 0xED, 0xA0, 0x80, 0x22],
            [0x22, 0xF5, 0x80, 0x80, 0x80, 0x22], [0x22, 0xE2, 0x82, 0x22], [0x80], [0xFF, 0xFE, 0x31, 0x00],
        ] as [[UInt8]])
    func invalidUTF8(bytes: [UInt8]) {
        #expect(throws: JSON.Malformed.self) { try JSON(parsing: Data(bytes)) }
    }

    @Test("half a surrogate pair in an escape is refused, a whole one is a character")
    func surrogates() throws {
        #expect(try parse(#""\ud83d\ude00""#) == .string("😀"))
        #expect(try parse(#""\uDBFF\uDFFF\u0000\u00e9\/\b\f""#) == .string("\u{10FFFF}\u{0}é/\u{8}\u{C}"))
        for text in [
            #""\ud800""#, #""\udc00""#, #""\ud800x""#, #""\ud800\ud800""#, #""\udc00\ud800""#, #"{"\ud800":1}"#,
        ] {
            #expect(throws: JSON.Malformed.self) { try parse(text) }
        }
    }

    @Test("a member that comes twice counts by its last value")
    func duplicateKeys() throws {
        #expect(try parse(#"{"a":1,"a":2}"#) == ["a": 2])
    }

    @Test("nesting is deep enough for anybody, and too deep is refused without a crash")
    func nesting() throws {
        func nested(_ depth: Int) -> String {
            String(repeating: "[", count: depth) + String(repeating: "]", count: depth)
        }
        #expect(try parse(nested(JSON.deepestNesting)).array?.count == 1)
        #expect(throws: JSON.Malformed.self) { try parse(nested(JSON.deepestNesting + 1)) }
        // Beside each other isn't inside each other.
        #expect(
            try parse("[" + Array(repeating: "[[]]", count: 1000).joined(separator: ",") + "]").array?.count == 1000)
        #expect(throws: JSON.Malformed.self) { try parse(nested(100_000)) }
        #expect(throws: JSON.Malformed.self) { try parse(String(repeating: "{\"a\":", count: 100_000)) }
        #expect(throws: JSON.Malformed.self) { try parse(String(repeating: "[", count: 100_000)) }
    }

    @Test("the reason of a refusal holds nothing of the input")
    func reason() {
        do {
            _ = try parse("{\"token\": sk_live_123}")
            Issue.record("read")
        } catch let error as JSON.Malformed {
            #expect(!error.reason.contains("sk_live"))
        } catch { Issue.record("another error") }
    }

    @Test("single values are documents too, and a byte order mark is no reason to give up")
    func fragments() throws {
        #expect(try parse("\"a\"") == "a")
        #expect(try parse(" 1 ") == 1)
        #expect(try parse("null").isNull)
        #expect(try parse("[]") == [] && parse("{}") == [:])
        #expect(try JSON(parsing: Data([0xEF, 0xBB, 0xBF]) + Data("{\"a\":1}".utf8)) == ["a": 1])
        // A slice of a larger buffer is read by its own bytes.
        #expect(try JSON(parsing: Data("xx[1]yy".utf8)[2..<5]) == [1])
    }

    @Test("asking for what isn't there is nil, never a crash")
    func subscripts() {
        let json: JSON = ["list": [1, 2], "name": "x"]
        #expect(json["list"]?[1] == 2)
        #expect(json["list"]?[2] == nil && json["list"]?[-1] == nil)
        #expect(json["none"] == nil && json[0] == nil && json["name"]?["x"] == nil && json["name"]?[0] == nil)
        #expect(json["name"]?.string == "x" && json["name"]?.array == nil && json["name"]?.object == nil)
        #expect(json.object?.count == 2 && json["list"]?.array?.count == 2)
    }

    @Test("an object can be built without the members that have no value")
    func compact() {
        #expect(JSON.compact(["a": 1, "b": nil, "c": .null]).text == #"{"a":1,"c":null}"#)
    }
}
