import Basics
import Foundation
import Lockstep
import Service
import Store

/// `lockstep notifications`: what came from Payrails, and what became of it.
struct NotificationsCommand: Command {
    static let name = "notifications"
    static let summary = "stored notifications: lists them"
    static let help = """
        usage: lockstep notifications [--state STATE] [--execution ID] [--limit N] [--json]

        Lists stored notifications, the newest first; never their bodies.

          --state      received: not applied yet; applied; parked: its execution isn't known here; ignored: needs
                       nothing; dead: could not be applied
          --execution  those about one execution
          --limit      how many, 1 to 10000 (100)

        Exit 1 when --state dead lists any: see lockstep replay --help.
        """

    private let states: Set<NotificationState>
    private let execution: ExecutionID?
    private let limit: Int
    private let asJSON: Bool

    init(_ arguments: inout Arguments) throws {
        states = try NotificationState.option(&arguments).map { [$0] } ?? Set(NotificationState.allCases)
        execution = try arguments.value("--execution").map { word in
            guard let id = ExecutionID(word) else { throw UsageError(message: "--execution is the id of an execution") }
            return id
        }
        limit = try arguments.value("--limit").map { Int($0) ?? 0 } ?? 100
        guard (1...10_000).contains(limit) else { throw UsageError(message: "--limit is 1 to 10000") }
        asJSON = arguments.flag("--json")
    }

    func run() async throws -> ExitCode {
        let settings = try Settings(environment: ProcessInfo.processInfo.environment, for: .database)
        let notifications = try await settings.withBooks { store in
            try await store.readNotifications(states, execution: execution, limit: limit)
        }
        if asJSON {
            print(JSON.array(notifications.map(\.json)).text)
        } else {
            for notification in notifications { print(notification.line) }
        }
        if notifications.count == limit { Terminal.say("there may be more: --limit") }
        return states == [.dead] && !notifications.isEmpty ? .needsPerson : .done
    }
}

extension NotificationState {
    static func option(_ arguments: inout Arguments) throws -> NotificationState? {
        try arguments.value("--state").map { word in
            guard let state = NotificationState(rawValue: word) else {
                throw UsageError(
                    message: "--state is one of \(NotificationState.allCases.map(\.rawValue).joined(separator: ", "))")
            }
            return state
        }
    }
}

extension StoredNotification {
    fileprivate var json: JSON {
        .compact([
            "number": JSON(number), "hash": .string(hash.hexadecimal), "endpoint": .string(endpoint),
            "state": .string(state.rawValue), "event": event.map { .string($0) },
            "executionId": execution.map { .string($0.description) }, "attempts": JSON(attempts),
            "error": error.map { .string($0) }, "receivedAt": .string(receivedAt.rfc3339),
            "appliedAt": appliedAt.map { .string($0.rfc3339) }, "bodyBytes": bodyBytes.map { JSON($0) },
        ])
    }

    fileprivate var line: String {
        let about = "\(event ?? "-")  \(execution?.description ?? "-")"
        let fault = error.map { "  \($0)" } ?? ""
        let gone = bodyBytes == nil ? "  body deleted" : ""
        let known = "\(number)  \(hash.hexadecimal.prefix(12))  \(receivedAt.rfc3339)  \(state.rawValue)"
        return "\(known)  \(about)\(gone)\(fault)"
    }
}
