import Basics
import Lockstep

extension World {
    /// Section 2.5, authorize: acknowledged at once, the result comes later.
    mutating func authorize(
        _ id: String, body: JSON, caller: Caller, forced: SandboxOutcome? = nil
    ) throws(APIError) -> Answer {
        try check(body, against: Schema.authorize)
        var execution = try execution(id)
        let amount = try money(body["amount"] ?? .null)
        guard let parts = body["paymentComposition"]?.array, let part = parts.first, parts.count == 1 else {
            throw .invalid("paymentComposition must hold exactly one payment")
        }
        guard try money(part["amount"] ?? .null) == amount else {
            throw .invalid("paymentComposition amounts do not add up to the amount")
        }
        guard part["enrollInstrumentToNetworkOffers"]?.bool != true || part["storeInstrument"]?.bool == true else {
            throw .invalid("enrollInstrumentToNetworkOffers needs storeInstrument")
        }
        try checkOrigins(meta: body["meta"], returnInfo: body["returnInfo"])
        try checkLines(meta: body["meta"], amount: amount)
        guard execution.authorizeActionID == nil else {
            throw .notAllowed("the execution was already authorized")
        }
        // Section 4: a difference between the two sides' amounts looks like a bad token.
        guard execution.amount == nil || execution.amount == amount else {
            throw .unauthorized("unauthorized", isStored: true)
        }
        let instrument = try instrument(for: part, of: execution)
        execution.amount = amount
        execution.returnInfo = body["returnInfo"]
        execution.composition = part
        execution.meta = try merged(execution.meta, body["meta"])
        // Section 10, item 17.
        if part["paymentMethodCode"] == "payPal" { execution.captureMode = .instant }
        let payment = addPayment(of: execution, amount: amount, part: part, instrument: instrument)
        let record = Execution.ActionRecord(id: random.uuid(), name: "authorize", time: stamp(), amount: amount)
        let (outcome, delay) =
            forced.map { ($0, nil) } ?? outcome(.authorize, execution: execution, amount: amount, part: part)
        execution.actions.append(record)
        execution.paymentID = payment.id
        execution.authorizeActionID = record.id
        execution.attempt = AuthorizationAttempt(
            actionID: record.id, outcome: outcome, delay: delay ?? configuration.authorizeDelay)
        executions[id] = execution
        if configuration.requestedDelay > .zero {
            schedule.add(
                .authorizationRequested(execution: id, action: record.id), due: now + configuration.requestedDelay)
        } else {
            requestAuthorization(id, action: record.id)
        }
        return Answer(
            configuration.authorizeStatus, acknowledgement(record, of: try self.execution(id), caller: caller))
    }

    /// The authorization begins to show.
    mutating func requestAuthorization(_ id: String, action: String) {
        guard let execution = executions[id], let attempt = execution.attempt, attempt.actionID == action else {
            return
        }
        addStatus("authorizeRequested", to: id)
        notifyRequested("authorize", action, execution: id, amount: execution.amount)
        schedule.add(.authorizationOutcome(execution: id, action: action), due: now + attempt.delay)
    }

    /// The instrument that pays: a saved one of this holder, or the one that the app has just collected.
    private mutating func instrument(for part: JSON, of execution: Execution) throws(APIError) -> Instrument? {
        if let id = part["paymentInstrumentId"]?.string {
            guard let known = instruments[id.lowercased()], known.holderID == execution.holderID,
                known.status != "deleted"
            else { throw .notFound("no such instrument") }
            return known
        }
        let method = part["paymentMethodCode"]?.string ?? "card"
        let data = part["paymentInstrumentData"]
        let card = data?["encryptedData"]?.string.flatMap(CollectedCard.init)
        if method == "card", card == nil, data?["paymentToken"] == nil, data?["vaultToken"] == nil {
            throw .invalid("paymentInstrumentId or paymentInstrumentData is required for card")
        }
        guard card != nil || method != "genericRedirect" else { return nil }
        return addInstrument(
            holderReference: execution.holderReference, method: method, card: card, status: "transient",
            futureUsage: data?["futureUsage"]?.string)
    }

    private mutating func addPayment(
        of execution: Execution, amount: Money, part: JSON, instrument: Instrument?
    ) -> Payment {
        var payment = Payment(
            id: random.uuid(), sequence: nextSequence(), executionID: execution.id,
            merchantReference: execution.merchantReference, holderID: execution.holderID,
            holderReference: execution.holderReference, amount: amount,
            methodCode: part["paymentMethodCode"]?.string ?? instrument?.paymentMethod ?? "card",
            integrationType: part["integrationType"]?.string ?? "api", createdAt: stamp(),
            providerReference: "psp_\(random.opaque().prefix(16))", instrumentID: instrument?.id,
            storeInstrument: part["storeInstrument"]?.bool ?? false,
            processingType: part["paymentProcessingType"]?.string)
        payment.history.append((.created, payment.createdAt))
        payments[payment.id] = payment
        paymentOrder.append(payment.id)
        paymentsByReference[payment.merchantReference, default: []].append(payment.id)
        return payment
    }

    /// The first rule that matches, the test provider's tag, or success.
    mutating func outcome(
        _ action: SandboxOutcomeRule.Action, execution: Execution, amount: Money?, part: JSON? = nil
    ) -> (SandboxOutcome, Duration?) {
        let instrumentID =
            execution.paymentID.flatMap { payments[$0]?.instrumentID }
            ?? part?["paymentInstrumentId"]?.string?.lowercased()
        let collected = part?["paymentInstrumentData"]?["encryptedData"]?.string.flatMap(CollectedCard.init)
        let suffix = instrumentID.flatMap { instruments[$0]?.suffix } ?? collected?.suffix
        for index in rules.indices where rules[index].action == action {
            let rule = rules[index]
            guard rule.times != 0, rule.suffix == nil || rule.suffix == suffix,
                rule.cents == nil || rule.cents == amount.map({ Int($0.minor % 100) }),
                rule.merchantReference == nil || rule.merchantReference == execution.merchantReference,
                rule.holderReference == nil || rule.holderReference == execution.holderReference,
                rule.instrumentID == nil || rule.instrumentID == instrumentID
            else { continue }
            if let times = rule.times { rules[index].times = times - 1 }
            return (rule.outcome, rule.delay)
        }
        guard action == .authorize else { return (.success, nil) }
        if let result = execution.meta["tags"]?[configuration.operationResultTag]?.string, result != "Success" {
            return (.decline(result: result), nil)
        }
        if let refusal = instrumentRefusal(instrumentID, part: part) { return (.decline(result: refusal), nil) }
        return (.success, nil)
    }

    /// A disabled instrument; and a wallet's token that is charged as if the customer were there (section 6.1).
    private func instrumentRefusal(_ id: String?, part: JSON?) -> String? {
        guard let id, part?["paymentInstrumentId"] != nil, let instrument = instruments[id] else { return nil }
        guard instrument.status != "disabled" else { return "InstrumentNotAllowed" }
        let processing = part?["paymentProcessingType"]?.string ?? "Regular"
        let isWallet = ["applePay", "googlePay"].contains(instrument.paymentMethod)
        return isWallet && ["Regular", "MOTO"].contains(processing) ? "OperationNotAllowed" : nil
    }

    /// Section 2.5: `{name, actionId, executedAt, links}`.
    func acknowledgement(_ record: Execution.ActionRecord, of execution: Execution, caller: Caller) -> JSON {
        let isClient = if case .client = caller { true } else { false }
        let own = isClient ? publicLink(execution) : merchantLink(execution)
        return [
            "name": .string(record.name), "actionId": .string(record.id),
            "executedAt": .string(record.time.rfc3339), "workspaceId": .string(execution.workspaceID),
            "links": [
                "execution": .string(own), "consumerWait": .string("\(baseURL)/public/redirect/wait/\(execution.id)"),
                "cancel": link(merchantLink(execution) + "/cancel"),
            ],
        ]
    }
}

/// What the SDK's card form collected. Payrails' is encrypted; here the text says what it is.
struct CollectedCard: Sendable {
    let suffix: String
    let expiryMonth: String
    let expiryYear: String

    /// Reads `card:4242:12:2031`; anything else is a card 4242 that is valid for years.
    init?(_ text: String) {
        let parts = text.split(separator: ":").map(String.init)
        guard parts.count == 4, parts[0] == "card" else {
            self.init(suffix: "4242")
            return
        }
        self.init(suffix: parts[1], expiryMonth: parts[2], expiryYear: parts[3])
    }

    init(suffix: String, expiryMonth: String = "12", expiryYear: String = "2034") {
        self.suffix = suffix
        self.expiryMonth = expiryMonth
        self.expiryYear = expiryYear
    }

    var encrypted: String { "card:\(suffix):\(expiryMonth):\(expiryYear)" }
}
