import Basics
import Foundation
import HTTPClient
import Lockstep
import Payrails
import Postgres
import Store

/// What a command needs that works once and ends: the books, Payrails, and what joins them.
public struct OneShot: Sendable {
    public let orchestrator: Orchestrator
    public let log: Log
    private let pool: PostgresPool
    private let client: HTTPClient

    public var store: PaymentStore { orchestrator.store }

    /// - Throws: ``StartRefusal`` for a database that is behind or ahead and for certificates that can't be used.
    public static func open(
        settings: Settings, clock: WallClock = .system, writer: LogWriter = .standardError()
    ) async throws -> OneShot {
        let log = Log(minimum: settings.log.level, clock: clock, writer: writer)
        guard let payrails = settings.payrails else { throw StartRefusal(message: "PAYRAILS_BASE_URL must be set") }
        let client = try LockstepService.makeClient(LockstepService.certificateSettings, payrails.client)
        let pool = PostgresPool(settings.postgres)
        do {
            try await LockstepService.refuseWrongVersion(pool)
            let orchestrator = try settings.orchestrator(
                payrails, through: client, pool: pool, clock: clock, identifiers: .system(clock: clock), log: log)
            return OneShot(orchestrator: orchestrator, log: log, pool: pool, client: client)
        } catch {
            await pool.shutdown()
            await client.shutdown()
            throw error
        }
    }

    public func close() async {
        await client.shutdown()
        await pool.shutdown()
        log.writer.flush()
    }
}
