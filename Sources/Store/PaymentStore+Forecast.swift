import Basics
import Foundation
import Lockstep
import Postgres

/// What will be charged, by day and currency, and which cards will have expired by then.
public struct Forecast: Sendable {
    public struct Row: Sendable {
        public let day: CivilDate
        public let currency: Currency
        /// Charges that will be made, and what they come to.
        public internal(set) var count = 0
        public internal(set) var minor: Int64 = 0
        /// Periods that won't be charged, by the reason.
        public internal(set) var notCharged: [SkipReason: Int] = [:]

        /// The sum can be more than one amount may be, so it is written by itself.
        public var total: String { "\(Forecast.text(minor, currency)) \(currency.code)" }
    }

    private var byKey: [String: Row] = [:]
    /// How many cards of running subscriptions will have expired.
    public internal(set) var expiredCards = 0
    /// The first of them, at most ``PaymentStore/listedCards``, by their months.
    public internal(set) var cards: [ExpiringCard] = []

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

    /// - Parameter reason: why it won't be charged.
    mutating func add(_ amount: Money, on day: CivilDate, unless reason: SkipReason?) {
        let key = "\(day) \(amount.currency.code)"
        var row = byKey[key] ?? Row(day: day, currency: amount.currency)
        if let reason {
            row.notCharged[reason, default: 0] += 1
        } else {
            row.count += 1
            row.minor += amount.minor
        }
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
                        "notCharged": .object(
                            Dictionary(
                                row.notCharged.map { ($0.key.rawValue, JSON($0.value)) },
                                uniquingKeysWith: { first, _ in first })),
                    ]
                }),
            "totals": .object(
                Dictionary(
                    totals.map { ($0.currency, ["charges": JSON($0.total.count), "total": .string($0.total.text)]) },
                    uniquingKeysWith: { first, _ in first })),
            "expiredCards": JSON(expiredCards), "cards": .array(cards.map(\.json)),
        ]
    }
}

extension PaymentStore {
    /// Adds up what is charged until the end of a day, from what is known here: periods that become due, and those that
    /// are due and wait for another attempt. Page by page, so that memory stays flat.
    public func forecast(until day: CivilDate, now: Timestamp) async throws -> Forecast {
        var forecast = Forecast()
        (forecast.expiredCards, forecast.cards) = try await readExpiringCards(by: day)
        var place: SubscriptionID?
        while true {
            let page = try await listRunningSubscriptions(after: place, limit: 1000)
            guard let last = page.last else { return forecast }
            place = last.id
            let (cards, open) = try await transact { transaction in
                (
                    try await transaction.readInstruments(Set(page.map(\.instrument))),
                    try await transaction.readOpenCharges(of: page.map(\.id))
                )
            }
            for subscription in page {
                let card = cards[subscription.instrument]
                addOpen(open[subscription.id] ?? [], of: subscription, card, until: day, now: now, to: &forecast)
                addFresh(of: subscription, card, until: day, now: now, to: &forecast)
            }
        }
    }

    /// What was postponed, is tried again, or waits for an instrument. An attempt that runs isn't to come any more.
    private func addOpen(
        _ open: [Charge], of subscription: Subscription, _ card: InstrumentSnapshot?, until day: CivilDate,
        now: Timestamp, to forecast: inout Forecast
    ) {
        for charge in open {
            guard let standing = charge.standing else { continue }
            let due: CivilDate
            let at: Timestamp
            switch standing.standing {
            case .inFlight: continue
            case .scheduled(let time):
                due = CivilDate(of: time, in: subscription.timezone)
                at = max(time, now)
            case .waiting:
                let end = policy.renewal.dunning.windowEnd(dueDay: standing.start, zone: subscription.timezone)
                guard now < end else { continue }
                due = standing.start
                at = now
            }
            guard due <= day else { continue }
            add(charge.amount, of: subscription, at: at, card, to: &forecast)
        }
    }

    /// Periods that have no charge yet. What is late is charged by the next run, or left out, as
    /// `LOCKSTEP_RENEW_MISSED` says.
    private func addFresh(
        of subscription: Subscription, _ card: InstrumentSnapshot?, until day: CivilDate, now: Timestamp,
        to forecast: inout Forecast
    ) {
        let calendar = subscription.calendar(hour: policy.renewal.hour)
        let count = calendar.latestIndex(startingBy: day) - subscription.nextIndex + 1
        guard count > 0 else { return }
        let missed = missedPeriods(of: subscription, now: now)
        for expected in subscription.dates(
            count, card: card, hour: policy.renewal.hour, expiryZone: policy.expiryZone)
        {
            add(
                expected.amount, of: subscription, at: max(expected.dueAt, now), card,
                unless: missed.contains(expected.period.index) ? .missed : nil, to: &forecast)
        }
    }

    private func add(
        _ amount: Money, of subscription: Subscription, at moment: Timestamp, _ card: InstrumentSnapshot?,
        unless reason: SkipReason? = nil, to forecast: inout Forecast
    ) {
        let obstacle = subscription.obstacle(card, at: moment, in: policy.expiryZone)
        forecast.add(amount, on: CivilDate(of: moment, in: subscription.timezone), unless: reason ?? obstacle)
    }

    private func missedPeriods(of subscription: Subscription, now: Timestamp) -> Set<Int> {
        let plan = RenewalPlan(
            for: subscription, open: [], instrument: .unreadable, rules: policy.renewal, now: now)
        return Set(
            plan.steps.compactMap { step -> Int? in
                guard case .skip(let period, .missed) = step else { return nil }
                return period.index
            })
    }
}
