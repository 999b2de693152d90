import Basics
import Lockstep

/// One movement of money, as it really happened, whatever the caller was told.
public struct SandboxLedgerEntry: Hashable, Sendable {
    public enum Kind: String, Hashable, Sendable {
        /// Money was set aside.
        case authorization
        /// What was set aside was let go: a cancel, or the rest after a final capture.
        case void
        case capture
        /// A capture that the provider took back later.
        case captureReversal
        case refund
        /// A refund that the provider took back later.
        case refundReversal
        case chargeback
    }
    /// From 1, without gaps.
    public let sequence: Int
    public let kind: Kind
    public let executionID: String
    public let paymentID: String
    public let merchantReference: String
    public let amount: Money
    public let time: Timestamp
}

/// What happened to the money of one merchant reference in one currency, in minor units.
public struct SandboxLedgerTotals: Hashable, Sendable {
    public let merchantReference: String
    public let currency: Currency
    public internal(set) var authorizedMinor: Int64 = 0
    public internal(set) var voidedMinor: Int64 = 0
    public internal(set) var capturedMinor: Int64 = 0
    public internal(set) var refundedMinor: Int64 = 0
    public internal(set) var chargedBackMinor: Int64 = 0
    /// How many times money was set aside: two for one order is a customer who paid twice.
    public internal(set) var authorizations = 0

    /// What is set aside and neither taken nor let go.
    public var heldMinor: Int64 { authorizedMinor - voidedMinor - capturedMinor }
    /// What the merchant has: captured, less what went back.
    public var netMinor: Int64 { capturedMinor - refundedMinor - chargedBackMinor }
}

/// Every movement of money, and the proof that none was impossible.
struct Ledger: Sendable {
    private(set) var entries: [SandboxLedgerEntry] = []
    private var totalsByReference: [TotalsKey: SandboxLedgerTotals] = [:]
    private var balances: [String: Balance] = [:]

    private struct TotalsKey: Hashable {
        let merchantReference: String
        let currency: Currency
    }

    private struct Balance {
        var authorized: Int64 = 0
        var voided: Int64 = 0
        var captured: Int64 = 0
        var refunded: Int64 = 0
        /// Holds for any payment at any time; that it does is what the ledger is for.
        var isSound: Bool {
            voided >= 0 && captured >= 0 && refunded >= 0 && voided + captured <= authorized && refunded <= captured
        }
    }

    mutating func record(
        _ kind: SandboxLedgerEntry.Kind, _ amount: Money, payment: Payment, at time: Timestamp
    ) {
        guard !amount.isZero else { return }
        let minor = amount.minor
        var balance = balances[payment.id] ?? Balance()
        let key = TotalsKey(merchantReference: payment.merchantReference, currency: amount.currency)
        var totals =
            totalsByReference[key]
            ?? SandboxLedgerTotals(merchantReference: payment.merchantReference, currency: amount.currency)
        switch kind {
        case .authorization:
            balance.authorized += minor
            totals.authorizedMinor += minor
            totals.authorizations += 1
        case .void:
            balance.voided += minor
            totals.voidedMinor += minor
        case .capture:
            balance.captured += minor
            totals.capturedMinor += minor
        case .captureReversal:
            balance.captured -= minor
            totals.capturedMinor -= minor
        case .refund:
            balance.refunded += minor
            totals.refundedMinor += minor
        case .refundReversal:
            balance.refunded -= minor
            totals.refundedMinor -= minor
        case .chargeback: totals.chargedBackMinor += minor
        }
        precondition(balance.isSound, "the stand-in moved money that wasn't there")
        balances[payment.id] = balance
        totalsByReference[key] = totals
        entries.append(
            SandboxLedgerEntry(
                sequence: entries.count + 1, kind: kind, executionID: payment.executionID, paymentID: payment.id,
                merchantReference: payment.merchantReference, amount: amount, time: time))
    }

    func totals(_ merchantReference: String, currency code: String) -> SandboxLedgerTotals? {
        Currency(code: code).flatMap {
            totalsByReference[TotalsKey(merchantReference: merchantReference, currency: $0)]
        }
    }

    /// Ordered by reference, then by currency.
    var totals: [SandboxLedgerTotals] {
        totalsByReference.values.sorted {
            ($0.merchantReference, $0.currency.code) < ($1.merchantReference, $1.currency.code)
        }
    }
}
