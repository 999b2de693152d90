import Basics
import PayrailsSandbox
import TestKit
import Testing

extension ServiceHarness {
    /// The whole feed, by its cursor.
    func feed(as token: String? = nil, limit: Int = 200) async throws -> [JSON] {
        var events: [JSON] = []
        var next = ""
        while true {
            let reply = try await shop.with(token: token ?? key).get("/v1/events?limit=\(limit)\(next)")
            try #require(reply.status == 200, "\(reply.text)")
            let page = try #require(reply.json["events"]?.array)
            if page.isEmpty { return events }
            events += page
            next = "&after=" + (try #require(reply.json["next"]?.string))
        }
    }

    /// The types of the events about an order, its executions and their operations, in the feed's order.
    func events(_ order: Order) async throws -> [String] {
        let executions = Set(
            try await checkout(order)["executions"]?.array?.compactMap { $0["id"]?.string } ?? [])
        return try await feed().filter { event in
            let data = event["data"]
            let operated = data?["operation"]?["executionId"]?.string
            return data?["checkout"]?["id"]?.string == order.checkout
                || data?["execution"]?["checkoutId"]?.string == order.checkout
                || operated.map(executions.contains) ?? false
        }.compactMap { $0["type"]?.string }
    }

    /// The same, once there are so many; a transaction elsewhere may keep them back for a moment.
    func events(_ order: Order, atLeast count: Int) async throws -> [String] {
        _ = try await waitUntil(.seconds(5)) { try await events(order).count >= count }
        return try await events(order)
    }

    /// How often each type was told about an order.
    func tally(_ order: Order) async throws -> [String: Int] {
        Dictionary(try await events(order).map { ($0, 1) }, uniquingKeysWith: +)
    }

    /// Whether an event of this type about the order comes.
    func tells(_ type: String, _ order: Order, times: Int = 1) async throws -> Bool {
        try await waitUntil { try await tally(order)[type] == times }
    }

    // MARK: the judge

    /// What happened to an order's money, whichever of its executions it went through.
    func money(of order: Order, currency: String = "EUR") -> Balance {
        money(ofReference: order.reference, currency: currency)
    }

    func money(ofReference own: String, currency: String = "EUR") -> Balance {
        var balance = Balance()
        for total in sandbox.ledgerTotals where total.currency.code == currency {
            let reference = total.merchantReference
            guard reference == own || reference.hasPrefix(own + "~") else { continue }
            balance.authorizations += total.authorizations
            balance.held += total.heldMinor
            balance.net += total.netMinor
            balance.voided += total.voidedMinor
            balance.refunded += total.refundedMinor
        }
        return balance
    }

    /// In minor units.
    struct Balance: Equatable, Sendable {
        var authorizations = 0
        var held: Int64 = 0
        var net: Int64 = 0
        var voided: Int64 = 0
        var refunded: Int64 = 0
    }
}
