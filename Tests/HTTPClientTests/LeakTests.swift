import Foundation
import HTTPClient
import TestKit
import Testing

extension HTTPClientTests {
    /// Other tests open and close things at the same time, so one client's leak would be lost among theirs; what 200
    /// clients leave behind is not.
    @Suite("what is left behind")
    struct LeakTests {
        private static let clients = 200
        private static let noise = 100

        @Test("a client that was shut down leaves no descriptor and no thread", arguments: [true, false])
        func nothingLeft(callsShutdown: Bool) async throws {
            let server = try await TestServer()
            let before = try Usage()
            for _ in 0..<Self.clients {
                let client = try HTTPClient()
                let response = try await client.get(server.url("/status/200"))
                #expect(response.status == 200)
                if callsShutdown { await client.shutdown() }
            }
            // A client that is only let go ends by itself, soon after.
            let deadline = ContinuousClock.now + .seconds(10)
            var after = try Usage()
            while after.exceeds(before, by: Self.noise), .now < deadline {
                try await Task.sleep(for: .milliseconds(20))
                after = try Usage()
            }
            #expect(!after.exceeds(before, by: Self.noise), "\(before) \(after)")
            #expect(try await server.countLines("connection") == Self.clients)
        }

        @Test("500 failures of every kind leave no descriptor")
        func failures() async throws {
            let server = try await TestServer()
            let closed = try closedPort()
            try await withClient { client in
                let before = try Usage()
                for number in 0..<500 {
                    let url = number % 2 == 0 ? server.url("/half") : "http://127.0.0.1:\(closed)/"
                    let error = try await client.failure(HTTPClientRequest(method: "POST", url: url))
                    #expect([.connectionLost, .cannotConnect].contains(error.code))
                }
                let after = try Usage()
                #expect(after.descriptors - before.descriptors < Self.noise)
                #expect(client.statistics.failed == 500)
            }
        }
    }
}

private struct Usage {
    let descriptors: Int
    let threads: Int

    init() throws {
        descriptors = try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").count
        threads = try FileManager.default.contentsOfDirectory(atPath: "/proc/self/task").count
    }

    func exceeds(_ other: Usage, by noise: Int) -> Bool {
        descriptors - other.descriptors > noise || threads - other.threads > noise
    }
}
