import Basics
import Foundation
import TestKit
import Testing

@testable import PayrailsSandbox

@Suite("The SDK's part, and what becomes of it")
struct PayingTests {
    @Test("the init payload holds what the SDKs decode")
    func payload() async throws {
        let caller = try await Caller()
        let reply = await caller.call("POST", "/merchant/client/init", caller.initBody())
        #expect(reply.json["version"]?.string?.isEmpty == false)
        let data = try caller.decoded(reply)
        #expect(data["token"]?.string?.split(separator: ".").count == 3)
        #expect(data["amount"] == ["value": "49.99", "currency": "EUR"])
        #expect(data["vaultConfiguration"]?["providerConfigId"]?.string != nil)
        #expect(data["links"]?["instrumentDelete"]?["href"]?.string?.hasSuffix("/:instrumentId") == true)
        #expect(data["featureConfig"]?["schemaVersion"] == 1)
        let execution = try #require(data["execution"])
        #expect(execution["status"]?[0]?["code"] == "created")
        #expect(execution["holderReference"] == "cust_77")
        #expect(execution["workflow"]?["version"] == 12)
        #expect(execution["links"]?["self"]?.string?.contains("/public/") == true)
        #expect(execution["links"]?["authorize"]?["method"] == "POST")
        let lookup = execution["initialResults"]?[0]
        #expect(lookup?["httpCode"] == 200)
        #expect(lookup?["body"]?["name"] == "lookup")
        #expect(lookup?["body"]?["links"]?["execution"]?.string != nil)
        #expect(lookup?["body"]?["links"]?["authorize"]?["href"]?.string != nil)
        #expect(lookup?["body"]?["data"]?["paymentCompositionOptions"]?.array?.count == 3)
    }

    @Test("a saved card is offered in the next init, and pays by its id")
    func savedCard() async throws {
        let caller = try await Caller()
        let first = try await caller.execution("first")
        var payment = PayrailsSandbox.Payment()
        payment.storeInstrument = true
        payment.futureUsage = "Subscription"
        #expect(caller.sandbox.pay(first, payment).isAccepted)
        #expect(await waitUntil { caller.sandbox.statusCodes(first).contains("authorizeSuccessful") })
        let data = try await caller.decoded(caller.call("POST", "/merchant/client/init", caller.initBody("second")))
        let option = data["execution"]?["initialResults"]?[0]?["body"]?["data"]?["paymentCompositionOptions"]?[0]
        let saved = try #require(option?["paymentInstruments"]?[0])
        #expect(saved["data"]?["suffix"] == "4242")
        #expect(saved["futureUsage"] == "Subscription")
        #expect(saved["networkTransactionReference"]?.string != nil)
        payment = PayrailsSandbox.Payment()
        payment.instrumentID = saved["id"]?.string
        let second = try #require(data["execution"]?["id"]?.string)
        #expect(caller.sandbox.pay(second, payment).isAccepted)
        #expect(await waitUntil { caller.sandbox.ledgerTotals("second")?.authorizedMinor == 4999 })
    }

    @Test("a card that wasn't to be stored isn't listed")
    func transient() async throws {
        let caller = try await Caller()
        _ = try await caller.authorized()
        let list = await caller.call("GET", "/payment/instruments?filter[holderReference]=cust_77")
        #expect(list.json["results"]?.array?.isEmpty == true)
    }

    @Test("paying another amount than the execution's is 401, and nothing happens")
    func mismatch() async throws {
        let caller = try await Caller()
        let id = try await caller.execution(value: "49.99")
        let moved = await caller.call(
            "POST", caller.path(id, "lookup"), ["amount": ["value": "52.89", "currency": "EUR"]])
        #expect(moved.status == 200)
        var stale = PayrailsSandbox.Payment()
        stale.amount = try .init(value: "49.99", currencyCode: "EUR")
        let refused = caller.sandbox.pay(id, stale)
        #expect(refused.status == 401)
        #expect(refused.body["errors"]?[0]?["code"] == "request.unauthorized")
        #expect(caller.sandbox.statusCodes(id) == ["created"])
        #expect(caller.sandbox.pay(id).status == 202)
        #expect(await waitUntil { caller.sandbox.ledgerTotals("order_1")?.authorizedMinor == 5289 })
    }

    @Test("an execution is paid once: the second attempt is refused, whatever became of the first")
    func singleUse() async throws {
        let caller = try await Caller()
        let id = try await caller.authorized()
        #expect(caller.sandbox.pay(id).status == 409)
        let failed = try await caller.execution("order_2")
        var payment = PayrailsSandbox.Payment()
        payment.card = "9995"
        #expect(caller.sandbox.pay(failed, payment).isAccepted)
        #expect(await waitUntil { caller.sandbox.statusCodes(failed).contains("authorizeFailed") })
        #expect(caller.sandbox.pay(failed).status == 409)
        #expect(caller.sandbox.ledgerTotals("order_2") == nil)
        let status = await caller.call("GET", caller.path(failed)).json["status"]?.array
        let reason = status?.first { $0["code"] == "authorizeFailed" }?["errors"]?[0]?["reason"]
        #expect(reason?["result"] == "InsufficientBalance")
        #expect(reason?["category"] == "InsufficientBalance")
    }

    @Test(
        "3-D Secure waits for the customer and ends as the customer says",
        arguments: [("success", "authorizeSuccessful"), ("fail", "authorizeFailed"), ("abandon", "authorizePending")])
    func threeDS(_ answer: String, _ last: String) async throws {
        let caller = try await Caller()
        let id = try await caller.execution()
        var payment = PayrailsSandbox.Payment()
        payment.card = "3220"
        #expect(caller.sandbox.pay(id, payment).isAccepted)
        #expect(await waitUntil { caller.sandbox.statusCodes(id).contains("authorizePending") })
        let waiting = await caller.call("GET", caller.path(id)).json
        #expect(waiting["actionRequired"] == "3ds")
        #expect(waiting["requiredAction"]?["type"] == "redirect")
        #expect(waiting["requiredAction"]?["href"]?.string?.contains("/public/redirect/") == true)
        #expect(waiting["links"]?["3ds"] != nil)
        #expect(caller.sandbox.ledger.isEmpty)
        let customer = try #require(PayrailsSandbox.CustomerAnswer(rawValue: answer))
        #expect(caller.sandbox.answerChallenge(id, customer).status == 200)
        #expect(caller.sandbox.statusCodes(id).last == last)
        #expect(caller.sandbox.ledger.count == (answer == "success" ? 1 : 0))
        let after = await caller.call("GET", caller.path(id)).json
        #expect((after["actionRequired"] != nil) == (answer == "abandon"))
    }

    @Test("an abandoned payment stays pending, is cancelled by request, and never takes money")
    func abandoned() async throws {
        let caller = try await Caller { $0.authorizeDelay = .seconds(2) }
        let id = try await caller.execution()
        #expect(caller.sandbox.pay(id).isAccepted)
        #expect(caller.sandbox.abandon(id).status == 200)
        #expect(await waitUntil { caller.sandbox.statusCodes(id).last == "authorizePending" })
        #expect(await caller.call("POST", caller.path(id, "cancel"), [:]).status == 202)
        #expect(await waitUntil { caller.sandbox.statusCodes(id).last == "cancelSuccessful" })
        #expect(caller.sandbox.ledger.isEmpty)
    }

    @Test("a cancel that comes before the authorization's result leaves no money set aside")
    func cancelInFlight() async throws {
        let hand = HandClock()
        let caller = try await Caller {
            $0.clock = hand.clock
            $0.authorizeDelay = .seconds(3)
            $0.actionDelay = .seconds(1)
        }
        let id = try await caller.execution("a")
        #expect(caller.sandbox.pay(id).isAccepted)
        #expect(await caller.call("POST", caller.path(id, "cancel"), [:]).status == 202)
        hand.advance(by: .seconds(10))
        #expect(caller.sandbox.statusCodes(id).last == "cancelSuccessful")
        #expect(caller.sandbox.ledger.isEmpty)
    }

    @Test("a timeout can hide a charge: the execution failed, the ledger knows better, an update tells later")
    func hiddenCharge() async throws {
        let caller = try await Caller()
        let id = try await caller.execution()
        var payment = PayrailsSandbox.Payment()
        payment.card = "0119"
        #expect(caller.sandbox.pay(id, payment).isAccepted)
        #expect(await waitUntil { caller.sandbox.statusCodes(id).contains("authorizeFailed") })
        #expect(caller.sandbox.ledgerTotals("order_1")?.authorizedMinor == 4999)
        let list = await caller.call("GET", "/payment/payments?filter[merchantReference]=order_1")
        #expect(list.json["results"]?[0]?["status"] == "Unknown")
        #expect(caller.sandbox.updateResult(id, success: true).status == 200)
        #expect(caller.sandbox.statusCodes(id).last == "authorizeSuccessful")
        #expect(caller.sandbox.ledgerTotals("order_1")?.authorizations == 1)
    }

    @Test("a cascade fails first and succeeds then, in one execution")
    func cascade() async throws {
        let caller = try await Caller()
        let id = try await caller.execution()
        var payment = PayrailsSandbox.Payment()
        payment.outcome = .cascade(result: "GenericRejection")
        #expect(caller.sandbox.pay(id, payment).isAccepted)
        #expect(await waitUntil { caller.sandbox.statusCodes(id).contains("authorizeSuccessful") })
        let codes = caller.sandbox.statusCodes(id)
        let failed = try #require(codes.firstIndex(of: "authorizeFailed"))
        let succeeded = try #require(codes.firstIndex(of: "authorizeSuccessful"))
        #expect(failed < succeeded)
        #expect(caller.sandbox.ledgerTotals("order_1")?.authorizations == 1)
    }

    @Test("the trailing pending after a failure, and links of both kinds, and an order that means nothing")
    func awkwardness() async throws {
        let caller = try await Caller { $0.pendingAfterFailure = 1 }
        let id = try await caller.execution()
        var payment = PayrailsSandbox.Payment()
        payment.outcome = .decline(result: "GenericRejection")
        #expect(caller.sandbox.pay(id, payment).isAccepted)
        #expect(await waitUntil { caller.sandbox.statusCodes(id).last == "authorizePending" })
        let codes = caller.sandbox.statusCodes(id)
        #expect(codes == ["created", "authorizeRequested", "authorizeFailed", "authorizePending"])
        var orders: Set<[String]> = []
        var isString: Set<Bool> = []
        for _ in 0..<40 {
            let json = await caller.call("GET", caller.path(id)).json
            orders.insert(json["status"]?.array?.compactMap { $0["code"]?.string } ?? [])
            isString.insert(json["links"]?["self"]?.string != nil)
        }
        #expect(orders.count > 1)
        #expect(isString.count == 2)
    }

    @Test("a session that has expired is 401; another execution's session reaches nothing")
    func sessions() async throws {
        let hand = HandClock()
        let caller = try await Caller { $0.clock = hand.clock }
        let first = await caller.call("POST", "/merchant/client/init", caller.initBody("a"))
        let token = try #require(caller.decoded(first)["token"]?.string)
        let id = try #require(caller.sandbox.executionIDs(merchantReference: "a").first)
        let other = try await caller.execution("b")
        let own = await caller.call("GET", "/public" + caller.path(id), token: token)
        #expect(own.status == 200)
        #expect(await caller.call("GET", "/public" + caller.path(other), token: token).status == 403)
        #expect(await caller.call("GET", caller.path(id), token: token).status == 401)
        hand.advance(by: .seconds(3300))
        #expect(await caller.call("GET", "/public" + caller.path(id), token: token).status == 401)
        #expect(caller.sandbox.pay(id).status == 401)
    }

    @Test("the public authorize with the init's own token does the same as the control")
    func publicAuthorize() async throws {
        let caller = try await Caller()
        let data = try await caller.decoded(caller.call("POST", "/merchant/client/init", caller.initBody()))
        let token = try #require(data["token"]?.string)
        let id = try #require(data["execution"]?["id"]?.string)
        let reply = await caller.call(
            "POST", "/public" + caller.path(id, "authorize"), MoneyTests.authorizeBody(value: "49.99"), token: token)
        #expect(reply.status == 202)
        #expect(reply.json["name"] == "authorize")
        #expect(reply.json["links"]?["execution"]?.string?.contains("/public/") == true)
        #expect(await waitUntil { caller.sandbox.ledgerTotals("order_1")?.authorizedMinor == 4999 })
    }

    @Test("a confirmation that is asked for completes the payment")
    func confirm() async throws {
        let caller = try await Caller()
        let id = try await caller.execution()
        var payment = PayrailsSandbox.Payment()
        payment.method = "payPal"
        payment.outcome = .confirm
        #expect(caller.sandbox.pay(id, payment).isAccepted)
        #expect(await waitUntil { caller.sandbox.statusCodes(id).contains("authorizePending") })
        let reply = await caller.call("POST", caller.path(id, "confirm"), ["data": ["orderId": "x"]])
        #expect(reply.status == 202)
        #expect(caller.sandbox.statusCodes(id).contains("confirmSuccessful"))
        #expect(caller.sandbox.ledgerTotals("order_1")?.authorizedMinor == 4999)
    }

    @Test("what stays pending longer than it may is cancelled by itself")
    func pendingExpiry() async throws {
        let hand = HandClock()
        let caller = try await Caller { $0.clock = hand.clock }
        var members = try #require(caller.initBody().object)
        members["meta"] = ["order": ["pendingStateDuration": "PT10M"]]
        #expect(await caller.call("POST", "/merchant/client/init", .object(members)).status == 200)
        let id = try #require(caller.sandbox.executionIDs(merchantReference: "order_1").first)
        var payment = PayrailsSandbox.Payment()
        payment.outcome = .threeDS
        #expect(caller.sandbox.pay(id, payment).isAccepted)
        #expect(caller.sandbox.statusCodes(id).last == "authorizePending")
        hand.advance(by: .seconds(599))
        #expect(caller.sandbox.statusCodes(id).last == "authorizePending")
        hand.advance(by: .seconds(1))
        #expect(caller.sandbox.statusCodes(id).last == "cancelSuccessful")
    }
}
