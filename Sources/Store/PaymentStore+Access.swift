import Basics
import Crypto
import Foundation
import Lockstep
import Postgres

/// A merchant key as it is listed: never the key itself, of which only a hash is kept.
public struct MerchantKey: Sendable {
    public let id: MerchantKeyID
    public let name: String
    public let scopes: Set<Scope>
    public let createdAt: Timestamp
    public let lastUsedAt: Timestamp?
    public let revokedAt: Timestamp?
}

/// What a client token reaches.
public struct ClientToken: Sendable {
    public let id: UUID
    public let checkout: CheckoutID
}

extension PaymentStore {
    /// Makes a merchant key. Nil when the name is taken.
    public func createKey(name: String, scopes: Set<Scope>) async throws -> (MerchantKeyID, Secret<String>)? {
        let token = "lsk_" + Crypto.randomBytes(32).base64URL
        let id = MerchantKeyID(identifiers.next())
        let inserted = try await pool.query(
            """
            INSERT INTO merchant_keys (id, name, key_hash, scopes, created_at)
            VALUES (\(id.uuid), \(name), \(Self.hash(token)), \(scopes.map(\.rawValue).sorted()),
                \(clock.now().stored))
            ON CONFLICT (name) DO NOTHING
            """)
        return inserted.affected == 1 ? (id, Secret(token)) : nil
    }

    /// The key that a token belongs to, unless it was revoked.
    public func findKey(token: Secret<String>) async throws -> MerchantKey? {
        try await pool.query(
            """
            SELECT id, name, scopes, created_at, last_used_at, revoked_at FROM merchant_keys
            WHERE key_hash = \(Self.hash(token.reveal)) AND revoked_at IS NULL
            """
        ).first.map(Self.key(from:))
    }

    /// Whether a key that was found a while ago is in force still.
    public func isInForce(_ key: MerchantKeyID) async throws -> Bool {
        try await !pool.query(
            "SELECT 1 AS one FROM merchant_keys WHERE id = \(key.uuid) AND revoked_at IS NULL"
        ).isEmpty
    }

    public func listKeys() async throws -> [MerchantKey] {
        try await pool.query(
            "SELECT id, name, scopes, created_at, last_used_at, revoked_at FROM merchant_keys ORDER BY created_at, id"
        ).map(Self.key(from:))
    }

    /// Revokes by name or id. False when there is none.
    public func revokeKey(_ nameOrID: String) async throws -> Bool {
        try await pool.query(
            """
            UPDATE merchant_keys SET revoked_at = coalesce(revoked_at, \(clock.now().stored))
            WHERE name = \(nameOrID) OR id = \(UUID(canonical: nameOrID))
            """
        ).affected > 0
    }

    /// Notes when keys were last used; called now and then with what was seen, not on every request.
    public func noteKeyUse(_ uses: [MerchantKeyID: Timestamp]) async throws {
        guard !uses.isEmpty else { return }
        let sorted = uses.sorted { $0.key < $1.key }
        _ = try await pool.query(
            """
            UPDATE merchant_keys SET last_used_at = greatest(last_used_at, used.at)
            FROM unnest(\(sorted.map(\.key.uuid)), \(sorted.map(\.value.stored))) AS used(id, at)
            WHERE merchant_keys.id = used.id
            """)
    }

    /// Makes a client token for a checkout. It works until some time after the checkout's expiry.
    public func createClientToken(for checkout: Checkout) async throws -> Secret<String> {
        let token = "lsc_" + Crypto.randomBytes(32).base64URL
        _ = try await pool.query(
            """
            INSERT INTO client_tokens (token_hash, id, checkout_id, created_at, expires_at)
            VALUES (\(Self.hash(token)), \(identifiers.next()), \(checkout.id.uuid), \(clock.now().stored),
                \((checkout.expiresAt + policy.clientTokenGrace).stored))
            """)
        return Secret(token)
    }

    public func findClientToken(_ token: Secret<String>) async throws -> ClientToken? {
        try await pool.query(
            """
            SELECT id, checkout_id FROM client_tokens
            WHERE token_hash = \(Self.hash(token.reveal)) AND expires_at > \(clock.now().stored)
            """
        ).first.map { row in
            let (id, checkout) = try row.decode((UUID, UUID).self)
            return ClientToken(id: id, checkout: CheckoutID(checkout))
        }
    }

    private static func hash(_ token: String) -> Data { Crypto.sha256(Data(token.utf8)) }

    private static func key(from row: PostgresRow) throws -> MerchantKey {
        let (id, name, scopes, createdAt, lastUsedAt, revokedAt) = try row.decode(
            (UUID, String, [String], PostgresTimestamp, PostgresTimestamp?, PostgresTimestamp?).self)
        return MerchantKey(
            id: MerchantKeyID(id), name: name, scopes: Set(scopes.compactMap(Scope.init(rawValue:))),
            createdAt: createdAt.timestamp, lastUsedAt: lastUsedAt?.timestamp, revokedAt: revokedAt?.timestamp)
    }
}
