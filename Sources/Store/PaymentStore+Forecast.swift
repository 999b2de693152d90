import Basics
import Foundation
import Lockstep
import Postgres

/// What will be charged, by day and currency.
public struct Forecast: Sendable {
    public struct Row: Sendable {
        public let day: CivilDate
        public let currency: Currency
        public internal(set) var count = 0
        public internal(set) var minor: Int64 = 0
        /// Of these, with a card that will have expired and isn't charged then.
        public internal(set) var expired = 0

        /// The sum can be more than one amount may be, so it is written by itself.
        public var total: String { "\(Forecast.text(minor, currency)) \(currency.code)" }
    }

    private var byKey: [String: Row] = [:]

    /// By day, then by currency.
    public var rows: [Row] {
        byKey.values.sorted { ($0.day, $0.currency.code) < ($1.day, $1.currency.code) }
    }

    /// By currency, in alphabetical order.
    public var totals: [(currency: String, total: (count: Int, text: String))] {
        let currencies = Set(byKey.values.map(\.currency)).sorted { $0.code < $1.code }
        return currencies.map { currency in
            let own = byKey.values.filter { $0.currency == currency }
            let minor = own.reduce(0) { $0 + $1.minor }
            return (currency.code, (own.reduce(0) { $0 + $1.count }, Self.text(minor, currency)))
        }
    }

    mutating func add(_ expected: ExpectedPeriod, isBlocked: Bool) {
        let currency = expected.amount.currency
        let key = "\(expected.period.start) \(currency.code)"
        var row = byKey[key] ?? Row(day: expected.period.start, currency: currency)
        row.count += 1
        row.minor += expected.amount.minor
        if isBlocked { row.expired += 1 }
        byKey[key] = row
    }

    /// Minor units as a decimal.
    static func text(_ minor: Int64, _ currency: Currency) -> String {
        let digits = String(minor)
        guard currency.exponent > 0 else { return digits }
        let padded = String(repeating: "0", count: max(0, currency.exponent + 1 - digits.count)) + digits
        return "\(padded.dropLast(currency.exponent)).\(padded.suffix(currency.exponent))"
    }

    public var json: JSON {
        [
            "days": .array(
                rows.map { row in
                    [
                        "day": .string(row.day.description), "currency": .string(row.currency.code),
                        "charges": JSON(row.count), "total": .string(Self.text(row.minor, row.currency)),
                        "expiredCards": JSON(row.expired),
                    ]
                }),
            "totals": .object(
                Dictionary(
                    totals.map { ($0.currency, ["charges": JSON($0.total.count), "total": .string($0.total.text)]) },
                    uniquingKeysWith: { first, _ in first })),
        ]
    }
}

extension PaymentStore {
    /// Adds up what becomes due until the end of a day, from what is known here. Page by page, so that memory stays flat.
    public func forecast(until day: CivilDate, now: Timestamp) async throws -> Forecast {
        var forecast = Forecast()
        var place: SubscriptionID?
        while true {
            let page = try await listRunningSubscriptions(after: place, limit: 1000)
            guard let last = page.last else { return forecast }
            place = last.id
            let cards = try await readInstruments(page.map(\.instrument))
            for subscription in page {
                let calendar = subscription.calendar(hour: policy.renewal.hour)
                let count = calendar.latestIndex(startingBy: day) - subscription.nextIndex + 1
                guard count > 0 else { continue }
                let card = cards[subscription.instrument]
                for expected in subscription.dates(
                    count, card: card, hour: policy.renewal.hour, expiryZone: policy.expiryZone)
                {
                    let permits = subscription.expiryPolicy.permits(
                        expected.card, hasNetworkToken: card?.hasNetworkToken ?? false)
                    forecast.add(expected, isBlocked: !permits)
                }
            }
        }
    }

    private func readInstruments(_ ids: [InstrumentID]) async throws -> [InstrumentID: InstrumentSnapshot] {
        try await transact { transaction in
            var cards: [InstrumentID: InstrumentSnapshot] = [:]
            for id in Set(ids) { cards[id] = try await transaction.readInstrument(id)?.snapshot }
            return cards
        }
    }
}
