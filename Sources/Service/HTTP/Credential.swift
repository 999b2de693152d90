import Basics
import Crypto
import Foundation
import Lockstep

/// Who is calling, once it is believed (invariant M10).
public enum Credential: Hashable, Sendable {
    /// `lsk_…`
    case merchantKey(MerchantKeyID, name: String, scopes: Set<Scope>)
    /// `lsc_…`: one checkout and nothing else.
    case client(CheckoutID, tokenID: UUID)

    public func has(_ scope: Scope) -> Bool {
        if case .merchantKey(_, _, let scopes) = self { scopes.contains(scope) } else { false }
    }

    /// Whether this is the merchant's own key rather than a client token.
    public var isMerchant: Bool { if case .merchantKey = self { true } else { false } }

    /// Whether a checkout may be shown to the caller. A client token sees its own; a merchant key sees every one.
    public func reaches(_ checkout: CheckoutID) -> Bool {
        switch self {
        case .merchantKey: true
        case .client(let own, _): own == checkout
        }
    }

    /// Throws 404 where ``reaches(_:)`` says no: somebody else's checkout isn't there.
    public func mustReach(_ checkout: CheckoutID) throws(Problem) {
        guard reaches(checkout) else { throw .notFound }
    }

    /// What an idempotency key belongs to: the key's or the token's own id.
    public var owner: UUID {
        switch self {
        case .merchantKey(let id, _, _): id.uuid
        case .client(_, let tokenID): tokenID
        }
    }
}

/// A token in the one form that Lockstep gives out: `lsk_` or `lsc_` and 43 characters of base64url (32 random bytes).
public struct BearerToken: Sendable, Equatable {
    public enum Kind: String, Sendable { case merchantKey = "lsk_", client = "lsc_" }
    public let kind: Kind
    public let text: Secret<String>

    /// Nil for anything that isn't of that form; no such token can exist, so nobody needs to be asked.
    public init?(_ text: String) {
        guard let kind = Kind(rawValue: String(text.prefix(4))), text.utf8.count == 47,
            text.utf8.dropFirst(4).allSatisfy({ byte in
                switch byte {
                case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                    UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "_"):
                    true
                default: false
                }
            })
        else { return nil }
        self.kind = kind
        self.text = Secret(text)
    }

    /// A new one. `random` gives the 32 bytes.
    public static func make(_ kind: Kind, random: (Int) -> Data = Crypto.randomBytes) -> BearerToken {
        BearerToken(kind: kind, unchecked: kind.rawValue + random(32).base64URL)
    }

    private init(kind: Kind, unchecked text: String) {
        self.kind = kind
        self.text = Secret(text)
    }

    /// SHA-256 of the token's text: all of it that is ever stored.
    public var hash: Data { Crypto.sha256(Data(text.reveal.utf8)) }
}

/// Whoever knows which tokens are in force.
public protocol Authenticator: Sendable {
    /// Who the bearer is; nil where the token is unknown, revoked or over.
    ///
    /// - Throws: whatever kept it from finding out; the router answers 503, never 401.
    func authenticate(_ bearer: BearerToken) async throws -> Credential?
}
