import Lockstep

/// The client of Payrails with a point before and after each call, at which its process may end: between the line that
/// writes an intent down and the one that sends it, and between that and the one that writes the answer down.
struct MortalProvider: PaymentProvider {
    let provider: any PaymentProvider
    let fate: Fate

    private func mortal<Value>(_ call: () async -> Outcome<Value>) async -> Outcome<Value> {
        await fate.pass()
        guard !fate.isDead else { return .unknown(Doubt(kind: .cancelled, detail: "the process is dead")) }
        let outcome = await call()
        await fate.pass()
        return outcome
    }

    func createSession(_ request: SessionRequest, key: IdempotencyKey) async -> Outcome<Session> {
        await mortal { await provider.createSession(request, key: key) }
    }
    func createTokenization(_ request: TokenizationRequest, key: IdempotencyKey) async -> Outcome<InitPayload> {
        await mortal { await provider.createTokenization(request, key: key) }
    }
    func moveAmount(
        _ execution: ExecutionReference, to amount: Money, key: IdempotencyKey
    ) async -> Outcome<Money?> {
        await mortal { await provider.moveAmount(execution, to: amount, key: key) }
    }
    func capture(
        _ execution: ExecutionReference, _ request: CaptureRequest, key: IdempotencyKey
    ) async -> Outcome<Acknowledgement> {
        await mortal { await provider.capture(execution, request, key: key) }
    }
    func cancel(
        _ execution: ExecutionReference, reason: String?, key: IdempotencyKey
    ) async -> Outcome<Acknowledgement> {
        await mortal { await provider.cancel(execution, reason: reason, key: key) }
    }
    func refund(
        _ execution: ExecutionReference, _ request: RefundRequest, key: IdempotencyKey
    ) async -> Outcome<Acknowledgement> {
        await mortal { await provider.refund(execution, request, key: key) }
    }
    func createExecution(
        _ request: ExecutionRequest, key: IdempotencyKey
    ) async -> Outcome<ExecutionSnapshot> {
        await mortal { await provider.createExecution(request, key: key) }
    }
    func authorize(
        _ execution: ExecutionReference, _ request: AuthorizeRequest, key: IdempotencyKey
    ) async -> Outcome<Acknowledgement> {
        await mortal { await provider.authorize(execution, request, key: key) }
    }
    func readExecution(_ execution: ExecutionReference, wait: ExecutionWait?) async -> Outcome<ExecutionSnapshot> {
        await mortal { await provider.readExecution(execution, wait: wait) }
    }
    func findExecutions(merchantReference: String, workflowCode: String?) async -> Outcome<[ExecutionSnapshot]> {
        await mortal {
            await provider.findExecutions(merchantReference: merchantReference, workflowCode: workflowCode)
        }
    }
    func listPayments(_ filter: PaymentFilter, after: String?) async -> Outcome<PaymentPage> {
        await mortal { await provider.listPayments(filter, after: after) }
    }
    func listInstruments(holderReference: String) async -> Outcome<[InstrumentSnapshot]> {
        await mortal { await provider.listInstruments(holderReference: holderReference) }
    }
    func readInstrument(_ id: InstrumentID) async -> Outcome<InstrumentSnapshot> {
        await mortal { await provider.readInstrument(id) }
    }
    func updateInstrument(
        _ id: InstrumentID, _ change: InstrumentChange, key: IdempotencyKey
    ) async -> Outcome<InstrumentSnapshot> {
        await mortal { await provider.updateInstrument(id, change, key: key) }
    }
    func deleteInstrument(_ id: InstrumentID, key: IdempotencyKey) async -> Outcome<Void> {
        await mortal { await provider.deleteInstrument(id, key: key) }
    }
    func checkCredentials() async -> Outcome<Void> { await mortal { await provider.checkCredentials() } }
}
