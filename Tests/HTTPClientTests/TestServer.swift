import Foundation
import HTTPClient
import Synchronization
import TestKit

/// A server process of ``serverScript``. It ends with this value, and, because its standard input ends, with the tests.
final class TestServer: Sendable {
    struct DidNotStart: Error {}

    let port: Int
    private let process: Mutex<Process>
    private let input: Pipe
    private let log: LogReader

    init(_ arguments: [String] = []) async throws {
        let process = Process()
        // The system's own, where there is one: what a path finds first may be a slow wrapper.
        let python = FileManager.default.isExecutableFile(atPath: "/usr/bin/python3") ? "/usr/bin/python3" : "python3"
        process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        process.arguments = [python, "-I", "-S", "-c", serverScript] + arguments
        input = Pipe()
        process.standardInput = input
        let output = Pipe()
        process.standardOutput = output
        process.standardError = FileHandle.nullDevice
        log = LogReader(output.fileHandleForReading)
        try process.run()
        self.process = Mutex(process)
        guard let port = Int(try await log.waitForLine { _ in true }) else { throw DidNotStart() }
        self.port = port
    }

    deinit {
        try? input.fileHandleForWriting.close()
        process.withLock { $0.terminate() }
    }

    /// One server for the tests that don't ask it what it saw.
    static let shared = Task { try await TestServer() }

    /// A server with a certificate of `authority`'s for `localhost` and 127.0.0.1.
    static func tls(_ pair: TLSAuthority.Pair, _ arguments: [String] = []) async throws -> TestServer {
        try await TestServer(["--cert", pair.certificateFile, "--key", pair.keyFile] + arguments)
    }

    func url(_ path: String, host: String = "127.0.0.1", scheme: String = "http") -> String {
        "\(scheme)://\(host):\(port)\(path)"
    }

    /// The next line, of those not yet waited for, that begins with `prefix`.
    @discardableResult
    func waitForLine(_ prefix: String) async throws -> String { try await log.waitForLine { $0.hasPrefix(prefix) } }

    /// How many lines begin with `prefix`, of all that the server wrote until it was asked.
    func countLines(_ prefix: String) async throws -> Int {
        let question = UUID().uuidString
        try input.fileHandleForWriting.write(contentsOf: Data("\(question)\n".utf8))
        return try await log.lines(until: "seen \(question)").count { $0.hasPrefix(prefix) }
    }
}

/// Collects a process's lines as they come.
private final class LogReader: Sendable {
    struct TimedOut: Error {}

    private struct State {
        var partial = Data()
        var lines: [String] = []
        var consumed = 0
    }

    private let state = Mutex(State())

    init(_ handle: FileHandle) {
        // A thread of its own: Foundation's `readabilityHandler` can outlive its descriptor, and libdispatch then crashes.
        let descriptor = dup(handle.fileDescriptor)
        Thread.detachNewThread { [weak self] in
            var buffer = [UInt8](repeating: 0, count: 65_536)
            while true {
                let count = read(descriptor, &buffer, buffer.count)
                if count > 0 {
                    self?.take(Data(buffer[..<count]))
                } else if count == 0 || errno != EINTR {
                    break
                }
            }
            close(descriptor)
        }
    }

    private func take(_ data: Data) {
        state.withLock { state in
            state.partial.append(data)
            while let end = state.partial.firstIndex(of: 0x0A) {
                state.lines.append(String(decoding: state.partial[..<end], as: UTF8.self))
                state.partial = Data(state.partial[(end + 1)...])
            }
        }
    }

    func waitForLine(_ isWanted: (String) -> Bool) async throws -> String {
        try await wait { state in
            guard let index = state.lines[state.consumed...].firstIndex(where: isWanted) else { return nil }
            state.consumed = index + 1
            return state.lines[index]
        }
    }

    /// Everything before `marker`, waited for or not.
    func lines(until marker: String) async throws -> ArraySlice<String> {
        try await wait { state in state.lines.firstIndex(of: marker).map { state.lines[..<$0] } }
    }

    private func wait<T>(_ find: (inout State) -> T?) async throws -> T {
        var found: T?
        guard
            await waitUntil(
                .seconds(30),
                {
                    found = state.withLock { find(&$0) }
                    return found != nil
                }), let found
        else { throw TimedOut() }
        return found
    }
}

/// Makes a client, and shuts it down when `body` is done.
func withClient<T>(
    _ configuration: HTTPClientConfiguration = HTTPClientConfiguration(),
    _ body: (HTTPClient) async throws -> T
) async throws -> T {
    let client = try HTTPClient(configuration)
    do {
        let result = try await body(client)
        await client.shutdown()
        return result
    } catch {
        await client.shutdown()
        throw error
    }
}

struct NoFailure: Error {}

extension HTTPClient {
    /// The error that `request` ends in.
    func failure(_ request: HTTPClientRequest) async throws -> HTTPClientError {
        do throws(HTTPClientError) {
            _ = try await send(request)
        } catch {
            return error
        }
        throw NoFailure()
    }

    func get(_ url: String, timeout: Duration = .seconds(30)) async throws -> HTTPClientResponse {
        try await send(HTTPClientRequest(method: "GET", url: url, timeout: timeout))
    }
}

extension HTTPClientResponse {
    var text: String { String(decoding: body, as: UTF8.self) }
}
