/// Whatever went wrong between this program and PostgreSQL.
///
/// What ``description`` prints may go into a log: it has no values in it. ``detail``, and the message of a data
/// error, can quote what a customer typed; they are reached only by name.
public struct PostgresError: Error, Sendable {
    /// What happened, as far as a caller must know it to act.
    public enum Code: Hashable, Sendable {
        /// The server refused the statement; the connection lives on. The SQLSTATE has five characters.
        case server(sqlState: String)
        /// No connection could be opened before the deadline.
        case connectionFailed
        /// The connection broke. When it says `false`, nothing of the statement took effect.
        case connectionLost(mayHaveExecuted: Bool)
        /// The connection broke while COMMIT was on its way: the transaction is either wholly there or not at all.
        case commitUnknown
        /// As many tasks as allowed were waiting for a connection already.
        case poolExhausted
        /// No connection became free before the deadline.
        case acquireTimedOut
        /// The statement did not finish in time. See ``PostgresError/mayHaveExecuted``.
        case timedOut
        /// A column wasn't what the caller asked for.
        case decoding
        /// A value has no form that PostgreSQL takes (a zero byte in a text, a time out of range).
        case encoding
        /// The pool has been shut down, or the connection was used after it went back.
        case shutDown
    }

    public var code: Code
    /// PostgreSQL's or libpq's words. In class 22 and P0 they can quote data.
    public var message: String
    /// Often quotes data, such as the key that exists already. Not for logs.
    public var detail: String?
    public var hint: String?
    public var constraint: String?
    public var table: String?
    public var column: String?
    /// The first line of the statement, which names it; never its values.
    public var query: String?
    /// Where in the script or statement the server saw the error, counted in characters from 1.
    public var position: Int?
    /// Whether the statement may have taken effect although it threw.
    public var mayHaveExecuted: Bool
    var serverState: String?

    init(_ code: Code, _ message: String, query: String? = nil, mayHaveExecuted: Bool? = nil) {
        self.code = code
        self.message = message
        self.query = query
        self.mayHaveExecuted = mayHaveExecuted ?? Self.impliesExecution(code)
    }

    private static func impliesExecution(_ code: Code) -> Bool {
        switch code {
        case .connectionLost(let mayHaveExecuted): mayHaveExecuted
        case .commitUnknown: true
        default: false
        }
    }
}

extension PostgresError {
    /// The SQLSTATE that the server gave, also where ``code`` says more (a lost connection, a timeout).
    public var sqlState: String? { serverState }

    /// 23505, of the named constraint when one is named.
    public func isUniqueViolation(constraint name: String? = nil) -> Bool { violates("23505", name) }
    /// 23503, of the named constraint when one is named.
    public func isForeignKeyViolation(constraint name: String? = nil) -> Bool { violates("23503", name) }
    /// 23514, of the named constraint when one is named.
    public func isCheckViolation(constraint name: String? = nil) -> Bool { violates("23514", name) }
    /// 40001 or 40P01: the same transaction, run again from its start, can succeed.
    public var isSerializationFailure: Bool { serverState == "40001" || serverState == "40P01" }
    /// 55P03: a row was locked and the statement had said NOWAIT, or lock_timeout ran out.
    public var isLockNotAvailable: Bool { serverState == "55P03" }

    private func violates(_ state: String, _ name: String?) -> Bool {
        serverState == state && (name == nil || constraint == name)
    }
}

extension PostgresError: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    public var description: String { describe(includingData: false) }
    public var debugDescription: String { description }
    /// Nothing, so that nothing that prints values by reflection prints data.
    public var customMirror: Mirror { Mirror(self, children: []) }

    /// The error in one line.
    /// - Parameter includingData: adds the detail and the messages that can quote values. For a developer's eyes.
    public func describe(includingData: Bool) -> String {
        var parts = [name]
        if includingData || !messageCanQuoteData { parts.append(message) }
        if let serverState { parts.append("SQLSTATE \(serverState)") }
        if let constraint { parts.append("constraint \(constraint)") }
        if let table { parts.append("table \(table)") }
        if let column { parts.append("column \(column)") }
        if let query { parts.append("in: \(query)") }
        if includingData, let detail { parts.append("detail: \(detail)") }
        if includingData, let hint { parts.append("hint: \(hint)") }
        return parts.joined(separator: "; ")
    }

    private var name: String {
        switch code {
        case .server: "server error"
        case .connectionFailed: "connection failed"
        case .connectionLost(true): "connection lost, the statement may have taken effect"
        case .connectionLost(false): "connection lost before the statement"
        case .commitUnknown: "commit unknown"
        case .poolExhausted: "pool exhausted"
        case .acquireTimedOut: "no connection became free in time"
        case .timedOut: "timed out"
        case .decoding: "decoding failed"
        case .encoding: "encoding failed"
        case .shutDown: "shut down"
        }
    }

    /// Class 22 quotes the value that it could not read, P0 is whatever a function chose to say.
    private var messageCanQuoteData: Bool {
        guard let serverState else { return false }
        return serverState.hasPrefix("22") || serverState.hasPrefix("P0")
    }
}
