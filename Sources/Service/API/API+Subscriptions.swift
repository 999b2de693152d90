import Basics
import Foundation
import Lockstep
import Store

extension API {
    /// `POST /v1/subscriptions`
    func createSubscription(_ request: Request) async throws -> Answer {
        let new = try newSubscription(request)
        if let opening = try await store.findSubscription(new.merchantReference, by: new.request) {
            return try created(opening)
        }
        // Not before: what was opened by the same request yesterday is known by it.
        let earliest = CivilDate(of: clock.now(), in: .gmt).adding(days: -Self.longestPastDays)
        guard new.startsOn >= earliest else {
            throw Problem.invalid("/startsOn", "must not be more than \(Self.longestPastDays) days ago")
        }
        try await check(new.instrument, of: new.holderReference)
        return try created(try await store.openSubscription(new))
    }

    /// How long ago a new subscription may have begun, in days: long enough for every shop that moves here with
    /// subscriptions that run, and for none that wrote 2006 for 2026, whose customer would be charged for twenty years.
    private static let longestPastDays = 366

    private func newSubscription(_ request: Request) throws -> NewSubscription {
        let identity = try request.identity()
        return try request.read { body in
            let reference = body.reference("merchantReference")
            if reference.contains(options.references.separator) {
                body.fault("merchantReference", "must not contain \"\(options.references.separator)\"")
            }
            let startsOn = body.date("startsOn")
            let endsOn = body.optional.date("endsOn")
            if let endsOn, endsOn < startsOn { body.fault("endsOn", "must not be before startsOn") }
            return NewSubscription(
                merchantReference: reference, holderReference: body.reference("holderReference"),
                instrument: body.id("instrumentId"), workflowCode: options.workflowCode, amount: body.money("amount"),
                interval: interval(body), startsOn: startsOn,
                timezone: body.parsed("timezone", standIn: .gmt, "must be a zone of IANA, like \"Europe/Berlin\"") {
                    TimeZone(iana: $0)
                },
                endsOn: endsOn, maxCharges: body.optional.integer("maxCharges", in: API.chargeCounts),
                expiryPolicy: body.optional.choice("expiryPolicy", of: ExpiryPolicy.self) ?? .block,
                meta: body.optional.freeObject("meta"), request: identity)
        }
    }

    private func interval(_ body: FieldReader) -> BillingInterval {
        let standIn = BillingInterval.monthly
        let text = body.string("interval")
        guard !text.isEmpty else { return standIn }
        do throws(BillingInterval.Fault) {
            return try BillingInterval(text)
        } catch {
            body.fault("interval", error.detail)
            return standIn
        }
    }

    private static let chargeCounts = 1...100_000

    /// Refuses an instrument that isn't the holder's, and learns what it shows.
    private func check(_ instrument: InstrumentID, of holder: String) async throws {
        switch await orchestrator.look(at: instrument, of: holder) {
        case .found(let snapshot):
            guard !snapshot.isDeleted else { throw Problem.missingInstrument }
            try await store.learnInstruments([snapshot], holder: holder)
        case .anotherHolder: throw Problem(.instrumentOfAnotherHolder)
        case .missing: throw Problem.missingInstrument
        case .unavailable(_, let error): throw Problem.provider(error)
        }
    }

    private func created(_ opening: PaymentStore.SubscriptionOpening) throws -> Answer {
        switch opening {
        case .opened(let subscription), .known(let subscription):
            return .created(subscription.json, location: "/v1/subscriptions/\(subscription.id)")
        case .referenceTaken:
            throw Problem(
                .referenceExists, "an order, a charge or another subscription has this merchantReference",
                faults: [Fault("/merchantReference", "is taken already")])
        }
    }

    /// `GET /v1/subscriptions/{id}`
    func readSubscription(_ request: Request) async throws -> Answer {
        guard let subscription = try await store.readSubscription(try request.id()) else { throw Problem.notFound }
        return .ok(subscription.json)
    }

    /// `GET /v1/subscriptions?holderReference=`: a page, newest first.
    func listSubscriptions(_ request: Request) async throws -> Answer {
        let query = try request.readQuery { query in
            let holder = query.reference("holderReference")
            if holder == nil { query.fault("holderReference", "is required") }
            return (
                holder: holder ?? "", limit: query.limit(),
                after: query.parsed("after", "must be the next of an earlier page") { SubscriptionID($0) }
            )
        }
        let found = try await store.listSubscriptions(
            holderReference: query.holder, after: query.after, limit: query.limit + 1)
        let page = found.prefix(query.limit)
        let next = found.count > query.limit ? page.last : nil
        return .ok(
            .compact(["items": .array(page.map(\.json)), "next": next.map { .string($0.id.description) }]))
    }

    /// `GET /v1/subscriptions/{id}/charges`: a page, the newest period first.
    func listSubscriptionCharges(_ request: Request) async throws -> Answer {
        let query = try request.readQuery { query in
            (
                limit: query.limit(),
                after: query.parsed("after", "must be the next of an earlier page", Self.period)
            )
        }
        let found = try await store.listCharges(
            of: try request.id(), afterPeriod: query.after, limit: query.limit + 1)
        guard let found else { throw Problem.notFound }
        let page = found.prefix(query.limit)
        let next = found.count > query.limit ? page.last?.period?.index : nil
        return .ok(.compact(["items": .array(page.map(\.json)), "next": next.map { .string(String($0)) }]))
    }

    /// The number of a period, behind which its subscription's charges go on. They count from 1.
    private static func period(_ text: String) -> Int? {
        guard text.utf8.allSatisfy({ (0x30...0x39).contains($0) }), let number = Int(text), number > 0 else {
            return nil
        }
        return number
    }

    /// `PATCH /v1/subscriptions/{id}`
    func changeSubscription(_ request: Request) async throws -> Answer {
        let id: SubscriptionID = try request.id()
        let change = try request.read { body in
            var change = Subscription.Change()
            change.amount = body.optional.money("amount")
            change.instrument = body.optional.id("instrumentId")
            change.startsOn = body.optional.date("startsOn")
            change.endsOn = Self.setting(body.optional.change("endsOn") { $0.date($1) })
            change.maxCharges = Self.setting(
                body.optional.change("maxCharges") { $0.integer($1, in: API.chargeCounts) })
            change.expiryPolicy = body.optional.choice("expiryPolicy")
            change.meta = body.optional.freeObject("meta")
            change.effective = body.optional.choice("effective") ?? .nextPeriod
            return change
        }
        guard let subscription = try await store.readSubscription(id) else { throw Problem.notFound }
        if let instrument = change.instrument, instrument != subscription.instrument {
            try await check(instrument, of: subscription.holderReference)
        }
        return try answer(try await store.changeSubscription(id, change))
    }

    private static func setting<Value>(_ change: Change<Value>) -> Subscription.Setting<Value> {
        switch change {
        case .leave: .leave
        case .clear: .clear
        case .set(let value): .set(value)
        }
    }

    /// `POST /v1/subscriptions/{id}/pause`
    func pauseSubscription(_ request: Request) async throws -> Answer { try await step(.pause, request) }
    /// `POST /v1/subscriptions/{id}/resume`
    func resumeSubscription(_ request: Request) async throws -> Answer { try await step(.resume, request) }
    /// `POST /v1/subscriptions/{id}/cancel`
    func cancelSubscription(_ request: Request) async throws -> Answer { try await step(.cancel, request) }

    private func step(_ step: PaymentStore.SubscriptionStep, _ request: Request) async throws -> Answer {
        try request.read { _ in }
        return try answer(try await store.stepSubscription(try request.id(), step))
    }

    private func answer(_ result: PaymentStore.SubscriptionChangeResult) throws -> Answer {
        switch result {
        case .changed(let subscription):
            bells.feed.ring()
            return .ok(subscription.json)
        case .notFound: throw Problem.notFound
        case .refused(let refusal):
            guard let fault = refusal.fault else { throw Problem(.conflict, "the subscription is over") }
            throw Problem.invalid(fault.pointer, fault.detail)
        }
    }
}
