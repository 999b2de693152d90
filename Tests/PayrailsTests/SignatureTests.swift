import Basics
import Foundation
import Testing

@testable import Payrails

@Suite("X-Signature")
struct SignatureTests {
    private let key: WebhookKey
    private let succeeded: Data
    private let failed: Data

    init() throws {
        key = try #require(WebhookKey(id: "main", key: Secret(SignedSamples.key)))
        succeeded = try #require(SignedSamples.authorizeSucceeded)
        failed = try #require(SignedSamples.authorizeFailed)
    }

    @Test("S2: the vectors made with OpenSSL verify, odd spacing, escapes and trailing newline included")
    func vectors() {
        let first = SignedSamples.authorizeSucceededSignature
        let second = SignedSamples.authorizeFailedSignature
        #expect(PayrailsSignature.verify(body: succeeded, header: first, keys: [key]) == "main")
        #expect(PayrailsSignature.verify(body: failed, header: second, keys: [key]) == "main")
        #expect(PayrailsSignature.verify(body: succeeded, header: second, keys: [key]) == nil)
        #expect(failed.last == 0x0A)
    }

    @Test("S1: every changed, dropped or added byte of the body fails")
    func everyByte() {
        for (body, header) in [
            (succeeded, SignedSamples.authorizeSucceededSignature), (failed, SignedSamples.authorizeFailedSignature),
        ] {
            for index in body.indices {
                var changed = body
                changed[index] ^= 1
                #expect(PayrailsSignature.verify(body: changed, header: header, keys: [key]) == nil)
            }
            for changed in [body.dropLast(), body.dropFirst(), body + [0x0A], [0xEF, 0xBB, 0xBF] + body, Data()] {
                #expect(PayrailsSignature.verify(body: Data(changed), header: header, keys: [key]) == nil)
            }
        }
    }

    @Test("S1: the same JSON written anew doesn't verify")
    func reserialized() throws {
        let again = try JSON(parsing: succeeded).bytes
        #expect(
            PayrailsSignature.verify(body: again, header: SignedSamples.authorizeSucceededSignature, keys: [key]) == nil
        )
    }

    @Test("S9: every other text of the header fails, also one that decodes to the same bytes")
    func everyHeader() {
        let header = SignedSamples.authorizeSucceededSignature
        let alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=-_ \n"
        for index in header.indices {
            for character in alphabet where character != header[index] {
                let changed = header.replacingCharacters(in: index...index, with: String(character))
                #expect(PayrailsSignature.verify(body: succeeded, header: changed, keys: [key]) == nil)
            }
        }
        for other in [
            "", "=", header + "\n", " " + header, header + "=", String(header.dropLast()), "sha256=" + header,
            header + "," + header, header.lowercased(), String(repeating: "A", count: 44), "🙂",
            String(repeating: "é", count: 22),
        ] {
            #expect(PayrailsSignature.verify(body: succeeded, header: other, keys: [key]) == nil, "\(other)")
        }
    }

    @Test("S8: any of several keys may match, and the one that did is named")
    func severalKeys() throws {
        let old = try #require(WebhookKey(id: "old", key: Secret("0000")))
        let new = try #require(WebhookKey(id: "new", key: Secret(SignedSamples.key)))
        let header = SignedSamples.authorizeSucceededSignature
        #expect(PayrailsSignature.verify(body: succeeded, header: header, keys: [old, new]) == "new")
        #expect(PayrailsSignature.verify(body: succeeded, header: header, keys: [new, old]) == "new")
        #expect(PayrailsSignature.verify(body: succeeded, header: header, keys: [old]) == nil)
        #expect(PayrailsSignature.verify(body: succeeded, header: header, keys: []) == nil)
    }

    @Test("a key is its text unless it is said to be hexadecimal; then it is the bytes, and the text doesn't verify")
    func hexKey() throws {
        let hex = try #require(WebhookKey(id: "hex", key: Secret(SignedSamples.key), encoding: .hex))
        #expect(hex.bytes.reveal.count == 32)
        let header = SignedSamples.authorizeSucceededSignature
        #expect(PayrailsSignature.verify(body: succeeded, header: header, keys: [hex]) == nil)
        // openssl dgst -sha256 -mac HMAC -macopt hexkey:44782DEF… -binary | base64, over the text "x".
        let vector = "wstzbuMgBX74MgP5+8lz+CPEWVf9iVGg2N308ZCLbxQ="
        #expect(PayrailsSignature.verify(body: Data("x".utf8), header: vector, keys: [hex]) == "hex")
    }

    @Test("a key that is empty or isn't the hexadecimal that it should be is none")
    func badKeys() {
        #expect(WebhookKey(id: "k", key: Secret("")) == nil)
        for bad in ["", "abc", "zz", "0x12", "12 4", "１２"] {
            #expect(WebhookKey(id: "k", key: Secret(bad), encoding: .hex) == nil, "\(bad)")
        }
    }

    @Test("printing a key doesn't show it")
    func printed() {
        #expect(!"\(key)".contains(SignedSamples.key))
        var dumped = ""
        dump(key, to: &dumped)
        #expect(!dumped.contains(SignedSamples.key))
    }
}
