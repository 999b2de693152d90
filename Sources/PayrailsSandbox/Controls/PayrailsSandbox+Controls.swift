import Basics
import Foundation
import Lockstep

/// What a test sets, asks and provokes; the same as under `/sandbox/` over HTTP.
extension PayrailsSandbox {
    // MARK: asking

    /// Every movement of money so far, oldest first.
    public var ledger: [SandboxLedgerEntry] { perform { $0.world.ledger.entries } }
    /// What happened to the money, by merchant reference and currency.
    public var ledgerTotals: [SandboxLedgerTotals] { perform { $0.world.ledger.totals } }

    /// The totals of one reference in one currency; nil when no money ever moved for it.
    public func ledgerTotals(_ merchantReference: String, currency: String = "EUR") -> SandboxLedgerTotals? {
        perform { $0.world.ledger.totals(merchantReference, currency: currency) }
    }

    /// The calls of the API so far, oldest first.
    public var calls: [SandboxCall] { state.withLock { $0.calls } }
    public func calls(to route: SandboxRoute) -> [SandboxCall] { calls.filter { $0.route == route } }

    /// An execution as the API shows it; nil when there is none.
    public func execution(_ id: String) -> JSON? {
        perform { state in state.world.executions[id].map { state.world.json(of: $0) } }
    }

    /// The ids of the executions with this reference, oldest first.
    public func executionIDs(merchantReference: String) -> [String] {
        perform { $0.world.executionsByReference[merchantReference] ?? [] }
    }

    /// The status codes of an execution in the order of their times.
    public func statusCodes(_ id: String) -> [String] {
        perform { state in
            (state.world.executions[id]?.statuses ?? []).sorted { $0.time < $1.time }.map(\.code)
        }
    }

    /// The deliveries of notifications so far, with their attempts.
    public var deliveries: [SandboxDelivery] { notifier.deliveries }

    // MARK: provoking

    /// The next calls that match go wrong.
    public func add(_ fault: SandboxFault) { state.withLock { $0.faults.add(fault) } }
    /// The next notifications that match go wrong.
    public func add(_ fault: SandboxNotificationFault) { state.withLock { $0.faults.add(fault) } }
    /// Takes away whatever is left of the faults.
    public func clearFaults() { state.withLock { $0.faults.clear() } }

    /// Goes before the rules that are there already.
    public func add(_ rule: SandboxOutcomeRule) { state.withLock { $0.world.rules.insert(rule, at: 0) } }

    /// Where executions that are created from now on will notify (section 5.1: the existing ones keep theirs).
    public func setNotificationTargets(_ targets: [NotificationTarget]) {
        state.withLock { $0.world.targets = targets }
    }

    /// The address has another key from this moment, also for what is already on its way (section 5.1).
    public func rotateNotificationKey(of url: String, to key: String) {
        notifier.rotateKey(of: url, to: key)
        state.withLock { state in
            state.world.targets = state.world.targets.map {
                $0.url == url ? NotificationTarget(url: url, key: key) : $0
            }
        }
    }

    /// Adds a credential beside the others, or replaces the secret of one at once; nil takes it away (section 1.3).
    public func setCredential(clientID: String, clientSecret: String?) {
        state.withLock { $0.world.credentials[clientID] = clientSecret }
    }

    /// Every access token is unknown from now on.
    public func expireAccessTokens() { state.withLock { $0.world.accessTokens = [:] } }
    /// The session of the execution's init payload is over.
    public func expireSession(_ executionID: String) {
        state.withLock { $0.world.clientSessions[$0.world.executions[executionID]?.clientToken ?? ""] = nil }
    }

    /// A dispute in one of the states of section 5.3, like `DisputeOpened`; `DisputeLost` takes the money back.
    public func dispute(
        _ executionID: String, status: String = "DisputeOpened", reason: String = "fraud", amount: Money? = nil,
        disputeID: String? = nil
    ) -> SDKAnswer {
        sdk { world throws(APIError) in
            try world.dispute(
                executionID, status: status, reason: reason, amount: amount, disputeID: disputeID)
        }
    }

    /// An earlier result turns out otherwise: `executionActionUpdated` (section 5.2).
    ///
    /// `authorize` may turn either way, `capture` and `refund` from success into failure (of the whole amount).
    public func updateResult(
        _ executionID: String, action: SandboxOutcomeRule.Action = .authorize, success: Bool,
        result: String = "GenericRejection"
    ) -> SDKAnswer {
        sdk { world throws(APIError) in
            try world.updateResult(executionID, action: action, success: success, result: result)
        }
    }

    /// Something changed a saved card without us: a new expiry, another state, a network token (section 6.5).
    public func changeInstrument(
        _ id: String, expiryMonth: String? = nil, expiryYear: String? = nil, suffix: String? = nil,
        status: String? = nil, hasNetworkToken: Bool? = nil
    ) -> SDKAnswer {
        sdk { world throws(APIError) in
            var instrument = try world.instrument(id)
            instrument.expiryMonth = expiryMonth ?? instrument.expiryMonth
            instrument.expiryYear = expiryYear ?? instrument.expiryYear
            instrument.suffix = suffix ?? instrument.suffix
            instrument.status = status ?? instrument.status
            if let hasNetworkToken { instrument.networkTokenID = hasNetworkToken ? world.random.uuid() : nil }
            instrument.updatedAt = world.stamp()
            world.instruments[instrument.id] = instrument
            return Answer(200, world.json(of: instrument, includingTokens: true, includingHolderReference: true))
        }
    }

    /// Attempts every delivery that waits now, and returns when each was attempted.
    public func flushNotifications() async {
        settle()
        await notifier.flush()
    }

    /// Sends everything again that was made for this execution, also what was acknowledged or lost.
    public func redeliver(_ executionID: String) { notifier.redeliver(executionID: executionID) }

    /// Signs these bytes as they are and sends them to every target: an unknown event, or what isn't even JSON.
    public func sendNotification(_ body: Data) {
        let notification = perform { state in
            OutgoingNotification(
                id: state.world.random.uuid(), event: "raw", action: nil, isSuccess: nil, executionID: "",
                merchantReference: "", body: body, details: body, targets: state.world.targets)
        }
        notifier.send(notification, faults: [])
    }

    /// Waits until nothing is scheduled and every delivery is over.
    ///
    /// - Returns: false when that was not so within the time.
    public func becomesQuiet(within limit: Duration = .seconds(5)) async -> Bool {
        let end = ContinuousClock.now + limit
        repeat {
            settle()
            if state.withLock({ $0.world.schedule.isEmpty && $0.dispatching == 0 }), notifier.isQuiet { return true }
            try? await Task.sleep(for: .milliseconds(2))
        } while ContinuousClock.now < end
        return false
    }

    /// Everything as at the start, with ids that go on. Deliveries that are on their way are still made.
    public func reset() {
        let waiting = state.withLock { state in
            let old = state.world
            state.world = World(configuration, seed: seed)
            state.world.baseURL = old.baseURL
            state.world.random = old.random
            state.world.targets = old.targets
            state.keys = IdempotencyStore(retention: configuration.idempotencyRetention)
            state.faults.clear()
            state.calls = []
            state.alarm = nil
            defer { state.waiters = [:] }
            return state.waiters.values.flatMap(\.values)
        }
        for waiter in waiting { waiter.resume() }
        notifier.forget()
    }
}
