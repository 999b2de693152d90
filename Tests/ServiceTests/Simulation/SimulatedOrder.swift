import Basics
import Foundation
import Lockstep
import PayrailsSandbox
import Synchronization

@testable import Service

/// One order: its shop, its customer, and what the two were told.
final class SimulatedOrder: Sendable {
    /// What the customer is like.
    enum Habit: String, CaseIterable, Sendable {
        case pays, leaves, paysInTwoTabs, tipsInAnotherTab, paysInAnOldTab, tipsWhilePaying, isCancelledWhilePaying
        case comesBack, ignoresTheGate
    }

    let number: Int
    let reference: String
    let habit: Habit
    /// With two decimals, with none, with three.
    let currency: Currency
    let simulation: Simulation
    private let told = Mutex(Told())

    private struct Told {
        var checkout: String?
        var token: String?
        /// What the app was told last: the amount and its version.
        var amount: Money?
        var version: Int64 = 0
        var amounts: [Int64: Set<Money>] = [:]
        var executions: [String] = []
        /// What the shop was told to be the end of an operation.
        var verdicts: [String: String] = [:]
    }

    init(number: Int, simulation: Simulation) {
        self.number = number
        self.simulation = simulation
        reference = "order-\(number)"
        var dice = Dice(seed: simulation.seed, actor: number)
        habit = dice.pick(Habit.allCases)
        currency = dice.pick(["EUR", "EUR", "EUR", "JPY", "KWD"].compactMap { Currency(code: $0) })
    }

    var checkout: String? { told.withLock(\.checkout) }
    /// Which amounts the app was ever told for a version; more than one is a lie.
    var amounts: [Int64: Set<Money>] { told.withLock(\.amounts) }
    var verdicts: [String: String] { told.withLock(\.verdicts) }
    private var execution: String? { told.withLock { $0.executions.last } }
    private var amount: Money? { told.withLock(\.amount) }
    private var page: Page? {
        told.withLock { told in told.executions.last.map { Page(execution: $0, amount: told.amount) } }
    }

    /// What a customer sees: by what is paid, and how much. Nil: the SDK takes what Payrails has.
    private struct Page {
        let execution: String
        let amount: Money?
    }

    func live() async {
        var dice = Dice(seed: simulation.seed, actor: number * 10 + 100)
        await simulation.pause(dice.moment(0...80))
        guard await create(&dice) else { return }
        let shop = Task { await runShop() }
        await act(&dice)
        await shop.value
    }

    // MARK: calls

    /// Calls until there is an answer that means something, as a careful client does: the same request, the same key.
    private func call(
        _ method: String, _ path: String, _ body: JSON? = nil, key: String? = nil, version: Int64? = nil,
        asApp: Bool = false, until isEnough: (Answer) -> Bool = { $0.status < 500 && !$0.asksToRetry }
    ) async -> Answer? {
        var dice = Dice(seed: simulation.seed, actor: number * 10 + 5000)
        for _ in 0..<500 {
            if let answer = await once(method, path, body, key: key, version: version, asApp: asApp),
                isEnough(answer)
            {
                return answer
            }
            await simulation.pause(dice.moment(5...30))
        }
        simulation.note("\(method) \(path) never got an answer")
        return nil
    }

    private func once(
        _ method: String, _ path: String, _ body: JSON? = nil, key: String? = nil, version: Int64? = nil,
        asApp: Bool = false
    ) async -> Answer? {
        var headers = HTTPHeaders()
        let token = asApp ? told.withLock(\.token) : nil
        headers["Authorization"] = "Bearer \(token ?? simulation.key)"
        if body != nil { headers["Content-Type"] = "application/json" }
        if let key { headers["Idempotency-Key"] = key }
        if let version { headers["If-Match"] = "\"\(version)\"" }
        return await simulation.send(
            IncomingRequest(
                method: method, path: path, headers: headers, body: body?.bytes ?? Data(),
                receivedAt: simulation.time.wallClock.now()))
    }

    private func hear(_ json: JSON?, execution: String? = nil) {
        guard let json else { return }
        told.withLock { told in
            if let version = json["amountVersion"]?.integer, let amount = json["amount"].flatMap(Self.money) {
                told.amounts[version, default: []].insert(amount)
                if version >= told.version {
                    told.version = version
                    told.amount = amount
                }
            }
            if let execution, !told.executions.contains(execution) { told.executions.append(execution) }
        }
    }

    private static func money(_ json: JSON) -> Money? {
        guard let value = json["value"]?.string, let currency = json["currency"]?.string.flatMap({ Currency(code: $0) })
        else { return nil }
        return try? Money(value: value, currency: currency)
    }

    // MARK: the customer

    private func create(_ dice: inout Dice) async -> Bool {
        let cents = dice.number(1000...9999)
        let amount = Money(minor: Int64(cents), currency: currency)
        let answer = await call(
            "POST", "/v1/checkouts",
            [
                "merchantReference": .string(reference), "holderReference": "cust_77",
                "amount": amount?.json ?? .null,
                "amountPolicy": ["clientMayUpdate": true],
            ], key: "create-\(number)", until: { $0.status < 500 && !$0.asksToRetry })
        guard let answer, answer.status == 201, let json = answer.json else {
            // After a day in the dark nobody remembers the request's key.
            if let answer, simulation.plan.outage == nil || answer.status != 409 {
                simulation.note("\(reference) was refused: \(answer.status) \(answer.text)")
            }
            return false
        }
        told.withLock { told in
            told.checkout = json["id"]?.string
            told.token = json["clientToken"]?.string
        }
        hear(json, execution: json["executionId"]?.string)
        return true
    }

    private var path: String { "/v1/checkouts/\(checkout ?? "")" }

    private func act(_ dice: inout Dice) async {
        await simulation.pause(dice.moment(0...30))
        switch habit {
        case .leaves: return
        case .pays: await pay(&dice)
        case .ignoresTheGate:
            for _ in 0..<2 {
                if dice.chance(0.5) { await tip(&dice) }
                await pay(&dice, minding: false)
            }
        case .comesBack:
            for _ in 0..<3 {
                await pay(&dice)
                await simulation.pause(dice.moment(0...60))
                await newSession(&dice)
            }
            await pay(&dice)
        case .paysInTwoTabs:
            await withTaskGroup { group in
                for tab in 0..<2 {
                    var own = Dice(seed: simulation.seed, actor: number * 10 + 200 + tab)
                    group.addTask {
                        if own.chance(0.7) { await self.newSession(&own) }
                        await self.pay(&own, minding: own.chance(0.5))
                    }
                }
            }
        case .tipsInAnotherTab:
            // A page that was left open still shows what there was to pay then.
            guard let old = page else { return }
            await tip(&dice)
            await pay(&dice, on: old)
            await pay(&dice)
        case .paysInAnOldTab:
            guard let old = page else { return }
            await newSession(&dice, "expired")
            if dice.chance(0.8) { await tip(&dice) }
            await pay(&dice, on: Page(execution: old.execution, amount: nil), minding: false)
            if dice.chance(0.5) { await pay(&dice) }
        case .tipsWhilePaying:
            await withTaskGroup { group in
                for hand in 0..<2 {
                    var own = Dice(seed: simulation.seed, actor: number * 10 + 300 + hand)
                    group.addTask {
                        for _ in 0..<own.number(1...3) { await self.tip(&own) }
                    }
                }
                var own = Dice(seed: simulation.seed, actor: number * 10 + 310)
                group.addTask {
                    await self.simulation.pause(own.moment(0...40))
                    await self.pay(&own, minding: own.chance(0.7))
                    await self.pay(&own)
                }
            }
        case .isCancelledWhilePaying:
            await withTaskGroup { group in
                var own = Dice(seed: simulation.seed, actor: number * 10 + 400)
                group.addTask {
                    await self.simulation.pause(own.moment(0...60))
                    _ = await self.call("POST", self.path + "/cancel", [:], key: "give-up-\(self.number)")
                }
                var other = Dice(seed: simulation.seed, actor: number * 10 + 401)
                group.addTask { await self.pay(&other, minding: other.chance(0.6)) }
            }
        }
    }

    private func newSession(_ dice: inout Dice, _ reason: JSON? = nil) async {
        let body: JSON = if let reason { ["reason": reason] } else { dice.chance(0.7) ? ["reason": "expired"] : [:] }
        guard
            let answer = await call(
                "POST", path + "/session", body, asApp: true,
                until: { $0.status == 200 || ($0.status < 500 && !$0.text.contains("amount-")) })
        else { return }
        if answer.status == 200 { hear(answer.json, execution: answer.json?["executionId"]?.string) }
    }

    private func tip(_ dice: inout Dice) async {
        guard let amount, let version = Optional(told.withLock(\.version)) else { return }
        let value = Money(minor: amount.minor + Int64(dice.number(-300...900)), currency: amount.currency) ?? amount
        let isAlias = dice.chance(0.3)
        let answer: Answer?
        if isAlias, let execution {
            answer = await once("POST", "/v1/executions/\(execution)/update", value.json, asApp: true)
        } else {
            answer = await once("PUT", path + "/amount", ["amount": value.json], version: version, asApp: true)
        }
        if let answer, answer.status == 200 { hear(answer.json) }
        // What went wrong is read again, as the contract tells apps to.
        if answer?.status != 200, let read = await once("GET", path, asApp: true), read.status == 200 {
            hear(read.json)
        }
        await simulation.pause(dice.moment(0...20))
    }

    /// - Parameters:
    ///   - old: what the page shows; nil: what the app knows now.
    private func pay(_ dice: inout Dice, on old: Page? = nil, minding gate: Bool = true) async {
        guard let page = old ?? page else { return }
        let (execution, amount) = (page.execution, page.amount)
        if gate, let amount {
            let body: JSON = [
                "executionId": .string(execution), "paymentMethodCode": "card", "amount": amount.json,
            ]
            guard let answer = await once("POST", "/v1/pre-payment", body, asApp: true),
                answer.status == 200, answer.json?["decision"]?.string == "proceed"
            else { return }
            // Typing takes a while, and not as long as the gate's word is good for.
            await simulation.pause(dice.moment(0...80))
            let there = simulation.sandbox.execution(execution)?["amount"].flatMap(Self.money)
            if there != amount {
                simulation.note(
                    "M5: \(reference) may pay \(amount.value) by \(execution), where Payrails has "
                        + "\(there?.value ?? "nothing")")
            }
        }
        var payment = PayrailsSandbox.Payment()
        payment.amount = dice.chance(0.9) ? amount : nil
        payment.outcome = dice.pick([
            .success, .success, .success, .success, .threeDS, .decline(result: "InsufficientBalance"),
            .cascade(result: "GenericRejection"), .redirect,
        ])
        guard simulation.sandbox.pay(execution, payment).isAccepted else { return }
        await simulation.pause(dice.moment(5...40))
        switch dice.number(0...5) {
        case 0: _ = simulation.sandbox.abandon(execution)
        case 1: _ = simulation.sandbox.answerChallenge(execution, .fail)
        default: _ = simulation.sandbox.answerChallenge(execution, .success)
        }
    }

    // MARK: the shop

    /// Sends when it is paid, in parts, and takes some of it back.
    private func runShop() async {
        var dice = Dice(seed: simulation.seed, actor: number * 10 + 600)
        let intends = dice.number(0...9)
        guard intends > 0 else { return }
        let end = simulation.time.now + dice.moment(400...900)
        var paid: JSON?
        while paid == nil, simulation.time.now < end {
            await simulation.pause(dice.moment(20...60))
            if let read = await once("GET", path), read.json?["status"]?.string == "paid" { paid = read.json }
        }
        guard let paid, let amount = paid["amount"].flatMap(Self.money),
            let execution = paid["paidBy"]?.string
                ?? paid["executions"]?.array?.first(where: {
                    $0["state"]?.string == "authorized"
                })?["id"]?.string
        else { return }
        if intends == 1 {
            await operate("cancel", execution, [:], &dice)
            return
        }
        let part = Money(minor: Int64(dice.number(1...Int(amount.minor))), currency: amount.currency) ?? amount
        if intends == 2 {
            await operate("capture", execution, [:], &dice)
        } else {
            await withTaskGroup { group in
                for half in 0..<2 {
                    var own = Dice(seed: simulation.seed, actor: number * 10 + 700 + half)
                    group.addTask {
                        let body: JSON = own.chance(0.8) ? ["amount": part.json] : ["amount": part.json, "final": true]
                        await self.operate("capture", execution, body, &own)
                    }
                }
            }
        }
        for _ in 0..<dice.number(0...2) {
            let back = Money(minor: Int64(dice.number(1...Int(part.minor))), currency: amount.currency) ?? part
            await operate("refund", execution, dice.chance(0.7) ? ["amount": back.json] : [:], &dice)
        }
        if dice.chance(0.2) { await operate("cancel", execution, [:], &dice) }
    }

    private func operate(_ action: String, _ execution: String, _ body: JSON, _ dice: inout Dice) async {
        let key = "\(action)-\(number)-\(dice.next())"
        let answer = await call("POST", "/v1/executions/\(execution)/\(action)", body, key: key)
        // Impatient shops send the same request once more, with the same key.
        if dice.chance(0.3) { _ = await call("POST", "/v1/executions/\(execution)/\(action)", body, key: key) }
        guard let id = answer?.json?["id"]?.string, answer?.status == 202, dice.chance(0.8) else { return }
        for _ in 0..<10 {
            await simulation.pause(dice.moment(10...40))
            let state = await once("GET", "/v1/operations/\(id)")?.json?["state"]?.string
            guard let state, state == "succeeded" || state == "failed" else { continue }
            told.withLock { $0.verdicts[id] = state }
            return
        }
    }
}

extension Answer {
    var text: String { String(decoding: body, as: UTF8.self) }
    /// The same request may be sent again: somebody else is working on it.
    var asksToRetry: Bool {
        status == 429 || text.contains("idempotency-key-in-use") || text.contains("creation-unconfirmed")
    }
}
