/// A setting that works, and may surprise: its name, what comes of it, and the mend. Never holds a secret.
public struct SettingsNote: Hashable, Sendable {
    public let name: String
    public let detail: String
    public let mend: String
}

extension Settings {
    /// What the doctor tells of them, and the log when a service starts.
    public var notes: [SettingsNote] {
        var notes: [SettingsNote] = []
        if rules.unresolvedAfter <= work.lease {
            notes.append(
                SettingsNote(
                    name: "LOCKSTEP_UNRESOLVED_AFTER",
                    detail: "is not more than LOCKSTEP_LEASE_SECONDS: what is unknown is a discrepancy while looking "
                        + "it up has only begun",
                    mend: "set it to more than LOCKSTEP_LEASE_SECONDS, unless that is what you want"))
        }
        if rules.overdueAfter <= rules.failureSettle {
            notes.append(
                SettingsNote(
                    name: "LOCKSTEP_OVERDUE_AFTER",
                    detail: "is not more than LOCKSTEP_FAILURE_SETTLE_SECONDS: a payment is a discrepancy while the "
                        + "workflow may still try another provider",
                    mend: "set it to more than LOCKSTEP_FAILURE_SETTLE_SECONDS, unless that is what you want"))
        }
        return notes
    }
}
