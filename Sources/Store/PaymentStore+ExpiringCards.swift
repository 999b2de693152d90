import Basics
import Foundation
import Lockstep
import Postgres

/// A card that will have expired, with the running subscriptions that are charged to it.
public struct ExpiringCard: Sendable {
    public struct Use: Sendable {
        public let subscription: SubscriptionID
        public let merchantReference: String
        /// Why it isn't charged then; nil where it is charged all the same, as its policy says.
        public let obstacle: SkipReason?
    }

    public let instrument: InstrumentSnapshot
    /// The first of them, at most ``PaymentStore/listedUses``.
    public let uses: [Use]
    public let useCount: Int

    public var json: JSON {
        .compact([
            "instrumentId": .string(instrument.id.description),
            "holderReference": instrument.holderReference.map(JSON.string),
            "paymentMethod": .string(instrument.paymentMethod), "network": instrument.network.map(JSON.string),
            "suffix": instrument.suffix.map(JSON.string), "status": .string(instrument.status),
            "expiry": .compact([
                "month": instrument.expiryMonth.map { JSON($0) }, "year": instrument.expiryYear.map { JSON($0) },
            ]),
            "subscriptionCount": JSON(useCount),
            "subscriptions": .array(
                uses.map { use in
                    .compact([
                        "id": .string(use.subscription.description),
                        "merchantReference": .string(use.merchantReference), "isCharged": .bool(use.obstacle == nil),
                        "reason": use.obstacle.map { .string($0.rawValue) },
                    ])
                }),
        ])
    }

    /// For people.
    public var line: String {
        let month = CardExpiry(of: instrument).map { String("\($0.lastDay)".prefix(7)) } ?? "-"
        var words = uses.map { use in
            let fate = use.obstacle.map { "not charged: \($0.rawValue)" } ?? "charged all the same"
            return "\(use.merchantReference) \(use.subscription) (\(fate))"
        }
        if useCount > uses.count { words.append("and \(useCount - uses.count) more") }
        let name = "\(instrument.network ?? instrument.paymentMethod) \(instrument.suffix ?? "-")"
        return "card\t\(instrument.id)\t\(name)\texpires \(month)\t\(words.joined(separator: ", "))"
    }
}

extension PaymentStore {
    /// How many cards a forecast lists, and how many subscriptions with each; all are counted.
    public static let listedCards = 1000
    public static let listedUses = 20

    /// The cards of running subscriptions that will have expired on a day, those first that expire first.
    func readExpiringCards(by day: CivilDate) async throws -> (count: Int, cards: [ExpiringCard]) {
        try await transact { transaction in
            let expired = Self.isExpired(before: day)
            let rows = try await transaction.pipeline([
                "SELECT count(*) AS cards FROM instruments WHERE \(unescaped: expired)",
                """
                SELECT \(unescaped: Transaction.instrumentColumns) FROM instruments WHERE \(unescaped: expired)
                ORDER BY expiry_year, expiry_month, id LIMIT \(Self.listedCards)
                """,
            ])
            let count = try rows[0].first?.decode(Int.self) ?? 0
            let instruments = try rows[1].map { try Transaction.instrument(from: $0).snapshot }
            let (uses, counts) = try await transaction.readUses(of: instruments.map(\.id), limit: Self.listedUses)
            // Any moment of that day will do, where "this month" is read.
            let moment = day.moment(atHour: 12, in: policy.expiryZone)
            return (
                count,
                instruments.map { instrument in
                    ExpiringCard(
                        instrument: instrument,
                        uses: (uses[instrument.id] ?? []).map { subscription in
                            ExpiringCard.Use(
                                subscription: subscription.id, merchantReference: subscription.merchantReference,
                                obstacle: subscription.obstacle(instrument, at: moment, in: policy.expiryZone))
                        },
                        useCount: counts[instrument.id] ?? 0)
                }
            )
        }
    }

    /// Cards that running subscriptions are charged to, and whose month is before the day's. What has no expiry (PayPal)
    /// has none here, whatever stands in its data.
    private static func isExpired(before day: CivilDate) -> String {
        """
        expiry_year * 12 + expiry_month < \(day.year * 12 + day.month)
            AND status <> 'deleted' AND lower(payment_method) <> 'paypal'
            AND EXISTS (SELECT FROM subscriptions WHERE instrument_id = instruments.id
                AND subscriptions.status IN ('active','pastDue','needsInstrument') AND set_aside IS NULL)
        """
    }
}

extension Transaction {
    /// Running subscriptions that are charged to instruments: the first of each, and how many there are.
    fileprivate func readUses(
        of instruments: [InstrumentID], limit: Int
    ) async throws -> (first: [InstrumentID: [Subscription]], counts: [InstrumentID: Int]) {
        guard !instruments.isEmpty else { return ([:], [:]) }
        let ids = instruments.map(\.uuid)
        let rows = try await pipeline([
            """
            SELECT own.* FROM unnest(\(ids)) AS cards(card)
            CROSS JOIN LATERAL (SELECT \(unescaped: Self.subscriptionColumns) FROM subscriptions
                WHERE instrument_id = card AND status IN ('active','pastDue','needsInstrument') AND set_aside IS NULL
                ORDER BY id LIMIT \(limit)) AS own
            """,
            """
            SELECT instrument_id, count(*) AS uses FROM subscriptions
            WHERE instrument_id = ANY(\(ids)) AND status IN ('active','pastDue','needsInstrument')
                AND set_aside IS NULL
            GROUP BY instrument_id
            """,
        ])
        let first = Dictionary(grouping: try rows[0].map(Self.subscription(from:)), by: \.instrument)
        var counts: [InstrumentID: Int] = [:]
        for row in rows[1] {
            let (id, count) = try row.decode((UUID, Int).self)
            counts[InstrumentID(id)] = count
        }
        return (first, counts)
    }
}
