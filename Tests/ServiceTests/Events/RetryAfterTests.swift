import Basics
import Testing

@testable import Service

@Suite("Retry-After")
struct RetryAfterTests {
    @Test(
        "seconds and dates are understood, nonsense isn't",
        arguments: [
            ("0", Duration.zero), ("120", .seconds(120)), ("99999999999999999999", .seconds(999_999_999)),
            ("Sun, 06 Nov 1994 08:49:37 GMT", .seconds(37)), ("Sun, 06 Nov 1994 08:48:00 GMT", .zero),
            ("", nil), ("-1", nil), ("1.5", nil), ("soon", nil), ("Sun, 31 Feb 1994 08:49:37 GMT", nil),
            ("Sun, 06 Nov 1994 08:49:37 CET", nil), ("１２", nil),
        ])
    func pause(text: String, expected: Duration?) throws {
        let now = try #require(Timestamp(rfc3339: "1994-11-06T08:49:00Z"))
        #expect(RetryAfter.pause(["Retry-After": text], now: now) == expected)
        #expect(RetryAfter.pause([:], now: now) == nil)
    }
}
