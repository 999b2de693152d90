import Basics
import Foundation
import Lockstep
import Postgres

/// An unscheduled charge that a shop asks for.
public struct NewCharge: Sendable {
    public let merchantReference: String
    public let holderReference: String
    public let instrument: InstrumentID
    public let workflowCode: String
    public let amount: Money
    public let expiryPolicy: ExpiryPolicy
    public let meta: JSON?
    public let request: PaymentStore.RequestIdentity

    public init(
        merchantReference: String, holderReference: String, instrument: InstrumentID, workflowCode: String,
        amount: Money, expiryPolicy: ExpiryPolicy, meta: JSON?, request: PaymentStore.RequestIdentity
    ) {
        self.merchantReference = merchantReference
        self.holderReference = holderReference
        self.instrument = instrument
        self.workflowCode = workflowCode
        self.amount = amount
        self.expiryPolicy = expiryPolicy
        self.meta = meta
        self.request = request
    }
}

/// A charge whose next attempt is somebody's to begin, until the lease is over.
public struct ClaimedCharge: Sendable {
    public let charge: Charge
    /// This claim's own: what a slower one does under another is nothing.
    public let claim: UUID

    public init(charge: Charge, claim: UUID) {
        self.charge = charge
        self.claim = claim
    }
}

extension PaymentStore {
    public func readCharge(_ id: ChargeID) async throws -> Charge? {
        try await transact { try await $0.readCharge(id) }
    }

    public enum ChargeOpening: Sendable {
        /// Written down; begin its attempt now.
        case opened(ClaimedCharge)
        /// The same request was here before: this is what it began.
        case known(Charge)
        /// An order or another charge has the reference.
        case referenceTaken
    }

    /// What a request for an unscheduled charge has begun already; nil where it is the first of its reference.
    public func findCharge(_ reference: String, by request: RequestIdentity) async throws -> ChargeOpening? {
        try await transact { try await $0.opening(reference, by: request) }
    }

    /// Takes the reference of an unscheduled charge and writes down that it is to be attempted.
    public func openCharge(_ new: NewCharge) async throws -> ChargeOpening {
        try await transact { transaction in
            try await transaction.lockReference(new.merchantReference)
            if let opening = try await transaction.opening(new.merchantReference, by: new.request) { return opening }
            let (id, claim) = (ChargeID(identifiers.next()), identifiers.next())
            let (now, until) = (transaction.now.stored, (transaction.now + policy.lease).stored)
            _ = try await transaction.query(
                """
                INSERT INTO charges (id, merchant_reference, holder_reference, instrument_id, workflow_code,
                    amount_minor, currency, expiry_policy, meta, state, next_attempt_at, lease_owner, lease_until,
                    created_by, creation_key, created_at)
                VALUES (\(id.uuid), \(new.merchantReference), \(new.holderReference), \(new.instrument.uuid),
                    \(new.workflowCode), \(new.amount.minor), \(new.amount.currency.code),
                    \(new.expiryPolicy.rawValue), \(new.meta.map { PostgresJSON($0.text) }), 'scheduled', \(now),
                    \(claim), \(until), \(new.request.credential), \(new.request.key), \(now))
                """)
            guard let charge = try await transaction.readCharge(id) else {
                throw CorruptRow(table: "charges", detail: "a charge that was just written is gone")
            }
            return .opened(ClaimedCharge(charge: charge, claim: claim))
        }
    }

    /// Takes unscheduled charges whose attempt is due and that nobody works on: the process that took the request died,
    /// or the provider couldn't be asked.
    public func claimUnscheduledCharges(limit: Int) async throws -> [ClaimedCharge] {
        try await transact { transaction in
            let claim = identifiers.next()
            let rows = try await transaction.query(
                """
                UPDATE charges SET lease_owner = \(claim), lease_until = \((transaction.now + policy.lease).stored)
                WHERE id IN (SELECT id FROM charges
                    WHERE next_attempt_at <= \(transaction.now.stored) AND subscription_id IS NULL
                        AND (lease_until IS NULL OR lease_until <= \(transaction.now.stored))
                    ORDER BY next_attempt_at LIMIT \(limit) FOR UPDATE SKIP LOCKED)
                RETURNING id
                """)
            let ids = try rows.map { ChargeID(try $0.decode("id", as: UUID.self)) }
            return try await transaction.lockCharges(ids).map { ClaimedCharge(charge: $0, claim: claim) }
        }
    }

    /// No attempt was begun: nothing was sent, nothing is burnt. It is due again after the provider's own wish, or by
    /// growing patience.
    ///
    /// - Returns: nil when the claim was over.
    public func postponeCharge(_ claimed: ClaimedCharge, seconds: Int?) async throws -> Charge? {
        try await transact { transaction in
            guard try await transaction.lockClaimed(claimed) != nil else { return nil }
            return try await transaction.postpone(claimed.charge.id, seconds: seconds)
        }
    }

    /// Writes down that no attempt is made, and why, and tells the shop.
    ///
    /// - Returns: nil when the claim was over.
    public func skipCharge(
        _ claimed: ClaimedCharge, for obstacle: InstrumentObstacle, instrument: InstrumentSnapshot?
    ) async throws -> Charge? {
        try await transact { transaction in
            if let instrument {
                try await transaction.learnInstrument(instrument, holder: claimed.charge.holderReference)
            } else if obstacle == .missing {
                try await transaction.learnDeletion(of: claimed.charge.instrument)
            }
            guard var charge = try await transaction.lockClaimed(claimed) else { return nil }
            charge.state = .skipped
            charge.reason = obstacle.rawValue
            charge.nextAttemptAt = nil
            _ = try await transaction.query(
                """
                UPDATE charges SET state = 'skipped', reason = \(charge.reason), next_attempt_at = NULL,
                    lease_owner = NULL, lease_until = NULL
                WHERE id = \(charge.id.uuid)
                """)
            try await transaction.insertEvent(
                .chargeSkipped, subject: LockedOwner.charge(charge).subject, data: ["charge": charge.json])
            return charge
        }
    }
}

extension Transaction {
    fileprivate func opening(
        _ reference: String, by request: PaymentStore.RequestIdentity
    ) async throws -> PaymentStore.ChargeOpening? {
        guard try await isTaken(reference) else { return nil }
        let isOwn = try await query(
            """
            SELECT EXISTS (SELECT FROM charges WHERE merchant_reference = \(reference) AND subscription_id IS NULL
                AND created_by = \(request.credential) AND creation_key = \(request.key)
                AND created_at >= \((now - policy.requestKeyLife).stored)) AS own
            """
        ).first?.decode("own", as: Bool.self)
        guard isOwn == true, let charge = try await readCharge(merchantReference: reference) else {
            return .referenceTaken
        }
        return .known(charge)
    }

    /// The claimed charge, locked, while the claim is in force and nothing else has happened to it.
    func lockClaimed(_ claimed: ClaimedCharge) async throws -> Charge? {
        try await lockCharges([claimed.charge.id], claimedBy: claimed.claim).first { $0.state == .scheduled }
    }

    /// - Parameter seconds: what the provider wishes.
    /// - Returns: the charge as it is now.
    func postpone(_ charge: ChargeID, seconds: Int?) async throws -> Charge? {
        let pauses = policy.healing.unknown.steps.indices.map {
            policy.healing.unknown.delay(before: $0, jitter: .random(in: 0...255)).wholeMicroseconds
        }
        let rows = try await query(
            """
            UPDATE charges SET state = 'scheduled', reason = NULL,
                next_attempt_at = \(now.stored) + interval '1 microsecond' * greatest(
                    (\(pauses)::bigint[])[least(postponements + 1, \(pauses.count))],
                    \(Int64(seconds ?? 0) * 1_000_000)),
                postponements = postponements + 1, lease_owner = NULL, lease_until = NULL
            WHERE id = \(charge.uuid)
            RETURNING \(unescaped: Self.chargeColumns)
            """)
        guard let postponed = try await charges(from: rows).first else { return nil }
        guard let subscription = postponed.subscription, let at = postponed.nextAttemptAt else { return postponed }
        // Its period had begun, so the subscription wasn't due any more.
        _ = try await query(
            """
            UPDATE subscriptions SET due_at = least(due_at, \(at.stored))
            WHERE id = \(subscription.uuid) AND status IN ('active','pastDue','needsInstrument')
            """)
        return postponed
    }
}

extension Duration {
    fileprivate var wholeMicroseconds: Int64 {
        components.seconds * 1_000_000 + components.attoseconds / 1_000_000_000_000
    }
}
