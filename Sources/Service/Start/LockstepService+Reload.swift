extension LockstepService {
    /// Takes on new webhook keys while serving: what `lockstep serve` does on SIGHUP. Other settings need a restart.
    ///
    /// Settings that can't be read, or that leave an endpoint without any key (a file that was just being written), change
    /// nothing: what was verified before is verified still, and the fault is logged.
    ///
    /// - Parameter read: reads the settings again.
    /// - Returns: whether the new keys are in force.
    @discardableResult
    public func reload(_ read: () throws(SettingsFaults) -> Settings) -> Bool {
        do {
            let new = try read().payrails?.signatureKeys ?? [:]
            let bereft = webhookKeys.endpoints.subtracting(new.keys)
            guard bereft.isEmpty else {
                log.error(
                    "settings were read again and leave endpoints without a webhook key; the keys from before stay in force",
                    .count("endpoints", bereft.count))
                return false
            }
            webhookKeys.replace(with: new)
            log.notice(
                "settings were read again; these webhook keys are in force", .count("endpoints", new.count),
                .count("keys", new.values.reduce(0) { $0 + $1.count }))
            return true
        } catch {
            for fault in error.faults {
                log.error(
                    "settings could not be read again; the webhook keys from before stay in force",
                    .detail(fault.description))
            }
            return false
        }
    }
}
