import Basics
import Foundation
import TestKit
import Testing

/// Each is repeated as often as `LOCKSTEP_TEST_KILLS` says (3).
@Suite("A notification that was answered 200 is in effect, whoever is killed (M3, M13)", .serialized)
struct AcknowledgedTests {
    private static let rounds = ProcessInfo.processInfo.environment["LOCKSTEP_TEST_KILLS"].flatMap { Int($0) } ?? 3
    private static let orders = 40
    /// Nobody asks Payrails: what is known was told.
    private static let withoutHealing = [
        "LOCKSTEP_HEAL_PENDING": "1h", "LOCKSTEP_HEAL_UNKNOWN": "1h", "LOCKSTEP_LOG_LEVEL": "notice",
        "LOCKSTEP_DATABASE_ACQUIRE_TIMEOUT_MS": "1000",
    ]

    /// When somebody is killed, with some still under way.
    private func enough(of notifications: [SignedNotification]) -> Int {
        .random(in: notifications.count / 20...notifications.count * 2 / 3)
    }

    @Test("kill -9 of the service while notifications are posted")
    func serviceKilled() async throws {
        let lockstep = try await ServiceHarness.start(Self.withoutHealing, parts: nil)
        for round in 1...Self.rounds {
            let program = try await lockstep.startProgram()
            let (orders, notifications) = try await lockstep.heldBack(orders: Self.orders)
            let postman = Postman(notifications)
            async let posting: Void = postman.deliver(to: program.stranger)
            let enough = enough(of: notifications)
            #expect(await waitUntil { postman.acknowledged.count >= enough })
            #expect(await program.end(by: SIGKILL).status == 128 + SIGKILL)
            postman.stop()
            await posting
            let acknowledged = postman.acknowledged
            print("kill \(round): \(acknowledged.count) of \(notifications.count) were answered 200 before it")

            let next = try await lockstep.startProgram()
            #expect(try await waitUntil { try await lockstep.areInEffect(acknowledged) })
            // Those that nobody answered come again, also the ones that were stored.
            await postman.deliver(to: next.stranger)
            #expect(try await waitUntil { try await lockstep.areInEffect(notifications) })
            #expect(try await waitUntil { try await lockstep.areDone(orders) })
            await next.end(by: SIGKILL)
        }
        await lockstep.stop()
    }

    @Test("kill -9 of the service while wrk posts as fast as it can")
    func serviceKilledUnderLoad() async throws {
        let lockstep = try await ServiceHarness.start(Self.withoutHealing, parts: nil)
        for round in 1...Self.rounds {
            let program = try await lockstep.startProgram()
            let (orders, held) = try await lockstep.heldBack(orders: Self.orders)
            // The same again with other bytes is another notification: enough of them to be cut off in the middle.
            let notifications = held.flatMap { notification in
                (0..<12).map { SignedNotification(notification.body + Data(repeating: 0x20, count: $0)) }
            }.shuffled()
            let load = try LoadOfNotifications(notifications, to: program.baseURL + ServiceHarness.endpoint)
            let enough = enough(of: notifications)
            #expect(await waitUntil { load.acknowledged.count >= enough })
            #expect(await program.end(by: SIGKILL).status == 128 + SIGKILL)
            await load.stop()
            let acknowledged = load.acknowledged
            print("kill \(round): wrk was answered \(acknowledged.count) of \(notifications.count) before it")
            let next = try await lockstep.startProgram()
            #expect(try await waitUntil { try await lockstep.areInEffect(acknowledged) })
            await Postman(held).deliver(to: next.stranger)
            #expect(try await waitUntil { try await lockstep.areDone(orders) })
            await next.end(by: SIGKILL)
        }
        await lockstep.stop()
    }

    @Test("W14: an immediate stop of the database under them: 503 until it is back, and no 200 is lost")
    func databaseKilled() async throws {
        let cluster = try await PostgresCluster.startOwn()
        let lockstep = try await ServiceHarness.start(Self.withoutHealing, cluster: cluster, parts: nil)
        let program = try await lockstep.startProgram()
        for round in 1...Self.rounds {
            let (orders, notifications) = try await lockstep.heldBack(orders: Self.orders)
            let postman = Postman(notifications)
            let enough = enough(of: notifications)
            // More than what is answered while the server is told to stop, and enough left to be refused.
            postman.pause(after: enough + 60)
            async let posting: Void = postman.deliver(to: program.stranger)
            #expect(await waitUntil { postman.acknowledged.count >= enough })
            try await cluster.stop(mode: .immediate)
            postman.pause(after: nil)
            let acknowledged = postman.acknowledged
            #expect(await waitUntil { postman.refusals.count >= 40 })
            // At most what each connection was just being told.
            #expect(postman.acknowledged.count - acknowledged.count <= 32, "answered without books")
            try await cluster.start()
            await posting
            print("crash \(round): \(acknowledged.count) of \(notifications.count) were answered 200 before it")
            #expect(postman.refusals.allSatisfy { $0.outcome == "503 unavailable" })
            #expect(postman.refusals.allSatisfy { $0.headers["Retry-After"] != nil })
            #expect(await waitUntil { (try? await lockstep.areInEffect(notifications)) == true })
            #expect(await waitUntil { (try? await lockstep.areDone(orders)) == true })
        }
        #expect(await program.end(by: SIGTERM).status == 0)
        await lockstep.stop()
        try await cluster.stop()
    }
}
