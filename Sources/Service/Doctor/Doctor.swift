import Basics
import Lockstep

/// Looks at what Lockstep stands on, and says how to mend what is wrong. Changes nothing.
public struct Doctor: Sendable {
    let settings: Settings
    let clock: WallClock

    public init(settings: Settings, clock: WallClock = .system) {
        self.settings = settings
        self.clock = clock
    }

    /// What is wrong with settings that stop every command.
    public static func findings(of faults: SettingsFaults) -> [Finding] {
        faults.faults.map { Finding("settings", .wrong, $0.name, mend: $0.mend) }
    }

    /// - Parameter holder: also asks for a tokenization init of this holder and says what the app can do with it.
    public func examine(initFor holder: String?) async -> [Finding] {
        var findings = [Finding("settings", .fine, "every one can be read")]
        findings += settings.notes.map { Finding($0.name, .note, $0.detail, mend: $0.mend) }
        findings += await database()
        guard let payrails = settings.payrails else { return findings }
        findings.append(certificate(payrails))
        findings.append(notifications(payrails))
        findings += await provider(payrails, initFor: holder)
        return findings
    }

    private func notifications(_ payrails: Settings.Payrails) -> Finding {
        let endpoints = payrails.webhookKeys?.keys ?? [:]
        guard !endpoints.isEmpty else {
            return Finding(
                "notifications", .wrong, "no key, so every notification is turned away",
                mend: "set PAYRAILS_WEBHOOK_KEYS to the key that the portal showed with the URL")
        }
        let paths = endpoints.keys.sorted().map { $0.isEmpty ? "/webhooks/payrails" : "/webhooks/payrails/\($0)" }
        return Finding("notifications", .fine, "keys for \(paths.joined(separator: ", "))")
    }
}
