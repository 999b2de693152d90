import Basics
import Foundation
import Lockstep
import Store

/// Keeps callers' idempotency keys in the books.
public struct StoreIdempotencyKeeper: IdempotencyKeeper {
    private let store: PaymentStore
    /// After how long without a sign of life from a request the same one may go on in its place.
    private let lease: Duration
    /// Early enough for one that comes to nothing to be made up for.
    public var renewalInterval: Duration { lease / 3 }

    public init(store: PaymentStore, lease: Duration) {
        self.store = store
        self.lease = lease
    }

    public func begin(_ context: IdempotencyContext) async throws -> IdempotencyBeginning {
        switch try await store.claimIdempotencyKey(
            credential: context.owner, key: context.key, requestHash: context.requestHash, lease: lease)
        {
        case .fresh(let until): return .fresh(until: until)
        case .reused: return .reused
        case .inUse: return .inUse
        case .replay(let answer):
            let fields = (answer.headers.object ?? [:]).compactMap { name, value in
                value.string.map { HTTPHeaders.Field(name: name, value: $0) }
            }
            return .replay(
                StoredAnswer(
                    status: answer.status, headers: HTTPHeaders(fields.sorted { $0.name < $1.name }),
                    body: answer.body))
        }
    }

    public func renew(_ context: IdempotencyContext, until: Timestamp) async throws -> Timestamp? {
        try await store.renewIdempotencyKey(
            credential: context.owner, key: context.key, until: until, lease: lease)
    }

    public func finish(_ context: IdempotencyContext, with answer: StoredAnswer) async throws {
        let fields = answer.headers.fields.map { ($0.name, JSON.string($0.value)) }
        try await store.finishIdempotencyKey(
            credential: context.owner, key: context.key,
            answer: Store.StoredAnswer(
                status: answer.status, headers: .object(Dictionary(fields) { _, last in last }), body: answer.body))
    }

    public func release(_ context: IdempotencyContext, until: Timestamp) async throws {
        try await store.releaseIdempotencyKey(credential: context.owner, key: context.key, until: until)
    }
}
