import Basics
import Foundation
import Lockstep
import Postgres

/// The books: everything that Lockstep knows, in PostgreSQL. The only target with SQL in it.
///
/// Each public method is one transaction that leaves the books whole. None of them calls anything outside, and all
/// take their locks in one order: the advisory lock of an execution, instruments, its checkout, or its subscription and
/// charge, executions, operations.
public struct PaymentStore: Sendable {
    public let pool: PostgresPool
    let clock: WallClock
    let identifiers: IdentifierSource
    let policy: Policy
    let notificationFront = QueueFront()
    /// Told of each attempt that failed by our own set-up, once that is committed.
    public var onConfigurationFailure: (@Sendable (ConfigurationFailure) -> Void)?

    /// What the books decide by.
    public struct Policy: Sendable {
        public var settlement: Settlement.Rules
        public var charges: ChargeSettlement.Rules
        public var renewal: RenewalPlan.Rules
        /// How long before a card's last day the shop is told (`LOCKSTEP_EXPIRY_NOTICE_DAYS`).
        public var expiryNotice: Duration
        /// Where "this month" is read for a card's expiry (`LOCKSTEP_EXPIRY_ZONE`).
        public var expiryZone: TimeZone
        public var references: PaymentReference
        public var healing: HealingSchedule
        /// When something must be looked at by a person.
        public var discrepancies: OrderDiscrepancies.Rules
        /// How long a worker or a request may hold what it took (`LOCKSTEP_LEASE_SECONDS`).
        public var lease: Duration
        /// How long a `proceed` holds the basket (`LOCKSTEP_GATE_LEASE_SECONDS`).
        public var gateLease: Duration
        /// How long an init payload is handed out again (`LOCKSTEP_INIT_FRESH_SECONDS`).
        public var initFresh: Duration
        /// How long after its checkout's expiry a client token still works, so that the app can see how it ended.
        public var clientTokenGrace: Duration
        /// How long a caller's idempotency key stands for its request (`LOCKSTEP_RETAIN_IDEMPOTENCY_DAYS`).
        public var requestKeyLife: Duration

        public init(
            settlement: Settlement.Rules = .init(), charges: ChargeSettlement.Rules = .init(),
            renewal: RenewalPlan.Rules = .init(), expiryNotice: Duration = .seconds(30 * 86_400),
            expiryZone: TimeZone = .lastOnEarth, references: PaymentReference = .init(),
            healing: HealingSchedule = .init(), discrepancies: OrderDiscrepancies.Rules = .init(),
            lease: Duration = .seconds(30), gateLease: Duration = .seconds(120),
            initFresh: Duration = .seconds(600), clientTokenGrace: Duration = .seconds(3600),
            requestKeyLife: Duration = .seconds(48 * 3600)
        ) {
            self.settlement = settlement
            self.charges = charges
            self.renewal = renewal
            self.expiryNotice = expiryNotice
            self.expiryZone = expiryZone
            self.references = references
            self.healing = healing
            self.discrepancies = discrepancies
            self.lease = lease
            self.gateLease = gateLease
            self.initFresh = initFresh
            self.clientTokenGrace = clientTokenGrace
            self.requestKeyLife = requestKeyLife
        }
    }

    public init(pool: PostgresPool, clock: WallClock, identifiers: IdentifierSource, policy: Policy = Policy()) {
        self.pool = pool
        self.clock = clock
        self.identifiers = identifiers
        self.policy = policy
    }

    /// The moment by the books' clock.
    public var now: Timestamp { clock.now() }
    /// Where "this month" is read for a card's expiry.
    public var expiryZone: TimeZone { policy.expiryZone }

    /// The same books over other connections.
    public func over(_ pool: PostgresPool) -> PaymentStore {
        var store = PaymentStore(pool: pool, clock: clock, identifiers: identifiers, policy: policy)
        store.onConfigurationFailure = onConfigurationFailure
        return store
    }

    /// Runs the body in one transaction, again on a deadlock or a serialization failure.
    func transact<Result: Sendable>(
        deadline: ContinuousClock.Instant? = nil, _ body: (Transaction) async throws -> Result
    ) async throws -> Result {
        await StepPoint.hold?(.transaction)
        let failures = FoundFailures()
        let result: Result = try await pool.withTransaction(deadline: deadline) { connection in
            failures.forget()
            return try await body(
                Transaction(
                    connection: connection, now: clock.now(), identifiers: identifiers, policy: policy,
                    failures: failures))
        }
        if let onConfigurationFailure { failures.all.forEach(onConfigurationFailure) }
        return result
    }

    /// Runs reads that need no transaction around them.
    func look<Result: Sendable>(
        deadline: ContinuousClock.Instant? = nil, _ body: (Transaction) async throws -> Result
    ) async throws -> Result {
        try await pool.withConnection(deadline: deadline) { connection in
            try await body(
                Transaction(
                    connection: connection, now: clock.now(), identifiers: identifiers, policy: policy,
                    failures: FoundFailures()))
        }
    }
}

/// One transaction with the moment at which it runs. Its methods stand in the file of their aggregate.
struct Transaction {
    let connection: PostgresConnection
    let now: Timestamp
    let identifiers: IdentifierSource
    let policy: PaymentStore.Policy
    let failures: FoundFailures

    func query(_ query: PostgresQuery) async throws -> PostgresRows {
        await StepPoint.hold?(.statement)
        return try await connection.query(query)
    }

    /// Several in one round trip.
    func pipeline(_ queries: [PostgresQuery]) async throws -> [PostgresRows] {
        await StepPoint.hold?(.statement)
        return try await connection.pipeline(queries)
    }
}

/// A row that the code can't read back: the database was changed by something else.
public struct CorruptRow: Error, Sendable {
    public let table: String
    public let detail: String
}

extension Timestamp {
    var stored: PostgresTimestamp { PostgresTimestamp(microsecondsSince1970: microseconds) }
}

extension PostgresTimestamp {
    var timestamp: Timestamp { Timestamp(microseconds: microsecondsSince1970) }
}

extension TimeZone {
    /// Where every day ends last: a card is valid while its month lasts anywhere.
    public static let lastOnEarth = TimeZone(secondsFromGMT: -12 * 3600) ?? .gmt
}
