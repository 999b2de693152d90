import Basics
import Foundation
import Service
import Store

/// `lockstep replay`: applies stored notifications again.
struct ReplayCommand: Command {
    static let name = "replay"
    static let summary = "stored notifications: applies them again"
    static let help = """
        usage: lockstep replay NOTIFICATION… [--json]
               lockstep replay --state dead [--json]

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
    private let asJSON: Bool

    init(_ arguments: inout Arguments) throws {
        asJSON = arguments.flag("--json")
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
            tell(count, numbers: nil)
            return .done
        case .some(let names):
            var isWhole = true
            var numbers: [Int64] = []
            for (word, name) in names {
                switch try await store.replayNotification(name) {
                case .replayed(let number):
                    log.notice("a notification is applied again", .count("notification", number))
                    if !asJSON { print("\(number) to be applied again") }
                    numbers.append(number)
                    continue
                case .unknown: Terminal.say("lockstep replay: there is no notification \(word)")
                case .ambiguous: Terminal.say("lockstep replay: several begin with \(word); give more digits")
                case .bodyGone(let number):
                    Terminal.say("lockstep replay: \(number) has outlived its retention; its body is deleted")
                }
                isWhole = false
            }
            if asJSON { tell(numbers.count, numbers: numbers) }
            return isWhole ? .done : .needsPerson
        }
    }

    private func tell(_ count: Int, numbers: [Int64]?) {
        guard asJSON else { return print("\(count) to be applied again") }
        let json = JSON.compact([
            "toBeApplied": JSON(count), "notifications": numbers.map { .array($0.map { JSON($0) }) },
        ])
        print(json.text)
    }
}
