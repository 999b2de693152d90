import Basics
import Crypto
import Foundation
import HTTPClient
import Lockstep
import Payrails
import Postgres
import Store

/// Looks at what Lockstep stands on, and says how to mend what is wrong. Changes nothing.
public struct Doctor: Sendable {
    private let settings: Settings
    private let clock: WallClock

    public init(settings: Settings, clock: WallClock = .system) {
        self.settings = settings
        self.clock = clock
    }

    /// - Parameter holder: also asks for a tokenization init of this holder and says what the app can do with it.
    public func examine(initFor holder: String?) async -> [Finding] {
        var findings = [Finding("settings", .fine, "every one can be read")]
        findings += await database()
        guard let payrails = settings.payrails else { return findings }
        findings += certificate(payrails)
        findings += notifications(payrails)
        findings += await provider(payrails, initFor: holder)
        return findings
    }

    private func database() async -> [Finding] {
        let pool = PostgresPool(settings.postgres)
        defer { Task { await pool.shutdown() } }
        do {
            var findings: [Finding] = []
            switch try await Migrator(pool: pool).status() {
            case .current: findings.append(Finding("database", .fine, "version \(Migrator.latest), as this program"))
            case .behind(let database, let program):
                return [
                    Finding(
                        "database", .wrong, "version \(database); this program needs \(program)",
                        mend: "run lockstep migrate")
                ]
            case .ahead(let database, let program):
                return [
                    Finding(
                        "database", .wrong, "version \(database); this program only knows \(program)",
                        mend: "run the newer lockstep")
                ]
            }
            findings += try await durability(pool)
            let store = PaymentStore(pool: pool, clock: clock, identifiers: .system(clock: clock))
            let active = try await store.listKeys().filter { $0.revokedAt == nil }
            findings.append(
                active.isEmpty
                    ? Finding(
                        "merchant keys", .wrong, "there is none",
                        mend: "run lockstep keys create --name shop --scopes checkouts,payments")
                    : Finding("merchant keys", .fine, "\(active.count) in force"))
            return findings
        } catch {
            let words = (error as? PostgresError).map { "\($0)" } ?? "\(type(of: error))"
            return [
                Finding(
                    "database", .wrong, "can't be used: \(words)",
                    mend: "check LOCKSTEP_DATABASE_URL, and that PostgreSQL runs and lets this machine in")
            ]
        }
    }

    /// What was answered 200 must be on disk (invariant M3), and the clocks must agree.
    private func durability(_ pool: PostgresPool) async throws -> [Finding] {
        let row = try await pool.query(
            """
            SELECT current_setting('fsync') AS fsync, current_setting('synchronous_commit') AS commits,
                current_setting('full_page_writes') AS pages, clock_timestamp() AS now
            """
        ).first
        guard let row else { return [] }
        let (fsync, commits, pages, now) = try row.decode((String, String, String, PostgresTimestamp).self)
        var findings: [Finding] = []
        let unsafe = [("fsync", fsync), ("synchronous_commit", commits), ("full_page_writes", pages)]
            .filter { $0.1 == "off" }.map(\.0)
        findings.append(
            unsafe.isEmpty
                ? Finding("durability", .fine, "the database answers after its disk does")
                : Finding(
                    "durability", .wrong, "\(unsafe.joined(separator: ", ")) off: acknowledged payments can be lost",
                    mend: "set \(unsafe.joined(separator: " and ")) to on in postgresql.conf"))
        let apart = abs(clock.now().microseconds - now.microsecondsSince1970) / 1_000_000
        findings.append(
            apart <= 2
                ? Finding("clock", .fine, "agrees with the database's")
                : Finding(
                    "clock", .wrong, "\(apart) s apart from the database's",
                    mend: "let NTP set the clock on both machines"))
        return findings
    }

    private func certificate(_ payrails: Settings.Payrails) -> [Finding] {
        guard let file = payrails.clientCertificateFile else {
            return [
                Finding(
                    "client certificate", .note, "none; Payrails' production wants mTLS",
                    mend: "set PAYRAILS_CLIENT_CERT and PAYRAILS_CLIENT_KEY")
            ]
        }
        guard let pem = try? Data(contentsOf: URL(fileURLWithPath: file)), let validity = CertificateValidity(pem: pem)
        else {
            return [
                Finding(
                    "client certificate", .wrong, "can't be read as PEM", mend: "check the file of PAYRAILS_CLIENT_CERT"
                )
            ]
        }
        let now = clock.now().seconds
        let days = (validity.notAfterSeconds - now) / 86_400
        let until = Timestamp(seconds: validity.notAfterSeconds).rfc3339
        if now < validity.notBeforeSeconds || now > validity.notAfterSeconds {
            return [
                Finding(
                    "client certificate", .wrong, "isn't valid now; valid until \(until)",
                    mend: "make a new one in the portal under mTLS certificates")
            ]
        }
        return [
            days < 30
                ? Finding(
                    "client certificate", .wrong, "ends in \(days) days, on \(until)",
                    mend: "make a new one in the portal, put it in place, then revoke the old one")
                : Finding("client certificate", .fine, "valid until \(until)")
        ]
    }

    private func notifications(_ payrails: Settings.Payrails) -> [Finding] {
        let endpoints = payrails.signatureKeys
        guard !endpoints.isEmpty else {
            return [
                Finding(
                    "notifications", .wrong, "no key, so every notification is turned away",
                    mend: "set PAYRAILS_WEBHOOK_KEYS to the key that the portal showed with the URL")
            ]
        }
        let paths = endpoints.keys.sorted().map { $0.isEmpty ? "/webhooks/payrails" : "/webhooks/payrails/\($0)" }
        return [Finding("notifications", .fine, "keys for \(paths.joined(separator: ", "))")]
    }

    private func provider(_ payrails: Settings.Payrails, initFor holder: String?) async -> [Finding] {
        let client: HTTPClient
        do {
            client = try payrails.client()
        } catch {
            return [Finding("Payrails", .wrong, error.detail, mend: "check the files of the certificate")]
        }
        let provider = PayrailsClient(payrails.configuration, transport: client)
        var findings = [tokenFinding(await provider.checkCredentials())]
        if let holder, findings[0].state == .fine {
            findings += await initFindings(provider, holder)
        }
        await client.shutdown()
        return findings
    }

    private func tokenFinding(_ outcome: Outcome<Void>) -> Finding {
        switch outcome {
        case .done: Finding("Payrails", .fine, "gave a token")
        case .refused(let refusal):
            Finding(
                "Payrails", .wrong, "gave no token: \(refusal.detail)",
                mend: "check PAYRAILS_BASE_URL, PAYRAILS_CLIENT_ID and PAYRAILS_CLIENT_SECRET: staging and production "
                    + "have their own, and a secret with $ or ! must not pass through a shell")
        case .unknown(let doubt):
            Finding(
                "Payrails", .wrong, "gave no token: \(doubt.detail)",
                mend: "check the network, the certificate, and Payrails' status page")
        }
    }

    private func initFindings(_ provider: PayrailsClient, _ holder: String) async -> [Finding] {
        let request = TokenizationRequest(kind: .tokenization, holderReference: holder)
        switch await provider.createTokenization(request, key: IdempotencyKey(UUID())) {
        case .done(let payload): return InitReport(payload).findings
        case .refused(let refusal):
            return [
                Finding(
                    "init", .wrong, "refused: \(refusal.detail)",
                    mend: "the credentials need the scope sdk:read:config, and PAYRAILS_WORKSPACE_ID where they belong "
                        + "to one workspace")
            ]
        case .unknown(let doubt): return [Finding("init", .wrong, "no answer: \(doubt.detail)", mend: "try again")]
        }
    }
}
