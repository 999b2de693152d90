import Basics
import Lockstep

/// What can be asked without changing anything (sections 2.3, 2.4 and 7).
extension PayrailsClient {
    public func readExecution(
        _ execution: ExecutionReference, wait: ExecutionWait?
    ) async -> Outcome<ExecutionSnapshot> {
        guard let wait else { return await readOnce(execution, query: "", timeout: configuration.readTimeout) }
        return await readWaiting(execution, wait)
    }

    /// `waitWhile[lastStatusTime]`, asked again while it comes back early with nothing new.
    ///
    /// A server that holds the answer longer than we wait is normal, not a failure: then it is read once without
    /// waiting, so that the caller always gets the state of now.
    private func readWaiting(
        _ execution: ExecutionReference, _ wait: ExecutionWait
    ) async -> Outcome<ExecutionSnapshot> {
        let clock = caller.clock
        let end = clock.now() + wait.patience
        let query = Address.query(["waitWhile[lastStatusTime]": wait.newerThan.rfc3339])
        waiting: while true {
            let left = min(end - clock.now(), configuration.waitTimeout)
            // What is left must be enough for an answer, or the wait ends as a failure to send.
            guard left > .milliseconds(50) else { break waiting }
            switch await readOnce(execution, query: query, timeout: left) {
            case .done(let snapshot):
                let isNew = snapshot.facts.contains { $0.kind == .status && $0.at > wait.newerThan }
                if isNew || end - clock.now() <= configuration.waitPause { return .done(snapshot) }
            case .unknown(let doubt) where doubt.kind == .timedOut: break
            // The wait's own time may have been too short for the limiter or the token; a plain read has its own.
            case .refused(let refusal) where refusal.kind == .notSent: break waiting
            case let other: return other
            }
            // Also against a server that doesn't wait at all, or answers 408 at once.
            guard (try? await clock.sleep(max(.zero, min(configuration.waitPause, end - clock.now())))) != nil else {
                break waiting
            }
        }
        return await readOnce(execution, query: "", timeout: configuration.readTimeout)
    }

    private func readOnce(
        _ execution: ExecutionReference, query: String, timeout: Duration
    ) async -> Outcome<ExecutionSnapshot> {
        let path = Address.execution(execution)
        return await read(path, query: query, timeout: timeout, what: "this execution") { json in
            let snapshot = ExecutionReading.snapshot(json, workflowCode: execution.workflowCode, source: .read)
            return snapshot?.reference.id == execution.id ? snapshot : nil
        }
    }

    /// In the configured workflow. An answer of which any part can't be read is unknown as a whole: callers conclude
    /// from what is *not* in it that something never happened.
    public func findExecutions(
        merchantReference: String, workflowCode: String?
    ) async -> Outcome<[ExecutionSnapshot]> {
        let query = Address.query([
            "filter[merchantReference]": merchantReference, "page[size]": String(configuration.pageSize),
        ])
        let workflowCode = workflowCode ?? configuration.workflowCode
        let all = await readAllPages(Address.executions(workflowCode), query: query, what: "a list of executions") {
            json in
            let snapshot = ExecutionReading.snapshot(json, workflowCode: workflowCode, source: .read)
            // One that doesn't tell its reference might be ours.
            return snapshot?.merchantReference == nil ? nil : snapshot
        }
        return all.map { found in
            // A filter that the server doesn't know is ignored, and gives everybody's.
            let ours = found.filter { $0.merchantReference == merchantReference }
            return ours.sorted { left, right in
                (left.createdAt ?? .distantPast, left.reference.id) > (
                    right.createdAt ?? .distantPast, right.reference.id
                )
            }
        }
    }

    /// - Parameter after: a ``PaymentPage/next`` of the page before, with the same filter.
    public func listPayments(_ filter: PaymentFilter, after: String?) async -> Outcome<PaymentPage> {
        let workspace = configuration.filtersPaymentsByWorkspace ? configuration.workspaceID : nil
        let query =
            after
            ?? Address.query([
                "filter[merchantReference]": filter.merchantReference,
                "filter[createdAt]": PayrailsClient.interval(filter),
                "filter[workspaceId]": workspace,
                "page[size]": String(configuration.pageSize),
            ])
        return await readPage(
            "/payment/payments", query: query, what: "a page of payments", read: PaymentReading.record
        )
        .map { page in
            let records = page.items.filter { record in
                filter.merchantReference == nil || record.merchantReference == filter.merchantReference
            }
            return PaymentPage(records: records, next: page.next)
        }
    }

    /// Interval notation (section 1.7): from inclusive, to exclusive.
    static func interval(_ filter: PaymentFilter) -> String? {
        switch (filter.createdFrom?.rfc3339, filter.createdTo?.rfc3339) {
        case (let from?, let to?): "[\(from),\(to))"
        case (let from?, nil): "[\(from)"
        case (nil, let to?): "\(to))"
        case (nil, nil): nil
        }
    }
}

extension Timestamp {
    /// Sorts before everything that has a time.
    static let distantPast = Timestamp(seconds: .min)
}
