import Basics
import Foundation
import Lockstep
import Postgres
import TestKit
import Testing

@testable import Service

/// The whole service with a shop at its other end.
enum PushHarness {
    static let secret = "whsec_" + Data("the-secret-of-the-tests-32-bytes".utf8).base64EncodedString()

    /// Impatient: a test must not wait for days.
    static func settings(_ shop: ShopReceiver?, _ more: [String: String] = [:]) -> [String: String] {
        var settings = [
            "LOCKSTEP_EVENTS_SECRET": secret, "LOCKSTEP_EVENTS_TIMEOUT_MS": "2000",
            "LOCKSTEP_EVENTS_RETRIES": Array(repeating: "30ms", count: 40).joined(separator: ","),
        ]
        settings["LOCKSTEP_EVENTS_URL"] = shop?.url
        return settings.merging(more) { _, new in new }
    }

    static func start(
        _ shop: ShopReceiver?, _ more: [String: String] = [:], parts: LockstepService.Parts? = .all
    ) async throws -> ServiceHarness {
        try await ServiceHarness.start(settings(shop, more), parts: parts)
    }
}

extension ServiceHarness {
    /// Writes an event straight into the feed.
    @discardableResult
    func writeEvent(_ checkout: String? = nil, _ data: JSON = [:]) async throws -> String {
        let id = UUID()
        _ = try await books.query(
            """
            INSERT INTO events (id, type, scope, checkout_id, data, time)
            VALUES (\(id), 'checkout.paid', 'checkouts', \(checkout.flatMap { UUID(uuidString: $0) }),
                \(PostgresJSON(data.text)), now())
            """)
        return id.uuidString.lowercased()
    }

    /// An event of a checkout that exists only in the feed.
    @discardableResult
    func writeEvent(of checkout: UUID) async throws -> String {
        let id = checkout.uuidString.lowercased()
        return try await writeEvent(id, ["checkout": ["id": .string(id)]])
    }

    /// How many deliveries are in a state.
    func deliveries(_ state: DeliveryState) async throws -> Int {
        try await store.readDeliveries([state], limit: 10_000).count
    }
}
