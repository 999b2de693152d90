import Basics
import Foundation
import Lockstep
import Postgres

extension Transaction {
    private static let columns = """
        id, merchant_reference, holder_reference, workflow_code, status, amount_minor, currency, amount_version, \
        amount_state, basket_version, client_may_update, minimum_minor, maximum_minor, bounds_currency, \
        allowed_payment_methods, current_execution_id, kept_execution_id, lease_execution_id, lease_until, created_at, expires_at
        """

    /// The checkout with its row locked until the transaction ends; nil when there is none, and for one whose creation
    /// was refused: nothing may begin on it any more, since its order may have another.
    func lockCheckout(_ id: CheckoutID) async throws -> Checkout? {
        try await query(
            """
            SELECT \(unescaped: Self.columns) FROM checkouts WHERE id = \(id.uuid) AND released_at IS NULL
            FOR UPDATE
            """
        ).first.map(Self.checkout(from:))
    }

    /// The same for many, always in the order of their ids; also those whose creation was refused, since something may
    /// become known of them all the same.
    func lockCheckouts(_ ids: [CheckoutID]) async throws -> [Checkout] {
        guard !ids.isEmpty else { return [] }
        return try await query(Self.lockQuery(ids.map(\.uuid), includingReleased: true)).map(Self.checkout(from:))
    }

    /// - Parameters:
    ///   - includingReleased: also those whose creation was refused.
    ///   - waits: else those that somebody holds are left out.
    static func lockQuery(_ ids: [UUID], includingReleased: Bool = false, waits: Bool = true) -> PostgresQuery {
        """
        SELECT \(unescaped: columns) FROM checkouts WHERE id = ANY(\(ids))
        \(unescaped: includingReleased ? "" : "AND released_at IS NULL")
        ORDER BY id FOR UPDATE \(unescaped: waits ? "" : "SKIP LOCKED")
        """
    }

    func readCheckout(_ id: CheckoutID) async throws -> Checkout? {
        try await query(
            """
            SELECT \(unescaped: Self.columns) FROM checkouts WHERE id = \(id.uuid) AND released_at IS NULL
            """
        ).first.map(Self.checkout(from:))
    }

    /// The checkout of an order, whatever became of it; not one whose creation was refused.
    func readCheckout(merchantReference: String) async throws -> Checkout? {
        try await query(
            """
            SELECT \(unescaped: Self.columns) FROM checkouts
            WHERE merchant_reference = \(merchantReference) AND released_at IS NULL
            """
        ).first.map(Self.checkout(from:))
    }

    /// The checkout that an execution belongs to.
    static func checkoutQuery(of execution: ExecutionID) -> PostgresQuery {
        """
        SELECT \(unescaped: columns) FROM checkouts
        WHERE id = (SELECT checkout_id FROM executions WHERE id = \(execution.uuid)) AND released_at IS NULL
        """
    }

    func writeCheckout(_ checkout: Checkout, dueAt: Timestamp?) async throws {
        _ = try await query(
            """
            UPDATE checkouts SET status = \(checkout.status.rawValue), amount_minor = \(checkout.amount.minor),
                currency = \(checkout.amount.currency.code), amount_version = \(checkout.amountVersion),
                amount_state = \(checkout.amountState.rawValue), basket_version = \(checkout.basketVersion),
                current_execution_id = \(checkout.currentExecution?.uuid),
                kept_execution_id = \(checkout.keptExecution?.uuid),
                lease_execution_id = \(checkout.lease?.execution.uuid), lease_until = \(checkout.lease?.until.stored),
                due_at = \(dueAt?.stored)
            WHERE id = \(checkout.id.uuid)
            """)
    }

    static func checkout(from row: PostgresRow) throws -> Checkout {
        let (
            id, merchantReference, holderReference, workflowCode, status, minor, code, amountVersion, amountState,
            basketVersion, clientMayUpdate, minimum, maximum, boundsCode, methods, current, kept, leased, leaseUntil,
            createdAt,
            expiresAt
        ) = try row.decode(
            (
                UUID, String, String, String, String, Int64, String, Int64, String, String?, Bool, Int64?, Int64?,
                String?,
                [String]?, UUID?, UUID?, UUID?, PostgresTimestamp?, PostgresTimestamp, PostgresTimestamp
            ).self)
        var lease: GateLease?
        if let leased, let leaseUntil {
            lease = GateLease(execution: ExecutionID(leased), until: leaseUntil.timestamp)
        }
        return Checkout(
            id: CheckoutID(id), merchantReference: merchantReference, holderReference: holderReference,
            workflowCode: workflowCode, status: try legal(status, "checkouts"),
            amount: try Money(minor: minor, code: code, table: "checkouts"), amountVersion: amountVersion,
            amountState: try legal(amountState, "checkouts"), basketVersion: basketVersion,
            amountPolicy: AmountPolicy(
                clientMayUpdate: clientMayUpdate,
                minimum: try .optional(minor: minimum, code: boundsCode ?? code, table: "checkouts"),
                maximum: try .optional(minor: maximum, code: boundsCode ?? code, table: "checkouts")),
            allowedPaymentMethods: methods, currentExecution: current.map { ExecutionID($0) },
            keptExecution: kept.map { ExecutionID($0) }, lease: lease, createdAt: createdAt.timestamp,
            expiresAt: expiresAt.timestamp)
    }
}
