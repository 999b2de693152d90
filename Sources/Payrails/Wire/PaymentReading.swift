import Basics
import Lockstep

/// Reads a payment record (section 7).
enum PaymentReading {
    /// Nil without an id. Without a status it is `Unknown`, which Payrails itself uses for "ask a person".
    static func record(_ json: JSON) -> PaymentRecord? {
        guard let id = json["id"]?.word else { return nil }
        return PaymentRecord(
            id: id, status: json["status"]?.word ?? "Unknown",
            merchantReference: json["merchantReference"]?.reference,
            amount: json["amount"]?.money, capturedAmount: json["capturedAmount"]?.money,
            refundedAmount: json["refundedAmount"]?.money, createdAt: json["createdAt"]?.timestamp)
    }
}
