/// What becomes of a charge whose card is expired. Some issuers, and network tokens, still take such cards; the risk is
/// the merchant's, so the choice is too (reference 6.4).
public enum ExpiryPolicy: String, Hashable, Sendable, CaseIterable {
    /// It isn't sent. The default.
    case block
    /// It is sent; the issuer decides.
    case allow
    /// It is sent where the card has an enabled network token, whose own expiry moves with the account.
    case allowWithNetworkToken

    /// An expiry that nobody knows blocks nothing: unknown is not expired.
    public func permits(_ state: CardExpiry.State, hasNetworkToken: Bool) -> Bool {
        switch (state, self) {
        case (.valid, _), (.unknown, _), (.expired, .allow): true
        case (.expired, .block): false
        case (.expired, .allowWithNetworkToken): hasNetworkToken
        }
    }
}
