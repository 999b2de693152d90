import Basics

/// A customer, known to the merchant by its reference.
struct Holder: Sendable {
    let id: String
    let sequence: Int
    let reference: String
    let createdAt: Timestamp
}

/// Section 6.3: a saved way to pay.
struct Instrument: Sendable {
    let id: String
    let sequence: Int
    let holderID: String
    let holderReference: String
    let createdAt: Timestamp
    var updatedAt: Timestamp
    var paymentMethod: String
    /// `created`, `enabled`, `disabled`, `deleted`, `transient`.
    var status: String
    var isDefault: Bool
    var futureUsage: String?
    var merchantReference: String?
    var networkTransactionReference: String?
    var network: String?
    var bin: String?
    var suffix: String?
    /// `MM`.
    var expiryMonth: String?
    /// `YYYY`.
    var expiryYear: String?
    var holderName: String?
    var email: String?
    var networkTokenID: String?
    var fingerprint: String

    var displayName: String {
        if let suffix { return "\((network ?? "card").capitalized) **** \(suffix)" }
        return email ?? paymentMethod
    }
}
