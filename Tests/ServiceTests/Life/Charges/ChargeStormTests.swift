import Basics
import PayrailsSandbox
import TestKit
import Testing

@Suite("M2: many charges, several processes, and every fault at once")
struct ChargeStormTests {
    private static let faults: [SandboxFault.Kind] = [
        .closeAfter, .halfBody, .html(status: 200, effect: true), .html(status: 502), .errorBefore(status: 408),
        .errorAfter(status: 500), .errorBefore(status: 500, stored: true), .errorBefore(status: 403),
        .delayAfter(milliseconds: 700),
    ]

    private static let routes: [SandboxRoute] = [
        .createExecution, .authorize, .listExecutions, .getExecution, .cancel, .listPayments,
    ]

    /// What becomes of a card that ends so, and what is then in the ledger.
    private static let cards = [
        ("4242", "succeeded"), ("4242", "succeeded"), ("0002", "failed"), ("9995", "failed"), ("3220", "needsCustomer"),
    ]

    @Test("the ledger has one success or none for each, and the books say which")
    func storm() async throws {
        let lockstep = try await ServiceHarness.start([
            "PAYRAILS_CALL_TIMEOUT_MS": "500", "PAYRAILS_READ_TIMEOUT_MS": "500",
            "LOCKSTEP_FAILURE_SETTLE_SECONDS": "1",
        ])
        for _ in 0..<2 { try await lockstep.startService() }
        for route in Self.routes {
            for kind in Self.faults {
                lockstep.sandbox.add(SandboxFault(kind, on: route, times: nil, probability: 0.03))
            }
        }
        for kind in [SandboxNotificationFault.Kind.lost, .twice, .shuffled(milliseconds: 50)] {
            lockstep.sandbox.add(SandboxNotificationFault(kind, times: nil, probability: 0.2))
        }
        let charges = try await atOnce(40) { number in
            let (suffix, state) = Self.cards[number % Self.cards.count]
            return (charge: try await lockstep.charge(try lockstep.card(suffix)), state: state)
        }
        for (charge, state) in charges {
            let isThere = try await waitUntil(.seconds(120)) {
                try await lockstep.charge(charge.id)["state"]?.string == state
            }
            let shown = try await lockstep.charge(charge.id).text
            #expect(isThere, "\(state): \(shown)")
        }
        lockstep.sandbox.clearFaults()
        #expect(await lockstep.sandbox.becomesQuiet())
        for (charge, state) in charges {
            let money = lockstep.money(of: charge)
            #expect(money.authorizations == (state == "succeeded" ? 1 : 0))
            #expect(money.held == (state == "succeeded" ? 1000 : 0))
            let authorized = Set(lockstep.calls(.authorize, charge).map(\.path))
            #expect(authorized.count <= 1, "one execution is authorized, however often it is asked for")
        }
        await lockstep.stop()
    }
}
