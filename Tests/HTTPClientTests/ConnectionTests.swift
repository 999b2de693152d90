import Basics
import Foundation
import Glibc
import HTTPClient
import Testing

extension HTTPClientTests {
    @Suite("connections, deadlines, and what may have been sent")
    struct ConnectionTests {
        @Test("a port where nothing listens: not one byte was sent")
        func refused() async throws {
            let port = try closedPort()
            try await withClient { client in
                let error = try await client.failure(
                    HTTPClientRequest(method: "POST", url: "http://127.0.0.1:\(port)/", body: Data("money".utf8)))
                #expect(error.code == .cannotConnect)
                #expect(error.curlCode == 7)
                #expect(!error.mayHaveBeenSent)
            }
        }

        @Test("a name that does not exist: not one byte was sent")
        func unresolvable() async throws {
            try await withClient { client in
                let error = try await client.failure(HTTPClientRequest(method: "GET", url: "https://nowhere.invalid/"))
                #expect(error.code == .cannotResolve)
                #expect(!error.mayHaveBeenSent)
            }
        }

        @Test("a connection that nobody accepts is given up after the connect timeout: not one byte was sent")
        func neverAccepted() async throws {
            let full = try FullListener()
            defer { full.close() }
            var configuration = HTTPClientConfiguration()
            configuration.connectTimeout = .milliseconds(200)
            try await withClient(configuration) { client in
                let (error, elapsed) = try await timed {
                    try await client.failure(HTTPClientRequest(method: "POST", url: "http://127.0.0.1:\(full.port)/"))
                }
                #expect(error.code == .cannotConnect)
                #expect(!error.mayHaveBeenSent)
                #expect(elapsed >= .milliseconds(190) && elapsed < .seconds(20))
                let late = try await client.failure(
                    HTTPClientRequest(
                        method: "POST", url: "http://127.0.0.1:\(full.port)/", timeout: .milliseconds(100)))
                #expect(late.code == .timedOut)
                #expect(!late.mayHaveBeenSent)
            }
        }

        @Test("a server that never answers: the deadline holds, and the request may have been sent (Q6)")
        func silent() async throws {
            let server = try await TestServer.shared.value
            try await withClient { client in
                let (error, elapsed) = try await timed {
                    try await client.failure(
                        HTTPClientRequest(method: "POST", url: server.url("/silent"), timeout: .milliseconds(300)))
                }
                #expect(error.code == .timedOut)
                #expect(error.mayHaveBeenSent)
                #expect(elapsed >= .milliseconds(290) && elapsed < .seconds(20))
            }
        }

        @Test("a server that drips its answer does not stretch the deadline")
        func drip() async throws {
            let server = try await TestServer.shared.value
            try await withClient { client in
                let (error, elapsed) = try await timed {
                    try await client.failure(
                        HTTPClientRequest(method: "GET", url: server.url("/drip"), timeout: .milliseconds(300)))
                }
                #expect(error.code == .timedOut)
                #expect(error.mayHaveBeenSent)
                #expect(elapsed < .seconds(20))
            }
        }

        @Test("waiting for a free connection counts against the deadline, and what only waited was not sent")
        func waiting() async throws {
            let server = try await TestServer()
            var configuration = HTTPClientConfiguration()
            configuration.maximumConnectionsPerHost = 1
            try await withClient(configuration) { client in
                let first = Task {
                    try await client.failure(HTTPClientRequest(method: "GET", url: server.url("/silent")))
                }
                try await server.waitForLine("request GET /silent")
                let (error, elapsed) = try await timed {
                    try await client.failure(
                        HTTPClientRequest(method: "POST", url: server.url("/echo"), timeout: .milliseconds(200)))
                }
                #expect(error.code == .timedOut)
                #expect(!error.mayHaveBeenSent)
                #expect(elapsed < .seconds(20))
                #expect(client.statistics.inFlight == 1)
                first.cancel()
                #expect(try await first.value.code == .cancelled)
            }
            #expect(try await server.countLines("request POST /echo") == 0)
        }

        @Test("no time at all is over before anything is sent")
        func noTime() async throws {
            let server = try await TestServer()
            try await withClient { client in
                for timeout in [Duration.zero, .seconds(-1)] {
                    let error = try await client.failure(
                        HTTPClientRequest(method: "GET", url: server.url("/echo"), timeout: timeout))
                    #expect(error.code == .timedOut)
                    #expect(!error.mayHaveBeenSent)
                }
            }
            #expect(try await server.countLines("connection") == 0)
        }

        @Test("connections are used again, and no more are opened than the limit says")
        func reuse() async throws {
            let server = try await TestServer()
            var configuration = HTTPClientConfiguration()
            configuration.maximumConnectionsPerHost = 8
            try await withClient(configuration) { client in
                try await withThrowingTaskGroup { group in
                    for number in 0..<500 {
                        group.addTask {
                            let response = try await client.send(
                                HTTPClientRequest(
                                    method: "POST", url: server.url("/echo"), body: Data("\(number)".utf8)))
                            return response.text.hasSuffix("\n\n\(number)")
                        }
                    }
                    for try await isOwnAnswer in group { #expect(isOwnAnswer) }
                }
                for _ in 0..<20 { _ = try await client.get(server.url("/echo")) }
                let statistics = client.statistics
                #expect(statistics.succeeded == 520)
                #expect(statistics.inFlight == 0)
                #expect(statistics.failed == 0)
                #expect((1...8).contains(statistics.connectionsOpened))
                #expect(try await server.countLines("connection") == statistics.connectionsOpened)
            }
            #expect(try await server.countLines("request") == 520)
        }

        @Test("one request more than allowed at once is refused, and the others are not hurt")
        func tooMany() async throws {
            let server = try await TestServer()
            var configuration = HTTPClientConfiguration()
            configuration.maximumRequests = 2
            try await withClient(configuration) { client in
                async let first = client.get(server.url("/slow?300"))
                async let second = client.get(server.url("/slow?300"))
                try await server.waitForLine("request")
                try await server.waitForLine("request")
                let error = try await client.failure(HTTPClientRequest(method: "GET", url: server.url("/echo")))
                #expect(error.code == .tooManyRequests)
                #expect(!error.mayHaveBeenSent)
                #expect(try await first.status == 200)
                #expect(try await second.status == 200)
                let third = try await client.get(server.url("/echo"))
                #expect(third.status == 200)
            }
        }

        @Test(
            "an early answer to a body that is still being sent is an answer or a lost connection, and never a signal")
        func earlyAnswer() async throws {
            let server = try await TestServer.shared.value
            try await withClient { client in
                for _ in 0..<5 {
                    let result = await Result {
                        try await client.send(
                            HTTPClientRequest(
                                method: "POST", url: server.url("/early-error-unread"), body: Data(count: 8_000_000)))
                    }
                    switch result {
                    case .success(let response): #expect(response.status == 413)
                    case .failure(let error as HTTPClientError):
                        #expect(error.code == .connectionLost)
                        #expect(error.mayHaveBeenSent)
                    case .failure: Issue.record("not the client's error")
                    }
                }
            }
        }
    }
}

extension Result where Failure == any Error {
    init(_ body: () async throws -> Success) async {
        do { self = .success(try await body()) } catch { self = .failure(error) }
    }
}

/// What `body` returns, and how long it took.
func timed<T>(_ body: () async throws -> T) async throws -> (T, Duration) {
    let start = ContinuousClock.now
    let value = try await body()
    return (value, .now - start)
}
