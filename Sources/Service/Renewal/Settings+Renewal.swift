import Basics
import Foundation
import Lockstep

extension Settings {
    /// What renewals are decided by. The tables are read here, so that a bad one stops the start.
    ///
    /// - Throws: a ``StartRefusal`` with the setting's name and what is wrong with its table.
    func renewalRules() throws(StartRefusal) -> RenewalPlan.Rules {
        RenewalPlan.Rules(
            hour: renewal.hour, missed: renewal.missed, expiryZone: renewal.expiryZone,
            dunning: try renewal.dunning(), declines: try renewal.declines(),
            cancelsAfterDunning: renewal.dunningEnd == .cancel)
    }
}

extension Settings {
    /// Subscriptions that a run deals with at once. Each makes its calls one after the other, so more than Payrails is
    /// sent calls a second would only wait for their turn, and run out of their time.
    public var renewalConcurrency: Int {
        guard let payrails else { return renewal.concurrency }
        let limits = [payrails.requestsPerSecond, payrails.sharedRequestsPerSecond].filter { $0 > 0 }
        return limits.min().map { min(renewal.concurrency, max($0, work.concurrency)) } ?? renewal.concurrency
    }
}

extension Settings.Renewal {
    func declines() throws(StartRefusal) -> DeclinePolicy {
        guard let declinePolicy else { return .standard }
        do {
            return try DeclinePolicy(table: Data(declinePolicy.utf8))
        } catch {
            throw StartRefusal(message: "LOCKSTEP_DECLINE_POLICY: \(error.detail)")
        }
    }

    func dunning() throws(StartRefusal) -> DunningSchedule {
        guard let dunningSchedule else { return .standard }
        do {
            return try DunningSchedule(table: Data(dunningSchedule.utf8))
        } catch {
            throw StartRefusal(message: "LOCKSTEP_DUNNING_SCHEDULE: \(error.detail)")
        }
    }
}
