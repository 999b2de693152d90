import Basics
import Foundation
import Service
import Store

/// `lockstep replay`: applies stored notifications again.
struct ReplayCommand: Command {
    static let name = "replay"
    static let summary = "stored notifications: applies them again"
    static let help = """
        usage: lockstep replay NOTIFICATION…
               lockstep replay --state dead

        Has stored notifications applied again by the running service, whatever became of them before. What they say is
        known only once, however often they are applied.

        A NOTIFICATION is its number, or the start of its hash from 8 digits on (sha256:… where that has digits only), as
        lockstep notifications lists them. --state takes all in a state.

        Exit 1 when one isn't there, isn't exact, or has lost its body to LOCKSTEP_RETAIN_NOTIFICATIONS_DAYS.
        """

    private enum Action {
        case some([(word: String, name: NotificationName)])
        case all(NotificationState)
    }
    private let action: Action

    init(_ arguments: inout Arguments) throws {
        let state = try NotificationState.option(&arguments)
        var names: [(word: String, name: NotificationName)] = []
        while let word = arguments.word() {
            guard let name = NotificationName(word) else {
                throw UsageError(message: "\"\(word)\" is neither a number nor the start of a hash")
            }
            names.append((word, name))
        }
        switch (state, names.isEmpty) {
        case (nil, false): action = .some(names)
        case (let state?, true): action = .all(state)
        default: throw UsageError(message: "needs notifications, or --state, and not both")
        }
    }

    func run() async throws -> ExitCode {
        let settings = try Settings(environment: ProcessInfo.processInfo.environment, for: .database)
        let writer = LogWriter.standardError()
        let log = Log(minimum: settings.log.level, clock: .system, writer: writer)
        defer { writer.flush() }
        return try await settings.withBooks { try await perform($0, log) }
    }

    private func perform(_ store: PaymentStore, _ log: Log) async throws -> ExitCode {
        switch action {
        case .all(let state):
            let count = try await store.replayNotifications(in: state)
            log.notice("notifications are applied again", .word("state", state), .count("notifications", count))
            print("\(count) to be applied again")
            return .done
        case .some(let names):
            var isWhole = true
            for (word, name) in names {
                switch try await store.replayNotification(name) {
                case .replayed(let number):
                    log.notice("a notification is applied again", .count("notification", number))
                    print("\(number) to be applied again")
                    continue
                case .unknown: Terminal.say("lockstep replay: there is no notification \(word)")
                case .ambiguous: Terminal.say("lockstep replay: several begin with \(word); give more digits")
                case .bodyGone(let number):
                    Terminal.say("lockstep replay: \(number) has outlived its retention; its body is deleted")
                }
                isWhole = false
            }
            return isWhole ? .done : .needsPerson
        }
    }
}
