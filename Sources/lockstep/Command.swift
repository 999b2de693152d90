import Foundation
import Postgres
import Service
import Store

/// A subcommand.
protocol Command: Sendable {
    static var name: String { get }
    /// A line for the list.
    static var summary: String { get }
    static var help: String { get }
    /// Takes its options out of the arguments; whatever is left over is bad usage.
    init(_ arguments: inout Arguments) throws
    func run() async throws -> ExitCode
}

/// By sysexits.h, as the contract says.
enum ExitCode: Int32 {
    case done = 0
    /// Done, and something needs a person.
    case needsPerson = 1
    case usage = 64
    case tryAgain = 75
    case configuration = 78
}

struct UsageError: Error { let message: String }

/// What stands behind the subcommand.
struct Arguments {
    private var words: [String]

    init(_ words: [String]) { self.words = words }

    /// Whether an option without a value is there.
    mutating func flag(_ name: String) -> Bool {
        guard let index = words.firstIndex(of: name) else { return false }
        words.remove(at: index)
        return true
    }

    /// The value of `--name value` or `--name=value`.
    mutating func value(_ name: String) throws -> String? {
        if let index = words.firstIndex(where: { $0.hasPrefix(name + "=") }) {
            return String(words.remove(at: index).dropFirst(name.count + 1))
        }
        guard let index = words.firstIndex(of: name) else { return nil }
        guard words.indices.contains(index + 1) else { throw UsageError(message: "\(name) needs a value") }
        words.remove(at: index)
        return words.remove(at: index)
    }

    /// The next word that isn't an option.
    mutating func word() -> String? {
        guard let index = words.firstIndex(where: { !$0.hasPrefix("-") }) else { return nil }
        return words.remove(at: index)
    }

    func finish() throws {
        if let first = words.first { throw UsageError(message: "\"\(first)\" isn't understood here") }
    }
}

/// Results go to standard output, talk to standard error.
enum Terminal {
    static func say(_ text: String) { FileHandle.standardError.write(Data((text + "\n").utf8)) }

    /// An error in words that hold nothing secret.
    static func describe(_ error: any Error) -> String {
        (error as? any LogDescribed)?.logDescription ?? "\(type(of: error)): \(error)"
    }
}

extension Settings {
    /// The books for a command that works once, and lets them go after it.
    ///
    /// - Throws: a `StartRefusal` for a database that is behind this program, or ahead of it.
    func withBooks<Result>(
        policy: PaymentStore.Policy = .init(), _ body: (PaymentStore) async throws -> Result
    ) async throws -> Result {
        let pool = PostgresPool(postgres)
        do {
            try await LockstepService.refuseWrongVersion(pool)
            let result = try await body(
                PaymentStore(pool: pool, clock: .system, identifiers: .system(), policy: policy))
            await pool.shutdown()
            return result
        } catch {
            await pool.shutdown()
            throw error
        }
    }
}
