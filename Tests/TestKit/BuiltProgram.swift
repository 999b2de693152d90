import Foundation
import Glibc

/// A program of this package, run as a process of its own with an environment of its own.
public final class BuiltProgram: Sendable {
    public struct End: Sendable {
        /// The exit status, or 128 and the signal.
        public let status: Int32
        /// Standard output and standard error, as they came.
        public let output: String
    }

    private let pid: pid_t
    private let outputFile: URL
    private let end: Task<Int32, Never>

    /// Starts it. `environment` is all that it sees, besides `PATH`.
    public init(_ name: String, _ arguments: [String], environment: [String: String]) throws {
        // The tests' own program lies beside the others; `LOCKSTEP_TEST_PROGRAMS` names a folder of optimized ones.
        let own = try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")
        let folder =
            ProcessInfo.processInfo.environment["LOCKSTEP_TEST_PROGRAMS"].map { URL(fileURLWithPath: $0) }
            ?? URL(fileURLWithPath: own).deletingLastPathComponent()
        let program = folder.appendingPathComponent(name)
        guard FileManager.default.isExecutableFile(atPath: program.path) else {
            throw ChildProcess.Failure(description: "\(program.path) isn't built")
        }
        outputFile = FileManager.default.temporaryDirectory.appendingPathComponent("lockstep-\(UUID().uuidString)")
        let settings = environment.map { "\($0.key)=\($0.value)" }
        // Whatever this process ignores, the program starts as from a shell.
        pid = try ChildProcess.start(
            ["env", "-i", "--default-signal=PIPE", "PATH=/usr/bin:/bin"] + settings + [program.path] + arguments,
            output: outputFile.path)
        end = Task { [pid] in await ChildProcess.wait(for: pid) }
    }

    deinit {
        // Harmless once it has ended and been waited for; a test that failed half-way leaves nothing running.
        let (pid, end, file) = (pid, end, outputFile)
        Task {
            let killer = Task {
                try await Task.sleep(for: .seconds(20))
                kill(pid, SIGKILL)
            }
            _ = await end.value
            killer.cancel()
            try? FileManager.default.removeItem(at: file)
        }
    }

    /// Runs it to its end.
    public static func run(
        _ name: String, _ arguments: [String], environment: [String: String]
    ) async throws -> End {
        await (try BuiltProgram(name, arguments, environment: environment)).ended()
    }

    /// A line of `/proc/PID/status` without its name: `VmRSS` has `51200 kB`. Nil once it has ended.
    public func status(_ name: String) -> String? {
        let text = try? String(contentsOfFile: "/proc/\(pid)/status", encoding: .utf8)
        let line = text?.split(separator: "\n").first { $0.hasPrefix(name + ":") }
        return line?.dropFirst(name.count + 1).trimmingCharacters(in: .whitespaces)
    }

    public func signal(_ number: Int32) { kill(pid, number) }

    public func ended() async -> End { End(status: await end.value, output: output) }

    /// What it has printed so far.
    public var output: String { (try? String(contentsOf: outputFile, encoding: .utf8)) ?? "" }
}
