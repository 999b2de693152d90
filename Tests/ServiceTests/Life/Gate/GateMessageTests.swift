import Basics
import TestKit
import Testing

@testable import Service

@Suite("What the gate says to a customer")
struct GateMessageTests {
    @Test("in the language that the customer reads, from the table that the shop has")
    func languages() async throws {
        let lockstep = try await ServiceHarness.start([
            "LOCKSTEP_MESSAGES": #"{"de": {"checkout-cancelled": "Storniert."}, "fr": {"internal": "Réessayez."}}"#,
            "LOCKSTEP_MESSAGES_LANGUAGE": "de",
        ])
        let order = try await lockstep.order()
        #expect(try await lockstep.shop.post("\(order.path)/cancel").status == 200)
        for (asked, language, words) in [
            ("en-GB,de;q=0.9", "en", "This order has been cancelled."), ("de-CH", "de", "Storniert."),
            ("fr, en;q=0.5", "en", "This order has been cancelled."), ("fr", "de", "Storniert."),
            (nil, "de", "Storniert."), (";;;", "de", "Storniert."), ("en;q=0.1, de;q=0.2", "de", "Storniert."),
        ] as [(String?, String, String)] {
            let reply = try await lockstep.gateAnswer(order.execution, as: order.token, language: asked)
            #expect(reply.json["reason"] == "checkout-cancelled")
            #expect(reply.json["message"]?.string == words, "\(asked ?? "-")")
            #expect(reply.headers["Content-Language"] == language)
        }
        await lockstep.stop()
    }

    @Test("a table that isn't one stops the start, and so does a language that lacks a reason")
    func faults() {
        for (name, value) in [
            ("LOCKSTEP_MESSAGES", "{"), ("LOCKSTEP_MESSAGES", #"{"de": {"sold-out": "Ausverkauft."}}"#),
            ("LOCKSTEP_MESSAGES_LANGUAGE", "fr"),
        ] {
            do {
                _ = try Settings(environment: SettingsTests.least.merging([name: value]) { $1 })
                Issue.record("\(name) is taken")
            } catch {
                #expect(error.faults.map(\.name) == ["LOCKSTEP_MESSAGES"])
            }
        }
    }
}
