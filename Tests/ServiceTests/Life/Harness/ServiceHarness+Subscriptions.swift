import Basics
import Foundation
import Lockstep
import PayrailsSandbox
import Store
import TestKit
import Testing

@testable import Service

/// A subscription that the shop created.
struct AskedSubscription: Sendable {
    let reference: String
    let card: SavedCard
    let id: String
    var path: String { "/v1/subscriptions/\(id)" }
}

extension ServiceHarness {
    func newSubscription(
        _ reference: String, _ card: SavedCard, _ more: [String: JSON] = [:]
    ) -> JSON {
        .object(
            more.merging([
                "merchantReference": .string(reference), "holderReference": .string(card.holder),
                "instrumentId": .string(card.id), "amount": money("9.90"), "interval": "P1M",
                "startsOn": "2027-01-31", "timezone": "Europe/Berlin",
            ]) { given, _ in given })
    }

    /// One period, which was due a month ago, whenever the tests run.
    static var monthOld: [String: JSON] {
        let day = CivilDate(of: .systemNow, in: .gmt).adding(days: -30)
        return [
            "startsOn": .string(day.description), "endsOn": .string(day.adding(days: 1).description), "interval": "P1Y",
        ]
    }

    /// 9.90 EUR on the last day of each month from January 2027, in Berlin, and requires that it was taken on.
    func subscription(_ card: SavedCard, _ more: [String: JSON] = [:]) async throws -> AskedSubscription {
        let reference = freshWord("member")
        let reply = try await shop.post(
            "/v1/subscriptions", newSubscription(reference, card, more), key: "key-\(reference)")
        try #require(reply.status == 201, "\(reply.text)")
        return AskedSubscription(
            reference: reference, card: card, id: try #require(reply.json["id"]?.string))
    }

    func subscription(_ asked: AskedSubscription) async throws -> JSON { try await shop.get(asked.path).json }
    func status(_ asked: AskedSubscription) async throws -> String? { try await subscription(asked)["status"]?.string }

    /// Its charges, the oldest period first.
    func charges(_ asked: AskedSubscription) async throws -> [JSON] {
        try await shop.get("\(asked.path)/charges?limit=200").json["items"]?.array?.reversed() ?? []
    }

    /// `succeeded`, `skipped missed`, …: one for each period, the oldest first.
    func fates(_ asked: AskedSubscription) async throws -> [String] {
        try await charges(asked).map { charge in
            [charge["state"]?.string, charge["reason"]?.string].compactMap { $0 }.joined(separator: " ")
        }
    }

    /// Whether its periods come to this.
    func come(to fates: [String], _ asked: AskedSubscription) async throws -> Bool {
        try await waitUntil { try await self.fates(asked) == fates }
    }

    /// A run of this process, as `lockstep renew --as-of` makes it.
    @discardableResult
    func renew(_ asOf: String, limit: Int? = nil) async throws -> RenewalSummary {
        let settings = try Settings(environment: environment)
        let shot = try await OneShot.open(settings: settings, writer: log.writer())
        let run = RenewalRun(id: UUID(), asOf: try #require(Timestamp(rfc3339: asOf)))
        do {
            let summary = try await RenewalRunner(
                shot.orchestrator, run: run, options: RenewalRunner.Options(concurrency: 4, limit: limit)
            ).perform()
            await shot.close()
            return summary
        } catch {
            await shot.close()
            throw error
        }
    }

    /// The types of the events about a subscription and its charges, in the feed's order.
    func events(_ asked: AskedSubscription) async throws -> [String] {
        try await feed().filter { event in
            event["data"]?["charge"]?["subscriptionId"]?.string == asked.id
                || event["data"]?["subscription"]?["id"]?.string == asked.id
        }.compactMap { $0["type"]?.string }
    }

    /// Whether the events about it come to be these.
    func tells(_ types: [String], _ asked: AskedSubscription) async throws -> Bool {
        try await waitUntil { try await events(asked) == types }
    }

    /// How often money was set aside for each period, by the stand-in's ledger: more than once is what must not be.
    func successes(_ reference: String) -> [Int: Int] {
        var periods: [Int: Int] = [:]
        for total in sandbox.ledgerTotals where total.merchantReference.hasPrefix(reference + "~") {
            let parts = total.merchantReference.dropFirst(reference.count + 1).split(separator: "~")
            guard let period = parts.first.flatMap({ Int($0) }), total.heldMinor + total.netMinor > 0 else { continue }
            periods[period, default: 0] += total.authorizations
        }
        return periods
    }

    /// The executions that Payrails has for an attempt.
    func executions(_ asked: AskedSubscription, period: Int, attempt: Int) -> [String] {
        sandbox.executionIDs(merchantReference: "\(asked.reference)~\(period)~\(attempt)")
    }

    func patch(_ asked: AskedSubscription, _ body: JSON) async throws -> JSONCaller.Reply {
        try await shop.call("PATCH", asked.path, body: body.bytes)
    }
}
