import Basics
import Foundation
import TestKit
import Testing

@testable import Service

@Suite("Webhooks are signed as the Standard Webhooks specification says")
struct WebhookSignatureTests {
    private static func secret(_ text: String) throws -> Secret<Data> {
        try #require(SettingForm<[Secret<Data>]>.signingSecrets.parse(text).first)
    }

    private static let known = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

    /// The vector of the specification's own libraries.
    @Test("the known message with the known secret has the known signature")
    func vector() throws {
        let headers = WebhookSignature(secrets: [try Self.secret(Self.known)]).headers(
            id: "msg_p5jXN8AQM9LWM0D4loKWxJek", time: Timestamp(seconds: 1_614_265_330, nanoseconds: 999_999_999),
            payload: Data(#"{"test": 2432232314}"#.utf8))
        #expect(headers["webhook-id"] == "msg_p5jXN8AQM9LWM0D4loKWxJek")
        #expect(headers["webhook-timestamp"] == "1614265330")
        #expect(headers["webhook-signature"] == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=")
        #expect(headers.fields.count == 3)
    }

    @Test("openssl comes to the same, for a payload that isn't even text")
    func openssl() async throws {
        let payload = Data((0...255).map { UInt8($0) })
        let headers = WebhookSignature(secrets: [try Self.secret(Self.known)]).headers(
            id: "0190", time: Timestamp(seconds: 7), payload: payload)
        let other = try await OpenSSL.hmac(Self.known, Data("0190.7.".utf8) + payload)
        #expect(headers["webhook-signature"] == "v1,\(other)")
    }

    @Test("several secrets sign together, each on its own, the first one first")
    func rotation() throws {
        let other = "whsec_" + Data(repeating: 9, count: 32).base64EncodedString()
        let both = [try Self.secret(Self.known), try Self.secret(other)]
        func sign(_ secrets: [Secret<Data>]) -> String? {
            WebhookSignature(secrets: secrets).headers(id: "a", time: Timestamp(seconds: 1), payload: Data("{}".utf8))[
                "webhook-signature"]
        }
        let each = both.compactMap { sign([$0]) }
        #expect(Set(each).count == 2)
        #expect(sign(both) == each.joined(separator: " "))
    }

    @Test("every part is signed: another id, time or payload has another signature")
    func parts() throws {
        let signature = WebhookSignature(secrets: [try Self.secret(Self.known)])
        func sign(_ id: String, _ seconds: Int64, _ payload: String) -> String? {
            signature.headers(id: id, time: Timestamp(seconds: seconds), payload: Data(payload.utf8))[
                "webhook-signature"]
        }
        let all = [sign("a", 1, "{}"), sign("b", 1, "{}"), sign("a", 2, "{}"), sign("a", 1, "{ }")]
        #expect(Set(all).count == 4)
    }

    @Test("a secret doesn't show in what is printed")
    func quiet() throws {
        let signature = WebhookSignature(secrets: [try Self.secret(Self.known)])
        #expect(!"\(signature)".contains("MfKQ") && !String(reflecting: signature).contains("49, 242"))
    }
}

/// The signature by another program.
enum OpenSSL {
    /// In base64.
    static func hmac(_ secret: String, _ message: Data) async throws -> String {
        let key = try #require(Data(base64Encoded: String(secret.dropFirst(6)))).hexadecimal
        let file = FileManager.default.temporaryDirectory.appending(path: "message-\(UUID().uuidString)")
        try message.write(to: file)
        defer { try? FileManager.default.removeItem(at: file) }
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        process.arguments = [
            "openssl", "dgst", "-sha256", "-mac", "HMAC", "-macopt", "hexkey:\(key)", "-binary", file.path,
        ]
        let pipe = Pipe()
        process.standardOutput = pipe
        try process.run()
        let digest = try pipe.fileHandleForReading.readToEnd() ?? Data()
        process.waitUntilExit()
        return digest.base64EncodedString()
    }
}
