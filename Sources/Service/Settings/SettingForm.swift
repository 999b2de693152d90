import Basics
import Foundation
import Postgres

/// How a setting is written, and what it is read as.
struct SettingForm<Value: Sendable>: Sendable {
    /// Reads after "must be".
    let form: String
    let parse: @Sendable (String) throws(SettingsReader.Mend) -> Value

    init(_ form: String, parse: @escaping @Sendable (String) throws(SettingsReader.Mend) -> Value) {
        self.form = form
        self.parse = parse
    }

    /// From a reader that says nil.
    init(_ form: String, optionally parse: @escaping @Sendable (String) -> Value?) {
        self.init(form) { text throws(SettingsReader.Mend) in
            guard let value = parse(text) else { throw SettingsReader.Mend() }
            return value
        }
    }
}

extension SettingForm where Value == Int {
    static func integer(_ range: ClosedRange<Int>) -> SettingForm {
        SettingForm("a whole number from \(range.lowerBound) to \(range.upperBound)") { text in
            digits(text).flatMap { range.contains($0) ? $0 : nil }
        }
    }

    fileprivate static func digits(_ text: String) -> Int? {
        !text.isEmpty && text.utf8.allSatisfy { (0x30...0x39).contains($0) } ? Int(text) : nil
    }
}

extension SettingForm where Value == Duration {
    /// For names that end in `_SECONDS`.
    static func seconds(_ range: ClosedRange<Int>) -> SettingForm {
        SettingForm("whole seconds from \(range.lowerBound) to \(range.upperBound)") { text in
            SettingForm<Int>.digits(text).flatMap { range.contains($0) ? .seconds($0) : nil }
        }
    }

    /// For names that end in `_MS`.
    static func milliseconds(_ range: ClosedRange<Int>) -> SettingForm {
        SettingForm("whole milliseconds from \(range.lowerBound) to \(range.upperBound)") { text in
            SettingForm<Int>.digits(text).flatMap { range.contains($0) ? .milliseconds($0) : nil }
        }
    }

    /// For names that end in `_DAYS`.
    static func days(_ range: ClosedRange<Int>) -> SettingForm {
        SettingForm("whole days from \(range.lowerBound) to \(range.upperBound)") { text in
            SettingForm<Int>.digits(text).flatMap { range.contains($0) ? .seconds($0 * 86_400) : nil }
        }
    }

    /// With its unit: `500ms`, `30s`, `2m`, `1h`, `7d`.
    static let duration = SettingForm("a duration like 30s, 10m, 1h or 7d", optionally: one)

    fileprivate static func one(_ text: String) -> Duration? {
        let number = text.prefix { $0.isASCII && $0.isNumber }
        guard let value = digits(String(number)), value > 0, value <= 1_000_000_000 else { return nil }
        switch text.dropFirst(number.count) {
        case "ms": return .milliseconds(value)
        case "s": return .seconds(value)
        case "m": return .seconds(value * 60)
        case "h": return .seconds(value * 3600)
        case "d": return .seconds(value * 86_400)
        default: return nil
        }
    }

    private static func digits(_ text: String) -> Int? { SettingForm<Int>.digits(text) }
}

extension SettingForm where Value == [Duration] {
    /// Durations with commas between them.
    static let schedule = SettingForm("durations with commas between them, like 10s,30s,2m,10m,1h,6h") { text in
        let parts = text.split(separator: ",", omittingEmptySubsequences: false).map { SettingText.trimmed($0) }
        let durations = parts.compactMap(SettingForm<Duration>.one)
        return durations.count == parts.count && parts.count <= 50 ? durations : nil
    }
}

extension SettingForm where Value == Bool {
    static let flag = SettingForm("1 or 0") { text in
        switch text {
        case "1", "true": true
        case "0", "false": false
        default: nil
        }
    }
}

extension SettingForm where Value == String {
    /// Any text without control characters.
    static func text(_ form: String, upTo length: Int = 1000) -> SettingForm {
        SettingForm(form) { $0.count <= length && !$0.unicodeScalars.contains { $0.value < 0x20 } ? $0 : nil }
    }

    static func matching(_ form: String, _ fits: @escaping @Sendable (String) -> Bool) -> SettingForm {
        SettingForm(form) { fits($0) ? $0 : nil }
    }

    static let path = SettingForm("the path of a file") { text throws(SettingsReader.Mend) in
        if text.contains("-----BEGIN") {
            throw SettingsReader.Mend("must be the path of a file in PEM, not its content")
        }
        guard !text.unicodeScalars.contains(where: { $0.value < 0x20 }) else { throw SettingsReader.Mend() }
        return text
    }
}

extension SettingForm where Value == Secret<String> {
    static func secret(_ form: String) -> SettingForm { SettingForm(form) { Secret($0) } }

    static var connectionString: SettingForm {
        SettingForm("a connection string of libpq") { PostgresConfiguration.isReadable($0) ? Secret($0) : nil }
    }
}

extension SettingForm where Value: RawRepresentable & CaseIterable, Value.RawValue == String {
    static var word: SettingForm {
        SettingForm(
            "one of \(Value.allCases.map(\.rawValue).joined(separator: ", "))", optionally: Value.init(rawValue:))
    }
}

enum SettingText {
    static func trimmed(_ text: some StringProtocol) -> String {
        let isBlank = { (character: Character) in character == " " || character == "\t" || character.isNewline }
        return String(text.drop(while: isBlank).reversed().drop(while: isBlank).reversed())
    }

    /// The parts between commas; nil where one is empty.
    static func list(_ text: String) -> [String]? {
        let parts = text.split(separator: ",", omittingEmptySubsequences: false).map { trimmed($0) }
        return parts.contains("") ? nil : parts
    }
}
