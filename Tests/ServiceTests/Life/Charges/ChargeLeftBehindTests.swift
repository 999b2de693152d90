import Basics
import Foundation
import Lockstep
import Payrails
import PayrailsSandbox
import Store
import TestKit
import Testing

@testable import Service

@Suite("What a process that charged left behind between any two lines, another one finishes, once")
struct ChargeLeftBehindTests {
    private static let shared = Task { try await ServiceHarness.shared(["LOCKSTEP_FAILURE_SETTLE_SECONDS": "0"]) }
    private let lockstep: ServiceHarness
    init() async throws { lockstep = try await Self.shared.value }

    /// The books as a process sees them that dies at once: its leases are over when they begin.
    private var dying: PaymentStore {
        PaymentStore(
            pool: lockstep.books, clock: .system, identifiers: .system(),
            policy: PaymentStore.Policy(lease: .milliseconds(1)))
    }

    /// The dying process's own client of Payrails.
    private func withProvider<Value>(_ work: (any PaymentProvider) async throws -> Value) async throws -> Value {
        let settings = try #require(try Settings(environment: lockstep.environment).payrails)
        let client = try settings.client()
        let value = try await work(PayrailsClient(settings.configuration, transport: client))
        await client.shutdown()
        return value
    }

    private func open(_ card: SavedCard, _ reference: String, in store: PaymentStore) async throws -> ClaimedCharge {
        let opening = try await store.openCharge(
            NewCharge(
                merchantReference: reference, holderReference: card.holder,
                instrument: try #require(InstrumentID(card.id)), workflowCode: "payment-acceptance",
                amount: try Money(value: "10.00", currencyCode: "EUR"), expiryPolicy: .block, meta: nil,
                request: PaymentStore.RequestIdentity(credential: UUID(), key: "k")))
        guard case .opened(let claimed) = opening else { throw NotOpened() }
        return claimed
    }

    private struct NotOpened: Error {}

    /// Where the process dies, in the order of the lines.
    enum Line: String, CaseIterable, Sendable, CustomTestStringConvertible {
        case opened, begun, created, createdAndWritten, authorized
        var testDescription: String { rawValue }
    }

    @Test("a charge whose process died", arguments: Line.allCases)
    func died(_ line: Line) async throws {
        let card = try lockstep.card()
        let reference = freshWord("left")
        let store = dying
        let id = try await withProvider { provider in
            // The workers are quick: whoever loses the race to them at one of these lines has nothing left to do.
            let claimed = try await open(card, reference, in: line == .opened ? store : lockstep.store)
            guard line != .opened else { return claimed.charge.id }
            guard case .done(let instrument) = await provider.readInstrument(claimed.charge.instrument),
                let planned = try await store.beginAttempt(of: claimed, with: instrument, owner: UUID()),
                line != .begun,
                case .done(let execution) = await provider.createExecution(
                    planned.request, key: planned.operation.key),
                line != .created,
                let authorization = try await store.take([.created(planned, execution, owner: UUID())])[0].get()
                    .authorization,
                line != .createdAndWritten
            else { return claimed.charge.id }
            _ = await provider.authorize(
                authorization.execution,
                AuthorizeRequest(
                    amount: authorization.attempt.amount, instrumentID: authorization.attempt.instrument,
                    paymentMethodCode: "card", processing: .unscheduled, returnURL: "https://shop.example/back"),
                key: authorization.operation.key)
            return claimed.charge.id
        }
        #expect(try await waitUntil { try await lockstep.charge(id.description)["state"] == "succeeded" })
        #expect(await lockstep.sandbox.becomesQuiet())
        #expect(lockstep.money(ofReference: reference) == .init(authorizations: 1, held: 1000))
        #expect(lockstep.sandbox.executionIDs(merchantReference: reference).count == 1)
        #expect(try await lockstep.charge(id.description)["attempts"]?.array?.count == 1)
    }

    @Test("R2: a claim that was over begins nothing, and neither does one while an attempt is open")
    func claims() async throws {
        let card = try lockstep.card()
        let claimed = try await open(card, freshWord("left"), in: lockstep.store)
        let instrument = InstrumentSnapshot(
            id: claimed.charge.instrument, holderReference: card.holder, paymentMethod: "card", status: "enabled",
            isDefault: false, displayName: nil, network: nil, suffix: nil, expiryMonth: nil, expiryYear: nil,
            hasNetworkToken: false, futureUsage: nil)
        let stranger = ClaimedCharge(charge: claimed.charge, claim: UUID())
        #expect(try await lockstep.store.beginAttempt(of: stranger, with: instrument, owner: UUID()) == nil)
        #expect(try await lockstep.store.beginAttempt(of: claimed, with: instrument, owner: UUID()) != nil)
        #expect(try await lockstep.store.beginAttempt(of: claimed, with: instrument, owner: UUID()) == nil)
        #expect(try await lockstep.store.claimUnscheduledCharges(limit: 100).isEmpty)
    }
}
