import Testing

@testable import Basics

@Suite("Header names have no case, values keep theirs")
struct HTTPHeadersTests {
    @Test("a field is found by any writing of its name")
    func lookup() {
        let headers: HTTPHeaders = ["Content-Type": "Text/Plain", "X-Signature": "a", "x-signature": "b"]
        #expect(headers["content-type"] == "Text/Plain" && headers["CONTENT-TYPE"] == "Text/Plain")
        #expect(headers["x-SIGNATURE"] == "a")
        #expect(headers.all("X-SIGNATURE") == ["a", "b"])
        #expect(headers["X-Sig"] == nil && headers.all("X-Sig").isEmpty && headers[""] == nil)
        #expect(headers.fields.map(\.name) == ["Content-Type", "X-Signature", "x-signature"])
    }

    @Test("setting replaces every field of the name, nil removes them, adding keeps them")
    func setting() {
        var headers: HTTPHeaders = ["A": "1", "a": "2", "B": "3"]
        headers["a"] = "4"
        #expect(headers.fields == [.init(name: "B", value: "3"), .init(name: "a", value: "4")])
        headers.add("A", "5")
        #expect(headers.all("a") == ["4", "5"])
        headers["A"] = nil
        #expect(headers.all("a").isEmpty && headers["b"] == "3")
    }

    @Test(
        "only ASCII letters have two cases",
        arguments: [
            ("abc", "ABC", true), ("x-a_b", "X-A_B", true), ("", "", true), ("a", "ab", false), ("ab", "a", false),
            // Neighbours of the letters that differ in the same bit.
            ("@", "`", false), ("[", "{", false), ("\\", "|", false), ("]", "}", false), ("^", "~", false),
            ("_", "\u{7F}", false),
            ("0", "\u{10}", false), ("-", "\r", false),
            // The Kelvin sign is no K, the dotless i no i, and a decomposed letter is other bytes than a composed one.
            ("\u{212A}", "k", false), ("ı", "i", false), ("é", "É", false), ("é", "e\u{301}", false),
            ("ß", "SS", false),
        ])
    func asciiCase(left: String, right: String, equal: Bool) {
        #expect(left.equalsIgnoringASCIICase(right) == equal)
        #expect(right.equalsIgnoringASCIICase(left) == equal)
    }
}
