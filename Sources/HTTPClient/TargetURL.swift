import Basics
import CCurl
import Glibc

/// A URL as libcurl itself reads it, so that what is checked here is what is connected to there.
struct TargetURL {
    let text: String
    let scheme: String
    /// Without brackets; an IPv4 address in any spelling (`127.1`, `0x7f000001`) is in dotted form here.
    let host: String
    let query: String?

    /// Long enough for any cursor; a longer one is a mistake of the caller's.
    private static let maximumBytes = 16 * 1024

    init(_ text: String) throws(HTTPClientError) {
        guard text.utf8.count <= Self.maximumBytes else {
            throw HTTPClientError(.invalidRequest, detail: "the URL is longer than \(Self.maximumBytes) bytes")
        }
        guard text.utf8.allSatisfy({ (0x21...0x7E).contains($0) }) else {
            throw HTTPClientError(.invalidRequest, detail: "the URL has a character that must be percent-encoded")
        }
        guard let handle = curl_url() else { throw HTTPClientError(.other, detail: "out of memory") }
        defer { curl_url_cleanup(handle) }
        let flags = UInt32(CURLU_DISALLOW_USER | CURLU_PATH_AS_IS)
        let result = curl_url_set(handle, CURLUPART_URL, text, flags)
        guard result == CURLUE_OK, let scheme = Self.part(handle, CURLUPART_SCHEME),
            let host = Self.part(handle, CURLUPART_HOST)
        else {
            let words = curl_url_strerror(result).map { String(cString: $0) } ?? "not a URL"
            throw HTTPClientError(.invalidRequest, detail: "the URL can't be used: \(words)")
        }
        guard scheme == "https" || scheme == "http" else {
            throw HTTPClientError(.invalidRequest, detail: "the URL is neither https nor http")
        }
        self.text = text
        self.scheme = scheme
        self.host = host.hasPrefix("[") ? String(host.dropFirst().dropLast()) : host
        query = Self.part(handle, CURLUPART_QUERY)
    }

    private static func part(_ handle: OpaquePointer, _ part: CURLUPart) -> String? {
        var text: UnsafeMutablePointer<CChar>?
        guard curl_url_get(handle, part, &text, 0) == CURLUE_OK, let text else { return nil }
        defer { curl_free(text) }
        return String(cString: text)
    }

    /// Whether the host can only be this machine. libcurl answers `localhost` itself, without asking a resolver.
    var isLoopback: Bool {
        if host.equalsIgnoringASCIICase("localhost") { return true }
        var version4 = in_addr()
        if inet_pton(AF_INET, host, &version4) == 1 { return UInt32(bigEndian: version4.s_addr) >> 24 == 127 }
        var version6 = in6_addr()
        guard inet_pton(AF_INET6, host, &version6) == 1 else { return false }
        return withUnsafeBytes(of: &version6) { $0.dropLast().allSatisfy { $0 == 0 } && $0[15] == 1 }
    }
}
