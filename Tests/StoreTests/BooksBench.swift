import Basics
import Foundation
import Lockstep
import Postgres
import Store
import Synchronization
import TestKit
import Testing

/// A clock that only a test moves.
final class HandClock: Sendable {
    private let time = Mutex(Timestamp(seconds: 1_800_000_000))

    var now: Timestamp { time.withLock { $0 } }
    func move(by duration: Duration) { time.withLock { $0 = $0 + duration } }
    var clock: WallClock { WallClock { self.now } }
}

/// Books in a database of their own, with orders in them.
final class BooksBench: Sendable {
    struct Order: Sendable {
        let checkout: CheckoutID
        let execution: ExecutionID
        let reference: String
    }

    let connectionString: String
    let pool: PostgresPool
    let hand = HandClock()
    let store: PaymentStore

    init(in cluster: PostgresCluster? = nil) async throws {
        let cluster = if let cluster { cluster } else { try await PostgresCluster.shared() }
        connectionString = try await cluster.makeDatabase()
        pool = Self.pool(connectionString)
        _ = try await Migrator(pool: pool).migrate()
        store = PaymentStore(pool: pool, clock: hand.clock, identifiers: .system())
    }

    static func pool(_ connectionString: String, _ change: (inout PostgresConfiguration) -> Void = { _ in })
        -> PostgresPool
    {
        var configuration = PostgresConfiguration(connectionString: connectionString)
        configuration.maximumConnections = 20
        configuration.acquireTimeout = .seconds(30)
        change(&configuration)
        return PostgresPool(configuration)
    }

    func stop() async { await pool.shutdown() }

    func wait(_ duration: Duration) { hand.move(by: duration) }

    /// The only row's only column.
    func value<T: PostgresDecodable>(_ query: PostgresQuery, as type: T.Type = T.self) async throws -> T {
        try #require(try await pool.query(query).first).decode(type)
    }

    // MARK: orders

    static func newCheckout(_ reference: String, holder: String = "cust_77", meta: JSON? = nil) throws -> NewCheckout {
        NewCheckout(
            merchantReference: reference, holderReference: holder, workflowCode: "payment-acceptance",
            amount: try Money(value: "49.99", currencyCode: "EUR"), basketVersion: nil, amountPolicy: .merchantOnly,
            allowedPaymentMethods: nil, meta: meta, lifetime: .seconds(3600), credential: UUID(),
            idempotencyKey: "create \(reference)")
    }

    /// Writes down that an order's first session is to be created.
    func planned(_ reference: String, holder: String = "cust_77", meta: JSON? = nil) async throws -> PlannedSession {
        let new = try Self.newCheckout(reference, holder: holder, meta: meta)
        guard case .planned(let planned) = try await store.openCheckout(new, owner: UUID()) else {
            throw CancellationError()
        }
        return planned
    }

    /// What the provider answers to a planned session.
    func session(_ planned: PlannedSession, execution: ExecutionID = ExecutionID(UUID())) -> Session {
        Session(
            payload: InitPayload(version: "1", data: Secret("e30=")),
            execution: ExecutionSnapshot(
                reference: ExecutionReference(id: execution, workflowCode: planned.request.workflowCode),
                merchantReference: planned.request.merchantReference,
                holderReference: planned.request.holderReference, workspaceID: nil, amount: planned.request.amount,
                createdAt: nil, facts: []))
    }

    /// The planned session is created at the provider and is the current one.
    func finished(_ planned: PlannedSession) async throws -> ReadySession {
        try #require(try await store.finishSession(planned, session(planned)))
    }

    /// An order over 49.99 EUR that can be paid.
    func order(holder: String = "cust_77", meta: JSON? = nil) async throws -> Order {
        let reference = freshWord("order")
        let planned = try await planned(reference, holder: holder, meta: meta)
        let ready = try await finished(planned)
        return Order(checkout: planned.checkout.id, execution: ready.execution, reference: reference)
    }

    /// A result that the provider tells of: of the whole amount.
    func completed(
        _ action: String, success: Bool = true, id: String = "action", at: Timestamp? = nil
    ) throws -> Fact {
        Fact(
            kind: .action, action: action, actionID: id, phase: .completed, success: success,
            amount: success ? try Money(value: "49.99", currencyCode: "EUR") : nil, at: at ?? hand.now,
            source: .notification)
    }

    func pay(_ order: Order) async throws {
        try await store.learn([try completed("authorize", id: "authorize")], about: order.execution)
    }

    func status(_ order: Order) async throws -> Checkout.Status? {
        try await store.readCheckout(order.checkout)?.checkout.status
    }

    /// How often something was told.
    func told(_ type: String, _ order: Order) async throws -> Int {
        try await value(
            "SELECT count(*) FROM events WHERE type = \(type) AND checkout_id = \(order.checkout.uuid)")
    }

    // MARK: notifications

    func incoming(_ text: String) -> IncomingNotification {
        IncomingNotification(endpoint: "try", body: Data(text.utf8), receivedAt: hand.now)
    }

    /// Applies what waits; what each says is found by its text.
    @discardableResult
    func apply(
        _ meanings: [String: NotificationMeaning], by store: PaymentStore? = nil
    ) async throws -> AppliedCount {
        try await (store ?? self.store).applyNotifications(limit: 100) { body, _ in
            meanings[String(decoding: body, as: UTF8.self)] ?? .ignored(event: "other")
        }
    }
}
