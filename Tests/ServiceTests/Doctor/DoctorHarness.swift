import Basics
import Foundation
import PayrailsSandbox
import TestKit
import Testing

/// What `lockstep doctor` stands before when all is well, and the program run on it with something changed.
struct DoctorHarness: Sendable {
    let lockstep: ServiceHarness
    /// It ends with the value.
    let cluster: PostgresCluster

    /// A line of the program, taken apart.
    struct Line: Equatable, Sendable {
        let state: String
        let detail: String
        let mend: String?
    }

    struct Report: Sendable {
        let status: Int32
        let output: String
        let subjects: [String]
        let lines: [String: Line]
        subscript(_ subject: String) -> Line? { lines[subject] }
        var wrong: [String] { subjects.filter { lines[$0]?.state == "wrong" } }
    }

    /// A database whose server answers after its disk does; tests usually have one that doesn't.
    static let shared = Task {
        let cluster = try await PostgresCluster.startOwn(settings: ["fsync": "on", "full_page_writes": "on"])
        return DoctorHarness(
            lockstep: try await ServiceHarness.start(cluster: cluster, parts: nil), cluster: cluster)
    }

    func run(_ arguments: [String] = [], _ changes: [String: String?] = [:]) async throws -> BuiltProgram.End {
        var environment = lockstep.environment
        for (name, value) in changes { environment[name] = value }
        return try await BuiltProgram.run("lockstep", ["doctor"] + arguments, environment: environment)
    }

    func examine(_ arguments: [String] = [], _ changes: [String: String?] = [:]) async throws -> Report {
        let end = try await run(arguments, changes)
        var (subjects, lines): ([String], [String: Line]) = ([], [:])
        for text in end.output.split(separator: "\n") {
            let match = try #require(
                text.wholeMatch(of: /(fine|note|wrong) +([^:]+): (.*?)(?: -> (.*))?/), "a line of another form: \(text)"
            )
            subjects.append(String(match.2))
            lines[String(match.2)] = Line(
                state: String(match.1), detail: String(match.3), mend: match.4.map(String.init))
        }
        for (subject, line) in lines {
            #expect((line.state == "fine") == (line.mend == nil), "\(subject): what isn't fine has a mend")
        }
        return Report(status: end.status, output: end.output, subjects: subjects, lines: lines)
    }

    /// Examines once, with this fault at Payrails.
    func examine(_ arguments: [String] = [], with fault: SandboxFault) async throws -> Report {
        lockstep.sandbox.add(fault)
        return try await examine(arguments)
    }
}

/// An `openssl s_server` that asks for a client's certificate of this authority, and never gets to an answer.
final class PickyTLSServer: Sendable {
    struct DidNotStart: Error {}

    let port: Int
    private let pid: pid_t
    private let output: URL

    init(_ pair: TLSAuthority.Pair, clientsOf authority: TLSAuthority) async throws {
        let output = FileManager.default.temporaryDirectory.appendingPathComponent("tls-server-\(UUID().uuidString)")
        self.output = output
        pid = try ChildProcess.start(
            ["openssl", "s_server", "-accept", "127.0.0.1:0", "-www", "-cert", pair.certificateFile]
                + ["-key", pair.keyFile, "-CAfile", authority.certificateFile, "-Verify", "1", "-verify_return_error"],
            output: output.path)
        var port: Int?
        _ = await waitUntil {
            let words = (try? String(contentsOf: output, encoding: .utf8)) ?? ""
            port = words.firstMatch(of: /ACCEPT 127\.0\.0\.1:([0-9]+)/).flatMap { Int($0.1) }
            return port != nil
        }
        guard let port else {
            kill(pid, SIGKILL)
            throw DidNotStart()
        }
        self.port = port
    }

    func stop() async {
        kill(pid, SIGKILL)
        _ = await ChildProcess.wait(for: pid)
        try? FileManager.default.removeItem(at: output)
    }
}
