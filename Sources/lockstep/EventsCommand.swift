import Basics
import Foundation
import Lockstep
import Service
import Store

/// `lockstep events`: events on their way to the shop as webhooks.
struct EventsCommand: Command {
    static let name = "events"
    static let summary = "events that the shop hasn't taken: lists them, sends them again"
    static let help = """
        usage: lockstep events [--state dead|pending|delivered] [--limit N] [--json]
               lockstep events --resend EVENT-ID… [--json]
               lockstep events --resend --state dead|pending [--json]

        Lists what is on its way to LOCKSTEP_EVENTS_URL, in the feed's order: what is pending, and what is dead because
        the shop answered 410 or LOCKSTEP_EVENTS_RETRIES is over.

          --resend  has events sent now by the running service, with all their attempts before them. By id also those
                    that were delivered, and those that are older than the address. With --state pending after the
                    shop was down: nobody waits for the next attempt. The shop sees the same webhook-id as before.
          --state   only these
          --limit   how many are listed, 1 to 10000 (100)

        Each checkout's events are sent in order: while one is pending, the later ones of its checkout wait behind it,
        until it is delivered or dead. Events without a checkout wait for nothing.

        Exit 1 when an id is of no event.
        """

    private enum Action {
        case list(Set<DeliveryState>, limit: Int)
        case resend([EventID])
        case resendAll(DeliveryState)
    }
    private let action: Action
    private let asJSON: Bool

    init(_ arguments: inout Arguments) throws {
        asJSON = arguments.flag("--json")
        let resends = arguments.flag("--resend")
        let state = try arguments.value("--state").map { word in
            guard let state = DeliveryState(rawValue: word) else {
                throw UsageError(message: "--state is dead, pending or delivered")
            }
            return state
        }
        guard resends else {
            let limit = try arguments.value("--limit").map { Int($0) ?? 0 } ?? 100
            guard (1...10_000).contains(limit) else { throw UsageError(message: "--limit is 1 to 10000") }
            action = .list(state.map { [$0] } ?? [.pending, .dead], limit: limit)
            return
        }
        var ids: [EventID] = []
        while let word = arguments.word() {
            guard let id = EventID(word) else { throw UsageError(message: "\"\(word)\" is not the id of an event") }
            ids.append(id)
        }
        switch (state, ids.isEmpty) {
        case (nil, false): action = .resend(ids)
        case (.dead?, true), (.pending?, true): action = .resendAll(state ?? .dead)
        default: throw UsageError(message: "--resend needs ids, or --state dead, or --state pending")
        }
    }

    func run() async throws -> ExitCode {
        let settings = try Settings(environment: ProcessInfo.processInfo.environment, for: .database)
        if settings.events.url == nil {
            Terminal.say("lockstep events: LOCKSTEP_EVENTS_URL isn't set here; only a service that has it sends events")
        }
        return try await settings.withBooks(perform)
    }

    private func perform(_ store: PaymentStore) async throws -> ExitCode {
        switch action {
        case .list(let states, let limit):
            let deliveries = try await store.readDeliveries(states, limit: limit)
            if asJSON {
                print(JSON.array(deliveries.map(\.json)).text)
            } else {
                for delivery in deliveries { print(delivery.line) }
            }
            if deliveries.count == limit { Terminal.say("there may be more: --limit") }
        case .resend(let ids):
            let known = try await store.resendDeliveries(ids)
            tell(known.count)
            let unknown = ids.filter { !known.contains($0) }
            for id in unknown { Terminal.say("lockstep events: there is no event \(id)") }
            if !unknown.isEmpty { return .needsPerson }
        case .resendAll(let state):
            tell(try await store.resendDeliveries(in: state))
        }
        return .done
    }

    private func tell(_ count: Int) {
        let json: JSON = ["toBeSent": JSON(count)]
        print(asJSON ? json.text : "\(count) to be sent")
    }
}

extension EventDelivery {
    fileprivate var json: JSON {
        .compact([
            "id": .string(event.description), "type": .string(type),
            "checkoutId": checkout.map { .string($0.description) }, "state": .string(state.rawValue),
            "attempts": JSON(attempts), "queuedAt": .string(queuedAt.rfc3339),
            "lastAttemptAt": lastAttemptAt.map { .string($0.rfc3339) }, "lastStatus": lastStatus.map { JSON($0) },
            "lastFailure": lastFailure.map { .string($0.rawValue) },
            "nextAttemptAt": nextAttemptAt.map { .string($0.rfc3339) },
        ])
    }

    fileprivate var line: String {
        let last = lastStatus.map { "status \($0)" } ?? lastFailure?.rawValue ?? "not tried"
        let next =
            switch (state, nextAttemptAt) {
            case (.pending, let time?): "  next \(time.rfc3339)"
            case (.pending, nil): "  waits behind another"
            default: ""
            }
        return
            "\(event)  \(type)  \(checkout?.description ?? "-")  \(state.rawValue)  attempts \(attempts)  \(last)\(next)"
    }
}
