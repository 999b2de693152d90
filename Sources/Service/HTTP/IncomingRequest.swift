import Basics
import Foundation

/// A request as it came off the wire, before anything about it was believed.
public struct IncomingRequest: Sendable {
    /// As sent, e.g. `POST`; methods are case-sensitive.
    public let method: String
    /// The path as sent: percent-encoded, without the query.
    public let path: String
    /// Between `?` and the end, still encoded; empty where there is none.
    public let query: String
    public let headers: HTTPHeaders
    public let body: Data
    /// By the wall clock.
    public let receivedAt: Timestamp
    /// When its head was complete; budgets count from here.
    public let arrival: ContinuousClock.Instant

    public init(
        method: String, path: String, query: String = "", headers: HTTPHeaders = [:], body: Data = Data(),
        receivedAt: Timestamp = Timestamp(seconds: 0), arrival: ContinuousClock.Instant = .now
    ) {
        self.method = method
        self.path = path
        self.query = query
        self.headers = headers
        self.body = body
        self.receivedAt = receivedAt
        self.arrival = arrival
    }
}
