import Foundation
import Testing

@testable import Service

@Suite("config/lockstep.env.example")
struct SettingsDocumentTests {
    private static var file: URL {
        URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent().deletingLastPathComponent().appending(path: "config/lockstep.env.example")
    }

    /// Names that the contract names.
    private static let contract = """
        LOCKSTEP_DATABASE_URL LOCKSTEP_LISTEN LOCKSTEP_PUBLIC_URL LOCKSTEP_RETURN_URL LOCKSTEP_LOG_LEVEL
        PAYRAILS_BASE_URL PAYRAILS_CLIENT_ID PAYRAILS_CLIENT_SECRET PAYRAILS_WORKSPACE_ID PAYRAILS_CLIENT_CERT
        PAYRAILS_CLIENT_KEY PAYRAILS_CA PAYRAILS_WEBHOOK_KEYS LOCKSTEP_PREPAYMENT_HOOK_URL
        LOCKSTEP_PREPAYMENT_HOOK_SECRET LOCKSTEP_PREPAYMENT_BUDGET_MS LOCKSTEP_EVENTS_URL LOCKSTEP_EVENTS_SECRET
        LOCKSTEP_CORS_ORIGINS LOCKSTEP_ALLOW_PLAIN_HTTP LOCKSTEP_RECONCILE_GRACE_SECONDS LOCKSTEP_MISMATCH
        LOCKSTEP_FAILURE_SETTLE_SECONDS LOCKSTEP_GATE_LEASE_SECONDS LOCKSTEP_INIT_FRESH_SECONDS LOCKSTEP_HEAL_PENDING
        LOCKSTEP_HEAL_UNKNOWN LOCKSTEP_LEASE_SECONDS LOCKSTEP_UNRESOLVED_AFTER LOCKSTEP_OVERDUE_AFTER
        LOCKSTEP_RENEW_HOUR LOCKSTEP_RENEW_MISSED LOCKSTEP_EXPIRY_ZONE
        """.split(whereSeparator: \.isWhitespace).map(String.init)

    /// `LOCKSTEP_TEST_WRITE_EXAMPLE=1 swift test --filter SettingsDocumentTests` writes the file anew.
    @Test("the file is what the table says, line by line")
    func file() throws {
        if ProcessInfo.processInfo.environment["LOCKSTEP_TEST_WRITE_EXAMPLE"] == "1" {
            try Data(SettingsDocument.example.utf8).write(to: Self.file)
        }
        let text = try String(contentsOf: Self.file, encoding: .utf8)
        #expect(text == SettingsDocument.example)
    }

    @Test("every setting of the table is in the file once, and every name of the file is in the table")
    func bothDirections() throws {
        let text = try String(contentsOf: Self.file, encoding: .utf8)
        let inFile = text.split(separator: "\n").compactMap { line in
            line.firstMatch(of: /^#?((LOCKSTEP|PAYRAILS)_[A-Z0-9_]+)=/).map { String($0.1) }
        }
        #expect(inFile.sorted() == Settings.entries.map(\.name).sorted())
        #expect(Set(inFile).count == inFile.count)
    }

    @Test("the contract's settings are all there, and none is without words")
    func contract() {
        let names = Set(Settings.entries.map(\.name))
        #expect(Self.contract.filter { !names.contains($0) } == [])
        for entry in Settings.entries {
            #expect(!entry.help.isEmpty && !entry.form.isEmpty && !entry.group.isEmpty, "\(entry.name)")
            #expect(entry.help.hasSuffix("."), "\(entry.name)")
            #expect(SettingsDocument.help.contains(entry.name))
        }
    }

    @Test("the file read as it stands, with what is required filled in, gives the defaults")
    func readsBack() throws {
        var environment: [String: String] = [:]
        for line in SettingsDocument.example.split(separator: "\n") {
            guard let match = line.firstMatch(of: /^#?((?:LOCKSTEP|PAYRAILS)_[A-Z0-9_]+)=(.*)$/) else { continue }
            environment[String(match.1)] = String(match.2)
        }
        environment.merge(SettingsTests.least) { _, new in new }
        let settings = try Settings(environment: environment)
        #expect(settings.work.healPending.count == 6)
        #expect(settings.gate.budget == .milliseconds(3000))
    }
}
