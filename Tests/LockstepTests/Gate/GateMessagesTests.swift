import Foundation
import Testing

@testable import Lockstep

@Suite("What a customer reads who may not pay")
struct GateMessagesTests {
    private func overlaid(_ table: String, usually language: String = "en") throws(GateMessages.Fault) -> GateMessages {
        try GateMessages(overlaying: Data(table.utf8), usualLanguage: language)
    }

    @Test("every reason of the contract has a sentence in English and one in German, and none gives anything away")
    func complete() {
        for reason in Gate.Reason.allCases {
            var sentences: [String] = []
            for language in ["en", "de"] {
                let sentence = GateMessages.standard.sentence(for: reason, preferring: [language])
                #expect(sentence.language == language, "\(reason)")
                #expect(sentence.text.hasSuffix(".") && sentence.text.count > 20)
                #expect(sentence.text.unicodeScalars.count <= GateMessages.maximumCharacters)
                for word in ["lockstep", "execution", "payrails", "validator", "internal"] {
                    #expect(!sentence.text.lowercased().contains(word))
                }
                sentences.append(sentence.text)
            }
            #expect(Set(sentences).count == 2)
        }
    }

    @Test(
        "of what a customer reads, the first that is there is taken, without its region if need be",
        arguments: [
            ([], "en"), (["de"], "de"), (["de-at"], "de"), (["de-latn-at-x-shop"], "de"), (["fr", "de"], "de"),
            (["fr"], "en"), (["fr", "it"], "en"), (["*"], "en"), (["*", "de"], "en"), (["fr", "*", "de"], "en"),
            (["en-gb", "de"], "en"), (["d"], "en"), (["den"], "en"), (["pt-br"], "pt-BR"), (["pt"], "en"),
            (["pt-br-x-a"], "pt-BR"),
        ] as [([String], String)])
    func lookup(_ preferences: [String], _ language: String) throws {
        let messages = try overlaid(#"{"pt-BR": {"already-paid": "Este pedido já foi pago."}}"#)
        #expect(messages.sentence(for: .alreadyPaid, preferring: preferences).language == language)
    }

    @Test("a table replaces the sentences that it has, and leaves the others")
    func overlay() throws {
        let messages = try overlaid(
            #"{"DE": {"already-paid": "Ist bezahlt."}, "fr": {"internal": "Veuillez réessayer."}}"#, usually: "de")
        #expect(messages.sentence(for: .alreadyPaid, preferring: ["de-ch"]).text == "Ist bezahlt.")
        #expect(
            messages.sentence(for: .checkoutExpired, preferring: ["de"])
                == GateMessages.standard.sentence(for: .checkoutExpired, preferring: ["de"]))
        #expect(messages.sentence(for: .internal, preferring: ["fr-ca"]).text == "Veuillez réessayer.")
        // A reason that a language lacks: the next one that the customer reads, then the usual one.
        #expect(messages.sentence(for: .alreadyPaid, preferring: ["fr", "en"]).language == "en")
        #expect(messages.sentence(for: .alreadyPaid, preferring: ["fr"]).text == "Ist bezahlt.")
    }

    @Test(
        "a table that isn't one is told, with what is wrong",
        arguments: [
            ("", "JSON"), ("[]", "JSON"), (#"{"de": "x"}"#, "object of reasons in de"),
            (#"{"d": {}}"#, "tags"), (#"{"de_DE": {}}"#, "tags"), (#"{"de": {"paid": "x"}}"#, "in de"),
            (#"{"de": {"already-paid": ""}}"#, "already-paid in de"),
            (#"{"de": {"already-paid": "  "}}"#, "already-paid in de"),
            (#"{"de": {"already-paid": 7}}"#, "already-paid in de"),
            (#"{"de": {"already-paid": "\#(String(repeating: "x", count: 201))"}}"#, "200 characters"),
        ])
    func faults(_ table: String, _ words: String) {
        do {
            _ = try overlaid(table)
            Issue.record("taken: \(table)")
        } catch {
            #expect(error.words.contains(words), "\(error.words)")
        }
    }

    @Test("the usual language must have every reason")
    func usual() throws {
        #expect(throws: GateMessages.Fault.self) { try overlaid("{}", usually: "fr") }
        #expect(throws: GateMessages.Fault.self) { try overlaid(#"{"fr": {"internal": "Hm."}}"#, usually: "fr") }
        #expect(try overlaid("{}", usually: "DE").sentence(for: .internal, preferring: []).language == "de")
    }

    @Test("the shop's words pass as they are, up to 200 characters, never in the middle of one")
    func passable() {
        let exact = String(repeating: "ü", count: 200)
        #expect(GateMessages.passable(exact) == exact)
        #expect(GateMessages.passable("Nur noch 2 da.\nBitte \"weniger\".") == "Nur noch 2 da.\nBitte \"weniger\".")
        let cut = GateMessages.passable(exact + "ü")
        #expect(cut == String(repeating: "ü", count: 199) + "…")
        // Each is seven scalars and one character.
        let family = String(repeating: "👨‍👩‍👧‍👦", count: 40)
        let families = GateMessages.passable(family) ?? ""
        #expect(families.unicodeScalars.count <= 200 && families == String(repeating: "👨‍👩‍👧‍👦", count: 28) + "…")
        // One character without an end.
        #expect(GateMessages.passable("e" + String(repeating: "\u{301}", count: 5000)) == nil)
        for nothing in ["", " ", "\n\t "] { #expect(GateMessages.passable(nothing) == nil) }
        #expect(GateMessages.passable("Karte 4111 1111 1111 1111 geht nicht.") == nil)
    }
}
