import Basics
import Foundation
import Lockstep
import Postgres

/// What a shop asks for when it creates a checkout.
public struct NewCheckout: Sendable {
    public let merchantReference: String
    public let holderReference: String
    public let workflowCode: String
    public let amount: Money
    public let basketVersion: String?
    public let amountPolicy: AmountPolicy
    public let allowedPaymentMethods: [String]?
    public let meta: JSON?
    public let lifetime: Duration
    /// Who asks, and under which idempotency key.
    public let credential: UUID
    public let idempotencyKey: String

    public init(
        merchantReference: String, holderReference: String, workflowCode: String, amount: Money,
        basketVersion: String?, amountPolicy: AmountPolicy, allowedPaymentMethods: [String]?, meta: JSON?,
        lifetime: Duration, credential: UUID, idempotencyKey: String
    ) {
        self.merchantReference = merchantReference
        self.holderReference = holderReference
        self.workflowCode = workflowCode
        self.amount = amount
        self.basketVersion = basketVersion
        self.amountPolicy = amountPolicy
        self.allowedPaymentMethods = allowedPaymentMethods
        self.meta = meta
        self.lifetime = lifetime
        self.credential = credential
        self.idempotencyKey = idempotencyKey
    }
}

/// A session that is to be created at the provider: what was written down, and what to send.
public struct PlannedSession: Sendable {
    public let operation: PaymentOperation
    public let checkout: Checkout
    public let request: SessionRequest
}

/// A session that can be handed to the app.
public struct ReadySession: Sendable {
    public let settled: SettledCheckout
    public let payload: InitPayload
    public let execution: ExecutionID
}

extension PaymentStore {
    public enum Opening: Sendable {
        /// Written down; create the session now.
        case planned(PlannedSession)
        /// The same request was here before and got its session: the checkout as it is now.
        case known(ReadCheckout)
        /// The same request is being worked on by somebody else.
        case busy
        /// The order has a checkout, made by another request.
        case exists(CheckoutID)
        /// A charge has the reference.
        case referenceTaken
    }

    /// Takes the order's reference and writes down that its first session is to be created.
    ///
    /// - Parameter owner: who creates it; holds the operation's lease.
    public func openCheckout(_ new: NewCheckout, owner: UUID) async throws -> Opening {
        try await transact { transaction in
            try await transaction.lockReference(new.merchantReference)
            if let existing = try await transaction.readCheckout(merchantReference: new.merchantReference) {
                return try await transaction.resumeOpening(of: existing, new, owner: owner)
            }
            guard try await !transaction.isTaken(new.merchantReference) else { return .referenceTaken }
            let id = CheckoutID(identifiers.next())
            let inserted = try await transaction.insertCheckout(new, id: id)
            guard inserted, let checkout = try await transaction.lockCheckout(id) else {
                guard let other = try await transaction.readCheckout(merchantReference: new.merchantReference) else {
                    return .busy
                }
                return .exists(other.id)
            }
            return .planned(try await transaction.planSession(of: checkout, owner: owner))
        }
    }

    /// The provider created the session: the execution becomes known, current, and whatever was told about it before
    /// takes effect.
    ///
    /// So does one whose creation somebody else was told to be refused: a payment of it must be seen. Where there is
    /// another session since, it is a superseded one, and there is nothing to hand out; nor where the order was paid or
    /// given up meanwhile.
    public func finishSession(_ planned: PlannedSession, _ session: Session) async throws -> ReadySession? {
        try await transact { transaction in
            let execution = session.execution.reference
            try await transaction.lockFacts(of: execution.id)
            guard var checkout = try await transaction.lockCheckout(planned.checkout.id),
                var operation = try await transaction.lockOperation(planned.operation.id)
            else { return nil }
            let isOver = checkout.status == .cancelled || checkout.wasPaid
            if operation.state == .succeeded {
                // Another one was made for it meanwhile. Nobody ever gets this one's payload, so nobody can pay it.
                guard operation.execution?.id == execution.id, !isOver else { return nil }
                let settled = try await transaction.settle(checkout)
                // Its payload is good for the amount that it was made with, while it is the current one.
                guard settled.checkout.currentExecution == execution.id, settled.checkout.amountState == .inStep,
                    settled.checkout.amount == planned.request.amount
                else { return nil }
                return ReadySession(settled: settled, payload: session.payload, execution: execution.id)
            }
            let isLatest = try await transaction.isLatestSession(operation, of: checkout)
            let isFirst = checkout.currentExecution == nil && isLatest
            try await transaction.insertExecution(
                execution, owner: .checkout(checkout.id), ordinal: try await transaction.ordinal(of: operation.id),
                merchantReference: planned.request.merchantReference, amount: planned.request.amount,
                payload: session.payload)
            _ = try await transaction.insertFacts(session.execution.facts, of: execution.id)
            operation.state = .succeeded
            operation.execution = execution
            try await transaction.writeOperation(operation, dueAt: nil)
            if isFirst || isLatest && !checkout.wasPaid {
                checkout.currentExecution = execution.id
                if checkout.status == .failed { checkout.status = .open }
            }
            if checkout.status == .cancelled { try await transaction.planCancel(of: execution, checkout: checkout.id) }
            let settled = try await transaction.settle(checkout, announcing: isFirst ? [.checkoutCreated] : [])
            guard isLatest, !isOver else { return nil }
            return ReadySession(settled: settled, payload: session.payload, execution: execution.id)
        }
    }

    /// The provider certainly created nothing. A first session's refusal frees the order's reference.
    public func refuseSession(_ planned: PlannedSession, _ refusal: Refusal) async throws {
        try await transact { transaction in
            guard let checkout = try await transaction.lockCheckout(planned.checkout.id),
                var operation = try await transaction.lockOperation(planned.operation.id), !operation.state.isFinal,
                !operation.wasTaken(since: planned.operation)
            else { return }
            operation.state = .failed
            operation.reason = refusal.code ?? refusal.kind.rawValue
            try await transaction.writeOperation(operation, dueAt: nil)
            try await transaction.settle(checkout)
            if try await transaction.ordinal(of: operation.id) == 1 {
                _ = try await transaction.query(
                    """
                    UPDATE checkouts SET released_at = \(transaction.now.stored), due_at = NULL
                    WHERE id = \(planned.checkout.id.uuid)
                    """)
            }
        }
    }
}

extension Transaction {
    /// The same request goes on where it stopped; another one finds the reference taken.
    fileprivate func resumeOpening(
        of existing: Checkout, _ new: NewCheckout, owner: UUID
    ) async throws -> PaymentStore.Opening {
        let isSame = try await query(
            """
            SELECT 1 AS one FROM checkouts WHERE id = \(existing.id.uuid) AND created_by = \(new.credential)
                AND creation_key = \(new.idempotencyKey)
                AND created_at >= \((now - policy.requestKeyLife).stored)
            """)
        guard !isSame.isEmpty else { return .exists(existing.id) }
        guard let checkout = try await lockCheckout(existing.id) else { return .busy }
        // It had its session, or never gets one any more. Another one is asked for by itself: whoever comes for this one
        // again, perhaps much later, doesn't know what became of the order since.
        if checkout.currentExecution != nil || sessionRefusal(checkout) != nil {
            return .known(try await view(checkout))
        }
        guard let planned = try await resumeSession(of: checkout, owner: owner) else { return .busy }
        return .planned(planned)
    }

    /// Takes over a session's creation that nobody works on; plans a new one where none is open.
    /// Nil while somebody else holds it.
    func resumeSession(of checkout: Checkout, owner: UUID) async throws -> PlannedSession? {
        let open = try await query(
            """
            SELECT id FROM operations WHERE checkout_id = \(checkout.id.uuid) AND kind = 'createSession'
                AND finished_at IS NULL
            """
        ).first
        guard let open else { return try await planSession(of: checkout, owner: owner) }
        let id = OperationID(try open.decode("id", as: UUID.self))
        let taken = try await query(
            """
            UPDATE operations SET state = 'sent', lease_owner = \(owner), lease_until = \((now + policy.lease).stored),
                due_at = \((now + policy.lease).stored), attempts = attempts + 1, sent_at = \(now.stored)
            WHERE id = \(id.uuid) AND (lease_until IS NULL OR lease_until <= \(now.stored))
            """)
        guard taken.affected == 1, let operation = try await lockOperation(id) else { return nil }
        return try await plannedSession(operation, checkout: checkout)
    }

    /// Writes down that a session is to be created for the checkout, at its confirmed amount. A number is never given
    /// twice, not even after a refusal: who was refused may still have created something under it.
    func planSession(of checkout: Checkout, owner: UUID) async throws -> PlannedSession {
        let last = try await query(
            """
            SELECT coalesce(max(ordinal), 0) AS last FROM (
                SELECT ordinal FROM executions WHERE checkout_id = \(checkout.id.uuid)
                UNION ALL SELECT ordinal FROM operations
                WHERE checkout_id = \(checkout.id.uuid) AND kind = 'createSession') AS known
            """
        ).first
        let ordinal = try (last?.decode("last", as: Int.self) ?? 0) + 1
        let operation = PaymentOperation(
            id: OperationID(identifiers.next()), kind: .createSession, owner: .checkout(checkout.id), execution: nil,
            key: IdempotencyKey(identifiers.next()), state: .sent, amount: checkout.amount, attempts: 1,
            createdAt: now, sentAt: now)
        try await insertOperation(operation, workflowCode: checkout.workflowCode, owner: owner, ordinal: ordinal)
        return try await plannedSession(operation, checkout: checkout)
    }

    /// The request of a planned session, always built from what was written down: the same key, the same content.
    func plannedSession(_ operation: PaymentOperation, checkout: Checkout) async throws -> PlannedSession {
        let ordinal = try await ordinal(of: operation.id)
        let amount = operation.amount ?? checkout.amount
        let meta = try await meta(of: checkout.id, paying: amount)
        return PlannedSession(
            operation: operation, checkout: checkout,
            request: SessionRequest(
                workflowCode: checkout.workflowCode,
                merchantReference: policy.references.reference(of: checkout.merchantReference, ordinal: ordinal),
                holderReference: checkout.holderReference, amount: amount,
                allowedPaymentMethods: checkout.allowedPaymentMethods, meta: meta))
    }

    /// What the shop gave along, as it fits a session over this amount. Lines must add up to it (section 3.1), so they are
    /// left out where it isn't the first session's any more. Both amounts stand, so one key keeps one content.
    private func meta(of checkout: CheckoutID, paying amount: Money) async throws -> JSON? {
        let row = try await query(
            """
            SELECT meta, coalesce(
                (SELECT (amount_minor, currency) IS DISTINCT FROM (\(amount.minor)::bigint, \(amount.currency.code)::text)
                FROM operations WHERE checkout_id = checkouts.id AND kind = 'createSession' AND ordinal = 1), true)
                    AS has_moved
            FROM checkouts WHERE id = \(checkout.uuid)
            """
        ).first
        guard let (text, hasMoved) = try row?.decode((String?, Bool).self), let text else { return nil }
        let meta = try JSON(parsing: Data(text.utf8))
        guard hasMoved, var members = meta.object, var order = members["order"]?.object else { return meta }
        order["lines"] = nil
        order["total"] = nil
        members["order"] = .object(order)
        return .object(members)
    }

    func ordinal(of operation: OperationID) async throws -> Int {
        guard let row = try await query("SELECT ordinal FROM operations WHERE id = \(operation.uuid)").first,
            let ordinal = try row.decode("ordinal", as: Int?.self)
        else { throw CorruptRow(table: "operations", detail: "a session without a number") }
        return ordinal
    }

    /// Whether no other session was made, or is being made, after this one.
    fileprivate func isLatestSession(_ operation: PaymentOperation, of checkout: Checkout) async throws -> Bool {
        guard operation.state.isFinal else { return true }
        return try await query(
            """
            SELECT 1 AS one FROM operations WHERE checkout_id = \(checkout.id.uuid) AND kind = 'createSession'
                AND ordinal > (SELECT ordinal FROM operations WHERE id = \(operation.id.uuid))
            """
        ).isEmpty
    }

    /// False when the reference was taken in the same instant.
    fileprivate func insertCheckout(_ new: NewCheckout, id: CheckoutID) async throws -> Bool {
        let expiresAt = now + new.lifetime
        return try await query(
            """
            INSERT INTO checkouts (id, merchant_reference, holder_reference, workflow_code, status, amount_minor,
                currency, amount_version, amount_state, basket_version, client_may_update, minimum_minor,
                maximum_minor, bounds_currency, allowed_payment_methods, meta, created_by, creation_key, created_at, expires_at, due_at)
            VALUES (\(id.uuid), \(new.merchantReference), \(new.holderReference), \(new.workflowCode), 'open',
                \(new.amount.minor), \(new.amount.currency.code), 1, 'inStep', \(new.basketVersion),
                \(new.amountPolicy.clientMayUpdate), \(new.amountPolicy.minimum?.minor),
                \(new.amountPolicy.maximum?.minor), \(new.amount.currency.code), \(new.allowedPaymentMethods),
                \(new.meta.map { PostgresJSON($0.text) }), \(new.credential), \(new.idempotencyKey), \(now.stored),
                \(expiresAt.stored), \(expiresAt.stored))
            ON CONFLICT (merchant_reference) WHERE released_at IS NULL DO NOTHING
            """
        ).affected == 1
    }
}
