import Basics
import Foundation
import Lockstep
import PayrailsSandbox
import Postgres
import Store

@testable import Service

/// Holds the books against the ledger of the stand-in, and what everybody was told against both.
struct Judge {
    private let simulation: Simulation
    private let orders: [SimulatedOrder]
    private let ledger: [String: Balance]
    private let operations: [Row]
    private let members: SimulatedMembers
    private let charges: [Period]
    private let paidEvents: [String: Int]
    private let dead: Int
    /// What a person is told to look at.
    private let discrepancies: [String]

    /// What happened to the money of one execution, in minor units.
    private struct Balance {
        var authorized: Int64 = 0
        var authorizations = 0
        var voided: Int64 = 0
        var captured: Int64 = 0
        var refunded: Int64 = 0
        /// What the customer doesn't have.
        var outstanding: Int64 { authorized - voided - refunded }
    }

    private struct Row {
        let id: String
        let kind: String
        let state: String
        let key: String
        let execution: String?
        let minor: Int64?
        let reason: String?
    }

    /// What the books say of one period of a subscription.
    private struct Period {
        let reference: String
        let index: Int
        let state: String
        let minor: Int64
    }

    init(_ simulation: Simulation, _ orders: [SimulatedOrder], _ members: SimulatedMembers) async throws {
        self.simulation = simulation
        self.orders = orders
        self.members = members
        let books = simulation.books.pool
        // The books first: what happens at Payrails in the meantime is looked at again.
        operations = try await books.query(
            """
            SELECT id::text AS id, kind, state, idempotency_key::text AS key, execution_id::text AS execution, amount_minor, reason
            FROM operations
            """
        ).map { row in
            let (id, kind, state, key, execution, minor, reason) = try row.decode(
                (String, String, String, String, String?, Int64?, String?).self)
            return Row(id: id, kind: kind, state: state, key: key, execution: execution, minor: minor, reason: reason)
        }
        charges = try await books.query(
            """
            SELECT merchant_reference, period_index::bigint, state, amount_minor FROM charges
            WHERE subscription_id IS NOT NULL
            """
        ).map { row in
            let (reference, index, state, minor) = try row.decode((String, Int, String, Int64).self)
            return Period(reference: reference, index: index, state: state, minor: minor)
        }
        var paid: [String: Int] = [:]
        for row in try await books.query(
            "SELECT checkout_id::text AS checkout FROM events WHERE type = 'checkout.paid'")
        {
            paid[try row.decode("checkout", as: String.self), default: 0] += 1
        }
        paidEvents = paid
        dead =
            try await books.query("SELECT count(*) AS dead FROM notification_outcomes WHERE state = 'dead'")
            .first?.decode("dead", as: Int.self) ?? 0
        // What waits for its final state may: nobody answers for ever a challenge that was left.
        discrepancies = try await books.query(
            """
            SELECT concat_ws(', ', class, merchant_reference, execution_id, here, there) AS open FROM discrepancies
            WHERE state = 'open' AND class <> 'overdue-final-state'
            """
        ).map { try $0.decode("open", as: String.self) }
        var ledger: [String: Balance] = [:]
        for entry in simulation.sandbox.ledger {
            var balance = ledger[entry.executionID] ?? Balance()
            switch entry.kind {
            case .authorization:
                balance.authorized += entry.amount.minor
                balance.authorizations += 1
            case .void: balance.voided += entry.amount.minor
            case .capture: balance.captured += entry.amount.minor
            case .captureReversal: balance.captured -= entry.amount.minor
            case .refund: balance.refunded += entry.amount.minor
            case .refundReversal, .chargeback: balance.refunded -= entry.amount.minor
            }
            ledger[entry.executionID] = balance
        }
        self.ledger = ledger
    }

    func findings() async throws -> [String] {
        var findings = calls() + open() + renewals()
        for order in orders {
            if let found = try await self.findings(about: order) { findings += found }
        }
        findings += discrepancies.map { "left for a person: \($0)" }
        if dead > 0 { findings.append("\(dead) notifications are dead") }
        return findings
    }

    /// M7: nothing stays undecided.
    private func open() -> [String] {
        operations.filter { $0.state != "succeeded" && $0.state != "failed" }.map {
            "M7: \($0.kind) of \($0.execution ?? "-") is \($0.state) (\($0.reason ?? "-"))"
        }
    }

    /// M12: what changed something was written down; a key stands for one intent.
    private func calls() -> [String] {
        var findings: [String] = []
        let keys = Set(operations.map(\.key))
        var intents: [String: Set<String>] = [:]
        for call in simulation.sandbox.calls {
            guard let key = call.key?.lowercased(), let route = call.route else { continue }
            intents[key, default: []].insert("\(route) \(call.path) \(call.body?.text ?? "")")
            let hasChanged = call.status.map { (200..<300).contains($0) } ?? false
            if hasChanged, !call.isReplay, !keys.contains(key) {
                findings.append("M12: \(route) \(call.path) changed something under a key that isn't written down")
            }
        }
        for (key, contents) in intents where contents.count > 1 {
            findings.append("M12: key \(key) stands for \(contents.sorted())")
        }
        return findings
    }

    /// M2: a period is paid once at most, and the books know which; in the end each one is settled.
    private func renewals() -> [String] {
        var findings: [String] = []
        var held: [String: (authorizations: Int, minor: Int64)] = [:]
        for total in simulation.sandbox.ledgerTotals where total.merchantReference.hasPrefix("member-") {
            let period = total.merchantReference.split(separator: "~").prefix(2).joined(separator: "~")
            held[period, default: (0, 0)].authorizations += total.authorizations
            held[period, default: (0, 0)].minor += total.authorizedMinor - total.voidedMinor - total.refundedMinor
        }
        for charge in charges {
            let period = "\(charge.reference)~\(charge.index)"
            let (authorizations, minor) = held.removeValue(forKey: period) ?? (0, 0)
            if authorizations > 1 { findings.append("M2: \(period) was charged \(authorizations) times") }
            if ["processing", "unknown", "scheduled"].contains(charge.state) {
                findings.append("M2: \(period) is \(charge.state) in the end, and holds \(minor)")
            } else if minor != (charge.state == "succeeded" ? charge.minor : 0) {
                findings.append("M2: \(period) is \(charge.state), and holds \(minor)")
            }
        }
        for call in simulation.sandbox.calls(to: .authorize) where !call.isReplay && call.status == 202 {
            guard let execution = call.path.split(separator: "/").dropLast().last,
                let reference = simulation.sandbox.execution(String(execution))?["merchantReference"]?.string,
                reference.hasPrefix("member-"), members.isStopped(reference, at: call.time)
            else { continue }
            findings.append("M2: \(reference) was charged at \(call.time), after the member had stopped it")
        }
        for (period, money) in held where money.authorizations > 0 {
            findings.append("M2: \(period) holds \(money.minor), and the books don't know it")
        }
        for reference in members.faithful {
            let count = charges.filter { $0.reference == reference }.count
            if count != SimulatedMembers.periods { findings.append("M2: \(reference) has \(count) periods") }
        }
        return findings
    }

    private func findings(about order: SimulatedOrder) async throws -> [String]? {
        var findings: [String] = []
        let name = "\(order.reference) (\(order.habit.rawValue))"
        let sandbox = simulation.sandbox
        let references = [order.reference] + (2...30).map { "\(order.reference)~\($0)" }
        let executions = references.flatMap { sandbox.executionIDs(merchantReference: $0) }
        guard let read = try await simulation.store.readCheckout(merchantReference: order.reference) else {
            let held = executions.filter { (ledger[$0]?.outstanding ?? 0) > 0 }
            return held.isEmpty ? nil : ["M1: \(name) isn't in the books and holds money"]
        }
        let checkout = read.checkout
        for operation in operations {
            guard let told = order.verdicts[operation.id], told != operation.state else { continue }
            findings.append("M7: \(operation.kind) was told to have \(told), and has \(operation.state) [\(name)]")
        }
        let kept = checkout.keptExecution?.description
        let known = Dictionary(
            read.settled.executions.map { ($0.id.description, $0) }, uniquingKeysWith: { first, _ in first })
        func tell(_ text: String) { findings.append("\(text) [\(name), \(checkout.status), \(checkout.amount.value)]") }

        // M1
        for id in executions {
            let balance = ledger[id] ?? Balance()
            if balance.authorizations > 0, known[id] == nil { tell("M1: execution \(id) is paid and unknown") }
            if id != kept, balance.outstanding != 0 {
                tell(
                    "M1: execution \(id) holds \(balance.outstanding) and isn't the one that is kept (\(kept ?? "none"))"
                )
            }
            if let execution = known[id] {
                let differences = compare(execution, balance).map { "\($0) [\(name)]" }
                if !differences.isEmpty { findings += try await differences + facts(about: id) }
            }
        }
        if let kept {
            let balance = ledger[kept] ?? Balance()
            if balance.authorized != checkout.amount.minor {
                tell("M1: paid by \(balance.authorized) in \(balance.authorizations) authorizations")
            }
            let isPaid = balance.outstanding > 0
            if (checkout.status == .paid) != isPaid { tell("M1: the customer's money is \(balance.outstanding)") }
        } else if checkout.status == .paid {
            tell("M1: paid by nobody")
        }
        let told = paidEvents[checkout.id.description] ?? 0
        if told != (kept == nil ? 0 : 1) { tell("M1: checkout.paid was told \(told) times, kept is \(kept ?? "none")") }

        // M5
        if checkout.amountState != .inStep { tell("M5: the amount is \(checkout.amountState)") }
        if let current = checkout.currentExecution.flatMap({ known[$0.description] }), current.state == .created {
            let value = sandbox.execution(current.id.description)?["amount"]?["value"]?.string
            if value != current.amount.value || current.amount != checkout.amount {
                tell("M5: Payrails has \(value ?? "-"), the execution here \(current.amount.value)")
            }
        }
        for (version, amounts) in order.amounts where amounts.count > 1 {
            tell("M5: version \(version) was told as \(amounts.map(\.value).sorted())")
        }
        if let amounts = order.amounts[checkout.amountVersion], !amounts.contains(checkout.amount) {
            tell("M5: version \(checkout.amountVersion) was told as \(amounts.map(\.value))")
        }
        return findings
    }

    /// What is known of an execution, in the order in which it was learned.
    private func facts(about execution: String) async throws -> [String] {
        try await simulation.books.pool.query(
            """
            SELECT json_strip_nulls(row_to_json(facts))::text AS fact FROM facts
            WHERE execution_id::text = \(execution) ORDER BY learned_at
            """
        ).map { "    " + (try $0.decode("fact", as: String.self)) }
    }

    /// The figures of one execution, here and there.
    private func compare(_ execution: CheckoutExecution, _ balance: Balance) -> [String] {
        var findings: [String] = []
        let id = execution.id.description
        let picture = execution.picture
        func same(_ what: String, _ here: Int64, _ there: Int64) {
            if here != there {
                findings.append(
                    "execution \(id) (\(picture.state)): \(what) here \(here), there \(there); "
                        + simulation.sandbox.statusCodes(id).joined(separator: " "))
            }
        }
        if balance.authorizations > 0, picture.state != .failed {
            same("authorized", picture.authorized?.minor ?? -1, balance.authorized)
        }
        same("captured", picture.captured?.minor ?? 0, balance.captured)
        same("refunded", picture.refunded?.minor ?? 0, balance.refunded)
        if picture.state.holdsMoney != (balance.outstanding > 0) {
            same("held", picture.state.holdsMoney ? 1 : 0, balance.outstanding)
        }
        for (kind, total) in [("capture", balance.captured), ("refund", balance.refunded)] {
            let asked = operations.filter { $0.kind == kind && $0.state == "succeeded" && $0.execution == id }
                .reduce(0) { $0 + ($1.minor ?? 0) }
            // A cancel gives back what was captured.
            if kind == "refund", picture.state == .cancelled { continue }
            same("\(kind) by operations", asked, total)
        }
        return findings
    }
}
