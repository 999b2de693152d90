import Basics
import Foundation

/// The `Retry-After` header (RFC 9110 section 10.2.3): seconds, or the date from which to come again.
enum RetryAfter {
    /// Nil when there is none, or nonsense. A date that is over is no wait.
    static func pause(_ headers: HTTPHeaders, now: Timestamp) -> Duration? {
        guard let text = headers["Retry-After"] else { return nil }
        if !text.isEmpty, text.utf8.allSatisfy({ (0x30...0x39).contains($0) }) {
            // Nine digits are thirty years.
            return .seconds(Int64(text.count > 9 ? "999999999" : text) ?? 0)
        }
        return date(text).map { max($0 - now, .zero) }
    }

    /// IMF-fixdate, the form that RFC 9110 section 5.6.7 has everyone send: `Sun, 06 Nov 1994 08:49:37 GMT`.
    private static func date(_ text: String) -> Timestamp? {
        guard
            let match = text.wholeMatch(
                of: /[A-Z][a-z]{2}, ([0-9]{2}) ([A-Z][a-z]{2}) ([0-9]{4}) ([0-9]{2}:[0-9]{2}:[0-9]{2}) GMT/),
            let month = months.firstIndex(of: String(match.2)).map({ $0 + 1 })
        else { return nil }
        return Timestamp(rfc3339: "\(match.3)-\(month < 10 ? "0" : "")\(month)-\(match.1)T\(match.4)Z")
    }

    private static let months = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ]
}
