import Basics
import Foundation
import Lockstep
import Store

/// A provider that knows every card and takes every charge, at once: what is measured with it is what is not the provider.
struct InstantProvider: PaymentProvider {
    private static let nothing = Refusal(kind: .rejected, detail: "not measured")

    func readInstrument(_ id: InstrumentID) async -> Outcome<InstrumentSnapshot> {
        .done(
            InstrumentSnapshot(
                id: id, holderReference: "holder", paymentMethod: "card", status: "enabled", isDefault: true,
                displayName: nil, network: "visa", suffix: "4242", expiryMonth: 12, expiryYear: 2034,
                hasNetworkToken: false, futureUsage: nil))
    }

    func createExecution(_ request: ExecutionRequest, key: IdempotencyKey) async -> Outcome<ExecutionSnapshot> {
        .done(snapshot(ExecutionReference(id: ExecutionID(key.uuid), workflowCode: request.workflowCode), facts: []))
    }

    func authorize(
        _ execution: ExecutionReference, _ request: AuthorizeRequest, key: IdempotencyKey
    ) async -> Outcome<Acknowledgement> {
        .done(Acknowledgement(actionID: key.description, executedAt: .systemNow))
    }

    func readExecution(_ execution: ExecutionReference, wait: ExecutionWait?) async -> Outcome<ExecutionSnapshot> {
        let now = Timestamp.systemNow
        return .done(
            snapshot(
                execution,
                facts: [Fact(kind: .status, code: "authorizeSuccessful", amount: Books.price, at: now, source: .read)]))
    }

    private func snapshot(_ execution: ExecutionReference, facts: [Fact]) -> ExecutionSnapshot {
        ExecutionSnapshot(
            reference: execution, merchantReference: nil, holderReference: nil, workspaceID: nil, amount: Books.price,
            createdAt: .systemNow, facts: facts)
    }

    func createSession(_ request: SessionRequest, key: IdempotencyKey) async -> Outcome<Session> {
        .refused(Self.nothing)
    }
    func createTokenization(_ request: TokenizationRequest, key: IdempotencyKey) async -> Outcome<InitPayload> {
        .refused(Self.nothing)
    }
    func moveAmount(_ execution: ExecutionReference, to amount: Money, key: IdempotencyKey) async -> Outcome<Money?> {
        .refused(Self.nothing)
    }
    func capture(
        _ execution: ExecutionReference, _ request: CaptureRequest, key: IdempotencyKey
    ) async -> Outcome<Acknowledgement> { .refused(Self.nothing) }
    func cancel(
        _ execution: ExecutionReference, reason: String?, key: IdempotencyKey
    ) async -> Outcome<Acknowledgement> { .refused(Self.nothing) }
    func refund(
        _ execution: ExecutionReference, _ request: RefundRequest, key: IdempotencyKey
    ) async -> Outcome<Acknowledgement> { .refused(Self.nothing) }
    func findExecutions(merchantReference: String, workflowCode: String?) async -> Outcome<[ExecutionSnapshot]> {
        .done([])
    }
    func listPayments(_ filter: PaymentFilter, after: String?) async -> Outcome<PaymentPage> {
        .done(PaymentPage(records: [], next: nil))
    }
    func listInstruments(holderReference: String) async -> Outcome<[InstrumentSnapshot]> { .done([]) }
    func updateInstrument(
        _ id: InstrumentID, _ change: InstrumentChange, key: IdempotencyKey
    ) async -> Outcome<InstrumentSnapshot> { .refused(Self.nothing) }
    func deleteInstrument(_ id: InstrumentID, key: IdempotencyKey) async -> Outcome<Void> { .refused(Self.nothing) }
    func checkCredentials() async -> Outcome<Void> { .done(()) }
}
