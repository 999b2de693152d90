import Basics
import Foundation
import Lockstep
import Postgres

/// What a caller's idempotency key means.
public enum IdempotencyClaim: Sendable {
    /// Ours to run; under this key nothing else runs until then.
    case fresh(until: Timestamp)
    case replay(StoredAnswer)
    /// The key was used for another request.
    case reused
    /// The first request still runs.
    case inUse
}

/// An answer that was given under a key.
public struct StoredAnswer: Sendable {
    public let status: Int
    public let headers: JSON
    public let body: Data

    public init(status: Int, headers: JSON, body: Data) {
        self.status = status
        self.headers = headers
        self.body = body
    }
}

extension PaymentStore {
    /// Reserves a caller's key in one statement: the unique row decides between two that come at once.
    ///
    /// - Parameter lease: after how long another may go on in its place, unless the lease is renewed.
    public func claimIdempotencyKey(
        credential: UUID, key: String, requestHash: Data, lease: Duration
    ) async throws -> IdempotencyClaim {
        let now = clock.now()
        let until = Timestamp(microseconds: (now + lease).microseconds)
        let row = try await pool.query(
            """
            INSERT INTO idempotency_keys AS known (credential, key, request_hash, lease_until, created_at)
            VALUES (\(credential), \(key), \(requestHash), \(until.stored), \(now.stored))
            ON CONFLICT (credential, key) DO UPDATE SET lease_until = \(until.stored)
            WHERE known.status IS NULL AND known.lease_until <= \(now.stored)
                AND known.request_hash = \(requestHash)
            RETURNING 1 AS taken
            """)
        if !row.isEmpty { return .fresh(until: until) }
        let known = try await pool.query(
            """
            SELECT request_hash, status, headers, body FROM idempotency_keys
            WHERE credential = \(credential) AND key = \(key)
            """
        ).first
        guard let known else { return .inUse }
        let (hash, status, headers, body) = try known.decode((Data, Int?, String?, Data?).self)
        guard hash == requestHash else { return .reused }
        guard let status, let body else { return .inUse }
        let fields = try headers.map { try JSON(parsing: Data($0.utf8)) } ?? .object([:])
        return .replay(StoredAnswer(status: status, headers: fields, body: body))
    }

    /// The request still runs, so its lease begins anew.
    ///
    /// - Parameter until: the end of the lease as it was given.
    /// - Returns: the end that is in force from now on. Nil where another request has taken the lease over, or where there
    ///   is an answer.
    public func renewIdempotencyKey(
        credential: UUID, key: String, until: Timestamp, lease: Duration
    ) async throws -> Timestamp? {
        let next = Timestamp(microseconds: (clock.now() + lease).microseconds)
        let renewed = try await pool.query(
            """
            UPDATE idempotency_keys SET lease_until = \(next.stored)
            WHERE credential = \(credential) AND key = \(key) AND status IS NULL AND lease_until = \(until.stored)
            """)
        return renewed.affected == 1 ? next : nil
    }

    /// Keeps the answer.
    public func finishIdempotencyKey(credential: UUID, key: String, answer: StoredAnswer) async throws {
        _ = try await pool.query(
            """
            UPDATE idempotency_keys SET status = \(answer.status), headers = \(PostgresJSON(answer.headers.text)),
                body = \(answer.body)
            WHERE credential = \(credential) AND key = \(key) AND status IS NULL
            """)
    }

    /// There is no answer to keep: the same request goes on where it stopped, at once.
    ///
    /// - Parameter until: the end of the lease as it was given. Where another request has taken it over, it isn't ours to
    ///   end.
    public func releaseIdempotencyKey(credential: UUID, key: String, until: Timestamp) async throws {
        _ = try await pool.query(
            """
            UPDATE idempotency_keys SET lease_until = \(clock.now().stored)
            WHERE credential = \(credential) AND key = \(key) AND status IS NULL AND lease_until = \(until.stored)
            """)
    }

    /// Deletes what is older than a caller may rely on, and what is no longer a secret worth keeping.
    public func tidy(limit: Int) async throws -> Int {
        let now = clock.now()
        let oldest = (now - policy.requestKeyLife).stored
        var gone = try await pool.query(
            """
            DELETE FROM idempotency_keys WHERE ctid IN (SELECT ctid FROM idempotency_keys
                WHERE created_at < \(oldest) ORDER BY created_at LIMIT \(limit)
                FOR UPDATE SKIP LOCKED)
            """
        ).affected
        // A key that is no longer kept may be used again for something else, and must not find what it once began.
        gone += try await pool.query(
            """
            UPDATE operations SET requested_by = NULL, request_key = NULL WHERE id IN (SELECT id FROM operations
                WHERE request_key IS NOT NULL AND created_at < \(oldest) LIMIT \(limit)
                FOR UPDATE SKIP LOCKED)
            """
        ).affected
        gone += try await pool.query(
            """
            DELETE FROM client_tokens WHERE ctid IN (SELECT ctid FROM client_tokens
                WHERE expires_at < \(now.stored) LIMIT \(limit) FOR UPDATE SKIP LOCKED)
            """
        ).affected
        gone += try await pool.query(
            """
            UPDATE executions SET init_data = NULL WHERE id IN (SELECT id FROM executions
                WHERE init_data IS NOT NULL AND created_at < \((now - policy.initFresh * 2).stored)
                ORDER BY created_at LIMIT \(limit)
                FOR UPDATE SKIP LOCKED)
            """
        ).affected
        return gone
    }
}
