/// What the table knows about one setting besides its value: for `--help` and `config/lockstep.env.example`.
public struct SettingsEntry: Hashable, Sendable {
    public enum Presence: Hashable, Sendable {
        /// Written as it would be set.
        case usually(String)
        /// Nothing unless it is set.
        case optional
        case required
    }

    public let group: String
    public let name: String
    /// What may stand there: "a whole number from 1 to 200".
    public let form: String
    public let presence: Presence
    public let isSecret: Bool
    /// One sentence or two.
    public let help: String
}
