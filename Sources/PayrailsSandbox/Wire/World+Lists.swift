import Basics
import Lockstep

/// Lists with filters and cursors (section 1.7), newest first.
extension World {
    /// One item of a list before it is rendered: where it stands, and what it looks like.
    private struct Row {
        let sequence: Int
        let render: (inout World) -> JSON
    }

    /// Section 2.4.
    mutating func listExecutions(workflowCode: String, _ query: Query) throws(APIError) -> Answer {
        try query.refuseUnknownFilters([
            "merchantReference", "holderReference", "workspaceId", "workflowCode", "workflowVersion", "lastStatus",
        ])
        let candidates: [String] =
            query.filter("merchantReference").map { executionsByReference[$0] ?? [] } ?? executionOrder
        let rows = candidates.reversed().compactMap { executions[$0] }.filter {
            $0.workflowCode == workflowCode
                && query.matches("holderReference", $0.holderReference)
                && query.matches("workspaceId", $0.workspaceID)
                && query.matches("workflowVersion", String($0.workflowVersion))
                && query.matches("lastStatus", $0.lastStatus?.code)
        }.map { execution in Row(sequence: execution.sequence) { $0.listItem(of: execution) } }
        return try page(rows, query, path: "/merchant/workflows/\(workflowCode)/executions", shape: .links)
    }

    /// Section 7.
    mutating func listPayments(_ query: Query) throws(APIError) -> Answer {
        try query.refuseUnknownFilters([
            "paymentId", "providerReference", "holderId", "holderReference", "merchantReference", "status",
            "anyReference", "instrumentId", "processingType", "workspaceId", "createdAt", "authorizationFailureResult",
        ])
        var interval = TimeInterval.all
        if let text = query.filter("createdAt") {
            guard let read = TimeInterval(text) else { throw .invalid("filter[createdAt] is not an interval") }
            interval = read
        }
        let candidates: [String] =
            query.filter("merchantReference").map { paymentsByReference[$0] ?? [] } ?? paymentOrder
        let workspace = configuration.workspaceID
        let rows = candidates.reversed().compactMap { payments[$0] }.filter {
            interval.contains($0.createdAt) && query.matches("paymentId", $0.id)
                && query.matches("providerReference", $0.providerReference)
                && query.matches("holderId", $0.holderID) && query.matches("holderReference", $0.holderReference)
                && query.matches("status", $0.status.rawValue) && query.matches("instrumentId", $0.instrumentID)
                && query.matches("processingType", $0.processingType) && query.matches("workspaceId", workspace)
                && query.matches("authorizationFailureResult", $0.failureResult)
                && (query.filter("anyReference").map([$0.merchantReference, $0.providerReference].contains) ?? true)
        }.map { payment in Row(sequence: payment.sequence) { $0.json(of: payment) } }
        return try page(rows, query, path: "/payment/payments", shape: configuration.pagingShape)
    }

    /// Section 6.3.
    mutating func listInstruments(_ query: Query) throws(APIError) -> Answer {
        try query.refuseUnknownFilters([
            "holderReference", "holderId", "status", "futureUsage", "bin", "suffix", "network", "paymentMethodType",
            "onlyWithTokens", "tokenType", "tokenStatus",
        ])
        let candidates: [Instrument] =
            query.filter("holderReference").map { (instrumentsByHolder[$0] ?? []).compactMap { instruments[$0] } }
            ?? Array(instruments.values)
        let status = query.filter("status")
        let onlyWithTokens = query.filter("onlyWithTokens") == "true"
        let includesHolder = query["includeHolderReference"] == "true"
        let rows = candidates.filter {
            (status == nil ? !["deleted", "transient"].contains($0.status) : status == $0.status)
                && query.matches("holderId", $0.holderID) && query.matches("futureUsage", $0.futureUsage)
                && query.matches("bin", $0.bin) && query.matches("suffix", $0.suffix)
                && query.matches("network", $0.network) && query.matches("paymentMethodType", $0.paymentMethod)
                && (!onlyWithTokens || $0.networkTokenID != nil)
        }.sorted { $0.sequence > $1.sequence }.map { instrument in
            Row(sequence: instrument.sequence) {
                $0.json(of: instrument, includingHolderReference: includesHolder)
            }
        }
        return try page(rows, query, path: "/payment/instruments", shape: configuration.pagingShape)
    }

    mutating func listHolders(_ query: Query) throws(APIError) -> Answer {
        try query.refuseUnknownFilters(["reference"])
        let rows = holders.values.filter { query.matches("reference", $0.reference) }
            .sorted { $0.sequence > $1.sequence }
            .map { holder in Row(sequence: holder.sequence) { _ in World.json(of: holder) } }
        return try page(rows, query, path: "/merchant/holders", shape: .links)
    }

    static func json(of holder: Holder) -> JSON {
        [
            "id": .string(holder.id), "reference": .string(holder.reference),
            "createdAt": .string(holder.createdAt.rfc3339),
        ]
    }

    /// A cursor is the position of the last item, so that what is added meanwhile moves nothing.
    private mutating func page(
        _ rows: [Row], _ query: Query, path: String, shape: SandboxConfiguration.PagingShape
    ) throws(APIError) -> Answer {
        let sizeText = query["page[size]"] ?? query["limit"]
        guard let size = sizeText.map({ Int($0) }) ?? configuration.pageSize, (1...100).contains(size) else {
            throw .invalid("page[size] must be 1 to 100")
        }
        var rest = rows
        if let cursor = query["page[after]"] ?? query["page[cursor]"] ?? query["pagingIdBefore"] {
            guard let position = Int(cursor) else { throw .invalid("the cursor is not one that was given out") }
            rest = rows.filter { $0.sequence < position }
        } else if let cursor = query["page[before]"] {
            guard let position = Int(cursor) else { throw .invalid("the cursor is not one that was given out") }
            rest = Array(rows.filter { $0.sequence > position }.suffix(size))
        }
        let shown = rest.prefix(size)
        let items = shown.map { $0.render(&self) }
        let next = rest.count > size ? shown.last.map { String($0.sequence) } : nil
        let isRelative = shape == .paging || shape == .mixed && random.chance(0.5)
        let kept = query.without([
            "page[size]", "limit", "page[after]", "page[cursor]", "page[before]", "pagingIdBefore",
        ])
        guard isRelative else {
            var links: [String: JSON] = ["self": .string("\(baseURL)\(path)?\(query.text)")]
            if let next {
                let following = kept.adding([("page[after]", next), ("page[size]", String(size))])
                links["next"] = .string("\(baseURL)\(path)?\(following.text)")
            }
            return Answer(200, ["links": .object(links), "results": .array(items)])
        }
        var paging: [String: JSON] = [:]
        if let next {
            let following = kept.adding([("limit", String(size)), ("pagingIdBefore", next)])
            paging["next"] = .string("?\(following.text)")
        }
        return Answer(200, ["paging": .object(paging), "results": .array(items)])
    }
}

/// Section 1.7: `[a,b)`, `(a,b]`, `[a`, `b)` or one exact instant.
struct TimeInterval: Sendable {
    var lower: Timestamp?
    var includesLower = true
    var upper: Timestamp?
    var includesUpper = true

    static let all = TimeInterval()

    private init() {}

    init?(_ text: String) {
        guard let comma = text.firstIndex(of: ",") else {
            if let first = text.first, first == "[" || first == "(" {
                guard let from = Timestamp(rfc3339: String(text.dropFirst())) else { return nil }
                (lower, includesLower) = (from, first == "[")
            } else if let last = text.last, last == "]" || last == ")" {
                guard let to = Timestamp(rfc3339: String(text.dropLast())) else { return nil }
                (upper, includesUpper) = (to, last == "]")
            } else {
                guard let exactly = Timestamp(rfc3339: text) else { return nil }
                (lower, upper) = (exactly, exactly)
            }
            return
        }
        guard let first = text.first, let last = text.last, first == "[" || first == "(", last == "]" || last == ")",
            let from = Timestamp(rfc3339: String(text[..<comma].dropFirst())),
            let to = Timestamp(rfc3339: String(text[text.index(after: comma)...].dropLast()))
        else { return nil }
        (lower, includesLower, upper, includesUpper) = (from, first == "[", to, last == "]")
    }

    func contains(_ time: Timestamp) -> Bool {
        if let lower, time < lower || time == lower && !includesLower { return false }
        if let upper, time > upper || time == upper && !includesUpper { return false }
        return true
    }
}
