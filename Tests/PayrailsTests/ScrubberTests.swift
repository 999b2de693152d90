import Basics
import Foundation
import Lockstep
import Testing

@testable import HTTPClient
@testable import Payrails

@Suite("Scrubbing of what others say")
struct ScrubberTests {
    @Test(
        "P1: card numbers go, in whatever grouping; short numbers stay",
        arguments: [
            ("card 4242424242424242 declined", "card ••• declined"), ("4242 4242 4242 4242", "•••"),
            ("4242-4242-4242-4242.", "•••."), ("4242.4242.4242.4242", "•••"), ("3782 822463 10005", "•••"),
            ("pan=5555555555554444,cvc", "pan=•••,cvc"), ("4242\n4242\t4242 4242", "•••"),
            ("12345678901", "12345678901"),
            ("order 12345 of 2026", "order 12345 of 2026"), ("٤٢٤٢٤٢٤٢٤٢٤٢٤٢٤٢", "•••"),
        ])
    func cards(_ text: String, _ clean: String) {
        #expect(Scrubber.scrub(text) == clean)
    }

    @Test(
        "P2: tokens, addresses and mail addresses go",
        arguments: [
            "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abc", "Bearer:eyJhbGciOi", "https://api.example.test/x?token=abc",
            "a.person@example.test", "aaaaaaaaaa.bbbbbbbbbb.cccccccccc",
            "44782DEF547AAA06C910C43932B1EB0C71FC68D9D0C057550C48EC2ACF6BA056",
        ])
    func tokens(_ secret: String) {
        #expect(Scrubber.scrub("before \(secret) after") == "before ••• after")
    }

    @Test("what is left has 200 characters at most, on one line")
    func length() {
        let text = Scrubber.scrub(String(repeating: "word\r\n\u{1B}[31m ", count: 100_000))
        #expect(text.count == 200)
        #expect(!text.contains { $0.isNewline })
        #expect(!text.unicodeScalars.contains { $0.value < 0x20 })
        #expect(Scrubber.scrub("") == "")
        #expect(Scrubber.scrub(String(repeating: "x", count: 5000)) == "")
    }

    @Test("a number that a cut goes through doesn't show its first half")
    func cutInTheMiddle() {
        for padding in 1985...2001 {
            let text = String(repeating: "1 a ", count: 1000).prefix(padding) + "4242424242424242 tail"
            #expect(!Scrubber.scrub(String(text)).contains("4242"))
        }
    }

    @Test("M9: neither a card nor a token nor our secret comes out of a client, whatever the server echoes")
    func throughTheClient() async throws {
        let reference = try #require(Samples.reference)
        let key = try #require(Samples.key)
        let canary = "4111 1111 1111 1111 eyJhbGciOiJIUzI1NiJ9.e30.abc token-0"
        let bodies = [
            #"{"errors":[{"code":"4111111111111111","title":"eyJhbGciOiJI.x","detail":"\#(canary)"}]}"#,
            #"{"error":"eyJ.x","error_description":"\#(canary)"}"#, canary, #"{"message":"\#(canary)"}"#,
        ]
        for status in [200, 302, 400, 401, 404, 409, 429, 500] {
            for body in bodies {
                let transport = ScriptedTransport([.json(status, body)])
                let client = PayrailsClient(.test { $0.maximumRateLimitPause = .zero }, transport: transport)
                let outcome = await client.capture(reference, CaptureRequest(), key: key)
                var text = "\(outcome)"
                dump(outcome, to: &text)
                for secret in ["4111", "eyJ", "$ecret"] { #expect(!text.contains(secret), "\(status) \(body)") }
            }
        }
        let failing = ScriptedTransport { _, _ throws(HTTPClientError) in throw .failure(.other, sent: true, canary) }
        let outcome = await PayrailsClient(.test, transport: failing).capture(reference, CaptureRequest(), key: key)
        #expect(outcome.doubt?.detail.contains("4111") == false)
        #expect(outcome.doubt?.detail.contains("eyJ") == false)
    }
}
