import Basics
import Foundation
import Testing

@testable import Lockstep

@Suite("When a card is expired")
struct CardExpiryTests {
    @Test(
        "E1: valid to the last second of its month, expired with the next, every month of 2024 to 2032",
        arguments: [("-12:00", -43_200), ("Z", 0), ("+01:00", 3600), ("+05:30", 19_800), ("+14:00", 50_400)])
    func everyMonth(_ offset: String, _ seconds: Int) throws {
        let zone = try #require(TimeZone(secondsFromGMT: seconds))
        for year in 2024...2032 {
            for month in 1...12 {
                let expiry = try #require(CardExpiry(month: month, year: year))
                let (nextYear, nextMonth) = month == 12 ? (year + 1, 1) : (year, month + 1)
                let text = "\(nextYear)-\(nextMonth < 10 ? "0" : "")\(nextMonth)-01T00:00:00\(offset)"
                let end = try #require(Timestamp(rfc3339: text))
                #expect(!expiry.isExpired(at: end - .seconds(1), in: zone))
                #expect(!expiry.isExpired(at: end - .nanoseconds(1), in: zone))
                #expect(expiry.isExpired(at: end, in: zone))
                #expect(expiry.isExpired(at: end + .seconds(1), in: zone))
                #expect(!expiry.isExpired(at: end - .seconds(400 * 86_400), in: zone))
                #expect(expiry.lastDay.adding(days: 1).description == text.prefix(10))
            }
        }
    }

    @Test("the default zone is the last place on earth, so no card is refused while its month lasts anywhere")
    func lenient() throws {
        let lastPlace = try #require(TimeZone(secondsFromGMT: -43_200))
        let expiry = try #require(CardExpiry(month: 2, year: 2028))
        let moment = try #require(Timestamp(rfc3339: "2028-03-01T11:59:59Z"))
        #expect(!expiry.isExpired(at: moment, in: lastPlace))
        #expect(expiry.isExpired(at: moment, in: .gmt))
        let samoa = try #require(TimeZone(identifier: "Pacific/Pago_Pago"))
        #expect(expiry.isExpired(at: moment, in: samoa))
    }

    @Test("E3: missing or unreadable is unknown, which isn't expired")
    func unknown() {
        let now = Timestamp(seconds: 4_000_000_000)
        for (month, year) in [(nil, 2020), (1, nil), (0, 2020), (13, 2020), (1, 20), (-1, 2020), (nil, nil)]
            as [(
                Int?, Int?
            )]
        {
            let expiry = CardExpiry(month: month, year: year)
            #expect(expiry == nil)
            #expect(CardExpiry.state(of: expiry, at: now, in: .gmt) == .unknown)
        }
        #expect(CardExpiry.state(of: CardExpiry(month: 1, year: 2020), at: now, in: .gmt) == .expired)
        #expect(CardExpiry.state(of: CardExpiry(month: 1, year: 2999), at: now, in: .gmt) == .valid)
    }

    @Test("PayPal has none, whatever its data says; a status says nothing about expiry")
    func payPal() {
        for (method, status, expected) in [
            ("payPal", "enabled", nil), ("card", "enabled", CardExpiry(month: 1, year: 2020)),
            ("card", "disabled", CardExpiry(month: 1, year: 2020)),
            ("applePay", "enabled", CardExpiry(month: 1, year: 2020)),
        ] as [(String, String, CardExpiry?)] {
            let instrument = InstrumentSnapshot(
                id: InstrumentID(UUID()), holderReference: nil, paymentMethod: method, status: status,
                isDefault: false, displayName: nil, network: nil, suffix: nil, expiryMonth: 1, expiryYear: 2020,
                hasNetworkToken: false, futureUsage: nil)
            #expect(CardExpiry(of: instrument) == expected)
        }
    }

    @Test("E4: it is kept as the month that the card shows")
    func asPrinted() throws {
        let expiry = try #require(CardExpiry(month: 12, year: 2027))
        #expect((expiry.month, expiry.year) == (12, 2027))
        #expect(try #require(CardExpiry(month: 1, year: 2028)) > expiry)
    }

    @Test("the three policies: an expired card is blocked, sent, or sent where it has a network token")
    func policies() {
        for policy in ExpiryPolicy.allCases {
            for hasToken in [false, true] {
                #expect(policy.permits(.valid, hasNetworkToken: hasToken))
                #expect(policy.permits(.unknown, hasNetworkToken: hasToken))
            }
        }
        #expect(!ExpiryPolicy.block.permits(.expired, hasNetworkToken: true))
        #expect(ExpiryPolicy.allow.permits(.expired, hasNetworkToken: false))
        #expect(ExpiryPolicy.allowWithNetworkToken.permits(.expired, hasNetworkToken: true))
        #expect(!ExpiryPolicy.allowWithNetworkToken.permits(.expired, hasNetworkToken: false))
    }
}
