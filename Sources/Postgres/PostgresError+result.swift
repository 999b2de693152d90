import CPostgres

extension PostgresError {
    /// The error that a `PGresult` carries (`PQresultErrorField`).
    init(result: OpaquePointer, query: String?) {
        func field(_ code: Int32) -> String? {
            PQresultErrorField(result, code).map { String(cString: $0) }
        }
        func letter(_ character: Character) -> Int32 { Int32(character.asciiValue ?? 0) }

        let message = field(letter("M")) ?? String(cString: PQresultErrorMessage(result)).inOneLine
        let state = field(letter("C"))
        let severity = field(letter("V"))
        let code: Code =
            switch state {
            // libpq's own errors have no SQLSTATE: the connection is gone.
            case nil: .connectionLost(mayHaveExecuted: true)
            case _ where severity == "FATAL" || severity == "PANIC": .connectionLost(mayHaveExecuted: true)
            case "57014": .timedOut
            case let state?: .server(sqlState: state)
            }
        self.init(code, message, query: query)
        serverState = state
        detail = field(letter("D"))
        hint = field(letter("H"))
        constraint = field(letter("n"))
        table = field(letter("t"))
        column = field(letter("c"))
        position = field(letter("P")).flatMap(Int.init)
    }

    /// Whether the session is of no more use: the server is shutting down (57P01 to 57P03), has become a standby
    /// (25006), or has lost its way in the protocol (class 08).
    var endsConnection: Bool {
        if case .connectionLost = code { return true }
        guard let serverState else { return false }
        return serverState == "25006" || serverState.hasPrefix("08")
            || ["57P01", "57P02", "57P03"].contains(serverState)
    }
}
