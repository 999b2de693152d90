import Basics
import Foundation
import PayrailsSandbox
import Postgres
import Store
import TestKit
import Testing

@testable import Service

// One at a time, since a fault at Payrails meets whoever comes next.
@Suite("lockstep doctor, the program, against a stand-in for Payrails", .serialized)
struct DoctorProgramTests {
    private let doctor: DoctorHarness
    init() async throws { doctor = try await DoctorHarness.shared.value }

    @Test("all is well: a line each, and exit 0")
    func well() async throws {
        let report = try await doctor.examine()
        #expect(report.status == 0, "\(report.output)")
        #expect(
            report.subjects == [
                "settings", "database", "durability", "clock", "merchant keys", "client certificate",
                "notifications", "Payrails",
            ])
        #expect(report.wrong == [])
        #expect(report["database"]?.detail == "version \(Migrator.latest), as this program")
        #expect(report["merchant keys"]?.detail == "1 in force")
        #expect(report["client certificate"]?.state == "note")
        #expect(report["notifications"]?.detail == "keys for /webhooks/payrails/try")
        #expect(report["Payrails"]?.detail == "gave a token")
    }

    @Test("a patience that is short by other settings is a note, and no fault")
    func shortPatience() async throws {
        let report = try await doctor.examine(
            [], ["LOCKSTEP_UNRESOLVED_AFTER": "2s", "LOCKSTEP_OVERDUE_AFTER": "5s"])
        #expect(report.status == 0, "\(report.output)")
        #expect(report.subjects.prefix(3) == ["settings", "LOCKSTEP_UNRESOLVED_AFTER", "LOCKSTEP_OVERDUE_AFTER"])
        #expect(report["LOCKSTEP_UNRESOLVED_AFTER"]?.state == "note")
        #expect(report["LOCKSTEP_OVERDUE_AFTER"]?.state == "note")
    }

    @Test("--json says the same to machines")
    func json() async throws {
        for arguments in [[], ["--init"]] {
            let report = try await doctor.examine(arguments)
            let end = try await doctor.run(arguments + ["--json"])
            #expect(end.status == 0)
            let items = try #require(try JSON(parsing: Data(end.output.utf8)).array, "\(end.output)")
            #expect(items.map { $0["subject"]?.string ?? "" } == report.subjects)
            for item in items {
                let line = report[item["subject"]?.string ?? ""]
                #expect(item["state"]?.string == line?.state)
                #expect(item["mend"]?.string == line?.mend)
                // An expiry in days or a lifetime in seconds may have moved on between the two.
                #expect(item["detail"]?.string?.isEmpty == false)
            }
        }
        let wrong = try await doctor.run(["--json"], ["PAYRAILS_CLIENT_SECRET": "another"])
        #expect(wrong.status == 1)
        let last = try JSON(parsing: Data(wrong.output.utf8)).array?.last
        #expect(last?["subject"] == "Payrails" && last?["state"] == "wrong")
    }

    @Test(
        "a token that Payrails doesn't give, by what came instead",
        arguments: [
            (SandboxFault.Kind.html(status: 403), "HTTP 403", "client certificate"),
            (.rateLimited(retryAfterSeconds: 1), "HTTP 429", "wait"),
            (.errorBefore(status: 503), "HTTP 503", "status page"), (.html(status: 200), "not JSON", "isn't Payrails"),
            (.closeBefore, "connectionLost", "network"), (.delay(milliseconds: 1500), "time", "network"),
        ])
    func noToken(_ kind: SandboxFault.Kind, _ detail: String, _ mend: String) async throws {
        // libcurl sends a request again whose connection was closed at once.
        let times = kind == .closeBefore ? 2 : 1
        doctor.lockstep.sandbox.add(SandboxFault(kind, on: .token, times: times))
        let report = try await doctor.examine(["--init"], ["PAYRAILS_TOKEN_TIMEOUT_MS": "600"])
        doctor.lockstep.sandbox.clearFaults()
        #expect(report.status == 1)
        #expect(report.wrong == ["Payrails"], "without a token, nothing is said about the init: \(report.output)")
        #expect(report.subjects.last == "Payrails")
        let line = try #require(report["Payrails"])
        #expect(line.detail.hasPrefix("gave no token: ") && line.detail.contains(detail), "\(line)")
        #expect(line.mend?.contains(mend) == true, "\(line)")
    }

    @Test("an init that Payrails refuses, or that the SDK can't start from")
    func noInit() async throws {
        for (kind, detail, mend) in [
            (SandboxFault.Kind.errorBefore(status: 403), "refused: HTTP 403", "sdk:read:config"),
            (.html(status: 200), "createSession can't start from it", "PAYRAILS_BASE_URL"),
            (.errorBefore(status: 500), "no answer: HTTP 500", "try again"),
        ] {
            let report = try await doctor.examine(["--init"], with: SandboxFault(kind, on: .clientInit))
            #expect(report.status == 1)
            #expect(report.wrong == ["init"], "\(report.output)")
            #expect(report["init"]?.detail.hasPrefix(detail) == true, "\(report.output)")
            #expect(report["init"]?.mend?.contains(mend) == true)
        }
        let workspace = try await doctor.examine(["--init"], ["PAYRAILS_WORKSPACE_ID": nil])
        #expect(workspace.wrong == ["init"])
        #expect(workspace["init"]?.mend?.contains("PAYRAILS_WORKSPACE_ID") == true)
    }

    @Test("--init says what the app can do with it, and what is missing for the rest, and shows nothing of it")
    func initialization() async throws {
        let report = try await doctor.examine(["--init", "--holder", "cust_of_doctor"])
        #expect(report.status == 0, "what is only a note is no fault: \(report.output)")
        #expect(
            report.subjects.suffix(7) == [
                "session", "card form", "saving cards", "co-branded cards", "Apple Pay", "PayPal", "redirects",
            ])
        for subject in ["session", "card form", "saving cards"] { #expect(report[subject]?.state == "fine") }
        // The stand-in has the look-up of numbers, and the rollout at nought.
        let coBranded = try #require(report["co-branded cards"])
        #expect(coBranded.detail.contains("featureConfig.coBrandedCardsRollout"))
        #expect(!coBranded.detail.contains("binLookup"))
        #expect(report["Apple Pay"]?.mend?.contains("config.parameters.merchantIdentifier") == true)
        #expect(report["PayPal"]?.mend?.contains("config.clientId") == true)
        #expect(report["redirects"]?.mend?.contains("redirect") == true)
        // Tokens and payload begin with {" in base64; the stand-in's keys with MIIB.
        for secret in ["eyJ", "MIIB", doctor.lockstep.sandbox.clientSecret, ServiceHarness.notificationKey] {
            #expect(!report.output.contains(secret))
        }
        #expect(doctor.lockstep.sandbox.calls(to: .createExecution).isEmpty)
    }

    @Test("the two built programs, one against the other")
    func builtSandbox() async throws {
        let sandbox = try BuiltProgram("payrails-sandbox", ["--listen", "127.0.0.1:0"], environment: [:])
        #expect(await waitUntil { sandbox.output.contains("/sandbox/reset") })
        // It prints the settings that lead to it.
        var changes: [String: String?] = [:]
        for match in sandbox.output.matches(of: /(PAYRAILS_[A-Z_]+)=([^\s']+)/) {
            changes[String(match.1)] = String(match.2)
        }
        #expect(changes["PAYRAILS_BASE_URL"] != nil, "\(sandbox.output)")
        changes["PAYRAILS_WEBHOOK_KEYS"] = "some-key"
        let report = try await doctor.examine(["--init"], changes)
        #expect(report.status == 0, "\(report.output)")
        #expect(report["Payrails"]?.detail == "gave a token")
        #expect(report["saving cards"]?.state == "fine")
        #expect(report["notifications"]?.detail == "keys for /webhooks/payrails")
        let other = try await doctor.examine([], changes.merging(["PAYRAILS_CLIENT_ID": "someone-else"]) { $1 })
        #expect(other.status == 1)
        sandbox.signal(SIGTERM)
        #expect(await sandbox.ended().status == 0)
    }

    @Test("settings that are wrong are told all at once, without their values, and end it with 78")
    func settings() async throws {
        let changes = ["LOCKSTEP_POLL_MS": "canary", "PAYRAILS_BASE_URL": nil, "LOCKSTEP_TYPO": "canary"]
        let end = try await doctor.run([], changes)
        #expect(end.status == 78)
        for name in changes.keys {
            #expect(end.output.contains(try Regex("wrong +settings: \(name) -> .")), "\(name): \(end.output)")
        }
        #expect(!end.output.contains("canary"))
        let json = try await doctor.run(["--json"], changes)
        #expect(json.status == 78)
        let items = try #require(try JSON(parsing: Data(json.output.utf8)).array, "\(json.output)")
        #expect(Set(items.compactMap { $0["detail"]?.string }) == Set(changes.keys))
        #expect(items.allSatisfy { $0["state"] == "wrong" && $0["mend"]?.string?.isEmpty == false })
    }

    @Test(
        "usage that it doesn't know ends it with 64",
        arguments: [["--holder", "x"], ["--holder"], ["--nonsense"], ["x"]])
    func usage(_ arguments: [String]) async throws {
        #expect(try await doctor.run(arguments).status == 64)
    }

    @Test("a database that can't be reached, is behind or ahead, or has no key")
    func database() async throws {
        let nobody = try await doctor.examine(
            [], ["LOCKSTEP_DATABASE_URL": "postgresql://me:canary-password@127.0.0.1:1/lockstep"])
        #expect(nobody.status == 1)
        #expect(nobody.wrong == ["database"], "the rest is looked at all the same: \(nobody.output)")
        #expect(nobody.subjects.contains("Payrails"))
        #expect(nobody["database"]?.mend?.contains("LOCKSTEP_DATABASE_URL") == true)
        #expect(!nobody.output.contains("canary"))

        let empty = try await PostgresCluster.shared().makeDatabase()
        let behind = try await doctor.examine([], ["LOCKSTEP_DATABASE_URL": empty])
        #expect(behind.wrong == ["database"])
        #expect(behind["database"]?.detail == "version 0; this program needs \(Migrator.latest)")
        #expect(behind["database"]?.mend == "run lockstep migrate")

        let fresh = try await MigratedDatabase.make()
        let keyless = try await doctor.examine([], ["LOCKSTEP_DATABASE_URL": fresh])
        // The server that tests share doesn't wait for its disk.
        #expect(keyless.wrong == ["durability", "merchant keys"], "\(keyless.output)")
        #expect(keyless["durability"]?.detail.contains("fsync, full_page_writes off") == true)
        #expect(keyless["durability"]?.mend?.contains("postgresql.conf") == true)
        #expect(keyless["merchant keys"]?.mend?.contains("lockstep keys create") == true)

        let pool = PostgresPool(PostgresConfiguration(connectionString: fresh))
        _ = try await pool.query(
            "INSERT INTO schema_migrations (version, name, applied_at) VALUES (9999, 'newer', now())")
        await pool.shutdown()
        let ahead = try await doctor.examine([], ["LOCKSTEP_DATABASE_URL": fresh])
        #expect(ahead.wrong == ["database"])
        #expect(ahead["database"]?.detail == "version 9999; this program only knows \(Migrator.latest)")
        #expect(ahead["database"]?.mend == "run the newer lockstep")
    }

    @Test("credentials that Payrails doesn't know, an address where nobody listens, no key for notifications")
    func payrails() async throws {
        for name in ["PAYRAILS_CLIENT_SECRET", "PAYRAILS_CLIENT_ID"] {
            let report = try await doctor.examine([], [name: "canary"])
            #expect(report.status == 1)
            #expect(report.wrong == ["Payrails"])
            #expect(report["Payrails"]?.detail.contains("HTTP 401") == true, "\(report.output)")
            #expect(report["Payrails"]?.mend?.contains(name) == true)
            #expect(!report.output.contains("canary"))
        }
        let nobody = try await doctor.examine([], ["PAYRAILS_BASE_URL": "http://127.0.0.1:1"])
        #expect(nobody["Payrails"]?.detail.contains("cannotConnect") == true)
        #expect(nobody["Payrails"]?.mend?.contains("PAYRAILS_BASE_URL") == true)
        let deaf = try await doctor.examine([], ["PAYRAILS_WEBHOOK_KEYS": nil])
        #expect(deaf.wrong == ["notifications"])
        #expect(deaf["notifications"]?.mend?.contains("PAYRAILS_WEBHOOK_KEYS") == true)
    }

    @Test("the client's certificate: good, soon at its end, expired, not yet valid, unreadable, or with another's key")
    func certificate() async throws {
        let authority = try await TLSAuthority()
        func report(_ certificate: String, _ key: String) async throws -> DoctorHarness.Report {
            try await doctor.examine([], ["PAYRAILS_CLIENT_CERT": certificate, "PAYRAILS_CLIENT_KEY": key])
        }
        let cases: [(ClosedRange<Int>, String, String, String?)] = [
            (-48...(90 * 24), "fine", "valid until ", nil),
            (-48...(10 * 24 + 1), "wrong", "expires in 10 days, on ", "make a new one in the portal"),
            (-48...25, "wrong", "expires in 1 day, on ", "revoke the old one"),
            (-48...(-1), "wrong", "expired on ", "make a new one in the portal"),
            (5...(90 * 24), "wrong", "isn't valid before ", "clock"),
        ]
        for (index, (hours, state, detail, mend)) in cases.enumerated() {
            let pair = try await authority.issue("client-\(index)", validHours: hours)
            let report = try await report(pair.certificateFile, pair.keyFile)
            let line = try #require(report["client certificate"])
            #expect(report.status == (state == "wrong" ? 1 : 0), "\(report.output)")
            #expect(line.state == state && line.detail.hasPrefix(detail), "\(line)")
            #expect(mend.map { line.mend?.contains($0) == true } ?? true, "\(line)")
        }
        let (one, other) = (try await authority.issue("one"), try await authority.issue("other"))
        for file in [one.keyFile, "/nowhere/client.pem"] {
            let unreadable = try await report(file, one.keyFile)
            #expect(unreadable.wrong == ["client certificate", "Payrails"])
            #expect(unreadable["client certificate"]?.detail == "can't be read as PEM")
        }
        let mixed = try await report(one.certificateFile, other.keyFile)
        #expect(mixed["Payrails"]?.detail.contains("is not the key of") == true, "\(mixed.output)")
        #expect(mixed["Payrails"]?.mend?.contains("PAYRAILS_CLIENT_KEY") == true)
    }

    @Test("a server that isn't trusted, and one that wants a certificate")
    func tls() async throws {
        let authority = try await TLSAuthority()
        let server = try await PickyTLSServer(try await authority.issue("server"), clientsOf: authority)
        let url = "https://127.0.0.1:\(server.port)"
        let untrusted = try await doctor.examine([], ["PAYRAILS_BASE_URL": url])
        #expect(untrusted.status == 1)
        #expect(untrusted.wrong == ["Payrails"])
        #expect(untrusted["Payrails"]?.detail.contains("tls") == true, "\(untrusted.output)")
        #expect(untrusted["Payrails"]?.mend?.contains("PAYRAILS_CA") == true)
        let bare = try await doctor.examine(
            [], ["PAYRAILS_BASE_URL": url, "PAYRAILS_CA": authority.certificateFile])
        #expect(bare.wrong == ["Payrails"])
        #expect(bare["Payrails"]?.detail.contains("tls") == true, "\(bare.output)")
        #expect(bare["Payrails"]?.mend?.contains("PAYRAILS_CLIENT_CERT") == true)
        await server.stop()
    }

    @Test("clocks that disagree", arguments: [-3600, 3600])
    func clock(_ seconds: Int) async throws {
        let settings = try Settings(environment: doctor.lockstep.environment)
        let apart = WallClock { .systemNow + .seconds(seconds) }
        let finding = try #require(
            await Doctor(settings: settings, clock: apart).examine(initFor: nil).first { $0.subject == "clock" })
        #expect(finding.state == .wrong)
        #expect(finding.detail.contains(/(3599|3600|3601) s apart/), "\(finding.detail)")
        #expect(finding.mend?.contains("NTP") == true)
    }
}
