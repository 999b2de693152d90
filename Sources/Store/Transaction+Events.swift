import Basics
import Foundation
import Lockstep
import Postgres

extension Transaction {
    func insertEvent(_ type: EventType, about settled: SettledCheckout) async throws {
        try await insertEvent(
            type, checkout: settled.checkout.id, execution: settled.checkout.currentExecution,
            data: ["checkout": settled.json])
    }

    /// Writes an event in the transaction of the change that it tells of.
    ///
    /// - Parameter subject: whose events are told one after the other, where it isn't a checkout: a subscription, a
    ///   charge, an instrument.
    func insertEvent(
        _ type: EventType, checkout: CheckoutID? = nil, subject: UUID? = nil, execution: ExecutionID? = nil, data: JSON
    ) async throws {
        _ = try await query(
            """
            INSERT INTO events (id, type, scope, checkout_id, subject_id, execution_id, data, time)
            VALUES (\(identifiers.next()), \(type.rawValue), \(type.scope.rawValue), \(checkout?.uuid), \(subject),
                \(execution?.uuid), \(PostgresJSON(data.text)), \(now.stored))
            """)
    }
}
