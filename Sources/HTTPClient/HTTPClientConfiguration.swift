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
    /// The `User-Agent` of requests that bring none.
    public var userAgent = "lockstep"

    public init() {}
}
