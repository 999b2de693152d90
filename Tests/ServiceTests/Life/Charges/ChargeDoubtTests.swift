import Basics
import PayrailsSandbox
import TestKit
import Testing

@Suite("Charges of which nobody knows what became: one success in the ledger, always")
struct ChargeDoubtTests {
    private static let shared = Task {
        try await ServiceHarness.shared([
            "PAYRAILS_CALL_TIMEOUT_MS": "1500", "PAYRAILS_READ_TIMEOUT_MS": "1500",
            "LOCKSTEP_FAILURE_SETTLE_SECONDS": "0",
        ])
    }
    private let lockstep: ServiceHarness
    init() async throws { lockstep = try await Self.shared.value }

    /// A way in which a call's answer is lost, before or after its effect.
    struct Doubt: Sendable, CustomTestStringConvertible {
        let kind: SandboxFault.Kind
        let route: SandboxRoute
        var testDescription: String { "\(route): \(kind)" }

        static let all = [SandboxRoute.createExecution, .authorize].flatMap { route in
            [
                SandboxFault.Kind.closeBefore, .closeAfter, .halfBody, .html(status: 200), .html(status: 502),
                .html(status: 200, effect: true), .delayAfter(milliseconds: 2000), .errorBefore(status: 408),
                .errorBefore(status: 409), .errorAfter(status: 408), .errorBefore(status: 500),
                .errorBefore(status: 503, stored: true), .errorAfter(status: 500),
            ].map { Doubt(kind: $0, route: route) }
        }
    }

    @Test("R17: a lost answer is looked up, and never charged again under a new key", arguments: Doubt.all)
    func lostAnswer(_ doubt: Doubt) async throws {
        let card = try lockstep.card()
        lockstep.sandbox.add(SandboxFault(doubt.kind, on: doubt.route, times: 2, containing: doubt.needle(of: card)))
        let charge = try await lockstep.charge(card)
        #expect(["unknown", "processing", "succeeded"].contains(charge.reply.json["state"]?.string ?? ""))
        #expect(try await lockstep.becomes("succeeded", charge: charge))
        #expect(lockstep.money(of: charge) == .init(authorizations: 1, held: 1000))
        #expect(try await lockstep.tells(["charge.succeeded"], charge))
        #expect(lockstep.executions(of: charge).count == 1)
        // A key is replaced only where Payrails keeps a 5xx under it.
        let keys = Set(lockstep.calls(doubt.route, charge).compactMap(\.key))
        #expect(keys.count == 1 || doubt.isServerError)
        #expect(await lockstep.sandbox.becomesQuiet())
        #expect(lockstep.money(of: charge) == .init(authorizations: 1, held: 1000))
    }

    @Test("a charge that was made although Payrails keeps an error under its key is found", arguments: [true, false])
    func keptError(_ happened: Bool) async throws {
        let card = try lockstep.card()
        lockstep.sandbox.add(
            SandboxFault(
                happened ? .errorAfter(status: 500) : .errorBefore(status: 500, stored: true), on: .authorize,
                containing: card.id))
        let charge = try await lockstep.charge(card)
        #expect(try await lockstep.becomes("succeeded", charge: charge))
        #expect(lockstep.money(of: charge) == .init(authorizations: 1, held: 1000))
    }

    @Test("M7: ProviderTimeout is unknown until Payrails says what became of it", arguments: [true, false])
    func providerTimeout(_ charged: Bool) async throws {
        let card = try lockstep.card()
        let reference = freshWord("topup")
        lockstep.sandbox.add(SandboxOutcomeRule(.timeout(charged: charged), merchantReference: reference))
        let charge = try await lockstep.charge(card, reference: reference)
        #expect(try await lockstep.becomes("unknown", charge: charge))
        let execution = try #require(lockstep.executions(of: charge).first)
        // It is asked about, again and again, and nothing is sent.
        let reads = lockstep.calls(.getExecution, charge).count
        #expect(await waitUntil { lockstep.calls(.getExecution, charge).count > reads + 2 })
        #expect(try await lockstep.charge(charge.id)["state"] == "unknown")
        #expect(try await lockstep.events(charge).isEmpty)
        #expect(lockstep.sandbox.updateResult(execution, success: charged).isAccepted)
        #expect(try await lockstep.becomes(charged ? "succeeded" : "failed", charge: charge))
        #expect(try await lockstep.tells([charged ? "charge.succeeded" : "charge.failed"], charge))
        let money =
            charged ? ServiceHarness.Balance(authorizations: 1, held: 1000) : ServiceHarness.Balance()
        #expect(lockstep.money(of: charge) == money)
        #expect(lockstep.calls(.authorize, charge).count == 1)
    }

    @Test("M4: a charge whose notifications are all lost is found out by asking", arguments: ["4242", "0002", "3220"])
    func silent(_ suffix: String) async throws {
        let reference = freshWord("topup")
        lockstep.sandbox.add(SandboxNotificationFault(.lost, merchantReference: reference, times: nil))
        let charge = try await lockstep.charge(try lockstep.card(suffix), reference: reference)
        let state = ["4242": "succeeded", "0002": "failed", "3220": "needsCustomer"][suffix] ?? ""
        #expect(try await lockstep.becomes(state, charge: charge))
        let money =
            state == "succeeded" ? ServiceHarness.Balance(authorizations: 1, held: 1000) : ServiceHarness.Balance()
        #expect(lockstep.money(of: charge) == money)
    }

    @Test("a success that comes after the failure was told still pays")
    func lateSuccess() async throws {
        let charge = try await lockstep.charge(try lockstep.card("0002"))
        #expect(try await lockstep.becomes("failed", charge: charge))
        let execution = try #require(lockstep.executions(of: charge).first)
        #expect(lockstep.sandbox.updateResult(execution, success: true).isAccepted)
        #expect(try await lockstep.becomes("succeeded", charge: charge))
        #expect(try await lockstep.tells(["charge.failed", "charge.succeeded"], charge))
        #expect(lockstep.money(of: charge) == .init(authorizations: 1, held: 1000))
    }

    @Test("while the workflow tries another provider, its first failure isn't told")
    func cascade() async throws {
        let lockstep = try await ServiceHarness.start(["LOCKSTEP_FAILURE_SETTLE_SECONDS": "60"])
        let reference = freshWord("topup")
        lockstep.sandbox.add(
            SandboxOutcomeRule(
                .cascade(result: "GenericRejection"), merchantReference: reference, delay: .milliseconds(100)))
        let charge = try await lockstep.charge(try lockstep.card(), reference: reference)
        #expect(try await lockstep.becomes("succeeded", charge: charge))
        #expect(try await lockstep.tells(["charge.succeeded"], charge))
        #expect(lockstep.money(of: charge) == .init(authorizations: 1, held: 1000))
        await lockstep.stop()
    }

    @Test("what Payrails doesn't take on at the moment burns nothing: it is due again, and then made")
    func later() async throws {
        let kinds: [SandboxFault.Kind] = [.rateLimited(retryAfterSeconds: nil), .errorBefore(status: 403)]
        for (kind, route) in kinds.flatMap({ kind in [(kind, SandboxRoute.createExecution), (kind, .authorize)] }) {
            let card = try lockstep.card()
            let doubt = Doubt(kind: kind, route: route)
            lockstep.sandbox.add(SandboxFault(kind, on: route, times: 2, containing: doubt.needle(of: card)))
            let charge = try await lockstep.charge(card)
            #expect(["scheduled", "processing"].contains(charge.reply.json["state"]?.string ?? ""), "\(doubt)")
            #expect(try await lockstep.becomes("succeeded", charge: charge), "\(doubt)")
            #expect(try await lockstep.charge(charge.id)["attempts"]?.array?.count == 1)
            #expect(lockstep.money(of: charge) == .init(authorizations: 1, held: 1000))
        }
    }

    @Test("R14: a card that was disabled while the charge waited to be authorized: it is skipped, and none was made")
    func disabledWhileWaiting() async throws {
        let card = try lockstep.card()
        lockstep.sandbox.add(SandboxFault(.errorBefore(status: 403), on: .authorize, times: nil, containing: card.id))
        let charge = try await lockstep.charge(card)
        #expect(charge.reply.json["state"] == "processing")
        #expect(lockstep.sandbox.changeInstrument(card.id, status: "disabled").isAccepted)
        #expect(try await lockstep.becomes("skipped", charge: charge))
        #expect(try await lockstep.charge(charge.id)["reason"] == "instrument-disabled")
        #expect(try await lockstep.tells(["charge.skipped"], charge))
        #expect(lockstep.money(of: charge) == .init())
    }

    @Test(
        "R14: a card that was disabled while nobody knew about the execution isn't charged", arguments: [true, false])
    func disabledWhileUnknown(_ wasMade: Bool) async throws {
        // Nothing is looked up before the card was disabled.
        let lockstep = try await ServiceHarness.start(["PAYRAILS_CALL_TIMEOUT_MS": "1500"])
        let card = try lockstep.card()
        lockstep.sandbox.add(
            SandboxFault(
                wasMade ? .closeAfter : .closeBefore, on: .createExecution, times: 2, containing: card.holder))
        lockstep.sandbox.add(SandboxFault(.errorBefore(status: 503), on: .listExecutions, times: nil))
        let charge = try await lockstep.charge(card)
        #expect(try await lockstep.becomes("unknown", charge: charge))
        #expect(lockstep.sandbox.changeInstrument(card.id, status: "disabled").isAccepted)
        lockstep.sandbox.clearFaults()
        #expect(try await lockstep.becomes("skipped", charge: charge))
        #expect(try await lockstep.charge(charge.id)["reason"] == "instrument-disabled")
        #expect(lockstep.calls(.authorize, charge).isEmpty)
        await lockstep.stop()
    }

    @Test("an authorization that never arrived, and whose key is too old to be sent again, ends the charge")
    func neverArrived() async throws {
        let lockstep = try await ServiceHarness.start([
            "PAYRAILS_CALL_TIMEOUT_MS": "1500", "PAYRAILS_IDEMPOTENCY_RETENTION": "1s",
        ])
        let card = try lockstep.card()
        lockstep.sandbox.add(SandboxFault(.closeBefore, on: .authorize, times: nil, containing: card.id))
        let charge = try await lockstep.charge(card)
        #expect(try await lockstep.becomes("skipped", charge: charge))
        #expect(try await lockstep.charge(charge.id)["reason"] == "not-sent")
        #expect(lockstep.money(of: charge) == .init())
        await lockstep.stop()
    }

    @Test("a refusal of what the charge asks for fails it", arguments: [SandboxRoute.createExecution, .authorize])
    func refused(_ route: SandboxRoute) async throws {
        let card = try lockstep.card()
        let doubt = Doubt(kind: .errorBefore(status: 400), route: route)
        lockstep.sandbox.add(SandboxFault(doubt.kind, on: route, containing: doubt.needle(of: card)))
        let charge = try await lockstep.charge(card)
        #expect(charge.reply.json["state"] == "failed" && charge.reply.json["reason"] == "request.malformed")
        #expect(try await lockstep.tells(["charge.failed"], charge))
        #expect(lockstep.money(of: charge) == .init())
    }

    @Test("an instrument that can't be read keeps the shop waiting, and nothing is written")
    func unreadableInstrument() async throws {
        let card = try lockstep.card()
        let reference = freshWord("topup")
        lockstep.sandbox.add(SandboxFault(.errorBefore(status: 503), on: .getInstrument, containing: card.id))
        let body = lockstep.newCharge(reference, card)
        let reply = try await lockstep.shop.post("/v1/charges", body, key: "key-\(reference)")
        #expect(reply.outcome == "503 unavailable" && reply.headers["Retry-After"] != nil)
        let again = try await lockstep.shop.post("/v1/charges", body, key: "key-\(reference)")
        #expect(again.status == 202)
        #expect(await waitUntil { lockstep.money(ofReference: reference) == .init(authorizations: 1, held: 1000) })
    }
}

extension ChargeDoubtTests.Doubt {
    /// What the call's path or body holds, and no other test's.
    fileprivate func needle(of card: SavedCard) -> String { route == .authorize ? card.id : card.holder }

    /// Twice in a row it is taken to be kept under the key.
    fileprivate var isServerError: Bool {
        switch kind {
        case .errorAfter(let status), .errorBefore(let status, _), .html(let status, _): status >= 500
        default: false
        }
    }
}
