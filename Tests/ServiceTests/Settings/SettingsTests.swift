import Basics
import Foundation
import Testing

@testable import Service

@Suite("Settings")
struct SettingsTests {
    static let least = [
        "LOCKSTEP_DATABASE_URL": "postgresql://localhost/lockstep", "PAYRAILS_BASE_URL": "http://127.0.0.1:9000/",
        "PAYRAILS_CLIENT_ID": "id-1", "PAYRAILS_CLIENT_SECRET": "s$c!r^t",
    ]
    struct NoFile: Error {}

    private func read(
        _ more: [String: String] = [:], for need: Settings.Need = .payrails, without: String? = nil,
        files: [String: String] = [:]
    ) throws -> Settings {
        var environment = Self.least.merging(more) { _, new in new }
        if let without { environment[without] = nil }
        return try Settings(environment: environment, for: need) { path in
            guard let text = files[path] else { throw NoFile() }
            return Data(text.utf8)
        }
    }

    /// The names of what is wrong, sorted.
    private func faults(
        _ more: [String: String], for need: Settings.Need = .payrails, without: String? = nil,
        files: [String: String] = [:]
    ) -> [String] {
        do {
            _ = try read(more, for: need, without: without, files: files)
            return []
        } catch let error as SettingsFaults {
            return error.faults.map(\.name).sorted()
        } catch {
            return ["\(error)"]
        }
    }

    @Test("the least that is needed gives the contract's defaults")
    func defaults() throws {
        let settings = try read()
        #expect(settings.http.listen == ListenAddress(host: "127.0.0.1", port: 8080))
        #expect(settings.payrails?.baseURL.text == "http://127.0.0.1:9000")
        #expect(settings.payrails?.clientSecret.reveal == "s$c!r^t")
        #expect(settings.gate.budget == .milliseconds(3000) && settings.gate.lease == .seconds(120))
        #expect(settings.rules.initFresh == .seconds(600) && settings.rules.failureSettle == .seconds(60))
        #expect(settings.work.lease == .seconds(30))
        #expect(settings.work.healPending == [10, 30, 120, 600, 3600, 21_600].map { .seconds($0) })
        #expect(settings.work.healUnknown == [2, 10, 60, 300, 1800, 3600].map { .seconds($0) })
        #expect(settings.rules.unresolvedAfter == .seconds(3600) && settings.rules.overdueAfter == .seconds(86_400))
        #expect(settings.rules.reconcileGrace == .seconds(300) && settings.rules.mismatch == .cancel)
        #expect(settings.rules.referenceSeparator == "~" && settings.http.corsOrigins.isEmpty)
        #expect(settings.renewal.hour == 0 && settings.renewal.missed == .all)
        #expect(settings.renewal.expiryZone.secondsFromGMT() == -12 * 3600)
        #expect(settings.log.level == .info)
    }

    @Test("all faults are told at once, with the name, a mend, and no value")
    func allAtOnce() throws {
        let error = #expect(throws: SettingsFaults.self) {
            try read([
                "LOCKSTEP_LISTEN": "secret-value", "LOCKSTEP_LEASE_SECONDS": "secret-value",
                "LOCKSTEP_HEAL_PENDING": "secret-value", "LOCKSTEP_MISMATCH": "secret-value",
                "PAYRAILS_WEBHOOK_KEYS": "two words=secret-value", "LOCKSTEP_LOG_LEVEL": "secret-value",
                "LOCKSTEP_TYPO": "secret-value",
            ])
        }
        let faults = try #require(error).faults
        #expect(faults.count == 7)
        #expect(faults.allSatisfy { !$0.mend.isEmpty && !$0.description.contains("secret-value") })
        #expect(faults.contains { $0.name == "LOCKSTEP_MISMATCH" && $0.mend.contains("cancel, hold") })
    }

    @Test("an unknown name is a fault, with the name that was probably meant")
    func unknownNames() throws {
        for (typo, meant) in [
            ("LOCKSTEP_DATABSE_URL", "LOCKSTEP_DATABASE_URL"), ("PAYRAILS_WEBHOOK_KEY", "PAYRAILS_WEBHOOK_KEYS"),
            ("LOCKSTEP_LOGLEVEL_FILE", "LOCKSTEP_LOG_LEVEL"),
        ] {
            let error = #expect(throws: SettingsFaults.self) { try read([typo: "x"]) }
            #expect(
                try #require(error).faults == [
                    SettingsFault(name: typo, mend: "is not a setting; did you mean \(meant)?")
                ])
        }
        #expect(faults(["LOCKSTEP_ENTIRELY_DIFFERENT": ""]) == ["LOCKSTEP_ENTIRELY_DIFFERENT"])
        #expect(faults(["lockstep_listen": "x", "PATH": "/bin", "PAYRAILSX": "1", "LOCKSTEP": "1"]).isEmpty)
    }

    @Test(
        "names of the tests, of the stand-in, and those that Kubernetes makes for a service called lockstep are left alone"
    )
    func othersNames() {
        #expect(
            faults([
                "LOCKSTEP_TEST_ANYTHING": "1", "PAYRAILS_SANDBOX_PORT": "9000",
                "LOCKSTEP_SERVICE_HOST": "10.0.0.1", "LOCKSTEP_SERVICE_PORT": "8080",
                "LOCKSTEP_SERVICE_PORT_HTTP": "8080",
                "LOCKSTEP_PORT": "tcp://10.0.0.1:8080", "LOCKSTEP_PORT_8080_TCP": "tcp://10.0.0.1:8080",
                "LOCKSTEP_PORT_8080_TCP_ADDR": "10.0.0.1", "PAYRAILS_SANDBOX_SERVICE_HOST": "10.0.0.2",
            ]).isEmpty)
        #expect(faults(["LOCKSTEP_PORT": "8080"]) == ["LOCKSTEP_PORT"])
    }

    @Test("what is required is asked for by the commands that need it")
    func needs() throws {
        for name in Self.least.keys.sorted() {
            #expect(faults([:], without: name) == [name])
            #expect(faults([name: ""]) == [name])
            #expect(faults([:], for: .database, without: name) == (name == "LOCKSTEP_DATABASE_URL" ? [name] : []))
        }
        #expect(try read([:], for: .database, without: "PAYRAILS_CLIENT_ID").payrails == nil)
        #expect(faults(["PAYRAILS_BASE_URL": "nonsense"], for: .database) == ["PAYRAILS_BASE_URL"])
    }

    @Test("a return address must name its host, as Payrails wants it")
    func returnAddress() throws {
        for url in ["http://127.0.0.1:8080/back", "https://10.0.0.1", "https://[::1]/back"] {
            #expect(faults(["LOCKSTEP_RETURN_URL": url]) == ["LOCKSTEP_RETURN_URL"], "\(url)")
        }
        let url = "https://shop.example/back/"
        #expect(try read(["LOCKSTEP_RETURN_URL": url]).charging.returnURL == url)
        #expect(try read([:]).charging.returnURL == nil)
    }

    @Test("a file may hold any setting; one newline at its end is dropped, and only one")
    func files() throws {
        let path = "PAYRAILS_CLIENT_SECRET_FILE"
        func secret(_ text: String) throws -> String? {
            try read([path: "/f"], without: "PAYRAILS_CLIENT_SECRET", files: ["/f": text]).payrails?.clientSecret.reveal
        }
        #expect(try secret("abc\n") == "abc")
        #expect(try secret("abc") == "abc")
        #expect(try secret("abc\n\n") == "abc\n")
        #expect(try secret("a b \n") == "a b ")
        #expect(try secret("abc\r\n") == "abc")
        for wrong in ["", "\n"] {
            #expect(faults([path: "/f"], without: "PAYRAILS_CLIENT_SECRET", files: ["/f": wrong]) == [path])
        }
        #expect(faults([path: "/missing"], without: "PAYRAILS_CLIENT_SECRET") == [path])
        #expect(faults([path: "/f"], files: ["/f": "x"]) == ["PAYRAILS_CLIENT_SECRET"])
        #expect(faults([path: "/f", "PAYRAILS_CLIENT_SECRET": ""], files: ["/f": "x"]).isEmpty)
        let long = String(repeating: "x", count: SettingsReader.maximumFileBytes + 1)
        #expect(faults([path: "/f"], without: "PAYRAILS_CLIENT_SECRET", files: ["/f": long]) == [path])
        #expect(try read(["LOCKSTEP_LISTEN_FILE": "/f"], files: ["/f": "0.0.0.0:1\n"]).http.listen.port == 1)
    }

    @Test("a certificate given as a file of its content is that file")
    func certificates() throws {
        let pem = "-----BEGIN CERTIFICATE-----\nx\n-----END CERTIFICATE-----\n"
        let settings = try read(
            ["PAYRAILS_CLIENT_CERT_FILE": "/c", "PAYRAILS_CLIENT_KEY": "/k", "PAYRAILS_CA_FILE": "/a"],
            files: ["/c": pem, "/a": "/etc/ca.pem\n"])
        #expect(settings.payrails?.clientCertificateFile == "/c" && settings.payrails?.clientKeyFile == "/k")
        #expect(settings.payrails?.authorityFile == "/etc/ca.pem")
        #expect(faults(["PAYRAILS_CLIENT_CERT": "/c"]) == ["PAYRAILS_CLIENT_CERT"])
        #expect(faults(["PAYRAILS_CLIENT_KEY": "/k"]) == ["PAYRAILS_CLIENT_CERT"])
        #expect(faults(["PAYRAILS_CLIENT_CERT": pem, "PAYRAILS_CLIENT_KEY": "/k"]).contains("PAYRAILS_CLIENT_CERT"))
        #expect(faults(["PAYRAILS_BASE_URL": "https://api.payrails.io"]) == ["PAYRAILS_CLIENT_CERT"])
        #expect(faults(["PAYRAILS_BASE_URL": "https://api.staging.payrails.io"]).isEmpty)
    }

    @Test("plain http leaves this machine only when it is allowed")
    func plainHTTP() {
        let secret = "whsec_" + Data(repeating: 7, count: 32).base64EncodedString()
        let others = ["LOCKSTEP_EVENTS_SECRET": secret, "LOCKSTEP_PREPAYMENT_HOOK_SECRET": secret]
        for name in ["PAYRAILS_BASE_URL", "LOCKSTEP_EVENTS_URL", "LOCKSTEP_PREPAYMENT_HOOK_URL"] {
            for url in [
                "http://example.com", "http://10.0.0.1", "http://localhost.evil.example",
                "http://127.0.0.1.evil.example", "http://[::2]", "HTTP://example.com", "http://0.0.0.0",
            ] {
                #expect(faults(others.merging([name: url]) { $1 }) == [name], "\(url)")
                #expect(faults(others.merging([name: url, "LOCKSTEP_ALLOW_PLAIN_HTTP": "1"]) { $1 }).isEmpty, "\(url)")
                #expect(
                    faults(others.merging([name: url, "LOCKSTEP_ALLOW_PLAIN_HTTP": "0"]) { $1 }) == [name], "\(url)")
            }
            for url in [
                "http://localhost:9", "http://127.0.0.1", "http://127.1.2.3", "http://[::1]:9", "https://example.com",
            ] {
                #expect(faults(others.merging([name: url]) { $1 }).isEmpty, "\(url)")
            }
        }
    }

    @Test("nor do customers and their tokens travel by it, to the service or back to the shop")
    func plainAddressesOfOurs() {
        for name in ["LOCKSTEP_PUBLIC_URL", "LOCKSTEP_RETURN_URL"] {
            for url in ["http://shop.example", "HTTP://shop.example/back", "http://localhost.evil.example"] {
                #expect(faults([name: url]) == [name], "\(url)")
                #expect(faults([name: url, "LOCKSTEP_ALLOW_PLAIN_HTTP": "1"]).isEmpty, "\(url)")
            }
            for url in ["http://localhost:8080/back", "https://shop.example"] {
                #expect(faults([name: url]).isEmpty, "\(url)")
            }
        }
    }

    @Test(
        "addresses that aren't, or that hold a password, are refused",
        arguments: [
            "x", "example.com", "ftp://example.com", "https://", "https://a:b@example.com", "https://a@example.com",
            "https://example.com/#x", "https://exa mple.com", "https://example.com:0", "https://example.com:70000",
            "//example.com",
        ])
    func addresses(url: String) {
        #expect(faults(["PAYRAILS_BASE_URL": url]) == ["PAYRAILS_BASE_URL"])
        #expect(faults(["LOCKSTEP_PUBLIC_URL": url]) == ["LOCKSTEP_PUBLIC_URL"])
    }

    @Test("durations have a unit, seconds and milliseconds have none")
    func durations() throws {
        #expect(try read(["LOCKSTEP_UNRESOLVED_AFTER": "90m"]).rules.unresolvedAfter == .seconds(5400))
        #expect(try read(["LOCKSTEP_OVERDUE_AFTER": "7d"]).rules.overdueAfter == .seconds(604_800))
        #expect(try read(["LOCKSTEP_HEAL_UNKNOWN": "500ms, 1s"]).work.healUnknown == [.milliseconds(500), .seconds(1)])
        let kept = try read(["LOCKSTEP_RETAIN_IDEMPOTENCY_DAYS": "5"]).storePolicy().requestKeyLife
        #expect(kept == .seconds(5 * 86_400), "a key stands for its request as long as it is kept")
        for wrong in ["60", "1x", "-1s", "1.5h", "0s", "1h30m", " 1h", "1 h", "h", "٣s", "99999999999999s"] {
            #expect(faults(["LOCKSTEP_UNRESOLVED_AFTER": wrong]) == ["LOCKSTEP_UNRESOLVED_AFTER"], "\(wrong)")
        }
        for wrong in ["", ",", "1s,", ",1s", "1s,,2s", "1s;2s"] where !wrong.isEmpty {
            #expect(faults(["LOCKSTEP_HEAL_PENDING": wrong]) == ["LOCKSTEP_HEAL_PENDING"], "\(wrong)")
        }
        for wrong in ["30s", "1e2", "+30", "-30", "3.0", "99999999999999999999", "0x10", " 30"] {
            #expect(faults(["LOCKSTEP_GATE_LEASE_SECONDS": wrong]) == ["LOCKSTEP_GATE_LEASE_SECONDS"], "\(wrong)")
        }
    }

    @Test("W12: what settings contradict is told, a lease above all that a step can outlast")
    func contradictions() {
        #expect(faults(["LOCKSTEP_LEASE_SECONDS": "26"]) == ["LOCKSTEP_LEASE_SECONDS"])
        #expect(faults(["LOCKSTEP_LEASE_SECONDS": "27"]).isEmpty)
        #expect(faults(["PAYRAILS_CALL_TIMEOUT_MS": "30000"]) == ["LOCKSTEP_LEASE_SECONDS"])
        #expect(faults(["LOCKSTEP_PREPAYMENT_BUDGET_MS": "10000"]) == ["LOCKSTEP_PREPAYMENT_BUDGET_MS"])
        let personalData = "LOCKSTEP_RETAIN_PERSONAL_DATA_DAYS"
        #expect(faults([personalData: "89"]) == [personalData])
        #expect(faults([personalData: "90"]).isEmpty)
        #expect(faults(["LOCKSTEP_RETAIN_EVENTS_DAYS": "401"]) == [personalData])
        #expect(faults(["LOCKSTEP_EVENTS_URL": "https://shop.example"]) == ["LOCKSTEP_EVENTS_SECRET"])
        #expect(faults(["LOCKSTEP_PREPAYMENT_HOOK_URL": "https://shop.example"]) == ["LOCKSTEP_PREPAYMENT_HOOK_SECRET"])
    }

    @Test("a patience that is short by other settings starts all the same, and is noted")
    func notes() throws {
        func noted(_ more: [String: String]) throws -> [String] { try read(more).notes.map(\.name) }
        #expect(try noted([:]) == [])
        #expect(try noted(["LOCKSTEP_UNRESOLVED_AFTER": "31s", "LOCKSTEP_OVERDUE_AFTER": "61s"]) == [])
        #expect(try noted(["LOCKSTEP_UNRESOLVED_AFTER": "2s"]) == ["LOCKSTEP_UNRESOLVED_AFTER"])
        #expect(try noted(["LOCKSTEP_UNRESOLVED_AFTER": "30s"]) == ["LOCKSTEP_UNRESOLVED_AFTER"])
        #expect(try noted(["LOCKSTEP_OVERDUE_AFTER": "60s"]) == ["LOCKSTEP_OVERDUE_AFTER"])
        let both = ["LOCKSTEP_UNRESOLVED_AFTER": "2s", "LOCKSTEP_OVERDUE_AFTER": "5s"]
        #expect(try noted(both) == ["LOCKSTEP_UNRESOLVED_AFTER", "LOCKSTEP_OVERDUE_AFTER"])
        #expect(try noted(["LOCKSTEP_OVERDUE_AFTER": "5s", "LOCKSTEP_FAILURE_SETTLE_SECONDS": "4"]) == [])
    }

    @Test("signing secrets are of Standard Webhooks; several sign together while one replaces the other")
    func signingSecrets() throws {
        func secret(_ count: Int) -> String { "whsec_" + Data(repeating: 7, count: count).base64EncodedString() }
        let both = try read(["LOCKSTEP_EVENTS_SECRET": "\(secret(24)), \(secret(64))"]).events.secrets
        #expect(both.map(\.reveal.count) == [24, 64])
        for wrong in [
            secret(23), secret(65), String(secret(32).dropFirst(6)), "whsec_", "whsec_!!!!", secret(32) + ",",
        ] {
            #expect(faults(["LOCKSTEP_EVENTS_SECRET": wrong]) == ["LOCKSTEP_EVENTS_SECRET"])
        }
    }

    @Test("where the service listens")
    func listening() throws {
        func listen(_ text: String) throws -> String { try read(["LOCKSTEP_LISTEN": text]).http.listen.description }
        #expect(try listen("0.0.0.0:80") == "0.0.0.0:80")
        #expect(try listen("[::1]:8080") == "[::1]:8080")
        #expect(try listen(":8080") == "0.0.0.0:8080")
        #expect(try listen("localhost:0") == "localhost:0")
        for wrong in [
            "8080", "localhost", "localhost:", "localhost:x", "localhost:65536", "::1:8080", "localhost:+1",
            "localhost:-1",
        ] {
            #expect(faults(["LOCKSTEP_LISTEN": wrong]) == ["LOCKSTEP_LISTEN"], "\(wrong)")
        }
    }

    @Test("origins are scheme, host and port, as a browser sends them")
    func origins() throws {
        let name = "LOCKSTEP_CORS_ORIGINS"
        #expect(
            try read([name: "https://a.example, http://localhost:3000"]).http.corsOrigins == [
                "https://a.example", "http://localhost:3000",
            ])
        for wrong in [
            "*", "https://a.example/", "https://a.example/x", "a.example", "https://A.example", "null",
            "https://a.example,", "https://a.example?x",
        ] {
            #expect(faults([name: wrong]) == [name], "\(wrong)")
        }
    }

    @Test("zones are offsets or names")
    func zones() throws {
        let name = "LOCKSTEP_EXPIRY_ZONE"
        #expect(try read([name: "+05:30"]).renewal.expiryZone.secondsFromGMT() == 19_800)
        #expect(try read([name: "UTC"]).renewal.expiryZone.secondsFromGMT() == 0)
        #expect(try read([name: "Europe/Berlin"]).renewal.expiryZone.identifier == "Europe/Berlin")
        for wrong in ["12", "-15:00", "-12:60", "Mars/Olympus", "-1200", "CET "] {
            #expect(faults([name: wrong]) == [name], "\(wrong)")
        }
    }

    @Test("a separator is short, visible, and no letter or digit")
    func separators() {
        for wrong in ["a", "1", " ", "~~~~~", "ü", "~a"] {
            #expect(faults(["LOCKSTEP_REFERENCE_SEPARATOR": wrong]) == ["LOCKSTEP_REFERENCE_SEPARATOR"], "\(wrong)")
        }
        #expect(faults(["LOCKSTEP_REFERENCE_SEPARATOR": "::"]).isEmpty)
    }

    @Test("no secret shows when settings are printed")
    func secrets() throws {
        let secret = "whsec_" + Data(repeating: 7, count: 32).base64EncodedString()
        let settings = try read([
            "LOCKSTEP_DATABASE_URL": "postgresql://u:geheim@h/d", "PAYRAILS_CLIENT_SECRET": "geheim",
            "PAYRAILS_WEBHOOK_KEYS": "geheim", "LOCKSTEP_EVENTS_SECRET": secret,
        ])
        var text = ""
        dump(settings, to: &text)
        #expect(!text.contains("geheim") && !text.contains("BwcHBwcH"))
    }
}
