import Basics
import Foundation
import HTTPServer
import Lockstep
import Store
import Synchronization
import TestKit
import Testing

@testable import Service

@Suite("The program and its events")
struct EventsProgramTests {
    /// A run of the built program, which stands beside the test's own.
    private struct Run {
        let process = Process()
        private let output = Pipe()

        init(_ arguments: [String], _ environment: [String: String]) throws {
            process.executableURL = URL(filePath: "/proc/self/exe").resolvingSymlinksInPath()
                .deletingLastPathComponent().appending(path: "lockstep")
            process.arguments = arguments
            process.environment = environment
            process.standardOutput = output
            process.standardError = FileHandle.nullDevice
            try process.run()
        }

        func ends() async throws -> (status: Int32, output: String) {
            let output = output
            let process = process
            return await withCheckedContinuation { continuation in
                Thread.detachNewThread {
                    let said = output.fileHandleForReading.readDataToEndOfFile()
                    process.waitUntilExit()
                    continuation.resume(returning: (process.terminationStatus, String(decoding: said, as: UTF8.self)))
                }
            }
        }
    }

    @Test("killed while the shop has an event in its hands: it is sent again under the same id, and only it")
    func killed() async throws {
        let isUp = Mutex(false)
        let shop = try ShopReceiver { _, _ in
            // The first program never hears what became of it.
            while !isUp.withLock({ $0 }) { try? await Task.sleep(for: .milliseconds(5)) }
            return HTTPServerResponse(status: 200)
        }
        let lockstep = try await PushHarness.start(shop, ["LOCKSTEP_EVENTS_TIMEOUT_MS": "20000"], parts: nil)
        try await lockstep.store.beginDeliveries()
        let checkout = UUID()
        let first = try await lockstep.writeEvent(of: checkout)
        let second = try await lockstep.writeEvent(of: checkout)
        let run = try Run(["serve", "--only-workers"], lockstep.environment)
        #expect(await waitUntil { shop.received.count == 1 })
        kill(run.process.processIdentifier, SIGKILL)
        #expect(try await run.ends().status == SIGKILL)
        isUp.withLock { $0 = true }

        try await lockstep.startService(.workers, clock: WallClock { .systemNow + .seconds(120) })
        #expect(try await waitUntil { try await lockstep.deliveries(.delivered) == 2 })
        #expect(shop.received.map(\.id) == [first, first, second])
        #expect(shop.received[0].body == shop.received[1].body)
        await lockstep.stop()
        await shop.stop()
    }

    @Test("events are listed with what became of them, and sent again by id or by state")
    func command() async throws {
        let shop = try ShopReceiver { event, time in
            HTTPServerResponse(status: event.json["data"]?["checkout"] == nil ? 200 : time == 1 ? 410 : 500)
        }
        let lockstep = try await PushHarness.start(shop, ["LOCKSTEP_EVENTS_RETRIES": "1h"])
        let environment = lockstep.environment
        let delivered = try await lockstep.writeEvent()
        let checkout = UUID()
        let dead = try await lockstep.writeEvent(of: checkout)
        #expect(try await waitUntil { try await lockstep.deliveries(.dead) == 1 })
        #expect(try await waitUntil { try await lockstep.deliveries(.delivered) == 1 })

        let listed = try await Run(["events", "--json"], environment).ends()
        #expect(listed.status == 0)
        let json = try JSON(parsing: Data(listed.output.utf8))
        #expect(json.array?.count == 1 && json[0]?["id"]?.string == dead && json[0]?["state"] == "dead")
        #expect(json[0]?["checkoutId"]?.string == checkout.uuidString.lowercased())
        #expect(json[0]?["lastStatus"]?.integer == 410 && json[0]?["attempts"]?.integer == 1)
        let line = try await Run(["events", "--state", "delivered"], environment).ends()
        #expect(line.output.hasPrefix("\(delivered)  checkout.paid  -  delivered  attempts 1  status 200"))

        let resent = try await Run(["events", "--resend", "--state", "dead"], environment).ends()
        #expect(resent.status == 0 && resent.output == "1 to be sent\n", "results are on standard output")
        #expect(try await waitUntil { try await lockstep.deliveries(.pending) == 1 && shop.received.count == 3 })
        let pending = try await Run(["events", "--state=pending"], environment).ends()
        #expect(pending.output.contains("pending  attempts 1  status 500  next 2"))
        let unknown = UUID().uuidString
        let some = try await Run(["events", "--resend", delivered, unknown, "--json"], environment).ends()
        #expect(some.status == 1)
        #expect(try JSON(parsing: Data(some.output.utf8)) == ["toBeSent": 1])
        #expect(await waitUntil { shop.received.count { $0.id == delivered } == 2 })

        for wrong in [
            ["--resend"], ["--resend", "--state", "delivered"], ["--resend", dead, "--state", "dead"],
            ["--resend", "soon"], ["--state", "lost"], ["--limit", "0"], [dead],
        ] {
            #expect(try await Run(["events"] + wrong, environment).ends().status == 64, "\(wrong)")
        }
        #expect(try await Run(["events", "--help"], [:]).ends().output.contains("--resend EVENT-ID"))
        await lockstep.stop()
        await shop.stop()
    }
}
