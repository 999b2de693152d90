import CPostgres

/// The operation that a channel is busy with.
struct Running {
    /// One thing that the server was sent, in the order of its answers.
    enum Step {
        case discard
        case prepare(StatementKey, name: String)
        case execute(PostgresQuery)
        case synchronize
    }

    let operation: Operation
    /// Whether it was sent before, and failed only because the server had dropped or outdated a prepared statement.
    var isSecondRun = false
    var steps: [Step] = []
    var answered = 0
    var rows: [PostgresRows] = []
    /// The first error; later ones only say that the pipeline was aborted.
    var failure: PostgresError?

    var isScript: Bool { if case .script = operation.work { true } else { false } }

    /// 26000: the server doesn't know the statement (DISCARD ALL, a proxy). 0A000: "cached plan must not change result
    /// type", after the table was altered. Neither has executed anything.
    var failedOnPreparedStatement: Bool {
        !isScript && (failure?.sqlState == "26000" || failure?.sqlState == "0A000")
    }
}

extension Channel {
    /// Puts the running operation into libpq's buffer.
    func sendRunning() {
        guard let operation = running?.operation else { return }
        let isSent =
            switch operation.work {
            case .queries(let queries): send(queries)
            // The simple protocol isn't for pipelines.
            case .script(let text): PQexitPipelineMode(connection) == 1 && PQsendQuery(connection, text) == 1
            }
        if !isSent {
            let words = String(cString: PQerrorMessage(connection)).inOneLine
            refuse(PostgresError(.connectionLost(mayHaveExecuted: false), words, query: operation.name))
        }
    }

    private func send(_ queries: [PostgresQuery]) -> Bool {
        // A statement can be dropped only where no failed transaction is open, and a failure to drop it is no failure
        // of the operation: so each has a synchronization point of its own.
        if PQtransactionStatus(connection) == PQTRANS_IDLE {
            for name in cache.takeDiscarded() {
                guard PQsendQueryParams(connection, "DEALLOCATE \(name)", 0, nil, nil, nil, nil, 1) == 1,
                    PQpipelineSync(connection) == 1
                else { return false }
                running?.steps += [.discard, .synchronize]
            }
        }
        var fresh: [StatementKey: String] = [:]
        for query in queries {
            guard send(query, &fresh) else { return false }
            running?.steps.append(.execute(query))
        }
        running?.steps.append(.synchronize)
        return PQpipelineSync(connection) == 1
    }

    /// - Parameter fresh: what this operation itself has had prepared so far.
    private func send(_ query: PostgresQuery, _ fresh: inout [StatementKey: String]) -> Bool {
        let bindings = query.bindings
        let count = Int32(bindings.count)
        guard preparesStatements else {
            return bindings.withPointers { values, lengths, formats in
                PQsendQueryParams(connection, query.sql, count, bindings.types, values, lengths, formats, 1) == 1
            }
        }
        let key = StatementKey(sql: query.sql, types: bindings.types)
        let name: String
        if let known = fresh[key] ?? cache.name(for: key) {
            name = known
        } else {
            name = cache.freshName()
            guard PQsendPrepare(connection, name, query.sql, count, bindings.types) == 1 else { return false }
            running?.steps.append(.prepare(key, name: name))
            fresh[key] = name
        }
        return bindings.withPointers { values, lengths, formats in
            PQsendQueryPrepared(connection, name, count, values, lengths, formats, 1) == 1
        }
    }

    /// Takes every result that is there without waiting.
    func collectResults() {
        var emptyAnswers = 0
        while !isClosed, PQisBusy(connection) == 0 {
            guard let running else { return drainNotifications() }
            guard let result = PQgetResult(connection) else {
                if running.isScript { return completeScript() }
                // One NULL parts two statements. More than that, and libpq counts otherwise than we do.
                emptyAnswers += 1
                if emptyAnswers > 2 { return lose() }
                continue
            }
            emptyAnswers = 0
            take(ResultHandle(result))
            if let now = self.running, !now.isScript, now.answered == now.steps.count {
                completeRunning()
                // What was started since has no answer yet.
                if self.running != nil { return }
            }
        }
    }

    private func completeScript() {
        guard PQstatus(connection) == CONNECTION_OK, PQenterPipelineMode(connection) == 1 else { return lose() }
        completeRunning()
    }

    /// Nobody listens here; what the server sends all the same must not gather.
    private func drainNotifications() {
        while let notification = PQnotifies(connection) { PQfreemem(notification) }
    }

    private func take(_ result: ResultHandle) {
        guard let running else { return }
        let step = running.isScript ? nil : running.steps[running.answered]
        if step != nil { self.running?.answered += 1 }
        switch PQresultStatus(result.pointer) {
        case PGRES_TUPLES_OK, PGRES_COMMAND_OK, PGRES_EMPTY_QUERY:
            switch step {
            case .prepare(let key, let name): cache.insert(key, name: name)
            case .execute: self.running?.rows.append(PostgresRows(result: result))
            default: break
            }
        case PGRES_PIPELINE_SYNC, PGRES_PIPELINE_ABORTED:
            break
        case PGRES_COPY_IN, PGRES_COPY_OUT, PGRES_COPY_BOTH:
            // The connection would wait for data that nobody has.
            refuse(PostgresError(.server(sqlState: "0A000"), "COPY is not supported", query: running.operation.name))
        default:
            fail(result, at: step)
        }
    }

    private func fail(_ result: ResultHandle, at step: Running.Step?) {
        guard let running else { return }
        var name = running.operation.name
        switch step {
        case .discard: return
        case .execute(let query): name = query.name
        case .prepare(let key, _): name = PostgresQuery.name(of: key.sql)
        default: break
        }
        let error = PostgresError(result: result.pointer, query: name)
        // That the session has ended says more than an error before, and the server's reason more than libpq's words
        // that follow it.
        let isNews = running.failure.map { error.endsConnection && !$0.endsConnection } ?? true
        if isNews { self.running?.failure = error }
    }
}
