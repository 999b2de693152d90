/// How an order's reference becomes the references of its executions at the provider, and back.
public struct PaymentReference: Hashable, Sendable {
    /// What stands between the shop's reference and the number (`LOCKSTEP_REFERENCE_SEPARATOR`).
    public let separator: String

    public init(separator: String = "~") { self.separator = separator }

    /// The first execution carries the shop's reference as it is; later ones `~2`, `~3` after it.
    public func reference(of merchantReference: String, ordinal: Int) -> String {
        ordinal <= 1 ? merchantReference : "\(merchantReference)\(separator)\(ordinal)"
    }

    /// Attempt `attempt` of a subscription's period `period`, both from 1: `<reference>~<period>~<attempt>`.
    public func reference(of merchantReference: String, period: Int, attempt: Int) -> String {
        "\(merchantReference)\(separator)\(period)\(separator)\(attempt)"
    }

    /// The shop's reference that an execution's reference belongs to.
    public func merchantReference(of reference: String) -> String {
        reference.range(of: separator).map { String(reference[..<$0.lowerBound]) } ?? reference
    }
}
