import Basics
import Foundation
import Lockstep
import Store
import Synchronization

/// Asks the books who the bearer of a token is, and notes now and then when a key was last used.
public final class StoreAuthenticator: Authenticator {
    private let store: PaymentStore
    private let clock: WallClock
    private let uses: Uses

    private final class Uses: Sendable { let seen = Mutex<[MerchantKeyID: Timestamp]>([:]) }

    public convenience init(store: PaymentStore, clock: WallClock) {
        self.init(store: store, clock: clock, uses: Uses())
    }

    private init(store: PaymentStore, clock: WallClock, uses: Uses) {
        self.store = store
        self.clock = clock
        self.uses = uses
    }

    /// One that asks by other connections, and notes what it sees where this one does.
    func asking(_ store: PaymentStore) -> StoreAuthenticator {
        StoreAuthenticator(store: store, clock: clock, uses: uses)
    }

    public func authenticate(_ bearer: BearerToken) async throws -> Credential? {
        switch bearer.kind {
        case .merchantKey:
            guard let key = try await store.findKey(token: bearer.text) else { return nil }
            uses.seen.withLock { $0[key.id] = clock.now() }
            return .merchantKey(key.id, name: key.name, scopes: key.scopes)
        case .client:
            return try await store.findClientToken(bearer.text).map { .client($0.checkout, tokenID: $0.id) }
        }
    }

    /// Writes down what was noted since the last time. What can't be written is kept for the next.
    public func flush() async throws {
        let seen = uses.seen.withLock { uses in
            defer { uses = [:] }
            return uses
        }
        do {
            try await store.noteKeyUse(seen)
        } catch {
            // A key may have been used again meanwhile.
            uses.seen.withLock { $0.merge(seen) { max($0, $1) } }
            throw error
        }
    }
}
