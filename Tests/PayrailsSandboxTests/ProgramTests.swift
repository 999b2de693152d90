import Foundation
import TestKit
import Testing

@Suite("The program")
struct ProgramTests {
    /// The built program, beside the test's own.
    private static let program = URL(filePath: "/proc/self/exe").resolvingSymlinksInPath()
        .deletingLastPathComponent().appending(path: "payrails-sandbox")

    private struct Run {
        let process: Process
        let output = Pipe()
        let errors = Pipe()

        init(_ arguments: [String]) throws {
            process = Process()
            process.executableURL = ProgramTests.program
            process.arguments = arguments
            process.standardOutput = output
            process.standardError = errors
            try process.run()
        }

        /// What it says until it has said this, or ends.
        func says(_ text: String) async throws -> String {
            let output = output.fileHandleForReading
            return try await offPool {
                var all = ""
                while !all.contains(text) {
                    let more = output.availableData
                    guard !more.isEmpty else { break }
                    all += String(decoding: more, as: UTF8.self)
                }
                return all
            }
        }

        func ends() async throws -> (status: Int32, output: String, errors: String) {
            let (output, errors) = (output.fileHandleForReading, errors.fileHandleForReading)
            let (said, complained) = try await offPool {
                (output.readDataToEndOfFile(), errors.readDataToEndOfFile())
            }
            let process = process
            try await offPool { process.waitUntilExit() }
            return (
                process.terminationStatus, String(decoding: said, as: UTF8.self),
                String(decoding: complained, as: UTF8.self)
            )
        }
    }

    @Test("it says how it is used, and stops cleanly on SIGTERM and SIGINT", arguments: [SIGTERM, SIGINT])
    func startsAndStops(_ signal: Int32) async throws {
        let run = try Run([
            "--listen", "127.0.0.1:0", "--seed", "7", "--notify", "http://127.0.0.1:9/hook?a=b=secretkey",
        ])
        let introduction = try await run.says("/sandbox/reset")
        #expect(introduction.contains("listens on http://127.0.0.1:"))
        for name in ["BASE_URL=http", "CLIENT_ID=", "CLIENT_SECRET=", "WORKSPACE_ID=", "WEBHOOK_KEYS=secretkey"] {
            #expect(introduction.contains("PAYRAILS_" + name), "\(introduction)")
        }
        #expect(introduction.contains("Notifies http://127.0.0.1:9/hook?a=b\n"))
        #expect(introduction.contains("curl -X POST http://127.0.0.1:"))
        kill(run.process.processIdentifier, signal)
        let end = try await run.ends()
        #expect(end.status == 0)
        #expect(run.process.terminationReason == .exit)
        #expect(end.errors.isEmpty)
    }

    @Test(
        "bad usage is 64 and says what is wrong",
        arguments: [
            (["--nonsense"], "--nonsense"), (["--listen"], "--listen"), (["--listen", "8090"], "HOST:PORT"),
            (["--listen", "127.0.0.1:99999"], "HOST:PORT"), (["--notify", "no-url"], "URL=KEY"),
            (["--workspace-id", "0197c0de-0000-7000-8000-00000000000g"], "UUID"), (["--seed", "x"], "--seed"),
            (["--latency-ms", "-1"], "--latency-ms"), (["stray"], "stray"),
        ])
    func badUsage(_ arguments: [String], _ hint: String) async throws {
        let end = try await Run(arguments).ends()
        #expect(end.status == 64)
        #expect(end.errors.contains(hint))
        #expect(end.output.isEmpty)
    }

    @Test("a port that is in use is told plainly")
    func portInUse() async throws {
        let first = try Run(["--listen", "127.0.0.1:0"])
        let introduction = try await first.says("/sandbox/reset")
        let port = try #require(introduction.firstMatch(of: /listens on http:\/\/127\.0\.0\.1:(\d+)/)?.1)
        let second = try await Run(["--listen=127.0.0.1:\(port)"]).ends()
        #expect(second.status == 69)
        #expect(second.errors.contains("127.0.0.1:\(port)"))
        first.process.terminate()
        #expect(try await first.ends().status == 0)
    }

    @Test("--help says everything and does nothing")
    func help() async throws {
        let end = try await Run(["--help"]).ends()
        #expect(end.status == 0)
        #expect(end.errors.isEmpty)
        for option in ["--listen", "--notify", "--client-id", "--client-secret", "--latency-ms", "--seed"] {
            #expect(end.output.contains(option))
        }
    }
}
