import Foundation
import Postgres

extension PaymentStore {
    /// How late a call may use its place. As many places as go into a second reach over this much more, so that no second
    /// holds one call too many when one goes late and another in time.
    public static let placeMargin: Duration = .milliseconds(100)

    /// Takes the next place among the calls that all processes on these books make, in the database's own time.
    ///
    /// - Parameter perSecond: 1 or more.
    /// - Returns: how long to wait for it. It is good for ``placeMargin``.
    public func reserveCall(perSecond: Int) async throws -> Duration {
        let margin = Self.placeMargin.components.attoseconds / 1_000_000_000_000
        let step = (1_000_000 + margin) / Int64(max(1, perSecond))
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
