import Basics
import Foundation
import Lockstep
import Payrails
import PayrailsSandbox
import Store
import TestKit
import Testing

@testable import Service

@Suite("A session that was created after all, although somebody was told that it was refused")
struct LateSessionTests {
    private static let shared = Task { try await ServiceHarness.shared() }
    private let lockstep: ServiceHarness
    private let provider: PayrailsClient

    init() async throws {
        lockstep = try await Self.shared.value
        let payrails = try #require(try Settings(environment: lockstep.environment).payrails)
        provider = PayrailsClient(payrails.configuration, transport: try payrails.client())
    }

    /// A session that was written down, and of which one sender was told that it is refused.
    private func refused(_ order: Order) async throws -> PlannedSession {
        let planned = try await planned(order)
        try await lockstep.store.refuseSession(
            planned, Refusal(kind: .rejected, code: "request.param.invalid", detail: "refused"))
        return planned
    }

    private func planned(_ order: Order) async throws -> PlannedSession {
        let answer = try await lockstep.store.renewSession(
            of: try #require(CheckoutID(order.checkout)), isExpired: true,
            asked: [try #require(ExecutionID(order.execution))], owner: UUID())
        guard case .planned(let planned) = answer else { throw StartRefusal(message: "\(answer)") }
        return planned
    }

    /// What the other sender gets from Payrails, and has written down.
    private func finish(_ planned: PlannedSession) async throws -> (ready: ReadySession?, execution: String) {
        let outcome = await provider.createSession(planned.request, key: planned.operation.key)
        guard case .done(let session) = outcome else { throw StartRefusal(message: "\(outcome)") }
        let ready = try await lockstep.store.finishSession(planned, session)
        return (ready, session.execution.reference.id.description)
    }

    @Test("where nothing else has been made since, it is the order's session")
    func takenUp() async throws {
        let order = try await lockstep.order()
        let late = try await finish(try await refused(order))
        #expect(late.ready?.execution.description == late.execution)
        #expect(try await lockstep.checkout(order)["executionId"]?.string == late.execution)
        try lockstep.pay(late.execution)
        #expect(try await lockstep.becomes("paid", order))
        #expect(lockstep.money(of: order) == .init(authorizations: 1, held: 4999))
    }

    @Test("where another one has been made, nobody gets its payload, and a payment of it is seen and taken back (M1)")
    func superseded() async throws {
        let order = try await lockstep.order()
        let early = try await refused(order)
        let next = try await finish(try await planned(order))
        #expect(next.ready != nil)
        let late = try await finish(early)
        #expect(late.ready == nil, "there would be two sessions in the app's hands")
        let checkout = try await lockstep.checkout(order)
        #expect(checkout["executionId"]?.string == next.execution)
        #expect(checkout["executions"]?.array?.count == 3)
        #expect(try await lockstep.execution(late.execution)["state"] == "created")
        try lockstep.pay(next.execution)
        #expect(try await lockstep.becomes("paid", order))
        try lockstep.pay(late.execution)
        #expect(try await lockstep.tells("checkout.duplicate_cancelled", order))
        #expect(lockstep.money(of: order) == .init(authorizations: 2, held: 4999, voided: 4999))
    }

    @Test("told twice of the same creation, the second finds the first's")
    func twice() async throws {
        let order = try await lockstep.order()
        let planned = try await planned(order)
        let first = try await finish(planned)
        let again = try await finish(planned)
        #expect(again.execution == first.execution)
        #expect(again.ready?.execution == first.ready?.execution)
        #expect(try await lockstep.checkout(order)["executions"]?.array?.count == 2)
    }
}
