/// How an ``HTTPClient`` connects, whom it trusts, and what it refuses to take.
public struct HTTPClientConfiguration: Sendable {
    /// The certificate (with its chain) that this client shows to servers, a PEM file. Needs ``clientKeyFile``.
    ///
    /// It is read again at each new connection, so a renewed pair is in use without a restart.
    public var clientCertificateFile: String?
    /// The private key of ``clientCertificateFile``, an unencrypted PEM file.
    public var clientKeyFile: String?
    /// The only authorities to trust, a PEM file; it replaces the system's.
    public var authorityFile: String?
    /// How long resolving, connecting and the TLS handshake may take together.
    public var connectTimeout: Duration = .seconds(3)
    /// Connections in all, idle ones included. What finds none waits for one, within its own deadline.
    public var maximumConnections = 64
    /// Connections to one host and port.
    public var maximumConnectionsPerHost = 32
    /// Requests that may wait or run at once; one more is refused with `tooManyRequests`.
    public var maximumRequests = 10_000
    /// A longer body is not read to its end. A request may say otherwise.
    public var maximumResponseBytes = 4 * 1024 * 1024
    /// Status lines, fields and trailers of one response, interim responses included.
    public var maximumHeaderBytes = 64 * 1024
    /// False refuses `http://`, except to this machine (`localhost`, 127.0.0.0/8, `::1`).
    public var allowsPlainHTTP = false
    /// Whether a TLS server that offers HTTP/2 gets it, with many requests at once on a connection.
    ///
    /// Off, because libcurl 7.88 loses a stream now and then when many bodies share a connection: of 2,000 requests of
    /// 50 KB, up to 5 stayed unanswered until their deadline with Node's server, 1 with nghttpd, and none over
    /// HTTP/1.1. A request without an answer is a payment with an unknown outcome, and connections are cheap.
    public var usesHTTP2 = false
    /// The `User-Agent` of requests that bring none.
    public var userAgent = "lockstep"

    public init() {}

    /// To libcurl 0 would mean "no limit", which nobody who writes 0 wants.
    func checkLimits() throws(HTTPClientError) {
        let counts = [
            maximumConnections, maximumConnectionsPerHost, maximumRequests, maximumResponseBytes, maximumHeaderBytes,
        ]
        guard counts.allSatisfy({ $0 > 0 }), connectTimeout > .zero else {
            throw HTTPClientError(.invalidRequest, detail: "every limit and timeout must be above zero")
        }
        guard userAgent.utf8.allSatisfy({ (0x20...0x7E).contains($0) }) else {
            throw HTTPClientError(.invalidRequest, detail: "the user agent has a character that headers can't have")
        }
    }
}
