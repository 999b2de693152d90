import Foundation
import Glibc

/// A response as bytes, for what is sent past the library. It always closes the connection.
enum RawResponse {
    static func bytes(_ response: HTTPServerResponse, withBody: Bool) -> Data {
        let response = response.sendable
        var head = "HTTP/1.1 \(response.status) \(reason(response.status))\r\n"
        head += "Date: \(date(time(nil)))\r\nConnection: close\r\nContent-Length: \(response.body.count)\r\n"
        for field in response.headers.fields { head += "\(field.name): \(field.value)\r\n" }
        return Data((head + "\r\n").utf8) + (withBody ? response.body : Data())
    }

    private static func reason(_ status: Int) -> String {
        switch status {
        case 400: "Bad Request"
        case 408: "Request Timeout"
        case 413: "Content Too Large"
        case 414: "URI Too Long"
        case 415: "Unsupported Media Type"
        case 431: "Request Header Fields Too Large"
        case 503: "Service Unavailable"
        default: ""
        }
    }

    /// IMF-fixdate of RFC 9110, 5.6.7.
    static func date(_ seconds: time_t) -> String {
        var seconds = seconds
        var parts = tm()
        gmtime_r(&seconds, &parts)
        let days = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"]
        let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
        func two(_ number: Int32) -> String { number < 10 ? "0\(number)" : "\(number)" }
        return
            "\(days[Int(parts.tm_wday)]), \(two(parts.tm_mday)) \(months[Int(parts.tm_mon)]) \(1900 + parts.tm_year) "
            + "\(two(parts.tm_hour)):\(two(parts.tm_min)):\(two(parts.tm_sec)) GMT"
    }
}
