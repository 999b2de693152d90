/// The table in words, for people.
public enum SettingsDocument {
    /// `config/lockstep.env.example`: every setting with its comment, those with a default commented out.
    public static var example: String {
        var out = """
            # Settings of Lockstep. Every one may also be given as NAME_FILE, a file that holds the value.
            # A line with a # before its name shows the default, or an option that is off.

            """
        for (group, entries) in groups {
            out += "\n# ---- \(group) ----\n"
            for entry in entries {
                out += "\n"
                for line in wrapped("\(entry.help) \(remark(entry))", width: 100) { out += "# \(line)\n" }
                switch entry.presence {
                case .required: out += "\(entry.name)=\n"
                case .optional: out += "#\(entry.name)=\n"
                case .usually(let value): out += "#\(entry.name)=\(value)\n"
                }
            }
        }
        return out
    }

    /// For `lockstep help settings`.
    public static var help: String {
        groups.map { group, entries in
            "\(group)\n"
                + entries.map { entry in
                    let usual = if case .usually(let value) = entry.presence { " (\(value))" } else { "" }
                    return "  \(entry.name)\(usual)\n"
                        + wrapped("\(entry.help) \(remark(entry))", width: 92).map { "      \($0)\n" }.joined()
                }.joined()
        }.joined(separator: "\n")
    }

    private static var groups: [(String, [SettingsEntry])] {
        var order: [String] = []
        for entry in Settings.entries where !order.contains(entry.group) { order.append(entry.group) }
        return order.map { group in (group, Settings.entries.filter { $0.group == group }) }
    }

    private static func remark(_ entry: SettingsEntry) -> String {
        let form = "\(entry.form.prefix(1).uppercased())\(entry.form.dropFirst())."
        let secret = entry.isSecret ? " Secret: better as \(entry.name)_FILE." : ""
        return (entry.presence == .required ? "Required. " : "") + form + secret
    }

    private static func wrapped(_ text: String, width: Int) -> [String] {
        text.split(separator: " ").reduce(into: [String]()) { lines, word in
            if let last = lines.last, last.count + word.count < width {
                lines[lines.count - 1] = "\(last) \(word)"
            } else {
                lines.append(String(word))
            }
        }
    }
}
