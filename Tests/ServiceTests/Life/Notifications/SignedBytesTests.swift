import Basics
import Crypto
import Foundation
import Postgres
import TestKit
import Testing

/// At the door itself, with bodies and signatures that were made with OpenSSL.
@Suite("What is signed are the bytes that came, and nothing that could be made of them")
struct SignedBytesTests {
    private static let shared = Task { try await ServiceHarness.shared() }
    private let lockstep: ServiceHarness
    init() async throws { lockstep = try await Self.shared.value }

    struct Vector: Sendable, CustomStringConvertible {
        let description: String
        let body: Data
        /// `openssl dgst -sha256 -mac HMAC -macopt key:…` with the harness's key, in base64.
        let signature: String

        init(_ description: String, _ body: String, _ signature: String) {
            self.description = description
            // In base64, so that no editor can touch it.
            self.body = Data(base64Encoded: body) ?? Data()
            self.signature = signature
        }
    }

    static let vectors = [
        Vector(
            "odd spacing, 1.0 and escapes",
            "eyAiZXZlbnQiIDogIngiICwJIm4iOiAxLjAsICJlIjoxLjUwZSszICwidSI6ImNhZlx1MDBlOSBcLyDDvCIgfQ==",
            "l0oNO/WjzGOazeFiFQVLKCUA+BCgqOZoBGdqdo5xyJA="),
        Vector(
            "a name that stands twice",
            "eyJldmVudCI6IngiLCJhbW91bnQiOnsidmFsdWUiOiIxLjAwIn0sImFtb3VudCI6eyJ2YWx1ZSI6IjIuMDAifX0=",
            "pTeDcIcrP2z/aNxAxfvnu/S7ziRQRDthOdNoD0Qi2So="),
        Vector(
            "a byte order mark", "77u/eyJldmVudCI6IngiLCJuIjoiYm9tIn0=",
            "Z75DzQGlBGc+TCt+mmtllzx0PjLnAdl1bGQefEZqLks="),
        Vector(
            "a newline at its end", "eyJldmVudCI6IngiLCJuIjoibmV3bGluZSJ9Cg==",
            "kYB+2Gpu9zLR0MIvWknZgFYoKRVsldlXlKoIH4Kpm7Y="),
        Vector(
            "lines of another system", "DQp7DQogICJldmVudCI6ICJ4Ig0KfQ0KICA=",
            "5Cwmo0wF4i9W9jIPpxP0UM22Br47BHN1VRV2IWK1FXg="),
        Vector(
            "bytes that aren't UTF-8", "eyJldmVudCI6IngiLCJ2Ijoi//4ifQ==",
            "HCFYq73RlGQXFVSERpZPzApbI2IjaqHpRyz99VzI2Ss="),
        Vector("a zero byte", "eyJldmVudCI6IngifQA=", "nysuIY8zrwDap975lw9gXzT5oGyRGpKgWd4QoorGlDk="),
    ]

    private func post(_ body: Data, _ signature: String, _ more: HTTPHeaders = [:]) async throws -> JSONCaller.Reply {
        var headers = more
        headers["X-Signature"] = signature
        return try await lockstep.stranger.call("POST", ServiceHarness.endpoint, body: body, headers: headers)
    }

    private func isKept(_ body: Data) async throws -> Bool {
        try await lockstep.books.query("SELECT body FROM notifications WHERE body_hash = \(Crypto.sha256(body))")
            .map { try $0.decode("body", as: Data.self) } == [body]
    }

    @Test("S1, S2, S3: each body is verified and kept byte for byte; written anew, it is refused", arguments: vectors)
    func asTheyCame(_ vector: Vector) async throws {
        try #require(!vector.body.isEmpty)
        var anew = [vector.body + Data(" ".utf8), vector.body.dropLast(), Data(" ".utf8) + vector.body]
        if let json = try? JSON(parsing: vector.body) { anew.append(json.bytes) }
        let text = String(decoding: vector.body, as: UTF8.self)
        anew += [Data(text.trimmingCharacters(in: .whitespacesAndNewlines).utf8), Data(text.utf8)]
        anew.append(Data(text.replacing("\u{FEFF}", with: "").replacing("\0", with: "").utf8))
        for other in anew where other != vector.body {
            #expect(try await post(other, vector.signature).outcome == "401 bad-signature")
            #expect(try await !isKept(other))
        }
        #expect(try await post(vector.body, vector.signature).status == 200)
        #expect(try await isKept(vector.body))
    }

    @Test("S10: a body in another form is never brought into the signed one: it is refused, or verified as it is")
    func otherForms() async throws {
        let json = Data(#"{"event":"x","note":"\#(freshWord("form"))"}"#.utf8)
        let signature = SignedNotification(json).signature
        let text = String(decoding: json, as: UTF8.self)
        let encoded = try #require(text.addingPercentEncoding(withAllowedCharacters: .alphanumerics))
        let forms: [(body: Data, type: String)] = [
            (Data("payload=\(encoded)".utf8), "application/x-www-form-urlencoded"),
            (Data(encoded.utf8), "application/x-www-form-urlencoded"),
            (Data(json.base64EncodedString().utf8), "text/plain"),
            (try #require(text.data(using: .utf16LittleEndian)), "application/json; charset=utf-16"),
        ]
        for (body, type) in forms {
            #expect(try await post(body, signature, ["Content-Type": type]).outcome == "401 bad-signature")
            // Signed as it is, it is what it is: kept, and no notification that says anything.
            let reply = try await post(body, SignedNotification(body).signature, ["Content-Type": type])
            #expect(reply.status == 200)
            #expect(try await isKept(body))
        }
        let reply = try await post(json, signature, ["Content-Encoding": "gzip"])
        #expect(reply.status == 415)
        #expect(try await !isKept(json))
    }
}
