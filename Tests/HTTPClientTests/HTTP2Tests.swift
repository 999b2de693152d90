import Basics
import Foundation
import HTTPClient
import TestKit
import Testing

extension HTTPClientTests {
    @Suite("HTTP/2")
    struct HTTP2Tests {
        private let authority: TLSAuthority
        private let pair: TLSAuthority.Pair
        private var configuration = HTTPClientConfiguration()

        init() async throws {
            authority = try await TLSAuthority()
            pair = try await authority.issue("server")
            configuration.authorityFile = authority.certificateFile
            configuration.usesHTTP2 = true
        }

        @Test("a server that offers it gets it; interim responses and trailers are not kept")
        func negotiated() async throws {
            let server = try await TestServer.tls(pair, ["--h2", "answer"])
            try await withClient(configuration) { client in
                let response = try await client.send(
                    HTTPClientRequest(method: "POST", url: server.url("/", scheme: "https"), body: Data("body".utf8)))
                #expect(response.httpVersion == "2")
                #expect(response.status == 200)
                #expect(response.text == "two:body")
                #expect(response.headers.fields.map(\.name) == ["x-final"])
            }
        }

        @Test("a server that offers it does not get it unless it is asked for")
        func notAsked() async throws {
            let server = try await TestServer.tls(pair, ["--h2", "answer"])
            var configuration = configuration
            configuration.usesHTTP2 = false
            try await withClient(configuration) { client in
                let response = try await client.get(server.url("/echo", scheme: "https"))
                #expect(response.httpVersion == "1.1")
            }
        }

        @Test("500 requests at once share few connections, and each gets its own answer")
        func multiplexed() async throws {
            let server = try await TestServer.tls(pair, ["--h2", "answer"])
            var configuration = configuration
            configuration.maximumConnectionsPerHost = 2
            try await withClient(configuration) { client in
                try await withThrowingTaskGroup { group in
                    for number in 0..<500 {
                        group.addTask {
                            let response = try await client.send(
                                HTTPClientRequest(
                                    method: "POST", url: server.url("/", scheme: "https"), body: Data("\(number)".utf8))
                            )
                            return response.text == "two:\(number)"
                        }
                    }
                    for try await isOwnAnswer in group { #expect(isOwnAnswer) }
                }
                #expect(client.statistics.resent == 0)
            }
            #expect(try await (1...2).contains(server.countLines("connection")))
            #expect(try await server.countLines("request") == 500)
        }

        @Test(
            "a stream that is not answered may have been sent",
            arguments: [
                ("reset", [.connectionLost]), ("goaway", [.connectionLost]), ("half", [.connectionLost]),
                ("refuse", [.connectionLost]), ("silent", [.timedOut]),
            ] as [(String, [HTTPClientError.Code])])
        func unanswered(behaviour: String, expected: [HTTPClientError.Code]) async throws {
            let server = try await TestServer.tls(pair, ["--h2", behaviour])
            try await withClient(configuration) { client in
                let error = try await client.failure(
                    HTTPClientRequest(
                        method: "POST", url: server.url("/", scheme: "https"), body: Data("money".utf8),
                        timeout: .seconds(1)))
                #expect(expected.contains(error.code), "\(error)")
                #expect(error.mayHaveBeenSent)
            }
            // Whatever the server says about it, a POST without an idempotency key goes out once.
            #expect(try await server.countLines("request") == 1)
        }

        @Test("cancelling one stream leaves the others alone")
        func cancelled() async throws {
            let server = try await TestServer.tls(pair, ["--h2", "silent"])
            var configuration = configuration
            configuration.maximumConnectionsPerHost = 1
            try await withClient(configuration) { client in
                let request = HTTPClientRequest(
                    method: "POST", url: server.url("/", scheme: "https"), timeout: .seconds(20))
                let first = Task { try await client.failure(request) }
                let second = Task { try await client.failure(request) }
                try await server.waitForLine("request")
                try await server.waitForLine("request")
                first.cancel()
                #expect(try await first.value.code == .cancelled)
                #expect(client.statistics.inFlight == 1)
                second.cancel()
                #expect(try await second.value.code == .cancelled)
            }
            #expect(try await server.countLines("connection") == 1)
        }
    }
}
