import Foundation
import Synchronization
import TestKit

/// `wrk` posting notifications over and over, and what it was answered 200.
final class LoadOfNotifications: Sendable {
    private let notifications: [SignedNotification]
    private let folder: URL
    private let program: pid_t
    private let end: Task<Int32, Never>
    private let isOver = Mutex(false)

    /// An answer is known by the request's own id, which comes back in it.
    private static let script = """
        local started = 0
        function setup(thread)
            thread:set("number", started)
            started = started + 1
        end
        function init(arguments)
            lines, place = {}, number
            local function byte(digits) return string.char(tonumber(digits, 16)) end
            for line in io.lines(arguments[1] .. "/notifications") do
                local id, signature, body = line:match("^(%S+) (%S+) (%x+)$")
                local headers = {["Content-Type"] = "application/json", ["X-Signature"] = signature, ["X-Request-Id"] = id}
                lines[#lines + 1] = wrk.format("POST", nil, headers, (body:gsub("%x%x", byte)))
            end
            answered = io.open(arguments[1] .. "/answered-" .. number, "w")
        end
        function request()
            place = place % #lines + 1
            return lines[place]
        end
        function response(status, headers)
            if status == 200 then
                answered:write(headers["X-Request-Id"], "\\n")
                answered:flush()
            end
        end
        """

    /// - Parameter url: where they are posted to, until ``stop()``.
    init(_ notifications: [SignedNotification], to url: String) throws {
        self.notifications = notifications
        folder = FileManager.default.temporaryDirectory.appendingPathComponent("lockstep-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: false)
        let lines = notifications.enumerated().map { number, notification in
            "\(number) \(notification.signature) \(notification.body.map { String(format: "%02x", $0) }.joined())"
        }
        let (script, list) = (folder.appendingPathComponent("post.lua"), folder.appendingPathComponent("notifications"))
        try Self.script.write(to: script, atomically: false, encoding: .utf8)
        try lines.joined(separator: "\n").write(to: list, atomically: false, encoding: .utf8)
        program = try ChildProcess.start(
            ["wrk", "-t", "2", "-c", "32", "-d", "600", "-s", script.path, url, "--", folder.path],
            output: folder.appendingPathComponent("output").path)
        end = Task { [program] in await ChildProcess.wait(for: program) }
    }

    /// Each once, however often it was posted.
    var acknowledged: [SignedNotification] {
        let ids = (0..<2).flatMap { thread in
            // What is after the last line's end is still being written.
            let text =
                (try? String(contentsOf: folder.appendingPathComponent("answered-\(thread)"), encoding: .utf8)) ?? ""
            return text.split(separator: "\n", omittingEmptySubsequences: false).dropLast().compactMap { Int($0) }
        }
        return Set(ids).sorted().map { notifications[$0] }
    }

    /// Returns once it posts nothing more.
    func stop() async {
        kill(program, SIGKILL)
        _ = await end.value
        isOver.withLock { $0 = true }
    }

    deinit {
        if !isOver.withLock({ $0 }) { kill(program, SIGKILL) }
        try? FileManager.default.removeItem(at: folder)
    }
}
