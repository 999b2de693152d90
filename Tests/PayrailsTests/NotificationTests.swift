import Basics
import Foundation
import Lockstep
import Testing

@testable import Payrails

@Suite("Reading notifications")
struct NotificationTests {
    static let received = Timestamp(seconds: 1_788_300_000)

    private func parse(_ text: String) -> ParsedNotification {
        PayrailsNotification.parse(Data(text.utf8), receivedAt: NotificationTests.received)
    }

    private func facts(_ text: String) throws -> PayrailsNotification {
        guard case .facts(let notification) = parse(text) else {
            Issue.record("not facts: \(parse(text))")
            throw CancellationError()
        }
        return notification
    }

    @Test("the signed sample gives its success, with the time to the nanosecond and the payment's ids")
    func signedSuccess() throws {
        let body = try #require(SignedSamples.authorizeSucceeded)
        let parsed = PayrailsNotification.parse(body, receivedAt: NotificationTests.received)
        guard case .facts(let notification) = parsed else {
            Issue.record("not facts: \(parsed)")
            return
        }
        #expect(notification.event == "executionActionCompleted")
        #expect(notification.shape == .envelope)
        #expect(notification.executionID?.description == Samples.executionID)
        #expect(notification.workflowCode == "payment-acceptance")
        #expect(notification.merchantReference == "order_501")
        #expect(notification.holderReference == "cust_77")
        #expect(notification.workspaceID == "0f2d6a10-8a3e-4b43-9a53-6a1f0c9e7b11")
        let at = try #require(Timestamp(rfc3339: "2026-09-01T10:00:05.123456789Z"))
        #expect(
            notification.facts == [
                Fact(
                    kind: .action, action: "authorize", actionID: "2f9b8d70-0000-4d10-8000-000000000009",
                    phase: .completed, success: true, amount: .of("57.49"),
                    paymentID: "c0de0a52-2a41-4f0c-8c0e-3f7f5d0e1c01", paymentMethodCode: "card",
                    instrumentID: Samples.instrumentID, at: at, source: .notification)
            ])
    }

    @Test("the signed sample of a decline is a failure with its reason")
    func signedFailure() throws {
        let body = try #require(SignedSamples.authorizeFailed)
        guard case .facts(let notification) = PayrailsNotification.parse(body, receivedAt: NotificationTests.received)
        else {
            Issue.record("not facts")
            return
        }
        let fact = try #require(notification.facts.first)
        #expect(fact.success == false)
        #expect(fact.reason == "InsufficientBalance")
        #expect(fact.amount == nil)
    }

    @Test("the amount of a partial capture is the one of its composition, not the execution's total")
    func partialCapture() throws {
        let fact = try #require(try facts(NotificationSamples.captureSucceeded).facts.first)
        #expect(fact.action == "capture")
        #expect(fact.success == true)
        #expect(fact.amount == .of("20.00"))
    }

    @Test("a capture that wasn't allowed is a failure without an amount, by the old error's title")
    func notAllowed() throws {
        let fact = try #require(try facts(NotificationSamples.captureNotAllowed).facts.first)
        #expect(fact.success == false)
        #expect(fact.amount == nil)
        #expect(fact.reason == "action.not-allowed")
    }

    @Test("what was asked for and what waits are phases, not results")
    func phases() throws {
        let requested = try #require(try facts(NotificationSamples.requested).facts.first)
        #expect(requested.phase == .requested)
        #expect(requested.success == nil)
        let pending = try #require(try facts(NotificationSamples.pending).facts.first)
        #expect(pending.phase == .pending)
        #expect(pending.actionRequired == "3ds")
        #expect(pending.success == nil)
    }

    @Test("an update is a completion with its later time")
    func updated() throws {
        let text = NotificationSamples.authorizeFailed
            .replacing("executionActionCompleted", with: "executionActionUpdated")
            .replacing("10:00:04Z", with: "11:00:00Z")
        let fact = try #require(try facts(text).facts.first)
        #expect(fact.phase == .completed)
        #expect(fact.success == false)
        #expect(fact.reason == "BlockedInstrument/LostInstrument")
        #expect(fact.at == Timestamp(rfc3339: "2026-09-01T11:00:00Z"))
    }

    @Test("a dispute has its own status, amount and id")
    func dispute() throws {
        let fact = try #require(try facts(NotificationSamples.dispute).facts.first)
        #expect(fact.kind == .dispute)
        #expect(fact.code == "DisputeOpened")
        #expect(fact.disputeID == "d_1")
        #expect(fact.amount == .of("10.00", "USD"))
        #expect(fact.reason == "fraud")
        #expect(fact.success == nil)
    }

    @Test("only a completed dispute action tells a dispute's status", arguments: ["Requested", "Pending"])
    func disputeInProgress(_ phase: String) {
        let text = NotificationSamples.dispute.replacing("ActionCompleted", with: "Action\(phase)")
        guard case .ignored = parse(text) else {
            Issue.record("not ignored: \(parse(text))")
            return
        }
    }

    @Test("without a usable time it is dated by when it was stored, the same each time it is parsed")
    func noTime() throws {
        #expect(try facts(NotificationSamples.captureSucceeded).facts.first?.at == NotificationTests.received)
        for time in ["\"\"", "\"2026-09-01\"", "\"2026-09-01T10:00:05\"", "5", "null", "\"2026-13-01T10:00:05Z\""] {
            let text = NotificationSamples.authorizeSucceeded.replacing("\"2026-09-01T10:00:05.123456Z\"", with: time)
            let notification = try facts(text)
            #expect(notification.time == nil)
            #expect(notification.facts.first?.at == NotificationTests.received)
            #expect(parse(text) == parse(text))
        }
    }

    @Test("bare details are read like those in an envelope")
    func bareDetails() throws {
        let json = try JSON(parsing: Data(NotificationSamples.authorizeSucceeded.utf8))
        let details = try #require(json["details"])
        let notification = try facts(details.text)
        #expect(notification.shape == .bareDetails)
        #expect(notification.event == "executionActionCompleted")
        #expect(notification.facts.first?.success == true)
        #expect(notification.facts.first?.amount == .of("57.49"))
        let pending = try #require(try JSON(parsing: Data(NotificationSamples.pending.utf8))["details"])
        #expect(try facts(pending.text).facts.first?.phase == .pending)
        let requested = try #require(try JSON(parsing: Data(NotificationSamples.requested.utf8))["details"])
        #expect(try facts(requested.text).facts.first?.phase == .requested)
    }

    @Test("the history's shape names its execution and its action in other places")
    func history() throws {
        let text = """
            {"id":"h1","workflow":{"code":"payment-acceptance"},"workflowExecutionId":"\(Samples.executionID)","workflowActionId":"act-1",
             "eventType":"executionActionCompleted","createdAt":"2026-09-01T10:00:05Z","eventTrigger":"api",
             "details":{"request":{"action":"capture","success":true},"response":{"action":"authorize","success":false,"errors":[{"code":"workflow.action.failed","reason":{"result":"GenericRejection"}}]}}}
            """
        let notification = try facts(text)
        #expect(notification.shape == .history)
        #expect(notification.executionID?.description == Samples.executionID)
        #expect(notification.workflowCode == "payment-acceptance")
        let fact = try #require(notification.facts.first)
        #expect(fact.action == "authorize")
        #expect(fact.actionID == "act-1")
        #expect(fact.success == false)
        #expect(fact.reason == "GenericRejection")
        #expect(fact.at == Timestamp(rfc3339: "2026-09-01T10:00:05Z"))
    }

    @Test(
        "W16: what isn't used is ignored, but still says which execution to read",
        arguments: [
            NotificationSamples.created,
            NotificationSamples.created.replacing("executionCreated", with: "ruleEngineExecuted"),
            NotificationSamples.created.replacing("executionCreated", with: "somethingNew"),
            NotificationSamples.authorizeSucceeded.replacing("\"authorize\"", with: "\"fraudScore\""),
            NotificationSamples.authorizeSucceeded.replacing("\"authorize\"", with: "\"payout\""),
            NotificationSamples.authorizeSucceeded.replacing("\"authorize\"", with: "7"),
        ])
    func ignored(_ text: String) {
        guard case .ignored(let notification) = parse(text) else {
            Issue.record("not ignored: \(parse(text))")
            return
        }
        #expect(notification.executionID?.description == Samples.executionID)
        #expect(notification.facts.isEmpty)
    }

    @Test(
        "what can't be read says why, and never what it held",
        arguments: [
            "", " ", "{", "[]", "null", "1", "\"4242424242424242\"", "{\"a\":1}", "<html>4242424242424242</html>",
            "{\"event\":5}", "{\"event\":null,\"details\":{}}", "\u{FEFF}", "{\"event\":\"\"}",
            #"{"event":"executionActionCompleted","details":{"action":"authorize","success":true}}"#,
            #"{"action":"authorize","success":true,"execution":{"id":"not-a-uuid"}}"#,
        ])
    func unreadable(_ text: String) {
        guard case .unreadable(let reason) = parse(text) else {
            Issue.record("not unreadable: \(parse(text))")
            return
        }
        #expect(!reason.isEmpty)
        #expect(!reason.contains("4242"))
    }

    @Test(
        "M8, S11: an amount that isn't exact is no amount, and the success stays one",
        arguments: [
            #"{"value":57.49,"currency":"EUR"}"#, #"{"value":"57.491","currency":"EUR"}"#, #"57.49"#, #""57.49""#,
            #"{"value":"500.01","currency":"JPY"}"#, #"{"value":"500.","currency":"JPY"}"#,
            #"{"value":"57.490x","currency":"EUR"}"#, #"{"value":".00","currency":"JPY"}"#,
            "null",
            #"{"value":"57.49","currency":"eur"}"#, #"{"value":"57.49"}"#, #"{"value":"57.49","currency":"XXX"}"#,
            #"{"value":"-57.49","currency":"EUR"}"#, #"{"value":"5.749e1","currency":"EUR"}"#,
            #"{"value":"","currency":"EUR"}"#,
            #"{"value":" 57.49","currency":"EUR"}"#, #"{"value":"9999999999999999.99","currency":"EUR"}"#,
            #"{"value":"057.49","currency":"EUR"}"#, #"{"value":"٥٧","currency":"EUR"}"#, "[]",
        ])
    func inexactAmounts(_ amount: String) throws {
        let text = NotificationSamples.captureSucceeded
            .replacing(#"{"value":"20.00","currency":"EUR"}"#, with: amount)
        let fact = try #require(try facts(text).facts.first)
        #expect(fact.success == true)
        #expect(fact.amount == nil)
    }

    @Test(
        "M2: the currency's own decimals count, and zeros beyond them are another way to write the same",
        arguments: [
            ("500", "JPY", 500), ("1.250", "KWD", 1250), ("100", "EUR", 10_000), ("100.0", "EUR", 10_000),
            ("500.00", "JPY", 500), ("500.0", "JPY", 500), ("57.490", "EUR", 5749), ("1.2500", "KWD", 1250),
        ])
    func currencies(_ value: String, _ currency: String, _ minor: Int64) throws {
        let text = NotificationSamples.captureSucceeded
            .replacing(
                #"{"value":"20.00","currency":"EUR"}"#, with: #"{"value":"\#(value)","currency":"\#(currency)"}"#)
        #expect(try facts(text).facts.first?.amount?.minor == minor)
    }

    @Test(
        "the action's amount is the sum of what succeeded",
        arguments: [
            // Two successes.
            (
                #"[{"success":true,"amount":{"value":"1.10","currency":"EUR"}},{"success":true,"amount":{"value":"2.20","currency":"EUR"}}]"#,
                "3.30"
            ),
            // A failed attempt before.
            (
                #"[{"success":false,"amount":{"value":"5.00","currency":"EUR"}},{"success":true,"amount":{"value":"2.20","currency":"EUR"}}]"#,
                "2.20"
            ),
            // Another kind of operation beside.
            (
                #"[{"success":true,"operationType":"Authorize","amount":{"value":"9.00","currency":"EUR"}},{"success":true,"operationType":"Capture","amount":{"value":"2.20","currency":"EUR"}}]"#,
                "2.20"
            ),
            // Only the other kind.
            (#"[{"success":true,"operationType":"Sale","amount":{"value":"9.00","currency":"EUR"}}]"#, "9.00"),
            // One of two can't be read, currencies differ, nothing succeeded, nothing there, not a list.
            (#"[{"success":true,"amount":{"value":"1.10","currency":"EUR"}},{"success":true}]"#, nil),
            (
                #"[{"success":true,"amount":{"value":"1.10","currency":"EUR"}},{"success":true,"amount":{"value":"1.10","currency":"USD"}}]"#,
                nil
            ),
            (#"[{"success":false,"amount":{"value":"1.10","currency":"EUR"}}]"#, nil),
            (#"[{"success":"true","amount":{"value":"1.10","currency":"EUR"}}]"#, nil),
            (#"[{"operationResult":"Accepted","amount":{"value":"1.10","currency":"EUR"}}]"#, nil),
            (#"[]"#, nil), (#"{}"#, nil), (#"null"#, nil),
            (
                #"[{"success":true,"amount":{"value":"9999999999999.99","currency":"EUR"}},{"success":true,"amount":{"value":"0.01","currency":"EUR"}}]"#,
                nil
            ),
        ] as [(String, String?)])
    func sums(_ compositions: String, _ sum: String?) throws {
        let text = """
            {"event":"executionActionCompleted","details":{"action":"capture","success":true,"amount":{"value":"57.49","currency":"EUR"},
             "execution":{"id":"\(Samples.executionID)"},"paymentComposition":\(compositions)}}
            """
        let fact = try #require(try facts(text).facts.first)
        #expect(fact.success == true)
        #expect(fact.amount == sum.flatMap { Money.of($0) })
    }

    @Test(
        "M7: a result that isn't a boolean is neither a success nor a failure",
        arguments: ["\"true\"", "\"false\"", "0", "1", "null", "[true]", "{}", "\"success\"", "1.0"])
    func notQuiteBoolean(_ success: String) {
        for event in ["executionActionCompleted", "executionActionUpdated"] {
            let text = NotificationSamples.authorizeSucceeded.replacing("executionActionCompleted", with: event)
                .replacing("\"success\":true", with: "\"success\":\(success)")
            guard case .undecided(let notification, _) = parse(text) else {
                Issue.record("decided: \(parse(text))")
                return
            }
            #expect(notification.facts.isEmpty)
            #expect(notification.executionID == ExecutionID(Samples.executionID), "so that it can be read")
        }
    }

    @Test("a success with an execution that is known by its reference only is still told")
    func referenceOnly() throws {
        let text = NotificationSamples.authorizeSucceeded.replacing(Samples.executionID, with: "9b1d…")
        let notification = try facts(text)
        #expect(notification.executionID == nil)
        #expect(notification.merchantReference == "order_501")
    }

    @Test("text that a database can't take never becomes part of a fact")
    func hostileText() throws {
        let text = NotificationSamples.authorizeFailed
            .replacing("BlockedInstrument", with: #"a\u0000b"#).replacing("\"c0df\"", with: #""x\ny""#)
            .replacing("cust_77", with: #"cust\u0000"#)
        let notification = try facts(text)
        let fact = try #require(notification.facts.first)
        #expect(fact.reason == nil)
        #expect(fact.paymentID == nil)
        #expect(notification.holderReference == nil)
        #expect(fact.success == false)
    }
}
