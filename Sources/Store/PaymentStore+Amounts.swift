import Basics
import Foundation
import Lockstep
import Postgres

/// A change of the amount that is to be made at the provider.
public struct PlannedMove: Sendable {
    public let operation: PaymentOperation
    public let checkout: CheckoutID
    public let execution: ExecutionReference
    public let amount: Money

    public init(operation: PaymentOperation, checkout: CheckoutID, execution: ExecutionReference, amount: Money) {
        self.operation = operation
        self.checkout = checkout
        self.execution = execution
        self.amount = amount
    }
}

extension PaymentStore {
    public enum MoveStart: Sendable {
        case planned(PlannedMove)
        /// Nothing to move at the provider: the amount is the same, or no execution could be paid with it.
        case settled(Checkout)
        case refused(MoveRefusal)
    }

    public enum MoveRefusal: Sendable {
        case notFound, alreadyPaid, cancelled, expired, superseded, outsidePolicy, paymentInProgress, moving
        case unconfirmed
        case stale(currentVersion: Int64)
    }

    /// Who wants the amount moved.
    public enum Mover: Sendable { case merchant, client }

    /// Writes down that the amount is to be moved; one mover at a time for a checkout.
    ///
    /// - Parameters:
    ///   - version: what the caller believes is the version (`If-Match`); nil for the SDK's alias, which is serialised.
    ///   - execution: the execution that the caller names (the alias); nil for the current one.
    public func beginMove(
        of id: CheckoutID, to amount: Money, basketVersion: String?, version: Int64?, execution: ExecutionID?,
        by mover: Mover, owner: UUID
    ) async throws -> MoveStart {
        try await transact { transaction in
            guard var checkout = try await transaction.lockCheckout(id) else { return .refused(.notFound) }
            if checkout.status == .cancelled { return .refused(.cancelled) }
            if checkout.wasPaid { return .refused(.alreadyPaid) }
            if checkout.status == .expired || transaction.now >= checkout.expiresAt { return .refused(.expired) }
            if let execution, execution != checkout.currentExecution { return .refused(.superseded) }
            if let version, version != checkout.amountVersion {
                return .refused(.stale(currentVersion: checkout.amountVersion))
            }
            if mover == .client, !checkout.amountPolicy.allows(amount, from: checkout.amount) {
                return .refused(.outsidePolicy)
            }
            let operations = try await transaction.readOpenOperations(of: .checkout(id))
            if checkout.amountState == .unknown { return .refused(.unconfirmed) }
            if operations.contains(where: { $0.kind == .moveAmount || $0.kind == .createSession }) {
                return .refused(.moving)
            }
            let executions = try await transaction.readExecutions(of: id).map(\.execution)
            let current = executions.first { $0.id == checkout.currentExecution }
            let isLeased = checkout.lease.map { transaction.now < $0.until } ?? false
            if amount == checkout.amount, current?.amount == amount {
                // The gate's word, and the shop's, are good for the basket as it was.
                if isLeased, let basketVersion, basketVersion != checkout.basketVersion {
                    return .refused(.paymentInProgress)
                }
                if let basketVersion { checkout.basketVersion = basketVersion }
                return .settled(try await transaction.settle(checkout).checkout)
            }
            if isLeased || current?.state.isInFlight ?? false || executions.contains(where: \.mayHavePaid) {
                return .refused(.paymentInProgress)
            }
            guard let current, current.state == .created else {
                // No execution could be paid with it any more: the next session is made at the new amount.
                checkout.change(to: amount, basketVersion: basketVersion)
                return .settled(
                    try await transaction.settle(checkout, announcing: [.checkoutAmountChanged]).checkout)
            }
            let operation = PaymentOperation(
                id: OperationID(identifiers.next()), kind: .moveAmount, owner: .checkout(id),
                execution: current.reference,
                key: IdempotencyKey(identifiers.next()), state: .sent, amount: amount, basketVersion: basketVersion,
                attempts: 1, createdAt: transaction.now, sentAt: transaction.now)
            try await transaction.insertOperation(
                operation, workflowCode: checkout.workflowCode, owner: owner)
            checkout.amountState = .moving
            try await transaction.settle(checkout)
            return .planned(
                PlannedMove(operation: operation, checkout: id, execution: current.reference, amount: amount))
        }
    }

    public enum MoveResult: Sendable {
        /// The provider shows the new amount.
        case applied
        /// It certainly stays as it was.
        case refused(reason: String)
        case unknown(reason: String)
    }

    /// Writes down what became of a move. Facts may have decided it in the meantime; then they stand. So does whoever took
    /// it up since: only that the amount has moved is true whoever saw it.
    ///
    /// Where it moved while a payment of the execution ran, that payment decides: it is of one of the two amounts. One that
    /// never ends (a page that was left) decides nothing. After `LOCKSTEP_UNRESOLVED_AFTER` the books stay at the amount
    /// that everybody was told: the payment began before anybody was told another.
    ///
    /// - Parameter shown: which amount the provider has, where it was read.
    public func finishMove(
        _ move: PlannedMove, _ result: MoveResult, shown: Money? = nil
    ) async throws -> Checkout {
        try await transact { transaction in
            guard var checkout = try await transaction.lockCheckout(move.checkout),
                var operation = try await transaction.lockOperation(move.operation.id)
            else { throw CorruptRow(table: "operations", detail: "a planned move is gone") }
            guard !operation.state.isFinal else { return checkout }
            if operation.wasTaken(since: move.operation) {
                guard case .applied = result else { return checkout }
            }
            let wasUnknown = operation.state == .unknown
            var result = result
            var shown = shown
            if case .applied = result, try await transaction.isBeingPaid(move.execution.id, of: checkout.id) {
                shown = move.amount
                let isOverdue =
                    transaction.now >= operation.createdAt + transaction.policy.discrepancies.unresolvedAfter
                result =
                    isOverdue
                    ? .refused(reason: PaymentOperation.heldByPayment)
                    : .unknown(reason: PaymentOperation.heldByPayment)
            }
            switch result {
            case .applied:
                operation.state = .succeeded
                checkout.change(to: move.amount, basketVersion: operation.basketVersion)
                checkout.amountState = .inStep
                try await transaction.writeExecutionAmount(move.amount, of: move.execution.id)
            case .refused(let reason):
                operation.state = .failed
                operation.reason = reason
                checkout.amountState = .inStep
                // Neither what it was nor what it should be: somebody else has moved it. The books say so, and nobody pays by
                // this execution until its amount is moved again.
                if let shown, shown != checkout.amount {
                    try await transaction.writeExecutionAmount(shown, of: move.execution.id)
                }
            case .unknown(let reason):
                operation.state = .unknown
                operation.reason = reason
                checkout.amountState = .unknown
            }
            try await transaction.writeOperation(operation, dueAt: transaction.nextLook(after: operation.attempts))
            var announcing: [EventType] = []
            if case .applied = result { announcing = [.checkoutAmountChanged] }
            // Who asked for it was told that nobody knows; now somebody does.
            if wasUnknown, case .refused = result {
                try await transaction.insertEvent(
                    .operationFailed, checkout: checkout.id, execution: move.execution.id,
                    data: ["operation": operation.json])
            }
            return try await transaction.settle(checkout, announcing: announcing).checkout
        }
    }
}

extension Checkout {
    fileprivate mutating func change(to amount: Money, basketVersion: String?) {
        self.amount = amount
        amountVersion += 1
        if let basketVersion { self.basketVersion = basketVersion }
    }
}

extension Transaction {
    fileprivate func isBeingPaid(_ execution: ExecutionID, of checkout: CheckoutID) async throws -> Bool {
        try await readExecutions(of: checkout).contains {
            $0.execution.id == execution && ($0.execution.state.isInFlight || $0.execution.mayHavePaid)
        }
    }
}
