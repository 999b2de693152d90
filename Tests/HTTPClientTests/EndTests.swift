import Foundation
import HTTPClient
import Testing

extension HTTPClientTests {
    @Suite("cancelling and shutting down")
    struct EndTests {
        @Test("a cancelled task hears at once, and the connection is closed")
        func cancelled() async throws {
            let server = try await TestServer()
            try await withClient { client in
                let task = Task {
                    try await client.failure(HTTPClientRequest(method: "POST", url: server.url("/silent")))
                }
                try await server.waitForLine("request")
                let (error, elapsed) = try await timed {
                    task.cancel()
                    return try await task.value
                }
                #expect(error.code == .cancelled)
                #expect(error.mayHaveBeenSent)
                #expect(elapsed < .seconds(20))
                #expect(client.statistics.inFlight == 0)
                let next = try await client.get(server.url("/echo"))
                #expect(next.status == 200)
            }
        }

        @Test("a task that was cancelled before sends nothing")
        func cancelledBefore() async throws {
            let server = try await TestServer()
            try await withClient { client in
                let task = Task {
                    while !Task.isCancelled { await Task.yield() }
                    return try await client.failure(HTTPClientRequest(method: "POST", url: server.url("/echo")))
                }
                task.cancel()
                let error = try await task.value
                #expect(error.code == .cancelled)
                #expect(!error.mayHaveBeenSent)
            }
            #expect(try await server.countLines("connection") == 0)
        }

        @Test("cancelling at any moment ends every request exactly once")
        func cancelledAtAnyMoment() async throws {
            let server = try await TestServer()
            try await withClient { client in
                try await withThrowingTaskGroup { group in
                    for number in 0..<300 {
                        group.addTask {
                            let task = Task { try await client.get(server.url("/echo")) }
                            try await Task.sleep(for: .microseconds(number * 30))
                            task.cancel()
                            do {
                                return try await task.value.status == 200
                            } catch let error as HTTPClientError {
                                return error.code == .cancelled
                            }
                        }
                    }
                    for try await isFine in group { #expect(isFine) }
                }
                let statistics = client.statistics
                #expect(statistics.inFlight == 0)
                #expect(statistics.succeeded + statistics.failed == statistics.started)
            }
        }

        @Test("shutting down fails what runs and what waits, and whatever comes later")
        func shutdown() async throws {
            let server = try await TestServer()
            var configuration = HTTPClientConfiguration()
            configuration.maximumConnectionsPerHost = 1
            let client = try HTTPClient(configuration)
            async let running = client.failure(HTTPClientRequest(method: "POST", url: server.url("/silent")))
            try await server.waitForLine("request")
            async let waiting = client.failure(HTTPClientRequest(method: "POST", url: server.url("/echo")))
            let deadline = ContinuousClock.now + .seconds(5)
            while client.statistics.inFlight < 2, .now < deadline { await Task.yield() }
            async let again: Void = client.shutdown()
            await client.shutdown()
            await again
            let (first, second) = (try await running, try await waiting)
            #expect(first.code == .shutDown)
            #expect(first.mayHaveBeenSent)
            #expect(second.code == .shutDown)
            #expect(!second.mayHaveBeenSent)
            let late = try await client.failure(HTTPClientRequest(method: "GET", url: server.url("/echo")))
            #expect(late.code == .shutDown)
            #expect(!late.mayHaveBeenSent)
            await client.shutdown()
        }
    }
}
