import Foundation
import Synchronization
import TestKit
import Testing

/// `lockstep serve` as a process of its own.
final class ServedProgram: Sendable {
    let baseURL: String
    private let program: BuiltProgram
    private let isOver = Mutex(false)

    /// Returns once it serves.
    init(_ arguments: [String] = [], environment: [String: String]) async throws {
        let program = try BuiltProgram("lockstep", ["serve"] + arguments, environment: environment)
        var port: String?
        _ = await waitUntil {
            port = program.output.firstMatch(of: /"port":([0-9]+)/).map { String($0.1) }
            return port != nil
        }
        self.program = program
        baseURL = "http://127.0.0.1:\(try #require(port, "\(program.output)"))"
    }

    /// Without any credentials.
    var stranger: JSONCaller { JSONCaller(baseURL: baseURL) }

    var isRunning: Bool { !isOver.withLock { $0 } }

    /// What it has logged so far.
    var log: String { program.output }

    /// See `BuiltProgram`.
    func status(_ name: String) -> String? { program.status(name) }

    func signal(_ number: Int32) { program.signal(number) }

    /// Returns once it has ended.
    func ended() async -> BuiltProgram.End {
        isOver.withLock { $0 = true }
        return await program.ended()
    }

    @discardableResult
    func end(by signal: Int32) async -> BuiltProgram.End {
        program.signal(signal)
        return await ended()
    }
}
