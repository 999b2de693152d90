import CPostgres

/// The keywords for `PQconnectStartParams`, one list per host.
///
/// libpq would try several hosts by itself, but its non-blocking way has no limit per host: one that swallows packets
/// would use up the whole time. So each host is an attempt of its own.
struct ConnectionParameters: Sendable, Equatable {
    /// Keyword and value, for each host in the order given.
    let hosts: [[String: String]]

    /// - Throws: ``PostgresError`` with the code `connectionFailed` when libpq can't read the string.
    init(_ configuration: PostgresConfiguration) throws {
        var given = try Self.parse(configuration.connectionString)
        let defaults = [
            "application_name": configuration.applicationName,
            "client_encoding": "UTF8",
            "connect_timeout": "\(max(2, configuration.connectTimeout.components.seconds))",
            "keepalives": "1",
            "keepalives_idle": "30",
            "keepalives_interval": "10",
            "keepalives_count": "3",
            "tcp_user_timeout": "20000",
        ]
        given.merge(defaults) { own, _ in own }
        // Everything here counts on texts being UTF-8.
        given["client_encoding"] = "UTF8"
        if configuration.usesPreparedStatements {
            // What the string says comes last, so it wins.
            let limits = Self.limits(configuration).map { "-c \($0)=\($1)" }
            let planning = configuration.avoidsSequentialScans ? ["-c enable_seqscan=off"] : []
            given["options"] = (limits + planning + [given["options"]].compactMap { $0 }).joined(separator: " ")
        }

        let separate = Self.split(given)
        if separate.count > 1, given["target_session_attrs"] == nil {
            given["target_session_attrs"] = "read-write"
        }
        // "prefer-standby" can be told only by whoever sees all the hosts.
        if given["target_session_attrs"] == "prefer-standby" {
            hosts = [given]
        } else {
            hosts = separate.map { host in given.merging(host) { _, own in own } }
        }
    }

    /// The limits that the server is asked to enforce, in milliseconds.
    static func limits(_ configuration: PostgresConfiguration) -> [(name: String, milliseconds: Int64)] {
        var limits: [(name: String, milliseconds: Int64)] = [
            ("statement_timeout", configuration.statementTimeout.wholeMilliseconds),
            ("idle_in_transaction_session_timeout", configuration.idleInTransactionTimeout.wholeMilliseconds),
        ]
        if let lockTimeout = configuration.lockTimeout {
            limits.append(("lock_timeout", lockTimeout.wholeMilliseconds))
        }
        return limits
    }

    private static func parse(_ string: String) throws -> [String: String] {
        var message: UnsafeMutablePointer<CChar>?
        guard let options = PQconninfoParse(string, &message) else {
            let words = message.map { String(cString: $0).inOneLine } ?? "out of memory"
            PQfreemem(message)
            // Most of libpq's complaints quote the string, and with it perhaps the password; this one only a keyword.
            let isHarmless = words.hasPrefix("invalid connection option") || message == nil
            throw PostgresError(
                .connectionFailed, "the connection string can't be read" + (isHarmless ? ": \(words)" : ""))
        }
        defer { PQconninfoFree(options) }
        var found: [String: String] = [:]
        var option = options
        while let keyword = option.pointee.keyword {
            if let value = option.pointee.val { found[String(cString: keyword)] = String(cString: value) }
            option += 1
        }
        return found
    }

    /// The keywords that are lists, taken apart. One port serves all hosts, else there is one for each.
    private static func split(_ given: [String: String]) -> [[String: String]] {
        let lists = ["host", "hostaddr", "port"].map { keyword in
            (
                keyword,
                given[keyword].map { $0.split(separator: ",", omittingEmptySubsequences: false).map(String.init) }
            )
        }
        let count = lists.prefix(2).compactMap { $0.1?.count }.max() ?? 1
        guard count > 1 else { return [[:]] }
        return (0..<count).map { place in
            var host: [String: String] = [:]
            for case (let keyword, let values?) in lists where !values.isEmpty {
                host[keyword] = values.count == 1 ? values[0] : place < values.count ? values[place] : ""
            }
            return host
        }
    }
}

extension Duration {
    /// Rounded down, never below 1, since 0 would mean "no limit" to the server.
    var wholeMilliseconds: Int64 {
        let (seconds, attoseconds) = components
        let (product, overflow) = seconds.multipliedReportingOverflow(by: 1000)
        guard !overflow else { return Int64(Int32.max) }
        return min(max(1, product + attoseconds / 1_000_000_000_000_000), Int64(Int32.max))
    }
}

extension String {
    /// libpq spreads its messages over several lines and ends them with a newline.
    var inOneLine: String { split(whereSeparator: \.isWhitespace).joined(separator: " ") }
}
