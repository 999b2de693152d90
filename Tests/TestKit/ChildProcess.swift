import Foundation
import Glibc

/// A program started for a test.
///
/// Not Foundation's `Process`: that sees the end of a child by a socket which the child's own children inherit, so a
/// command that leaves a server behind never ends for it. Here children inherit nothing but their three streams.
public enum ChildProcess {
    public struct Failure: Error, CustomStringConvertible {
        public let description: String
    }

    /// Closes what this process has open (without a redirection around it: bash would keep its own copy of standard
    /// error among what is closed), in case a server stays behind with it; goes to a folder that every user may
    /// be in; leaves the session, so that a signal from the terminal ends only the tests.
    private static let launcher = [
        "bash", "-c",
        """
        for file in /proc/$$/fd/*; do n=${file##*/}; [ "$n" -gt 2 ] && eval "exec $n>&-"; done
        cd / && exec setsid "$@"
        """, "launcher",
    ]

    /// Starts a program, found by `PATH`, in a session of its own.
    /// - Parameters:
    ///   - input: becomes its standard input; nil for an empty one.
    ///   - output: the file that both its output streams go to.
    public static func start(_ command: [String], input: Int32? = nil, output: String = "/dev/null") throws -> pid_t {
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        if let input {
            posix_spawn_file_actions_adddup2(&actions, input, 0)
        } else {
            posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0)
        }
        posix_spawn_file_actions_addopen(&actions, 1, output, O_WRONLY | O_CREAT | O_APPEND, 0o600)
        posix_spawn_file_actions_adddup2(&actions, 1, 2)
        var arguments: [UnsafeMutablePointer<CChar>?] = (launcher + command).map { strdup($0) }
        arguments.append(nil)
        defer { for argument in arguments { free(argument) } }
        var pid: pid_t = 0
        let failure = posix_spawnp(&pid, "bash", &actions, nil, arguments, environ)
        guard failure == 0 else {
            throw Failure(description: "\(command[0]): \(String(cString: strerror(failure)))")
        }
        return pid
    }

    /// Starts a program whose end nobody asks about. It is taken leave of all the same: a child that ended and wasn't
    /// waited for keeps the watch over exit tests spinning.
    static func startAndForget(_ command: [String], input: Int32) throws {
        let pid = try start(command, input: input)
        Task.detached { _ = await wait(for: pid) }
    }

    /// Waits for the end on a thread of its own, since the threads of tasks are few.
    /// - Returns: the exit status, or 128 and the signal.
    public static func wait(for pid: pid_t) async -> Int32 {
        await withCheckedContinuation { continuation in
            Thread.detachNewThread {
                var status: Int32 = 0
                while waitpid(pid, &status, 0) < 0, errno == EINTR {}
                let signal = status & 0x7f
                continuation.resume(returning: signal == 0 ? (status >> 8) & 0xff : 128 + signal)
            }
        }
    }

    /// Runs a command to its end.
    /// - Throws: ``Failure`` with what it printed, unless it ends with 0.
    public static func run(_ command: [String]) async throws {
        let output = FileManager.default.temporaryDirectory.appendingPathComponent("lockstep-\(UUID().uuidString)")
        defer { try? FileManager.default.removeItem(at: output) }
        let status = await wait(for: try start(command, output: output.path))
        guard status == 0 else {
            let words = (try? String(contentsOf: output, encoding: .utf8)) ?? ""
            throw Failure(description: "\(command.joined(separator: " ")) ended with \(status)\n\(words)")
        }
    }
}
