import Basics
import Lockstep
import Postgres
import Store
import Synchronization
import Testing

@testable import Service

@Suite("When a key was last used")
struct StoreAuthenticatorTests {
    @Test("what the database doesn't take is written down the next time, the latest use of each key")
    func keptForTheNextTime() async throws {
        let pool = PostgresPool(PostgresConfiguration(connectionString: try await MigratedDatabase.make()))
        let time = Mutex(Timestamp(seconds: 1_800_000_000))
        let clock = WallClock { time.withLock { $0 } }
        let store = PaymentStore(pool: pool, clock: clock, identifiers: .system())
        let authenticator = StoreAuthenticator(store: store, clock: clock)
        var tokens: [BearerToken] = []
        for name in ["till", "app"] {
            let created = try #require(try await store.createKey(name: name, scopes: [.checkouts]))
            tokens.append(try #require(BearerToken(created.1.reveal)))
        }
        for token in tokens { _ = try await authenticator.authenticate(token) }
        _ = try await pool.query("ALTER TABLE merchant_keys ADD CONSTRAINT shut CHECK (last_used_at IS NULL)")
        await #expect(throws: PostgresError.self) { try await authenticator.flush() }
        time.withLock { $0 = $0 + .seconds(60) }
        _ = try await authenticator.authenticate(tokens[0])
        await #expect(throws: PostgresError.self) { try await authenticator.flush() }
        _ = try await pool.query("ALTER TABLE merchant_keys DROP CONSTRAINT shut")
        try await authenticator.flush()
        let used = try await store.listKeys().reduce(into: [String: Timestamp]()) { $0[$1.name] = $1.lastUsedAt }
        #expect(used == ["till": Timestamp(seconds: 1_800_000_060), "app": Timestamp(seconds: 1_800_000_000)])
        await pool.shutdown()
    }
}
