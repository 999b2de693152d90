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
    func insertEvent(
        _ type: EventType, checkout: CheckoutID?, execution: ExecutionID?, data: JSON
    ) async throws {
        _ = try await query(
            """
            INSERT INTO events (id, type, scope, checkout_id, execution_id, data, time)
            VALUES (\(identifiers.next()), \(type.rawValue), \(type.scope.rawValue), \(checkout?.uuid),
                \(execution?.uuid), \(PostgresJSON(data.text)), \(now.stored))
            """)
    }
}
