import Basics
import Foundation
import Testing

@testable import Lockstep

/// A subscription of 9.90 EUR on the 31st of each month in Berlin, from January 2026.
enum RenewalSample {
    static let card = InstrumentID(UUID(uuid: (1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1)))
    static let otherCard = InstrumentID(UUID(uuid: (1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2)))

    static func subscription(
        _ interval: String = "P1M", startsOn: String = "2026-01-31", endsOn: String? = nil, maxCharges: Int? = nil,
        status: Subscription.Status = .active, nextIndex: Int = 1, policy: ExpiryPolicy = .block,
        declined: DeclinedInstrument? = nil
    ) throws -> Subscription {
        Subscription(
            id: SubscriptionID(UUID()), merchantReference: "membership-3", holderReference: "customer-17",
            instrument: card, workflowCode: "payment-acceptance",
            amount: try Money(value: "9.90", currencyCode: "EUR"), interval: try BillingInterval(interval),
            startsOn: try day(startsOn),
            timezone: try #require(TimeZone(identifier: "Europe/Berlin")), endsOn: try endsOn.map(day),
            maxCharges: maxCharges, expiryPolicy: policy, status: status, nextIndex: nextIndex,
            declined: declined, createdAt: Timestamp(seconds: 0))
    }

    static func day(_ text: String) throws -> CivilDate { try #require(CivilDate(text)) }
    static func at(_ text: String) throws -> Timestamp { try #require(Timestamp(rfc3339: text)) }

    static func snapshot(
        _ id: InstrumentID = card, month: Int? = 12, year: Int? = 2030, token: Bool = false, suffix: String = "4242"
    ) -> InstrumentSnapshot {
        InstrumentSnapshot(
            id: id, holderReference: "customer-17", paymentMethod: "card", status: "enabled", isDefault: true,
            displayName: nil, network: "visa", suffix: suffix, expiryMonth: month, expiryYear: year,
            hasNetworkToken: token, futureUsage: nil)
    }

    static let good = RenewalPlan.Instrument.enabled(snapshot(), declines: [])
    static func expired(token: Bool = false) -> RenewalPlan.Instrument {
        .enabled(snapshot(year: 2025, token: token), declines: [])
    }
    static let declinedCard = DeclinedInstrument(instrument: card, appearance: snapshot().appearance)

    static func plan(
        _ subscription: Subscription, open: [RenewalPlan.OpenCharge] = [], _ instrument: RenewalPlan.Instrument? = good,
        missed: RenewalPlan.Missed = .all, at now: String
    ) throws -> RenewalPlan {
        RenewalPlan(
            for: subscription, open: open, instrument: instrument,
            rules: RenewalPlan.Rules(missed: missed, expiryZone: .gmt), now: try at(now))
    }

    static func period(_ index: Int, _ start: String, _ end: String) throws -> BillingPeriod {
        BillingPeriod(index: index, start: try day(start), end: try day(end))
    }
}
