import Foundation
import TestKit
import Testing

@testable import Crypto

@Suite("When a certificate is valid, by certificates that openssl made")
struct CertificateTests {
    private static let shared = Task { try await TLSAuthority() }
    private let authority: TLSAuthority
    init() async throws { authority = try await Self.shared.value }

    /// What `openssl x509 -startdate -enddate` says of a file, in seconds since 1970.
    private func openssl(_ file: String) async throws -> (from: Int64, until: Int64) {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        process.arguments = [
            "openssl", "x509", "-in", file, "-noout", "-startdate", "-enddate", "-dateopt", "iso_8601",
        ]
        let output = Pipe()
        process.standardOutput = output
        try process.run()
        let words = try await offPool {
            String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
        }
        // notBefore=2026-11-30 13:05:10Z
        let seconds = words.split(separator: "\n").compactMap { line -> Int64? in
            guard let text = line.split(separator: "=").last?.replacing(" ", with: "T") else { return nil }
            return (try? Date(text, strategy: .iso8601)).map { Int64($0.timeIntervalSince1970) }
        }
        try #require(seconds.count == 2, "\(words)")
        return (seconds[0], seconds[1])
    }

    @Test(
        "both ends are read to the second, long ago, now, and beyond 2050, where the form of the time changes",
        arguments: [-48...24, -48...(-1), 24...48, -400_000...(-300_000), 0...400_000])
    func ends(_ hours: ClosedRange<Int>) async throws {
        let pair = try await authority.issue("ends-\(UUID().uuidString)", validHours: hours)
        let validity = try #require(
            CertificateValidity(pem: try Data(contentsOf: URL(fileURLWithPath: pair.certificateFile))))
        let told = try await openssl(pair.certificateFile)
        #expect(validity.notBeforeSeconds == told.from)
        #expect(validity.notAfterSeconds == told.until)
        let now = Int64(Date().timeIntervalSince1970)
        // Not a time zone's hours off: the certificate was asked for by the clock of now.
        #expect(abs(validity.notBeforeSeconds - now - Int64(hours.lowerBound) * 3600) < 60)
        #expect(abs(validity.notAfterSeconds - now - Int64(hours.upperBound) * 3600) < 60)
    }

    @Test("of a chain the first counts: it is the one that is presented")
    func chain() async throws {
        let leaf = try await authority.issue("leaf-\(UUID().uuidString)", validHours: -48...1)
        let (leafPEM, authorityPEM) = (
            try Data(contentsOf: URL(fileURLWithPath: leaf.certificateFile)),
            try Data(contentsOf: URL(fileURLWithPath: authority.certificateFile))
        )
        let alone = try #require(CertificateValidity(pem: leafPEM))
        let chained = try #require(CertificateValidity(pem: leafPEM + authorityPEM))
        let other = try #require(CertificateValidity(pem: authorityPEM + leafPEM))
        #expect(chained == alone)
        #expect(other != alone)
    }

    @Test("text around it, a key before it and line ends of another system don't hide it")
    func surroundings() async throws {
        let pair = try await authority.issue("around-\(UUID().uuidString)")
        let pem = try Data(contentsOf: URL(fileURLWithPath: pair.certificateFile))
        let key = try Data(contentsOf: URL(fileURLWithPath: pair.keyFile))
        let plain = try #require(CertificateValidity(pem: pem))
        #expect(CertificateValidity(pem: Data("subject: me\n\n".utf8) + pem) == plain)
        #expect(CertificateValidity(pem: key + pem) == plain)
        let text = String(decoding: pem, as: UTF8.self)
        #expect(CertificateValidity(pem: Data(text.replacing("\n", with: "\r\n").utf8)) == plain)
    }

    @Test("what isn't a certificate, or is one cut short or spoilt, is none")
    func unreadable() async throws {
        let pair = try await authority.issue("spoilt-\(UUID().uuidString)")
        let pem = try Data(contentsOf: URL(fileURLWithPath: pair.certificateFile))
        #expect(CertificateValidity(pem: Data()) == nil)
        #expect(CertificateValidity(pem: Data("no certificate".utf8)) == nil)
        #expect(CertificateValidity(pem: try Data(contentsOf: URL(fileURLWithPath: pair.keyFile))) == nil)
        #expect(CertificateValidity(pem: pem.prefix(pem.count / 2)) == nil)
        let empty = "-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n"
        #expect(CertificateValidity(pem: Data(empty.utf8)) == nil)
        let nonsense = "-----BEGIN CERTIFICATE-----\nbm90IGEgY2VydGlmaWNhdGU=\n-----END CERTIFICATE-----\n"
        #expect(CertificateValidity(pem: Data(nonsense.utf8)) == nil)
    }
}
