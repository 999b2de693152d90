import Basics
import Foundation
import Lockstep
import Store

/// Joins the books and the provider: writes an intent down, makes the call, writes down what became of it.
///
/// Requests and workers use the same steps, so that what one of them leaves behind, the other can finish. No call to
/// the provider is ever made inside a transaction.
public struct Orchestrator: Sendable {
    public let store: PaymentStore
    public let provider: any PaymentProvider
    /// Who holds the leases that this process takes.
    public let owner: UUID
    let charging: Charging
    let log: Log
    /// What is learned about attempts of charges, by as many as work on them at once.
    let steps: Batcher<ChargeStep, ChargeStanding>

    /// How charges without the customer are made.
    public struct Charging: Sendable {
        /// Where a customer would come back to; the provider wants one, though nobody will (`LOCKSTEP_RETURN_URL`).
        /// Nil: none can be made.
        public var returnURL: String?
        /// How long the provider is taken to keep an idempotency key (`PAYRAILS_IDEMPOTENCY_RETENTION`).
        public var keyLife: Duration

        public init(returnURL: String? = nil, keyLife: Duration = .seconds(86_400)) {
            self.returnURL = returnURL
            self.keyLife = keyLife
        }
    }

    public init(
        store: PaymentStore, provider: any PaymentProvider, owner: UUID, charging: Charging = Charging(), log: Log
    ) {
        self.store = store
        self.provider = provider
        self.owner = owner
        self.charging = charging
        self.log = log
        steps = Batcher { await store.take($0) }
    }

    /// Asks the provider about an execution and learns what it says.
    ///
    /// - Returns: the reading; nil where the provider couldn't be asked, or doesn't know it.
    @discardableResult
    public func refresh(_ execution: ExecutionReference) async throws -> ExecutionSnapshot? {
        let askedAt = store.now
        guard case .done(let snapshot) = try await read(execution) else { return nil }
        if let reference = try await store.learnReading(snapshot, askedAt: askedAt) {
            try await readPayments(reference, of: snapshot)
        }
        return snapshot
    }

    /// The same for an attempt's, together with the steps of other charges.
    ///
    /// - Returns: the reading, and its charge as it stands then.
    func refreshCharge(
        of execution: ExecutionReference
    ) async throws -> (snapshot: ExecutionSnapshot, charge: Charge?)? {
        guard case .done(let reading) = try await readCharge(of: execution) else { return nil }
        return reading
    }

    /// The same, and where the provider couldn't be asked, or doesn't know it, what it said.
    func readCharge(
        of execution: ExecutionReference
    ) async throws -> Outcome<(snapshot: ExecutionSnapshot, charge: Charge?)> {
        let snapshot: ExecutionSnapshot
        switch try await read(execution) {
        case .done(let shown): snapshot = shown
        case .refused(let refusal): return .refused(refusal)
        case .unknown(let doubt): return .unknown(doubt)
        }
        let standing = try await steps.add(.read(snapshot))
        guard let reference = standing.paymentsToRead, try await readPayments(reference, of: snapshot) else {
            return .done((snapshot, standing.charge))
        }
        guard let charge = standing.charge else { return .done((snapshot, nil)) }
        return .done((snapshot, try await store.readCharge(charge.id)))
    }

    /// Asks the provider about an execution; where it can't be asked, the next reading is planned.
    private func read(_ execution: ExecutionReference) async throws -> Outcome<ExecutionSnapshot> {
        let outcome = await provider.readExecution(execution, wait: nil)
        switch outcome {
        case .done: return outcome
        case .refused(let refusal):
            log.warning("an execution could not be read", .execution(execution.id), .error(refusal))
        case .unknown(let doubt):
            log.warning("an execution could not be read", .execution(execution.id), .error(doubt))
        }
        try await store.postponeReading(of: execution.id)
        return outcome
    }

    /// Of one reference's payments; one execution has a handful.
    private static let maximumPaymentPages = 50

    /// Asks what was captured and refunded where the statuses tell that something was, and nobody told how much.
    ///
    /// - Returns: false where the provider couldn't be asked for all of it.
    @discardableResult
    func readPayments(_ reference: String, of snapshot: ExecutionSnapshot) async throws -> Bool {
        // The records hold at least what had happened when the execution was read.
        guard let at = snapshot.facts.filter({ $0.kind == .status }).map(\.at).max() else { return false }
        var records: [PaymentRecord] = []
        var after: String?
        var pages = 0
        repeat {
            // Where the filter isn't minded the list is everybody's, and has no end.
            pages += 1
            guard pages <= Self.maximumPaymentPages else { return false }
            guard
                case .done(let page) = await provider.listPayments(
                    PaymentFilter(merchantReference: reference), after: after)
            else { return false }
            records += page.records
            after = page.next
        } while after != nil
        try await store.learn(
            records.map { record in
                Fact(
                    kind: .payment, code: record.status, amount: record.amount, captured: record.capturedAmount,
                    refunded: record.refundedAmount, paymentID: record.id, at: at, source: .read)
            }, about: snapshot.reference.id)
        return true
    }
}

extension Refusal {
    /// Nothing is wrong with what was asked; it only didn't get through. Asking again under the same key is right.
    var isPassing: Bool {
        switch kind {
        case .notSent, .rateLimited: true
        case .rejected, .unauthorized, .notFound, .conflict: false
        }
    }

    /// The provider itself says so: not a page of something in between, nor what is wrong with our credentials.
    var isByProvider: Bool { code != nil && kind != .unauthorized }

    /// The provider has looked at what was asked, so that it tells of every attempt under the same key. Whether the caller
    /// may ask at all says nothing about an attempt before.
    var isAboutIntent: Bool { isByProvider && code.map { !Self.aboutAccess.contains($0) } ?? false }

    /// Codes of what is looked at before the request itself is.
    static let aboutAccess: Set = [
        "request.forbidden", "request.blocked", "request.method-not-allowed", "request.unauthorized",
    ]
}
