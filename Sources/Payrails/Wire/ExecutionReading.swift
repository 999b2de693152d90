import Basics
import Lockstep

/// Reads an execution (section 2.2) as it stands in answers, lists and init payloads.
enum ExecutionReading {
    /// Nil without an id. `workflowCode` is what was asked for, in case the answer doesn't repeat it.
    static func snapshot(_ json: JSON, workflowCode: String, source: Fact.Source) -> ExecutionSnapshot? {
        guard let id = json["id"]?.identifier(as: ExecutionID.self) else { return nil }
        let amount = json["amount"]?.money
        return ExecutionSnapshot(
            reference: ExecutionReference(id: id, workflowCode: json["workflow"]?["code"]?.word ?? workflowCode),
            merchantReference: json["merchantReference"]?.reference,
            holderReference: json["holderReference"]?.reference,
            workspaceID: json["workspaceId"]?.word,
            amount: amount,
            createdAt: json["createdAt"]?.timestamp,
            facts: facts(json, amount: amount, source: source))
    }

    /// One fact for each status, sorted by time, since their order means nothing, then one for each payment.
    private static func facts(_ json: JSON, amount: Money?, source: Fact.Source) -> [Fact] {
        let entries = (json["status"]?.array ?? []).compactMap { entry in
            // A status without a time has no place among the others; what it tells is read again another way.
            entry["time"]?.timestamp.map { (entry: entry, at: $0) }
        }
        let sorted = entries.sorted { $0.at < $1.at }
        var facts: [Fact] = []
        for (index, (entry, at)) in sorted.enumerated() {
            let code = statusCode(entry)
            // What the customer has to do belongs to the state that waits for it, which is the newest one.
            let waits = index == sorted.indices.last && code.hasSuffix("Pending")
            facts.append(
                Fact(
                    kind: .status, code: code, amount: amount,
                    reason: entry["errors"]?[0].flatMap(ProviderProblem.reason(of:)),
                    actionRequired: waits ? actionRequired(json) : nil, at: at, source: source))
        }
        // Dated as early as can be, so that it stays one fact over all readings, and never hides the figures of a
        // payment record that was read later.
        if let earliest = json["createdAt"]?.timestamp ?? sorted.first?.at {
            facts += (json["paymentComposition"]?.array ?? []).compactMap { payment($0, at: earliest, source: source) }
        }
        return unique(facts)
    }

    /// A code that isn't a plain word is kept as one that nobody takes for success.
    private static func statusCode(_ entry: JSON) -> String { entry["code"]?.code ?? "unreadable" }

    static func actionRequired(_ json: JSON) -> String? {
        json["actionRequired"]?.word ?? json["requiredAction"]?["type"]?.word
    }

    /// Which payment belongs to the execution. It has no code: a composition tells no payment's status.
    private static func payment(_ composition: JSON, at: Timestamp, source: Fact.Source) -> Fact? {
        guard let paymentID = composition["paymentId"]?.word else { return nil }
        return Fact(
            kind: .payment, amount: composition["amount"]?.money, paymentID: paymentID,
            paymentMethodCode: composition["paymentMethodCode"]?.word,
            instrumentID: composition["paymentInstrumentId"]?.word, at: at, source: source)
    }

    private static func unique(_ facts: [Fact]) -> [Fact] {
        var seen: Set<Fact> = []
        return facts.filter { seen.insert($0).inserted }
    }
}
