import Basics
import Foundation
import Testing

@testable import Lockstep

@Suite("Whether an instrument can be charged")
struct InstrumentTests {
    private func card(
        status: String = "enabled", holder: String? = "cust-1", month: Int? = 9, year: Int? = 2026,
        token: Bool? = nil, method: String = "card"
    ) -> InstrumentSnapshot {
        InstrumentSnapshot(
            id: InstrumentID(Sample.execution(80).uuid), holderReference: holder, paymentMethod: method,
            status: status, isDefault: true, displayName: nil, network: "visa", suffix: "4242", expiryMonth: month,
            expiryYear: year, hasNetworkToken: token, futureUsage: nil)
    }

    /// One second after the end of September 2026 on the last place on earth.
    private let october = CivilDate(year: 2026, month: 10, day: 1).moment(atHour: 12, in: .gmt)

    private func obstacle(
        _ card: InstrumentSnapshot, _ policy: ExpiryPolicy = .block, at moment: Timestamp? = nil
    ) -> InstrumentObstacle? {
        card.obstacle(
            for: "cust-1", by: policy, at: moment ?? october,
            in: TimeZone(secondsFromGMT: -12 * 3600) ?? .gmt)
    }

    @Test("E1: to the last second of its month, and not a second longer")
    func expiry() {
        #expect(obstacle(card(), at: october + .seconds(-1)) == nil)
        #expect(obstacle(card()) == .expired)
        #expect(obstacle(card(), .allow) == nil)
        #expect(obstacle(card(token: true), .allowWithNetworkToken) == nil)
        for token in [false, nil] { #expect(obstacle(card(token: token), .allowWithNetworkToken) == .expired) }
    }

    @Test("E3: an expiry that nobody knows is no obstacle, and the status says nothing about it")
    func unknown() {
        #expect(obstacle(card(month: nil)) == nil)
        #expect(obstacle(card(year: 2020, method: "payPal")) == nil)
        #expect(obstacle(card(status: "enabled", year: 2020)) == .expired)
        #expect(obstacle(card(status: "created", year: 2030)) == nil)
    }

    @Test("somebody else's, a deleted and a disabled one can't, whatever the policy")
    func others() {
        #expect(obstacle(card(holder: "cust-2"), .allow) == .anotherHolder)
        #expect(obstacle(card(status: "deleted", holder: "cust-2"), .allow) == .anotherHolder)
        #expect(obstacle(card(status: "deleted"), .allow) == .missing)
        #expect(obstacle(card(status: "disabled"), .allow) == .disabled)
        #expect(obstacle(card(holder: nil), .allow) == nil)
    }
}
