import Testing

@testable import Service

@Suite("Accept-Language")
struct AcceptLanguageTests {
    @Test(
        "languages come by weight, then by place, and what isn't of the grammar is left out",
        arguments: [
            ([], []), ([""], []), (["de"], ["de"]), (["de-AT"], ["de-at"]), (["de, en"], ["de", "en"]),
            (["de;q=0.5, en"], ["en", "de"]), (["en;q=0.8,de;q=0.9,fr;q=0.8"], ["de", "en", "fr"]),
            (["de;q=0"], []), (["de;q=0.000, en;q=0.001"], ["en"]), (["*;q=0.1, de"], ["de", "*"]),
            (["de ; q=0.5 , en ;q=1.000"], ["en", "de"]), (["de", "en;q=0.5"], ["de", "en"]),
            (["de;q=1.5, en"], ["en"]), (["de;q=-1, en"], ["en"]), (["de;q=0.1234, en"], ["en"]),
            (["de;q=, en"], ["en"]), (["de;level=1, en"], ["en"]), (["d e, en"], ["en"]), (["de_DE, en"], ["en"]),
            (["toolonglanguage, en"], ["en"]), ([", ,,en"], ["en"]), (["de;Q=0.5, en;q=0.6"], ["en", "de"]),
            (["<script>, \u{1F600}, en"], ["en"]), (["de;q=0., en;q=1."], ["en"]),
        ] as [([String], [String])])
    func order(_ values: [String], _ wanted: [String]) {
        #expect(AcceptLanguage(values).preferences == wanted)
    }

    @Test("what is passed on says the same, and nothing that wasn't understood")
    func text() {
        let read = AcceptLanguage(["fr;q=0.25, de-AT, <x>, en;q=0, *;q=0.001"])
        #expect(read.text == "de-at, fr;q=0.250, *;q=0.001")
        #expect(AcceptLanguage([read.text ?? ""]) == read)
        #expect(AcceptLanguage(["<x>"]).text == nil)
    }

    @Test("a list without an end is read to its sixteenth language")
    func endless() {
        #expect(AcceptLanguage([Array(repeating: "de", count: 5000).joined(separator: ",")]).preferences.count == 16)
    }
}
