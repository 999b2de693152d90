import Foundation
import HTTPClient
import TestKit
import Testing

extension HTTPClientTests {
    /// Each in a process of its own, since other tests open and close things at the same time.
    @Suite("what is left behind")
    struct LeakTests {
        fileprivate static let clients = 200
        fileprivate static let noise = 20

        @Test("a client that was shut down leaves no descriptor and no thread", arguments: [true, false])
        func nothingLeft(callsShutdown: Bool) async throws {
            await #expect(processExitsWith: .success) { [callsShutdown] in
                let server = try await TestServer()
                let before = try Usage()
                for _ in 0..<LeakTests.clients {
                    let client = try HTTPClient()
                    let response = try await client.get(server.url("/status/200"))
                    #expect(response.status == 200)
                    if callsShutdown { await client.shutdown() }
                }
                // A client that is only let go ends by itself, soon after.
                #expect(try await waitUntil { try !Usage().exceeds(before, by: LeakTests.noise) })
                #expect(try await server.countLines("connection") == LeakTests.clients)
            }
        }

        @Test("500 failures of every kind leave no descriptor")
        func failures() async throws {
            await #expect(processExitsWith: .success) {
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
                    #expect(after.descriptors - before.descriptors < LeakTests.noise)
                    #expect(client.statistics.failed == 500)
                }
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
