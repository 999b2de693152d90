import Basics
import Foundation
import Lockstep
import Postgres

/// An instrument as it is known here.
public struct KnownInstrument: Sendable {
    public let snapshot: InstrumentSnapshot
    public let holderReference: String
}

extension PaymentStore {
    public func readInstrument(_ id: InstrumentID) async throws -> KnownInstrument? {
        try await transact { try await $0.readInstrument(id) }
    }

    /// The instruments of a holder that are known here and not known to be deleted.
    public func listKnownInstruments(holderReference: String) async throws -> [InstrumentID] {
        try await pool.query(
            """
            SELECT id FROM instruments WHERE holder_reference = \(holderReference) AND status <> 'deleted' ORDER BY id
            """
        ).map { InstrumentID(try $0.decode("id", as: UUID.self)) }
    }

    /// Takes over what the provider shows of instruments, and tells the shop what differs from what it showed before. What
    /// waited for one of them that can be charged now is due at once.
    ///
    /// - Parameter holder: whose they are, where the provider doesn't repeat it.
    /// - Returns: what is known of them now, in the same order.
    @discardableResult
    public func learnInstruments(
        _ snapshots: [InstrumentSnapshot], holder: String
    ) async throws -> [InstrumentSnapshot] {
        guard !snapshots.isEmpty else { return [] }
        return try await transact { transaction in
            let known = try await transaction.learnInstruments(snapshots.map { ($0, holder) })
            try await transaction.recoverSubscriptions(of: Array(known.values))
            return snapshots.map { known[$0.id] ?? $0 }
        }
    }

    /// The provider doesn't have it any more. Nothing where it was never known here.
    public func learnDeletion(of id: InstrumentID) async throws {
        try await transact { try await $0.learnDeletion(of: id) }
    }

    // MARK: changes

    /// Writes down that an instrument is to be changed or deleted, or that a tokenization is to be made (M12).
    ///
    /// - Parameters:
    ///   - wish: what it shall show afterwards, as ``InstrumentChange/wish``.
    ///   - request: the request that asks; sent again, it finds what it began.
    public func beginInstrumentOperation(
        _ kind: PaymentOperation.Kind, of instrument: InstrumentID?, wish: String? = nil, workflowCode: String = "",
        request: RequestIdentity? = nil, owner: UUID
    ) async throws -> PaymentOperation {
        try await transact { transaction in
            if let request, let known = try await transaction.readOperation(of: request) { return known }
            let operation = PaymentOperation(
                id: OperationID(identifiers.next()), kind: kind, owner: nil, execution: nil,
                key: IdempotencyKey(identifiers.next()), instrument: instrument, state: .sent, intentReason: wish,
                attempts: 1, createdAt: transaction.now, sentAt: transaction.now)
            try await transaction.insertOperation(operation, workflowCode: workflowCode, owner: owner, request: request)
            return operation
        }
    }

    /// Writes down what became of it. Nil for `succeeded`: nobody knows; a worker looks, and sends nothing.
    public func finishInstrumentOperation(
        _ operation: PaymentOperation, succeeded: Bool?, reason: String?
    ) async throws {
        try await transact { transaction in
            guard var known = try await transaction.lockOperation(operation.id), !known.state.isFinal else { return }
            known.state = succeeded.map { $0 ? .succeeded : .failed } ?? .unknown
            known.reason = reason
            try await transaction.writeOperation(known, dueAt: transaction.nextLook(after: known.attempts))
            if known.state.isFinal { try await transaction.resolveDiscrepancies(of: known) }
        }
    }

    /// The provider keeps a 5xx under a tokenization's key. An init changes nothing that could happen twice.
    public func rekeyTokenization(_ operation: PaymentOperation) async throws -> PaymentOperation {
        try await transact { transaction in
            guard var known = try await transaction.lockOperation(operation.id), known.key == operation.key else {
                return operation
            }
            known.key = IdempotencyKey(identifiers.next())
            _ = try await transaction.query(
                "UPDATE operations SET idempotency_key = \(known.key.uuid) WHERE id = \(known.id.uuid)")
            return known
        }
    }
}

extension InstrumentChange {
    /// The change as an operation keeps it.
    public var wish: String {
        [makeDefault ? "default" : nil, isEnabled.map { $0 ? "enabled" : "disabled" }].compactMap { $0 }
            .joined(separator: ",")
    }

    public init(wish: String) {
        let words = wish.split(separator: ",")
        self.init(
            makeDefault: words.contains("default"),
            isEnabled: words.contains("enabled") ? true : words.contains("disabled") ? false : nil)
    }

    /// Whether the instrument shows it already.
    public func isDone(on instrument: InstrumentSnapshot) -> Bool {
        (!makeDefault || instrument.isDefault) && isEnabled.map { $0 != instrument.isDisabled } ?? true
    }
}

extension Transaction {
    static let instrumentColumns = """
        id, holder_reference, payment_method, status, is_default, display_name, network, suffix, expiry_month, \
        expiry_year, has_network_token, future_usage
        """

    func readInstrument(_ id: InstrumentID) async throws -> KnownInstrument? {
        try await query("SELECT \(unescaped: Self.instrumentColumns) FROM instruments WHERE id = \(id.uuid)")
            .first.map(Self.instrument(from:))
    }

    /// The same for many; those that nobody knows are left out.
    func readInstruments(_ ids: some Collection<InstrumentID>) async throws -> [InstrumentID: InstrumentSnapshot] {
        guard !ids.isEmpty else { return [:] }
        let rows = try await query(
            """
            SELECT \(unescaped: Self.instrumentColumns) FROM instruments WHERE id = ANY(\(ids.map(\.uuid)))
            """
        ).map(Self.instrument(from:))
        return Dictionary(rows.map { ($0.snapshot.id, $0.snapshot) }) { first, _ in first }
    }

    /// Subscriptions that wait for another instrument, and whose own can be charged now: periods within the dunning window
    /// are scheduled again, as where the shop replaces the instrument.
    ///
    /// A run does the same for what it took, once it has read the instrument. This locks subscriptions and their charges,
    /// so it comes behind the instruments and before all that.
    func recoverSubscriptions(of instruments: [InstrumentSnapshot]) async throws {
        let usable = instruments.filter { !$0.isDeleted && !$0.isDisabled }
        guard !usable.isEmpty else { return }
        let rows = try await query(
            """
            SELECT \(unescaped: Self.subscriptionColumns) FROM subscriptions
            WHERE instrument_id = ANY(\(usable.map(\.id.uuid))) AND status = 'needsInstrument' AND set_aside IS NULL
            ORDER BY id FOR UPDATE
            """)
        let cards = Dictionary(usable.map { ($0.id, $0) }) { first, _ in first }
        // One that can't be read is for a run to set aside, and keeps nobody from reading his instruments.
        let waiting = rows.compactMap { try? Self.subscription(from: $0) }.filter {
            $0.obstacle(cards[$0.instrument], at: now, in: policy.expiryZone) == nil
        }
        guard !waiting.isEmpty else { return }
        let open = try await lockOpenCharges(of: waiting.map(\.id))
        var changes = subscriptionChanges
        for known in waiting {
            var subscription = known
            let own = open[subscription.id] ?? []
            let effects = subscription.apply(.instrumentUsable(othersOpen: own.contains(where: \.isUnpaid)))
            changes.finish(subscription, effects, open: own)
        }
        try await write(changes)
    }

    /// Takes over what the provider shows; a difference is told in the same transaction.
    ///
    /// - Returns: what is known of it now: a reading that doesn't tell of tokens takes none away.
    @discardableResult
    func learnInstrument(_ snapshot: InstrumentSnapshot, holder: String) async throws -> InstrumentSnapshot {
        try await learnInstruments([(snapshot, holder)])[snapshot.id] ?? snapshot
    }

    func learnDeletion(of id: InstrumentID) async throws { try await learnInstruments([], missing: [id]) }

    /// The same for many, in as many statements as for one.
    ///
    /// - Parameters:
    ///   - holder: whose it is, where the provider doesn't repeat it.
    ///   - missing: those that the provider doesn't have any more. Nothing for one that was never known here.
    @discardableResult
    func learnInstruments(
        _ found: [(snapshot: InstrumentSnapshot, holder: String)], missing: [InstrumentID] = []
    ) async throws -> [InstrumentID: InstrumentSnapshot] {
        let ids = Set(found.map(\.snapshot.id)).union(missing)
        guard !ids.isEmpty else { return [:] }
        // In one order, so that two who learn of the same ones can't wait for each other.
        let before = try await query(
            """
            SELECT \(unescaped: Self.instrumentColumns) FROM instruments
            WHERE id = ANY(\(ids.map(\.uuid))) ORDER BY id FOR UPDATE
            """
        ).map(Self.instrument(from:))
        var known = Dictionary(before.map { ($0.snapshot.id, $0) }) { first, _ in first }
        var changed: Set<InstrumentID> = []
        var events: [SettlementChanges.Event] = []
        func take(_ shown: InstrumentSnapshot, of owner: String) {
            guard shown != known[shown.id]?.snapshot else { return }
            if known[shown.id] != nil {
                events.append(
                    SettlementChanges.Event(
                        type: .instrumentChanged, about: .other(shown.id.uuid), execution: nil,
                        data: ["instrument": shown.json(holder: owner, at: now, in: policy.expiryZone)]))
            }
            known[shown.id] = KnownInstrument(snapshot: shown, holderReference: owner)
            changed.insert(shown.id)
        }
        for (snapshot, holder) in found {
            let old = known[snapshot.id]
            let owner = snapshot.holderReference ?? old?.holderReference ?? holder
            let hasToken = snapshot.hasNetworkToken ?? old?.snapshot.hasNetworkToken ?? false
            take(snapshot.completed(holder: owner, hasNetworkToken: hasToken), of: owner)
        }
        for id in missing {
            guard let old = known[id], !old.snapshot.isDeleted else { continue }
            take(old.snapshot.deleted, of: old.holderReference)
        }
        let rows = changed.sorted { $0 < $1 }.compactMap { known[$0] }
        _ = try await pipeline([upsert(rows), insert(events)].compactMap { $0 })
        return known.mapValues(\.snapshot)
    }

    private func upsert(_ rows: [KnownInstrument]) -> PostgresQuery? {
        guard !rows.isEmpty else { return nil }
        let shown = rows.map(\.snapshot)
        return """
            INSERT INTO instruments (\(unescaped: Self.instrumentColumns), read_at)
            SELECT new.*, \(now.stored) FROM unnest(\(shown.map(\.id.uuid)), \(rows.map(\.holderReference)),
                \(shown.map(\.paymentMethod)), \(shown.map(\.status)), \(shown.map(\.isDefault)),
                \(shown.map(\.displayName)), \(shown.map(\.network)), \(shown.map(\.suffix)),
                \(shown.map(\.expiryMonth)), \(shown.map(\.expiryYear)), \(shown.map { $0.hasNetworkToken ?? false }),
                \(shown.map(\.futureUsage))) AS new
            ON CONFLICT (id) DO UPDATE SET holder_reference = excluded.holder_reference,
                payment_method = excluded.payment_method, status = excluded.status, is_default = excluded.is_default,
                display_name = excluded.display_name, network = excluded.network, suffix = excluded.suffix,
                expiry_month = excluded.expiry_month, expiry_year = excluded.expiry_year,
                has_network_token = excluded.has_network_token, future_usage = excluded.future_usage,
                read_at = excluded.read_at
            """
    }

    static func instrument(from row: PostgresRow) throws -> KnownInstrument {
        let (
            id, holder, method, status, isDefault, displayName, network, suffix, month, year, hasNetworkToken,
            futureUsage
        ) = try row.decode(
            (
                UUID, String, String, String, Bool, String?, String?, String?, Int?, Int?, Bool, String?
            ).self)
        return KnownInstrument(
            snapshot: InstrumentSnapshot(
                id: InstrumentID(id), holderReference: holder, paymentMethod: method, status: status,
                isDefault: isDefault, displayName: displayName, network: network, suffix: suffix, expiryMonth: month,
                expiryYear: year, hasNetworkToken: hasNetworkToken, futureUsage: futureUsage),
            holderReference: holder)
    }
}

extension InstrumentSnapshot {
    fileprivate func completed(holder: String, hasNetworkToken: Bool) -> InstrumentSnapshot {
        copy(holder: holder, status: status, isDefault: isDefault, hasNetworkToken: hasNetworkToken)
    }

    fileprivate var deleted: InstrumentSnapshot {
        copy(holder: holderReference, status: "deleted", isDefault: false, hasNetworkToken: hasNetworkToken)
    }

    private func copy(
        holder: String?, status: String, isDefault: Bool, hasNetworkToken: Bool?
    ) -> InstrumentSnapshot {
        InstrumentSnapshot(
            id: id, holderReference: holder, paymentMethod: paymentMethod, status: status, isDefault: isDefault,
            displayName: displayName, network: network, suffix: suffix, expiryMonth: expiryMonth,
            expiryYear: expiryYear, hasNetworkToken: hasNetworkToken, futureUsage: futureUsage)
    }
}
