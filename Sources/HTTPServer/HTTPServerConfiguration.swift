import Basics

/// Where to listen and what to put up with. Every limit is enforced per server, not per thread.
public struct HTTPServerConfiguration: Sendable {
    /// An IPv4 or IPv6 literal, or `localhost` for 127.0.0.1.
    public var host: String
    /// 0 takes any free port; `HTTPServer.port` tells which.
    public var port: UInt16
    /// Request line and header fields together; more is 431. Every connection holds this and 4 KiB more in memory for as
    /// long as it is open: 5,000 idle ones take some 70 MB, with 16 KiB here 115 MB.
    public var maximumHeaderBytes = 8 * 1024
    /// The request target alone; more is 414.
    public var maximumTargetBytes = 4 * 1024
    /// Connections beyond are told 503 and closed.
    public var maximumConnections = 10_000
    /// How long a body may be, asked with the method and the raw path once the head is in; more is 413. Runs on the
    /// thread that owns the sockets, so it must not wait.
    public var maximumBodyBytes: @Sendable (_ method: String, _ path: String) -> Int = { _, _ in 256 * 1024 }
    /// Bodies of all requests together, from their first byte to their handler's answer; more is 503.
    public var maximumBufferedBytes = 256 * 1024 * 1024
    /// The beginning of each body that finds room in any case, so that large ones, however slowly they come, don't keep
    /// small ones out: with every connection in use 40 MB beyond `maximumBufferedBytes`.
    public var reservedBodyBytes = 4 * 1024
    /// How long a connection may be kept open with nothing in flight; then it is closed without a word.
    public var idleTimeout: Duration = .seconds(75)
    /// From a request's first byte to its last, however it trickles, else 408. An answer is cut off when none of it was
    /// taken for that long, and in any case after fifteen times as long.
    public var requestTimeout: Duration = .seconds(20)
    /// From the whole request to the handler's answer, else 503; the handler runs on and its late answer is dropped.
    public var handlerTimeout: Duration = .seconds(60)
    /// Requests at handlers at once; more are told 503.
    public var maximumRequestsInFlight = 4_096
    /// Which requests are still served when their heads come after `drain` has begun; the others are 503. Asked like
    /// `maximumBodyBytes`.
    public var servesWhileDraining: @Sendable (_ method: String, _ path: String) -> Bool = { _, _ in false }
    /// Words the body of what the server refuses. The status is the refusal's whatever the answer says. May run on any
    /// thread, so it must not wait.
    public var refusalResponse: @Sendable (HTTPServerRefusal) -> HTTPServerResponse = HTTPServerRefusal.plainResponse
    /// Threads that own sockets, each its own share of the connections.
    public var threads = 1

    public init(host: String, port: UInt16) {
        self.host = host
        self.port = port
    }
}
