import Basics
import Foundation
import Lockstep
import PayrailsSandbox
import Store
import TestKit
import Testing

@testable import Service

@Suite("Renewals: the right card, on the right day, once", .serialized)
struct RenewalTests {
    private static let shared = Task {
        try await ServiceHarness.shared(["LOCKSTEP_FAILURE_SETTLE_SECONDS": "0", "LOCKSTEP_OVERDUE_AFTER": "1h"])
    }
    private let lockstep: ServiceHarness
    init() async throws { lockstep = try await Self.shared.value }

    @Test("a period is charged when its day has come in the subscription's zone, by its own reference and flags")
    func firstPeriod() async throws {
        let subscription = try await lockstep.subscription(try lockstep.card())
        #expect(try await lockstep.subscription(subscription)["nextChargeOn"] == "2027-01-31")
        try await lockstep.renew("2027-01-30T22:59:59Z")
        #expect(try await lockstep.charges(subscription).isEmpty)
        try await lockstep.renew("2027-01-30T23:00:00Z")
        #expect(try await lockstep.come(to: ["succeeded"], subscription))
        let charge = try #require(try await lockstep.charges(subscription).first)
        #expect(charge["period"] == ["index": 1, "start": "2027-01-31", "end": "2027-02-28"])
        #expect(charge["amount"] == lockstep.money("9.90"))
        let executions = lockstep.executions(subscription, period: 1, attempt: 1)
        #expect(executions.count == 1)
        let authorize = lockstep.sandbox.calls(to: .authorize).last { $0.path.contains(executions.first ?? "-") }
        let composition = authorize?.body?["paymentComposition"]?[0]
        #expect(composition?["paymentProcessingType"] == "Subscription")
        #expect(authorize?.body?["returnInfo"]?["success"] != nil)
        #expect(try await lockstep.subscription(subscription)["nextChargeOn"] == "2027-02-28")
        #expect(try await lockstep.tells(["charge.succeeded"], subscription))
    }

    @Test("R1 R2 R3 R5 R7 D5: eight runs at once, and a moved schedule, charge a period once")
    func runsAtOnce() async throws {
        var subscriptions: [AskedSubscription] = []
        for _ in 0..<6 { subscriptions.append(try await lockstep.subscription(try lockstep.card())) }
        let harness = lockstep
        try await withThrowingTaskGroup { group in
            for _ in 0..<8 { group.addTask { _ = try await harness.renew("2027-01-31T06:00:00Z") } }
            try await group.waitForAll()
        }
        for subscription in subscriptions {
            #expect(try await lockstep.come(to: ["succeeded"], subscription))
            #expect(lockstep.successes(subscription.reference) == [1: 1])
            #expect(lockstep.executions(subscription, period: 1, attempt: 1).count == 1)
            // Once when it was created, and once by the run that took it.
            let reads = lockstep.sandbox.calls(to: .getInstrument).filter { $0.path.contains(subscription.card.id) }
            #expect(reads.count == 2)
        }
        let moved = subscriptions[0]
        let reply = try await lockstep.patch(moved, ["startsOn": "2027-02-11", "effective": "now"])
        #expect(reply.json["nextChargeOn"] == "2027-02-11", "\(reply.text)")
        try await lockstep.renew("2027-02-10T12:00:00Z")
        #expect(lockstep.successes(moved.reference) == [1: 1])
        try await lockstep.renew("2027-02-11T12:00:00Z")
        #expect(try await lockstep.come(to: ["succeeded", "succeeded"], moved))
        let periods = try await lockstep.charges(moved).map { $0["period"] }
        #expect(periods[0] == ["index": 1, "start": "2027-01-31", "end": "2027-02-11"])
        #expect(periods[1] == ["index": 2, "start": "2027-02-11", "end": "2027-03-11"])
    }

    @Test("D4: runs every hour around midnight here and in UTC charge a period once")
    func everyHour() async throws {
        for (zone, day) in [("Pacific/Kiritimati", "2027-03-01"), ("Pacific/Pago_Pago", "2027-03-01")] {
            let subscription = try await lockstep.subscription(
                try lockstep.card(), ["startsOn": .string(day), "timezone": .string(zone)])
            let midnight = try #require(Timestamp(rfc3339: "\(day)T00:00:00Z"))
            for hour in -16...16 { try await lockstep.renew((midnight + .seconds(hour * 3600)).rfc3339) }
            #expect(try await lockstep.come(to: ["succeeded"], subscription))
            #expect(lockstep.successes(subscription.reference) == [1: 1])
        }
    }

    @Test("a soft decline is tried again on its day and hour, never more than allowed, and told once")
    func softDecline() async throws {
        let subscription = try await lockstep.subscription(try lockstep.card("9995"))
        try await lockstep.renew("2027-01-31T06:00:00Z")
        #expect(try await lockstep.come(to: ["scheduled InsufficientBalance"], subscription))
        #expect(try await lockstep.status(subscription) == "pastDue")
        // Days after the due day, at nine in Berlin.
        let times = ["2027-02-03T08:00:00Z", "2027-02-05T08:00:00Z", "2027-02-10T08:00:00Z", "2027-02-17T08:00:00Z"]
        for (index, time) in times.enumerated() {
            let charge = try #require(try await lockstep.charges(subscription).first)
            #expect(charge["nextAttemptAt"]?.string == time)
            let moment = try #require(Timestamp(rfc3339: time))
            try await lockstep.renew((moment - .seconds(1)).rfc3339)
            #expect(lockstep.executions(subscription, period: 1, attempt: index + 2).isEmpty)
            try await lockstep.renew(time)
            #expect(
                try await waitUntil {
                    try await lockstep.charges(subscription).first?["attempts"]?.array?.last?["outcome"] == "failed"
                        && lockstep.executions(subscription, period: 1, attempt: index + 2).count == 1
                })
        }
        #expect(try await lockstep.come(to: ["failed InsufficientBalance"], subscription))
        #expect(try await lockstep.status(subscription) == "pastDue")
        try await lockstep.renew("2027-02-27T08:00:00Z")
        #expect(lockstep.executions(subscription, period: 1, attempt: 6).isEmpty)
        #expect(try await lockstep.tells(["subscription.past_due", "charge.failed"], subscription))
    }

    @Test("the instrument is read at the attempt, so a new card is used at once, and the shop hears of the recovery")
    func newCard() async throws {
        let card = try lockstep.card("9995")
        let subscription = try await lockstep.subscription(card)
        try await lockstep.renew("2027-01-31T06:00:00Z")
        #expect(try await lockstep.come(to: ["scheduled InsufficientBalance"], subscription))
        let better = try lockstep.card(holder: card.holder)
        #expect(try await lockstep.patch(subscription, ["instrumentId": .string(better.id)]).status == 200)
        try await lockstep.renew("2027-02-03T08:00:00Z")
        #expect(try await lockstep.come(to: ["succeeded"], subscription))
        #expect(try await lockstep.status(subscription) == "active")
        #expect(
            try await lockstep.tells(
                ["subscription.past_due", "charge.succeeded", "subscription.recovered"], subscription))
    }

    @Test("R12 R13: a hard decline is never tried again with that card, also not in the next period")
    func hardDecline() async throws {
        let card = try lockstep.card("9987")
        let subscription = try await lockstep.subscription(card)
        try await lockstep.renew("2027-01-31T06:00:00Z")
        #expect(try await lockstep.come(to: ["failed BlockedInstrument"], subscription))
        #expect(try await lockstep.status(subscription) == "needsInstrument")
        for day in ["2027-02-03T08:00:00Z", "2027-02-17T08:00:00Z", "2027-02-28T08:00:00Z"] {
            try await lockstep.renew(day)
        }
        #expect(lockstep.executions(subscription, period: 1, attempt: 2).isEmpty)
        #expect(try await lockstep.fates(subscription) == ["failed BlockedInstrument", "skipped instrument-declined"])
        #expect(lockstep.executions(subscription, period: 2, attempt: 1).isEmpty)
        let better = try lockstep.card(holder: card.holder)
        #expect(try await lockstep.patch(subscription, ["instrumentId": .string(better.id)]).status == 200)
        #expect(try await lockstep.fates(subscription) == ["failed BlockedInstrument", "scheduled"])
        try await lockstep.renew("2027-03-01T08:00:00Z")
        #expect(try await lockstep.come(to: ["failed BlockedInstrument", "succeeded"], subscription))
        #expect(try await lockstep.status(subscription) == "active")
    }

    @Test("the bank's finer word decides too: a blocked card whose holder shall call the bank is tried again")
    func declineDetail() async throws {
        let subscription = try await lockstep.subscription(try lockstep.card())
        lockstep.sandbox.add(
            SandboxOutcomeRule(
                .decline(result: "BlockedInstrument", detail: "ContactIssuer"),
                merchantReference: "\(subscription.reference)~1~1"))
        try await lockstep.renew("2027-01-31T06:00:00Z")
        #expect(try await lockstep.come(to: ["scheduled BlockedInstrument"], subscription))
        #expect(try await lockstep.status(subscription) == "pastDue")
        try await lockstep.renew("2027-02-03T08:00:00Z")
        #expect(try await lockstep.come(to: ["succeeded"], subscription))
    }

    @Test("R11 E1: an expired card is not sent, and its renewal at the issuer makes the charge happen in a later run")
    func expired() async throws {
        let card = try lockstep.card(month: "01", year: "2027")
        let subscription = try await lockstep.subscription(card, ["startsOn": "2027-01-31", "interval": "P1D"])
        // The last day of its month, and the next one, which in the last place on earth begins twelve hours later.
        try await lockstep.renew("2027-01-31T22:59:00Z")
        #expect(try await lockstep.come(to: ["succeeded"], subscription))
        try await lockstep.renew("2027-02-01T11:59:59Z")
        #expect(try await lockstep.come(to: ["succeeded", "succeeded"], subscription))
        try await lockstep.renew("2027-02-02T06:00:00Z")
        #expect(try await lockstep.fates(subscription).last == "skipped instrument-expired")
        #expect(try await lockstep.status(subscription) == "needsInstrument")
        try await lockstep.renew("2027-02-02T07:00:00Z")
        #expect(lockstep.executions(subscription, period: 3, attempt: 1).isEmpty)
        #expect(lockstep.sandbox.changeInstrument(card.id, expiryMonth: "01", expiryYear: "2031").isAccepted)
        try await lockstep.renew("2027-02-02T08:00:00Z")
        #expect(try await lockstep.come(to: ["succeeded", "succeeded", "succeeded"], subscription))
        #expect(
            try await lockstep.tells(
                [
                    "charge.succeeded", "charge.succeeded", "charge.skipped", "subscription.needs_instrument",
                    "subscription.past_due", "charge.succeeded", "subscription.recovered",
                ], subscription))
    }

    @Test("the other policies send an expired card; an unknown expiry is no reason")
    func policies() async throws {
        for (policy, token, month, expected) in [
            ("allow", false, "01", "succeeded"), ("allowWithNetworkToken", true, "01", "succeeded"),
            ("allowWithNetworkToken", false, "01", "skipped instrument-expired"), ("block", false, "", "succeeded"),
        ] {
            let card = try lockstep.card(month: month, year: "2026", hasNetworkToken: token)
            let subscription = try await lockstep.subscription(card, ["expiryPolicy": .string(policy)])
            try await lockstep.renew("2027-01-31T06:00:00Z")
            #expect(try await lockstep.come(to: [expected], subscription), "\(policy) \(token)")
        }
    }

    @Test(
        "R14: a disabled or deleted instrument is not charged; enabled again, it is",
        arguments: ["disabled", "deleted"])
    func noInstrument(_ status: String) async throws {
        let card = try lockstep.card()
        let subscription = try await lockstep.subscription(card)
        #expect(lockstep.sandbox.changeInstrument(card.id, status: status).isAccepted)
        try await lockstep.renew("2027-01-31T06:00:00Z")
        let reason = status == "disabled" ? "instrument-disabled" : "instrument-missing"
        #expect(try await lockstep.fates(subscription) == ["skipped \(reason)"])
        #expect(try await lockstep.status(subscription) == "needsInstrument")
        #expect(lockstep.executions(subscription, period: 1, attempt: 1).isEmpty)
        guard status == "disabled" else { return }
        #expect(lockstep.sandbox.changeInstrument(card.id, status: "enabled").isAccepted)
        try await lockstep.renew("2027-02-01T06:00:00Z")
        #expect(try await lockstep.come(to: ["succeeded"], subscription))
    }

    @Test("R14: enabled again by a PATCH, its period is scheduled in the same moment, and the next run charges it")
    func enabledAgain() async throws {
        let lockstep = try await ServiceHarness.start()
        let card = try lockstep.card(year: "2060")
        // So far ahead that the period's dunning window isn't over by the real clock.
        let subscription = try await lockstep.subscription(card, ["startsOn": "2047-01-31"])
        func set(_ status: String) async throws {
            let body: JSON = ["status": .string(status)]
            let reply = try await lockstep.shop.call("PATCH", "/v1/instruments/\(card.id)", body: body.bytes)
            #expect(reply.status == 200 && reply.json["status"]?.string == status, "\(reply.text)")
        }
        try await set("disabled")
        try await lockstep.renew("2047-01-31T06:00:00Z")
        #expect(try await lockstep.fates(subscription) == ["skipped instrument-disabled"])
        try await set("enabled")
        #expect(try await lockstep.fates(subscription) == ["scheduled"])
        #expect(try await lockstep.status(subscription) == "pastDue")
        try await lockstep.renew("2047-02-01T06:00:00Z")
        #expect(try await lockstep.come(to: ["succeeded"], subscription))
        #expect(lockstep.successes(subscription.reference) == [1: 1])
        #expect(
            try await lockstep.tells(
                [
                    "charge.skipped", "subscription.needs_instrument", "subscription.past_due", "charge.succeeded",
                    "subscription.recovered",
                ], subscription))
        await lockstep.stop()
    }

    @Test("E1: a new expiry that any reading shows schedules what waited; a card that was declined for good doesn't")
    func learned() async throws {
        let lockstep = try await ServiceHarness.start(["LOCKSTEP_FAILURE_SETTLE_SECONDS": "0"])
        let expired = try lockstep.card(month: "01", year: "2020")
        let declined = try lockstep.card("9987", year: "2060", holder: expired.holder)
        let renewed = try await lockstep.subscription(expired, ["startsOn": "2047-01-31"])
        let refused = try await lockstep.subscription(declined, ["startsOn": "2047-01-31"])
        try await lockstep.renew("2047-01-31T06:00:00Z")
        #expect(try await lockstep.come(to: ["skipped instrument-expired"], renewed))
        #expect(try await lockstep.come(to: ["failed BlockedInstrument"], refused))
        func read() async throws {
            #expect(try await lockstep.shop.get("/v1/holders/\(expired.holder)/instruments").status == 200)
        }
        try await read()
        for subscription in [renewed, refused] {
            #expect(try await lockstep.status(subscription) == "needsInstrument", "nothing has changed")
        }
        #expect(lockstep.sandbox.changeInstrument(expired.id, expiryMonth: "01", expiryYear: "2060").isAccepted)
        try await read()
        #expect(try await lockstep.fates(renewed) == ["scheduled"])
        #expect(try await lockstep.status(renewed) == "pastDue")
        #expect(try await lockstep.status(refused) == "needsInstrument")
        try await lockstep.renew("2047-02-01T06:00:00Z")
        #expect(try await lockstep.come(to: ["succeeded"], renewed))
        await lockstep.stop()
    }

    @Test("R17: a timeout that may hide a charge is looked up, never tried again, and paid when Payrails says so")
    func unknown() async throws {
        let subscription = try await lockstep.subscription(try lockstep.card("0119"))
        let summary = try await lockstep.renew("2027-01-31T06:00:00Z")
        #expect(try await lockstep.come(to: ["unknown ProviderTimeout"], subscription))
        #expect(summary.looked >= 1)
        for day in ["2027-02-03T08:00:00Z", "2027-02-10T08:00:00Z"] {
            #expect(try await lockstep.renew(day).isUnfinished)
        }
        #expect(lockstep.executions(subscription, period: 1, attempt: 2).isEmpty)
        let execution = try #require(lockstep.executions(subscription, period: 1, attempt: 1).first)
        #expect(lockstep.sandbox.updateResult(execution, success: true).isAccepted)
        #expect(try await lockstep.come(to: ["succeeded"], subscription))
        #expect(lockstep.successes(subscription.reference) == [1: 1])
    }

    @Test("a challenge without a customer: the execution is cancelled, and the shop is asked to bring the customer")
    func challenge() async throws {
        let subscription = try await lockstep.subscription(try lockstep.card("3220"))
        try await lockstep.renew("2027-01-31T06:00:00Z")
        #expect(
            try await waitUntil {
                try await lockstep.charges(subscription).first?["state"] == "needsCustomer"
            })
        let execution = try #require(lockstep.executions(subscription, period: 1, attempt: 1).first)
        #expect(await waitUntil { lockstep.sandbox.statusCodes(execution).last?.hasPrefix("cancel") ?? false })
        #expect(try await lockstep.tells(["charge.needs_customer", "subscription.past_due"], subscription))
        try await lockstep.renew("2027-02-03T08:00:00Z")
        #expect(lockstep.executions(subscription, period: 1, attempt: 2).isEmpty)
    }

    @Test("R9: a row that can't be read is set aside, and stops no other")
    func badRow() async throws {
        let bad = try await lockstep.subscription(try lockstep.card())
        let good = try await lockstep.subscription(try lockstep.card())
        let id = try #require(UUID(uuidString: bad.id))
        _ = try await lockstep.books.query("UPDATE subscriptions SET timezone = 'Mars/Olympus' WHERE id = \(id)")
        let summary = try await lockstep.renew("2027-01-31T06:00:00Z")
        #expect(summary.broken == 1 && summary.isUnfinished)
        #expect(try await lockstep.come(to: ["succeeded"], good))
        let reason = try await lockstep.books.query("SELECT set_aside FROM subscriptions WHERE id = \(id)")
            .first?.decode("set_aside", as: String?.self)
        #expect(reason?.contains("Mars/Olympus") == true)
        #expect(try await lockstep.renew("2027-01-31T07:00:00Z").broken == 0)
    }

    @Test("pausing and cancelling stop what is planned; what fell into the pause is skipped")
    func pause() async throws {
        let paused = try await lockstep.subscription(try lockstep.card("9995"))
        let cancelled = try await lockstep.subscription(try lockstep.card("9995"))
        try await lockstep.renew("2027-01-31T06:00:00Z")
        for subscription in [paused, cancelled] {
            #expect(try await lockstep.come(to: ["scheduled InsufficientBalance"], subscription))
        }
        for _ in 0..<2 {
            #expect(try await lockstep.shop.post("\(paused.path)/pause").json["status"] == "paused")
            #expect(try await lockstep.shop.post("\(cancelled.path)/cancel").json["status"] == "cancelled")
        }
        #expect(try await lockstep.fates(paused) == ["skipped paused"])
        #expect(try await lockstep.fates(cancelled) == ["skipped cancelled"])
        try await lockstep.renew("2027-02-28T06:00:00Z")
        #expect(lockstep.executions(paused, period: 1, attempt: 2).isEmpty)
        #expect(lockstep.executions(paused, period: 2, attempt: 1).isEmpty)
        #expect(try await lockstep.shop.post("\(paused.path)/resume").json["status"] == "active")
        #expect(try await lockstep.shop.post("\(cancelled.path)/resume").status == 409)
        #expect(
            try await lockstep.tells(
                ["subscription.past_due", "charge.skipped", "subscription.cancelled"], cancelled))
    }

    @Test(
        "what waits to be authorized isn't any more when its subscription is stopped or its card disabled",
        arguments: [
            ("pause", "skipped paused", "paused"), ("cancel", "skipped cancelled", "cancelled"),
            ("disable", "skipped instrument-disabled", "needsInstrument"),
        ])
    func stoppedWhileWaiting(_ step: String, _ fate: String, _ status: String) async throws {
        let card = try lockstep.card()
        let subscription = try await lockstep.subscription(card)
        // Our credentials don't reach this: nothing is sent, nothing is burnt, and it is tried again.
        lockstep.sandbox.add(SandboxFault(.errorBefore(status: 403), on: .authorize, times: nil, containing: card.id))
        try await lockstep.renew("2027-01-31T06:00:00Z")
        #expect(try await lockstep.fates(subscription) == ["processing"])
        if step == "disable" {
            #expect(lockstep.sandbox.changeInstrument(card.id, status: "disabled").isAccepted)
        } else {
            #expect(try await lockstep.shop.post("\(subscription.path)/\(step)").status == 200)
        }
        #expect(try await lockstep.come(to: [fate], subscription))
        #expect(try await lockstep.status(subscription) == status)
        #expect(lockstep.successes(subscription.reference).isEmpty)
        let attempts = try await lockstep.charges(subscription).first?["attempts"]?.array
        #expect(attempts?.count == 1 && attempts?.first?["outcome"] == "cancelled")
    }

    @Test("the last period ends it")
    func ends() async throws {
        let subscription = try await lockstep.subscription(try lockstep.card(), ["maxCharges": 1])
        try await lockstep.renew("2027-01-31T06:00:00Z")
        #expect(try await lockstep.come(to: ["succeeded"], subscription))
        #expect(try await waitUntil { try await lockstep.status(subscription) == "ended" })
        try await lockstep.renew("2027-03-31T06:00:00Z")
        #expect(try await lockstep.fates(subscription) == ["succeeded"])
        #expect(try await lockstep.tells(["charge.succeeded", "subscription.ended"], subscription))
    }

    @Test(
        "a card that will be expired soon is told ahead of time, once for its expiry, unless it is disabled",
        arguments: [("enabled", 1), ("created", 1), ("disabled", 0)])
    func expiring(_ status: String, _ times: Int) async throws {
        let card = try lockstep.card(month: "03", year: "2027")
        _ = try await lockstep.subscription(card)
        #expect(lockstep.sandbox.changeInstrument(card.id, status: status).isAccepted)
        func told() async throws -> Int {
            try await lockstep.feed().filter {
                $0["type"] == "instrument.expiring" && $0["data"]?["instrument"]?["id"]?.string == card.id
            }.count
        }
        try await lockstep.renew("2027-01-20T00:00:00Z")
        #expect(try await told() == 0)
        for day in ["2027-03-05T00:00:00Z", "2027-03-06T00:00:00Z"] { try await lockstep.renew(day) }
        #expect(try await waitUntil { try await told() == times })
    }

    @Test("--dry-run shows the amount that each charge has, whatever the subscription's is by now")
    func dryRun() async throws {
        let subscription = try await lockstep.subscription(try lockstep.card("9995"))
        try await lockstep.renew("2027-01-31T06:00:00Z")
        #expect(try await lockstep.come(to: ["scheduled InsufficientBalance"], subscription))
        #expect(try await lockstep.patch(subscription, ["amount": lockstep.money("12.50")]).status == 200)
        func amounts(_ asOf: String) async throws -> [String] {
            let run = RenewalRun(id: UUID(), asOf: try #require(Timestamp(rfc3339: asOf)))
            let previews = try await lockstep.store.previewRenewals(run, after: nil, limit: 500).previews
            let own = previews.first { $0.subscription.id.description == subscription.id }
            return own?.steps.map { "\($0.amount)" } ?? []
        }
        #expect(try await amounts("2027-02-03T08:00:00Z") == ["9.90 EUR"])
        #expect(try await lockstep.shop.post("\(subscription.path)/cancel").status == 200)
    }
}
