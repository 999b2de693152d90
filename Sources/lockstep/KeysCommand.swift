import Basics
import Foundation
import Lockstep
import Service
import Store

/// `lockstep keys`: merchant keys.
struct KeysCommand: Command {
    static let name = "keys"
    static let summary = "merchant keys: create, list, revoke"
    static let help = """
        usage: lockstep keys create --name NAME --scopes a,b [--json]
               lockstep keys list [--json]
               lockstep keys revoke NAME-OR-ID [--json]

        Scopes: \(Scope.allCases.map(\.rawValue).joined(separator: ", ")).
        A new key is printed once, alone on standard output (with --json in an object with its id); only its hash is kept.
        Exit 1 when there is a key of that name already, or none to revoke.
        """

    private enum Action {
        case create(name: String, scopes: Set<Scope>)
        case list
        case revoke(String)
    }
    private let action: Action
    private let asJSON: Bool

    init(_ arguments: inout Arguments) throws {
        asJSON = arguments.flag("--json")
        switch arguments.word() {
        case "create":
            // Counted as the database counts, which takes a letter and its accent for two.
            guard let name = try arguments.value("--name"), (1...128).contains(name.unicodeScalars.count) else {
                throw UsageError(message: "create needs --name of 1 to 128 characters")
            }
            guard let list = try arguments.value("--scopes") else { throw UsageError(message: "create needs --scopes") }
            var scopes: Set<Scope> = []
            for word in list.split(separator: ",") {
                guard let scope = Scope(rawValue: String(word)) else {
                    throw UsageError(
                        message: "\"\(word)\" is no scope (\(Scope.allCases.map(\.rawValue).joined(separator: ", ")))")
                }
                scopes.insert(scope)
            }
            guard !scopes.isEmpty else { throw UsageError(message: "create needs at least one scope") }
            action = .create(name: name, scopes: scopes)
        case "list": action = .list
        case "revoke":
            guard let name = arguments.word() else { throw UsageError(message: "revoke needs a name or an id") }
            action = .revoke(name)
        default: throw UsageError(message: "needs create, list or revoke")
        }
    }

    func run() async throws -> ExitCode {
        let settings = try Settings(environment: ProcessInfo.processInfo.environment, for: .database)
        return try await settings.withBooks(perform)
    }

    private func perform(_ store: PaymentStore) async throws -> ExitCode {
        switch action {
        case .create(let name, let scopes):
            guard let (id, key) = try await store.createKey(name: name, scopes: scopes) else {
                Terminal.say("lockstep keys: there is a key named \"\(name)\" already")
                return .needsPerson
            }
            let words = scopes.map(\.rawValue).sorted()
            Terminal.say("key \(id) with \(words.joined(separator: ", ")); it is shown only now:")
            if asJSON {
                let json: JSON = [
                    "id": .string(id.description), "name": .string(name), "scopes": .array(words.map(JSON.string)),
                    "key": .string(key.reveal),
                ]
                print(json.text)
            } else {
                print(key.reveal)
            }
        case .list:
            let keys = try await store.listKeys()
            if asJSON {
                print(JSON.array(keys.map(\.json)).text)
            } else {
                for key in keys { print(key.line) }
            }
        case .revoke(let name):
            guard try await store.revokeKey(name) else {
                Terminal.say("lockstep keys: there is no key \"\(name)\"")
                return .needsPerson
            }
            if asJSON {
                let json: JSON = ["revoked": .string(name)]
                print(json.text)
            } else {
                print("revoked \(name)")
            }
        }
        return .done
    }
}

extension MerchantKey {
    fileprivate var json: JSON {
        .compact([
            "id": .string(id.description), "name": .string(name),
            "scopes": .array(scopes.sorted().map { .string($0.rawValue) }),
            "createdAt": .string(createdAt.rfc3339), "lastUsedAt": lastUsedAt.map { .string($0.rfc3339) },
            "revokedAt": revokedAt.map { .string($0.rfc3339) },
        ])
    }

    fileprivate var line: String {
        let scopes = scopes.sorted().map(\.rawValue).joined(separator: ",")
        let state = revokedAt.map { "revoked \($0.rfc3339)" } ?? "last used \(lastUsedAt?.rfc3339 ?? "never")"
        return "\(id)  \(name)  \(scopes)  created \(createdAt.rfc3339)  \(state)"
    }
}
