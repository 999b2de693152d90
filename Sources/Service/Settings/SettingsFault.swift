/// A setting that stops the start: its name, and the mend. Never holds the value, which may be a secret.
public struct SettingsFault: Hashable, Sendable, CustomStringConvertible {
    public let name: String
    public let mend: String
    public var description: String { "\(name): \(mend)" }
}

/// Everything that is wrong with the settings, all at once. The program says it and ends with 78.
public struct SettingsFaults: Error, Sendable, CustomStringConvertible {
    public let faults: [SettingsFault]
    /// One line each.
    public var description: String { faults.map(\.description).joined(separator: "\n") }
}
