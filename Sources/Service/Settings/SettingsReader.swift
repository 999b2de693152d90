import Basics
import Foundation

/// Reads settings from an environment, one call each. The call is the setting's only definition: its name, its form,
/// its default and its help. So the table is what the program reads, and can't drift from it.
///
/// Faults are collected; a setting that is missing or wrong gives its default, or a stand-in that never gets out.
final class SettingsReader {
    let environment: [String: String]
    let readFile: (String) throws -> Data
    private(set) var entries: [SettingsEntry] = []
    private(set) var faults: [SettingsFault] = []
    private var group = ""

    /// A file that holds a setting is at most this long.
    static let maximumFileBytes = 262_144

    init(environment: [String: String], readFile: @escaping (String) throws -> Data) {
        self.environment = environment
        self.readFile = readFile
    }

    /// What follows belongs under this title.
    func begin(_ group: String) { self.group = group }

    func fault(_ name: String, _ mend: String) { faults.append(SettingsFault(name: name, mend: mend)) }

    /// Whether the setting is given, by itself or as a file.
    func isSet(_ name: String) -> Bool {
        !(environment[name] ?? "").isEmpty || !(environment["\(name)_FILE"] ?? "").isEmpty
    }

    /// The path of the file that holds the setting, where it was given so.
    func filePath(of name: String) -> String? {
        environment["\(name)_FILE"].flatMap { $0.isEmpty ? nil : $0 }
    }

    /// The setting as text; an empty one is as good as none.
    private func text(_ name: String) -> String? {
        let value = environment[name].flatMap { $0.isEmpty ? nil : $0 }
        guard let path = filePath(of: name) else { return value }
        guard value == nil else {
            fault(name, "is given twice; set either \(name) or \(name)_FILE")
            return nil
        }
        guard let data = try? readFile(path) else {
            fault("\(name)_FILE", "the file can't be read; check its path and who may read it")
            return nil
        }
        guard data.count <= Self.maximumFileBytes, var text = String(validating: data, as: UTF8.self) else {
            fault("\(name)_FILE", "the file must be text in UTF-8 of up to \(Self.maximumFileBytes) bytes")
            return nil
        }
        if text.hasSuffix("\r\n") || text.hasSuffix("\n") { text.removeLast() }
        if text.isEmpty { fault("\(name)_FILE", "the file is empty") }
        return text.isEmpty ? nil : text
    }

    /// Reads one setting; nil where it isn't given or is wrong, which is told.
    private func read<Value>(
        _ name: String, _ presence: SettingsEntry.Presence, form: String, secret: Bool, _ help: String,
        _ parse: (String) throws(Mend) -> Value
    ) -> Value? {
        entries.append(
            SettingsEntry(group: group, name: name, form: form, presence: presence, isSecret: secret, help: help))
        let faultsBefore = faults.count
        guard let text = text(name) else {
            if presence == .required, faults.count == faultsBefore { fault(name, "must be set: \(form)") }
            return nil
        }
        do {
            return try parse(text)
        } catch {
            fault(name, error.text ?? "must be \(form)")
            return nil
        }
    }

    /// The setting that was just read is one that some command can't do without.
    func markRequired(_ name: String) {
        guard let last = entries.popLast() else { return }
        entries.append(
            SettingsEntry(
                group: last.group, name: name, form: last.form, presence: .required, isSecret: last.isSecret,
                help: last.help))
    }

    /// Adds a setting to the table that was read by other means.
    func note(_ name: String, form: String, _ help: String) {
        entries.append(
            SettingsEntry(group: group, name: name, form: form, presence: .optional, isSecret: false, help: help))
    }

    /// Why a text isn't a value; nil: the form says it all.
    struct Mend: Error {
        let text: String?
        init(_ text: String? = nil) { self.text = text }
    }
}

/// The three ways in which a setting can be there.
extension SettingsReader {
    func required<Value>(
        _ name: String, _ type: SettingForm<Value>, standIn: Value, secret: Bool = false, _ help: String
    ) -> Value {
        read(name, .required, form: type.form, secret: secret, help, type.parse) ?? standIn
    }

    func optional<Value>(_ name: String, _ type: SettingForm<Value>, secret: Bool = false, _ help: String) -> Value? {
        read(name, .optional, form: type.form, secret: secret, help, type.parse)
    }

    /// `usual` is written as it would be set, so that what the help shows is what the program does.
    func usually<Value>(_ usual: String, _ name: String, _ type: SettingForm<Value>, _ help: String) -> Value {
        if let value = read(name, .usually(usual), form: type.form, secret: false, help, type.parse) { return value }
        guard let value = try? type.parse(usual) else { preconditionFailure("\(name)'s default isn't of its own form") }
        return value
    }

    /// Names that nobody reads: almost always a typo, and a typo in a payment's settings must not pass.
    func reportUnknownNames() {
        let known = Set(entries.map(\.name))
        for name in environment.keys.sorted() where name.hasPrefix("LOCKSTEP_") || name.hasPrefix("PAYRAILS_") {
            let bare = name.hasSuffix("_FILE") ? String(name.dropLast(5)) : name
            if known.contains(name) || known.contains(bare) || isSomebodyElses(name) { continue }
            let close = known.map { (distance: EditDistance.between($0, bare), name: $0) }.min { $0 < $1 }
            let hint = close.flatMap { $0.distance <= max(2, bare.count / 5) ? "; did you mean \($0.name)?" : nil }
            fault(name, "is not a setting\(hint ?? "; take it out, or see config/lockstep.env.example for the names")")
        }
    }

    /// `LOCKSTEP_TEST_…` belongs to the tests, `PAYRAILS_SANDBOX_…` to the stand-in. And for a Kubernetes service that is
    /// called `lockstep`, every pod gets `LOCKSTEP_SERVICE_HOST`, `LOCKSTEP_PORT_8080_TCP` and the like.
    private func isSomebodyElses(_ name: String) -> Bool {
        if name.hasPrefix("LOCKSTEP_TEST_") || name.hasPrefix("PAYRAILS_SANDBOX_") { return true }
        if name.wholeMatch(of: /[A-Z0-9_]+_SERVICE_(HOST|PORT)(_[A-Z0-9_]+)?/) != nil { return true }
        if name.wholeMatch(of: /[A-Z0-9_]+_PORT_[0-9]+_(TCP|UDP|SCTP)(_(ADDR|PORT|PROTO))?/) != nil { return true }
        return name.hasSuffix("_PORT") && environment[name]?.contains("://") == true
    }
}

/// How far two names are apart.
enum EditDistance {
    /// Letters to insert, delete or replace (Levenshtein).
    static func between(_ left: String, _ right: String) -> Int {
        let right = Array(right.utf8)
        var row = Array(0...right.count)
        for (index, letter) in left.utf8.enumerated() {
            var diagonal = row[0]
            row[0] = index + 1
            for column in right.indices {
                let replaced = diagonal + (right[column] == letter ? 0 : 1)
                diagonal = row[column + 1]
                row[column + 1] = min(replaced, row[column] + 1, diagonal + 1)
            }
        }
        return row[right.count]
    }
}
