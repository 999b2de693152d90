import Basics
import Foundation
import Service
import Store

/// `lockstep retain`: deletes what has outlived its retention.
struct RetainCommand: Command {
    static let name = "retain"
    static let summary = "deletes what has outlived its retention"
    static let help = """
        usage: lockstep retain [--dry-run] [--json]

        Deletes, in small batches: bodies of notifications (LOCKSTEP_RETAIN_NOTIFICATIONS_DAYS; dead ones keep theirs),
        personal data of closed checkouts, of charges that are over and of subscriptions that have ended, instruments
        that were deleted (LOCKSTEP_RETAIN_PERSONAL_DATA_DAYS), and events that the shop doesn't have to take any more
        (LOCKSTEP_RETAIN_EVENTS_DAYS). Amounts, ids and facts stay. Safe to run at any time, by a timer.

          --dry-run  only counts
        """

    private let isDry: Bool
    private let asJSON: Bool

    init(_ arguments: inout Arguments) throws {
        isDry = arguments.flag("--dry-run")
        asJSON = arguments.flag("--json")
    }

    func run() async throws -> ExitCode {
        let settings = try Settings(environment: ProcessInfo.processInfo.environment, for: .database)
        let limits = settings.retention.limits(at: .systemNow)
        let count = try await settings.withBooks { store in
            try await isDry ? store.countOutlived(limits) : store.retain(limits)
        }
        if asJSON {
            let json: JSON = [
                "dryRun": .bool(isDry), "notificationBodies": JSON(count.notificationBodies),
                "checkouts": JSON(count.checkouts), "charges": JSON(count.charges),
                "subscriptions": JSON(count.subscriptions), "instruments": JSON(count.instruments),
                "events": JSON(count.events),
            ]
            print(json.text)
        } else {
            print("bodies of notifications\t\(count.notificationBodies)")
            print("checkouts' personal data\t\(count.checkouts)")
            print("charges' personal data\t\(count.charges)")
            print("subscriptions' personal data\t\(count.subscriptions)")
            print("deleted instruments\t\(count.instruments)")
            print("events\t\(count.events)")
            if isDry { Terminal.say("nothing was deleted: --dry-run") }
        }
        return .done
    }
}
