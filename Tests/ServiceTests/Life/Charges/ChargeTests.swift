import Basics
import PayrailsSandbox
import TestKit
import Testing

@Suite("Charges without the customer")
struct ChargeTests {
    private static let shared = Task { try await ServiceHarness.shared(["LOCKSTEP_FAILURE_SETTLE_SECONDS": "0"]) }
    private let lockstep: ServiceHarness
    init() async throws { lockstep = try await Self.shared.value }

    @Test("a saved card is charged once, with the flags of a merchant-initiated payment, and the shop is told")
    func happy() async throws {
        let card = try lockstep.card()
        let charge = try await lockstep.charge(card, "10", ["meta": ["order": ["description": "a top-up"]]])
        #expect(charge.reply.headers["Location"] == "/v1/charges/\(charge.id)")
        #expect(["processing", "succeeded"].contains(charge.reply.json["state"]?.string))
        #expect(charge.reply.json["amount"]?["value"] == "10.00")
        #expect(try await lockstep.becomes("succeeded", charge: charge))
        let shown = try await lockstep.charge(charge.id)
        #expect(SchemaCheck.faults(shown, ["$ref": "#/components/schemas/Charge"]) == [])
        let attempts = try #require(shown["attempts"]?.array)
        #expect(attempts.count == 1 && attempts[0]["outcome"] == "succeeded")
        #expect(lockstep.executions(of: charge).count == 1)
        #expect(lockstep.executions(of: charge).first == attempts[0]["executionId"]?.string)
        #expect(lockstep.money(of: charge) == .init(authorizations: 1, held: 1000))
        #expect(try await lockstep.tells(["charge.succeeded"], charge))

        let create = try #require(lockstep.calls(.createExecution, charge).first)
        #expect(create.body?["meta"]?["risk"]?["threeDSMode"] == "Skip")
        #expect(create.body?["meta"]?["order"]?["description"] == "a top-up")
        let authorize = try #require(lockstep.calls(.authorize, charge).first)
        let part = authorize.body?["paymentComposition"]?[0]
        #expect(part?["paymentProcessingType"] == "UnscheduledCardOnFile" && part?["storeInstrument"] == false)
        #expect(part?["paymentInstrumentId"]?.string == card.id)
        #expect(authorize.body?["returnInfo"]?["success"] == "https://shop.example/back")
        #expect(create.key != nil && authorize.key != nil && create.key != authorize.key)
    }

    @Test("its execution shows whose it is, and is captured and refunded like any other")
    func lifecycle() async throws {
        let charge = try await lockstep.charge(try lockstep.card(), "10.00")
        #expect(try await lockstep.becomes("succeeded", charge: charge))
        let execution = try #require(lockstep.executions(of: charge).first)
        let shown = try await lockstep.execution(execution)
        #expect(shown["chargeId"]?.string == charge.id && shown["checkoutId"] == nil)
        #expect(SchemaCheck.faults(shown, ["$ref": "#/components/schemas/Execution"]) == [])
        let steps: [(kind: String, body: JSON, state: String)] = [
            ("capture", ["amount": lockstep.money("7.50"), "final": false], "partiallyCaptured"),
            ("refund", ["amount": lockstep.money("2.50")], "partiallyRefunded"), ("cancel", [:], "cancelled"),
        ]
        for (kind, body, state) in steps {
            let reply = try await lockstep.shop.post(
                "/v1/executions/\(execution)/\(kind)", body, key: freshWord(kind))
            try #require(reply.status == 202, "\(reply.text)")
            let id = try #require(reply.json["id"]?.string)
            #expect(try await lockstep.becomes("succeeded", operation: id))
            #expect(try await lockstep.becomes(state, execution: execution))
        }
        #expect(lockstep.money(of: charge) == .init(authorizations: 1, voided: 250, refunded: 750))
        #expect(
            try await lockstep.tells(
                ["charge.succeeded", "execution.captured", "execution.refunded", "execution.cancelled"], charge))
        #expect(try await lockstep.charge(charge.id)["state"] == "succeeded", "what was paid was paid")
    }

    @Test("a decline fails it, once, whatever kind it is of", arguments: ["0002", "9995", "0069", "9987"])
    func declined(_ suffix: String) async throws {
        let charge = try await lockstep.charge(try lockstep.card(suffix))
        #expect(try await lockstep.becomes("failed", charge: charge))
        let shown = try await lockstep.charge(charge.id)
        let reasons = [
            "0002": "GenericRejection", "9995": "InsufficientBalance", "0069": "ExpiredInstrument",
            "9987": "BlockedInstrument",
        ]
        #expect(shown["reason"]?.string == reasons[suffix])
        #expect(shown["attempts"]?[0]?["outcome"] == "failed" && shown["attempts"]?[0]?["reason"] == shown["reason"])
        #expect(try await lockstep.tells(["charge.failed"], charge))
        #expect(lockstep.money(of: charge) == .init())
        #expect(lockstep.calls(.authorize, charge).count == 1)
    }

    @Test("what failed by our own set-up is told to those who run it, once, and a decline isn't")
    func configurationAlarm() async throws {
        let lockstep = try await ServiceHarness.start(["LOCKSTEP_FAILURE_SETTLE_SECONDS": "0"])
        let shop = try lockstep.shop
        let series = "lockstep_charges_configuration_failures_total"
        #expect(try await shop.metric(series) == 0)
        let declined = try await lockstep.charge(try lockstep.card("0002"))
        #expect(try await lockstep.becomes("failed", charge: declined))
        let reference = freshWord("topup")
        lockstep.sandbox.add(
            SandboxOutcomeRule(.decline(result: "ProviderConfigError"), merchantReference: reference))
        let charge = try await lockstep.charge(try lockstep.card(), reference: reference)
        #expect(try await lockstep.becomes("failed", charge: charge))
        #expect(try await waitUntil { try await shop.metric(series) == 1 })
        #expect(await waitUntil { lockstep.log.errors.contains { $0.contains(charge.id) } })
        #expect(await lockstep.sandbox.becomesQuiet())
        #expect(try await shop.metric(series) == 1)
        #expect(lockstep.log.errors.filter { $0.contains(charge.id) }.count == 1)
        #expect(!lockstep.log.errors.contains { $0.contains(declined.id) })
        await lockstep.stop()
    }

    @Test("R11: an expired card is charged only by a policy that allows it")
    func expired() async throws {
        let card = try lockstep.card(month: "01", year: "2020")
        let blocked = try await lockstep.charge(card)
        #expect(blocked.reply.json["state"] == "skipped" && blocked.reply.json["reason"] == "instrument-expired")
        #expect(lockstep.executions(of: blocked).isEmpty)
        #expect(try await lockstep.tells(["charge.skipped"], blocked))
        let tokenless = try await lockstep.charge(card, "10.00", ["expiryPolicy": "allowWithNetworkToken"])
        #expect(tokenless.reply.json["state"] == "skipped")
        let allowed = try await lockstep.charge(card, "10.00", ["expiryPolicy": "allow"])
        #expect(try await lockstep.becomes("succeeded", charge: allowed))
        let tokenized = try lockstep.card(month: "01", year: "2020", hasNetworkToken: true)
        let lasting = try await lockstep.charge(tokenized, "10.00", ["expiryPolicy": "allowWithNetworkToken"])
        #expect(try await lockstep.becomes("succeeded", charge: lasting))
    }

    @Test("R14: without a usable instrument there is no attempt")
    func unusable() async throws {
        let card = try lockstep.card()
        _ = lockstep.sandbox.changeInstrument(card.id, status: "disabled")
        let disabled = try await lockstep.charge(card)
        #expect(disabled.reply.json["state"] == "skipped" && disabled.reply.json["reason"] == "instrument-disabled")
        _ = lockstep.sandbox.changeInstrument(card.id, status: "deleted")
        let missing = try await lockstep.charge(card)
        #expect(missing.reply.json["state"] == "skipped" && missing.reply.json["reason"] == "instrument-missing")
        for charge in [disabled, missing] {
            #expect(lockstep.executions(of: charge).isEmpty && lockstep.money(of: charge) == .init())
            #expect(try await lockstep.tells(["charge.skipped"], charge))
        }
    }

    @Test("somebody else's card is refused, and one that Payrails never had; nothing is written")
    func anothers() async throws {
        let (mine, theirs) = (try lockstep.card(), try lockstep.card())
        let reference = freshWord("topup")
        let wrong = SavedCard(holder: mine.holder, id: theirs.id)
        let refused = try await lockstep.shop.post(
            "/v1/charges", lockstep.newCharge(reference, wrong), key: freshWord("key"))
        #expect(refused.outcome == "422 instrument-of-another-holder")
        let nobodys = SavedCard(holder: mine.holder, id: "0197c0de-0000-7000-8000-000000000004")
        let unknown = try await lockstep.shop.post(
            "/v1/charges", lockstep.newCharge(reference, nobodys), key: freshWord("key"))
        #expect(unknown.outcome == "422 invalid" && unknown.pointers == ["/instrumentId"])
        // So the reference is free.
        let charge = try await lockstep.charge(mine, reference: reference)
        #expect(try await lockstep.becomes("succeeded", charge: charge))
    }

    @Test("all that is wrong with a request is told at once, by its pointer")
    func badInput() async throws {
        let reply = try await lockstep.shop.post(
            "/v1/charges",
            [
                "merchantReference": "a~b", "instrumentId": "card-1", "amount": ["value": "1.001", "currency": "EUR"],
                "expiryPolicy": "maybe", "meta": "text", "period": 1,
            ], key: freshWord("key"))
        #expect(reply.outcome == "422 invalid")
        #expect(
            reply.pointers == [
                "/amount/value", "/expiryPolicy", "/holderReference", "/instrumentId", "/merchantReference", "/meta",
                "/period",
            ])
        for value in ["0", "-1", "1e3", "01.00", " 1.00", "1000000000000000.00"] {
            let body = lockstep.newCharge(freshWord("topup"), try lockstep.card(), value)
            let reply = try await lockstep.shop.post("/v1/charges", body, key: freshWord("key"))
            #expect(reply.outcome == "422 invalid" && reply.pointers == ["/amount/value"], "\(value)")
        }
        let body = lockstep.newCharge(freshWord("topup"), try lockstep.card())
        #expect(try await lockstep.shop.post("/v1/charges", body).outcome == "400 idempotency-key-missing")
        #expect(try await lockstep.shop.get("/v1/charges/\(freshWord("id"))").outcome == "404 not-found")
    }

    @Test("a reference is taken once, by a charge or by an order, also by many at once")
    func references() async throws {
        let card = try lockstep.card()
        let order = try await lockstep.order()
        let shop = try lockstep.shop
        let taken = try await shop.post("/v1/charges", lockstep.newCharge(order.reference, card), key: freshWord("key"))
        #expect(taken.outcome == "409 reference-exists")
        let reference = freshWord("topup")
        let replies = try await atOnce(8) { number in
            try await shop.post("/v1/charges", lockstep.newCharge(reference, card), key: "key-\(number)-\(reference)")
        }
        #expect(replies.filter { $0.status == 202 }.count == 1)
        #expect(replies.filter { $0.outcome == "409 reference-exists" }.count == 7)
        let checkout = try await shop.post("/v1/checkouts", lockstep.newCheckout(reference), key: freshWord("key"))
        #expect(checkout.outcome == "409 reference-exists")
        #expect(await waitUntil { lockstep.money(ofReference: reference) == .init(authorizations: 1, held: 1000) })
        #expect(await lockstep.sandbox.becomesQuiet())
        #expect(lockstep.sandbox.executionIDs(merchantReference: reference).count == 1)
    }

    @Test("the same request gets the same answer; another one under its key is refused")
    func repeated() async throws {
        let card = try lockstep.card()
        let first = try await lockstep.charge(card)
        let again = try await lockstep.shop.post(
            "/v1/charges", lockstep.newCharge(first.reference, card), key: "key-\(first.reference)")
        #expect(again.json == first.reply.json && again.headers["Idempotent-Replayed"] == "true")
        let other = try await lockstep.shop.post(
            "/v1/charges", lockstep.newCharge(first.reference, card, "11.00"), key: "key-\(first.reference)")
        #expect(other.outcome == "422 idempotency-key-reused")
        #expect(try await lockstep.becomes("succeeded", charge: first))
        #expect(lockstep.money(of: first) == .init(authorizations: 1, held: 1000))
    }

    @Test("a challenge means that the customer is needed: the execution is cancelled, nothing is taken")
    func threeDS() async throws {
        let charge = try await lockstep.charge(try lockstep.card("3220"))
        #expect(try await lockstep.becomes("needsCustomer", charge: charge))
        let execution = try #require(lockstep.executions(of: charge).first)
        #expect(try await lockstep.becomes("cancelled", execution: execution))
        #expect(try await lockstep.tells(["charge.needs_customer", "execution.cancelled"], charge))
        #expect(lockstep.money(of: charge) == .init())
        #expect(try await lockstep.charge(charge.id)["attempts"]?[0]?["outcome"] == "needsCustomer")
    }

    @Test("a challenge that is answered although its cancel was refused gives the money back")
    func answeredAnyway() async throws {
        let card = try lockstep.card("3220")
        let reference = freshWord("topup")
        // Its cancel is refused before anybody has paid.
        lockstep.sandbox.add(SandboxFault(.errorBefore(status: 400), on: .cancel))
        let charge = try await lockstep.charge(card, reference: reference)
        #expect(try await lockstep.becomes("needsCustomer", charge: charge))
        let execution = try #require(lockstep.executions(of: charge).first)
        #expect(await waitUntil { lockstep.calls(.cancel, charge).first?.status == 400 })
        _ = lockstep.sandbox.answerChallenge(execution, .success)
        #expect(await waitUntil { lockstep.money(of: charge) == .init(authorizations: 1, voided: 1000) })
        #expect(try await lockstep.charge(charge.id)["state"] == "needsCustomer")
        #expect(try await lockstep.tells(["charge.needs_customer", "execution.cancelled"], charge))
    }

    @Test("notifications that come twice and late change nothing")
    func duplicates() async throws {
        let reference = freshWord("topup")
        lockstep.sandbox.add(SandboxNotificationFault(.twice, merchantReference: reference, times: nil))
        lockstep.sandbox.add(
            SandboxNotificationFault(.shuffled(milliseconds: 60), merchantReference: reference, times: nil))
        let charge = try await lockstep.charge(try lockstep.card(), reference: reference)
        #expect(try await lockstep.becomes("succeeded", charge: charge))
        let execution = try #require(lockstep.executions(of: charge).first)
        lockstep.sandbox.redeliver(execution)
        #expect(await lockstep.sandbox.becomesQuiet())
        #expect(try await lockstep.tells(["charge.succeeded"], charge))
        #expect(lockstep.money(of: charge) == .init(authorizations: 1, held: 1000))
    }
}

extension JSONCaller.Reply {
    /// Where the faults of a 422 are, in their order.
    var pointers: [String] { (json["errors"]?.array ?? []).compactMap { $0["pointer"]?.string } }
}
