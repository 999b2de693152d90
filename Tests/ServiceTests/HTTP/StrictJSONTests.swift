import Basics
import Foundation
import Testing

@testable import Service

@Suite("Strict JSON")
struct StrictJSONTests {
    private func parse(_ text: String) throws -> JSON { try StrictJSON.parse(Data(text.utf8)) }

    @Test(
        "what RFC 8259 doesn't write isn't read",
        arguments: [
            "", " ", "{", "[", "[1,]", "{\"a\":1,}", "{,}", "[,1]", "{\"a\"}", "{a:1}", "{'a':1}", "{\"a\":1 \"b\":2}",
            "01", "-",
            "-01", "1.", ".5", "1.e5", "1e", "+1", "0x1", "NaN", "Infinity", "1e999", "-1e999", "tru", "truex", "nul",
            "\"",
            "\"\\\"", "\"\\x\"", "\"\\u12\"", "\"\\u12G4\"", "\"\\ud800\"", "\"\\ud800\\u0041\"", "\"\\udc00\"",
            "\"a\nb\"",
            "\"\u{0}\"", "1 2", "{} []", "/* */1", "\u{FEFF}1", "\u{A0}1", "{\"a\":1,\"a\":1}",
            "{\"a\":1,\"\\u0061\":2}",
        ])
    func refused(text: String) { #expect(throws: StrictJSON.Failure.self) { try parse(text) } }

    @Test("what it writes is read as Foundation reads it")
    func sameAsFoundation() throws {
        for text in [
            "{}", "[]", " [ 1 , 2 ] ", "\t\r\n1\n", #"{"a":{"b":[true,false,null]},"c":"d"}"#, "\"\"",
            "\"\\u00e9\\ud83d\\ude00\"",
            #""\"\\\/\b\f\n\r\t""#, "\"ü注😀\"", "0", "-1", "12345678901234567890", "true", "null", #"{"":1}"#,
            "\"\u{7F}\"",
        ] { #expect(try parse(text) == JSON(parsing: Data(text.utf8)), "\(text)") }
    }

    @Test("numbers keep their digits")
    func digits() throws {
        for text in [
            "1.10", "-0", "-0.0", "1e5", "1E+5", "0.1e-7", "123456789012345678901234567890", "4111111111111111.0",
        ] {
            #expect(try parse(text) == .number(text))
        }
    }

    @Test("64 levels are read, more are not, however many")
    func depth() throws {
        func nested(_ count: Int) -> String {
            String(repeating: "[", count: count) + String(repeating: "]", count: count)
        }
        _ = try parse(nested(64))
        #expect(throws: StrictJSON.Failure.self) { try parse(nested(66)) }
        #expect(throws: StrictJSON.Failure.self) { try parse(String(repeating: "[", count: 200_000)) }
    }

    @Test("what was read and written reads the same, for random values")
    func roundTrip() throws {
        var generator = SystemRandomNumberGenerator()
        func value(_ depth: Int) -> JSON {
            switch Int.random(in: 0...(depth > 4 ? 3 : 5), using: &generator) {
            case 0: return .null
            case 1: return .bool(Bool.random(using: &generator))
            case 2: return .number(String(Int64.random(in: .min ... .max, using: &generator)))
            case 3: return .string(text())
            case 4: return .array((0..<Int.random(in: 0...4, using: &generator)).map { _ in value(depth + 1) })
            default:
                let members = (0..<Int.random(in: 0...4, using: &generator)).map { _ in (text(), value(depth + 1)) }
                return .object(Dictionary(members, uniquingKeysWith: { first, _ in first }))
            }
        }
        func text() -> String {
            String(
                String.UnicodeScalarView(
                    (0..<Int.random(in: 0...8, using: &generator)).compactMap { _ in
                        Unicode.Scalar(
                            UInt32.random(in: 0...0x10FFFF, using: &generator)
                                >> UInt32.random(in: 0...14, using: &generator))
                    }))
        }
        for _ in 0..<500 {
            let original = value(0)
            #expect(try StrictJSON.parse(original.bytes) == original)
        }
    }

    @Test("no cut and no flipped byte of a document makes it crash, and no failure shows any of the input")
    func mutations() throws {
        let document = Array(#"{"secret":["geheim\u00e9\ud83d\ude00",-1.5e+10,{"x":null}],"b":true}"#.utf8)
        for end in 0..<document.count {
            #expect(throws: StrictJSON.Failure.self) { try StrictJSON.parse(Data(document[..<end])) }
        }
        for index in document.indices {
            for byte in stride(from: UInt8(0), to: 255, by: 5) {
                var changed = document
                changed[index] = byte
                do { _ = try StrictJSON.parse(Data(changed)) } catch { #expect(!error.reason.contains("geheim")) }
            }
        }
    }
}
