import Basics
import PayrailsSandbox
import TestKit
import Testing

/// A saved card of a customer, as the shop knows it.
struct SavedCard: Sendable {
    let holder: String
    let id: String
}

/// A charge that the shop asked for.
struct AskedCharge: Sendable {
    let reference: String
    let card: SavedCard
    let reply: JSONCaller.Reply
    var id: String { reply.json["id"]?.string ?? "" }
}

extension ServiceHarness {
    /// A card that the customer saved with the SDK. Nobody told Lockstep of it.
    func card(
        _ suffix: String = "4242", month: String = "12", year: String = "2034", hasNetworkToken: Bool = false,
        holder: String = freshWord("cust"), method: String = "card"
    ) throws -> SavedCard {
        let answer = sandbox.tokenize(
            holderReference: holder, card: suffix, expiryMonth: month, expiryYear: year,
            hasNetworkToken: hasNetworkToken, method: method)
        return SavedCard(holder: holder, id: try #require(answer.body["id"]?.string))
    }

    func newCharge(
        _ reference: String, _ card: SavedCard, _ value: String = "10.00", _ more: [String: JSON] = [:]
    ) -> JSON {
        .object(
            more.merging([
                "merchantReference": .string(reference), "holderReference": .string(card.holder),
                "instrumentId": .string(card.id), "amount": money(value),
            ]) { given, _ in given })
    }

    /// Asks for a charge, and requires that it was taken on.
    func charge(
        _ card: SavedCard, _ value: String = "10.00", _ more: [String: JSON] = [:],
        reference: String = freshWord("topup")
    ) async throws -> AskedCharge {
        let reply = try await shop.post(
            "/v1/charges", newCharge(reference, card, value, more), key: "key-\(reference)")
        try #require(reply.status == 202, "\(reply.text)")
        return AskedCharge(reference: reference, card: card, reply: reply)
    }

    func charge(_ id: String) async throws -> JSON { try await shop.get("/v1/charges/\(id)").json }

    /// Whether the charge comes to this state.
    func becomes(_ state: String, charge: AskedCharge) async throws -> Bool {
        try await waitUntil { try await self.charge(charge.id)["state"]?.string == state }
    }

    /// The types of the events about a charge and its executions, in the feed's order.
    func events(_ charge: AskedCharge) async throws -> [String] {
        try await feed().filter { event in
            event["data"]?["charge"]?["id"]?.string == charge.id
                || event["data"]?["execution"]?["chargeId"]?.string == charge.id
        }.compactMap { $0["type"]?.string }
    }

    /// Whether the events about a charge come to be these.
    func tells(_ types: [String], _ charge: AskedCharge) async throws -> Bool {
        try await waitUntil { try await events(charge) == types }
    }

    /// What happened to a charge's money.
    func money(of charge: AskedCharge) -> Balance { money(ofReference: charge.reference) }

    /// The executions that Payrails has for a charge.
    func executions(of charge: AskedCharge) -> [String] {
        sandbox.executionIDs(merchantReference: charge.reference)
    }

    /// The calls of this kind that were about a charge or its execution.
    func calls(_ route: SandboxRoute, _ charge: AskedCharge) -> [SandboxCall] {
        let executions = executions(of: charge)
        return sandbox.calls(to: route).filter { call in
            call.body?["merchantReference"]?.string == charge.reference
                || executions.contains { call.path.contains($0) }
        }
    }
}
