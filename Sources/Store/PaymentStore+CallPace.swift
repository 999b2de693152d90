import Foundation
import Postgres

extension PaymentStore {
    /// Takes the next place among the calls that all processes on these books make, in the database's own time.
    ///
    /// - Parameter perSecond: 1 or more.
    /// - Returns: how long to wait for it.
    public func reserveCall(perSecond: Int) async throws -> Duration {
        let step = Int64(1_000_000 / max(1, perSecond))
        let wait = try await pool.query(
            """
            INSERT INTO call_pace AS pace (provider, next_at)
            VALUES ('payrails', clock_timestamp() + \(step) * interval '1 microsecond')
            ON CONFLICT (provider) DO UPDATE
                SET next_at = greatest(pace.next_at, clock_timestamp()) + \(step) * interval '1 microsecond'
            RETURNING (extract(epoch FROM next_at - clock_timestamp()) * 1000000)::bigint - \(step) AS wait
            """
        ).first?.decode("wait", as: Int64.self)
        return .microseconds(max(0, wait ?? 0))
    }
}
