import Basics
import Foundation
import Lockstep
import Service
import Store

/// `lockstep forecast`: what will be charged when, and which cards will have expired by then.
struct ForecastCommand: Command {
    static let name = "forecast"
    static let summary = "what will be charged until a day, and which cards will have expired by then"
    static let help = """
        usage: lockstep forecast --until DATE [--json]
               lockstep forecast --explain SUBSCRIPTION [--json]

        Adds up, by day and currency, what running subscriptions are charged until the end of that day in each one's zone:
        periods that become due, and those that are tried again. Periods that won't be charged are counted with the reason.
        Then come the cards that will have expired, each with its subscriptions and whether they are charged all the same;
        at most \(PaymentStore.listedCards) of them, and \(PaymentStore.listedUses) subscriptions each. Cards are taken as
        they were when they were last seen.

          --explain  the next 24 dates of one subscription, and why
        """

    private enum Action {
        case until(CivilDate)
        case explain(SubscriptionID)
    }
    private let action: Action
    private let asJSON: Bool

    init(_ arguments: inout Arguments) throws {
        asJSON = arguments.flag("--json")
        switch (try arguments.value("--until"), try arguments.value("--explain")) {
        case (let word?, nil):
            guard let day = CivilDate(word) else { throw UsageError(message: "--until is a day like 2026-12-31") }
            action = .until(day)
        case (nil, let word?):
            guard let id = SubscriptionID(word) else { throw UsageError(message: "\"\(word)\" is not an id") }
            action = .explain(id)
        default: throw UsageError(message: "needs --until or --explain, and not both")
        }
    }

    func run() async throws -> ExitCode {
        let settings = try Settings(environment: ProcessInfo.processInfo.environment, for: .database)
        return try await settings.withBooks(policy: try settings.storePolicy()) { store in
            switch action {
            case .until(let day): tell(try await store.forecast(until: day, now: .systemNow))
            case .explain(let id): try await explain(id, store, settings)
            }
        }
    }

    private func tell(_ forecast: Forecast) -> ExitCode {
        if asJSON {
            print(forecast.json.text)
            return .done
        }
        for row in forecast.rows {
            let reasons = row.notCharged.sorted { $0.key.rawValue < $1.key.rawValue }
            let rest = reasons.map { "\t\($0.value) not charged: \($0.key.rawValue)" }.joined()
            print("\(row.day)\t\(row.count)\t\(row.total)\(rest)")
        }
        for (currency, total) in forecast.totals { print("total\t\(total.count)\t\(total.text) \(currency)") }
        for card in forecast.cards { print(card.line) }
        if forecast.cards.count < forecast.expiredCards {
            Terminal.say("\(forecast.expiredCards) cards will have expired; \(forecast.cards.count) are listed")
        }
        return .done
    }

    private func explain(_ id: SubscriptionID, _ store: PaymentStore, _ settings: Settings) async throws -> ExitCode {
        guard let subscription = try await store.readSubscription(id) else {
            Terminal.say("lockstep forecast: there is no subscription \(id)")
            return .needsPerson
        }
        let known = try await store.readInstrument(subscription.instrument)?.snapshot
        let dates = subscription.dates(
            24, card: known, hour: settings.renewal.hour, expiryZone: settings.renewal.expiryZone)
        if asJSON {
            print(JSON.array(dates.map(\.json)).text)
            return .done
        }
        if !subscription.status.runs { print("nothing is charged: it is \(subscription.status.rawValue)") }
        for date in dates { print(date.line) }
        if dates.count < 24 { print("no more: endsOn or maxCharges") }
        return .done
    }
}
