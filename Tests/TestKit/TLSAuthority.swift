import Foundation

/// A certificate authority for one test, and what it signs, made by the `openssl` command in a folder of its own.
///
/// The folder goes when the value does.
public final class TLSAuthority: Sendable {
    /// A certificate and its unencrypted key, PEM files.
    public struct Pair: Sendable {
        public let certificateFile: String
        public let keyFile: String
    }

    public struct Failure: Error { public let words: String }

    /// The authority's own certificate, to be trusted or not.
    public var certificateFile: String { folder.appendingPathComponent("ca.pem").path }

    private let folder: URL

    public init() async throws {
        folder = FileManager.default.temporaryDirectory.appendingPathComponent("tls-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        try await openssl(
            ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"]
                + ["-keyout", "ca.key", "-out", "ca.pem", "-subj", "/CN=test authority"])
    }

    deinit { try? FileManager.default.removeItem(at: folder) }

    /// A server's or client's certificate, valid for names like `DNS:localhost` or `IP:127.0.0.1`, from two
    /// days ago until tomorrow, or until an hour ago when it is to be `expired`.
    public func issue(_ name: String, names: [String] = ["DNS:localhost", "IP:127.0.0.1"], expired: Bool = false)
        async throws -> Pair
    {
        try await issue(name, names: names, validHours: -48...(expired ? -1 : 24))
    }

    /// - Parameter validHours: from when until when, counted from now.
    public func issue(
        _ name: String, names: [String] = ["DNS:localhost", "IP:127.0.0.1"], validHours: ClosedRange<Int>
    ) async throws -> Pair {
        let settings = """
            [ca]
            default_ca = authority
            [authority]
            database = \(name).index
            new_certs_dir = .
            rand_serial = yes
            default_md = sha256
            policy = any
            x509_extensions = names
            [any]
            commonName = supplied
            [req]
            distinguished_name = any
            [names]
            subjectAltName = \(names.joined(separator: ","))
            extendedKeyUsage = serverAuth, clientAuth
            """
        try Data(settings.utf8).write(to: folder.appendingPathComponent("\(name).cnf"))
        try Data().write(to: folder.appendingPathComponent("\(name).index"))
        try await openssl(
            ["req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", "\(name).key"]
                + ["-out", "\(name).csr", "-subj", "/CN=\(name)"])
        try await openssl(
            ["ca", "-batch", "-notext", "-config", "\(name).cnf", "-in", "\(name).csr", "-out", "\(name).pem"]
                + ["-cert", "ca.pem", "-keyfile", "ca.key", "-startdate", stamp(hoursAhead: validHours.lowerBound)]
                + ["-enddate", stamp(hoursAhead: validHours.upperBound)])
        return Pair(certificateFile: path("\(name).pem"), keyFile: path("\(name).key"))
    }

    /// The pair's key, encrypted with a passphrase.
    public func encryptedKey(of pair: Pair) async throws -> String {
        let name = "encrypted-\(UUID().uuidString).key"
        try await openssl(["pkey", "-in", pair.keyFile, "-aes256", "-passout", "pass:secret", "-out", name])
        return path(name)
    }

    private func path(_ name: String) -> String { folder.appendingPathComponent(name).path }

    private func stamp(hoursAhead: Int) -> String {
        var seconds = time(nil) + hoursAhead * 3600
        var parts = tm()
        gmtime_r(&seconds, &parts)
        let numbers = [parts.tm_mon + 1, parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec]
        return "\(parts.tm_year + 1900)" + numbers.map { ($0 < 10 ? "0" : "") + "\($0)" }.joined() + "Z"
    }

    private func openssl(_ arguments: [String]) async throws {
        let words = folder.appendingPathComponent("words-\(UUID().uuidString)")
        try Data().write(to: words)
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        process.arguments = ["openssl"] + arguments
        process.currentDirectoryURL = folder
        process.standardInput = FileHandle.nullDevice
        process.standardOutput = FileHandle.nullDevice
        process.standardError = try FileHandle(forWritingTo: words)
        // Waiting in the call would hold up one of the few threads that all tests share.
        let status = try await withCheckedThrowingContinuation { continuation in
            process.terminationHandler = { continuation.resume(returning: $0.terminationStatus) }
            do { try process.run() } catch { continuation.resume(throwing: error) }
        }
        guard status == 0 else { throw Failure(words: try String(contentsOf: words, encoding: .utf8)) }
    }
}
