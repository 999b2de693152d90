import HTTPClient
import HTTPServer
import Lockstep
import Postgres

/// An error that promises to say nothing secret and nothing personal about itself. Only these are logged in words.
public protocol LogDescribed: Error {
    var logDescription: String { get }
}

extension Refusal: LogDescribed {
    public var logDescription: String { "\(kind.rawValue) \(code ?? "-") \(detail)" }
}

extension Doubt: LogDescribed {
    public var logDescription: String { "\(kind.rawValue) \(detail)" }
}

extension PostgresError: LogDescribed {
    /// Without the values that the server's own words can quote.
    public var logDescription: String { describe(includingData: false) }
}

extension HTTPClientError: LogDescribed {
    /// Without an address's query, without headers and bodies.
    public var logDescription: String { description }
}

extension Problem: LogDescribed {
    /// Its slug: the words are for the caller, and may name what the caller sent.
    public var logDescription: String { kind.rawValue }
}
