import Basics
import Foundation
import HTTPClient
import Testing

extension HTTPClientTests {
    /// libcurl sends again, on a new connection, what it sent on a kept connection that ended without an answer.
    @Suite("a kept connection that ends just as it is used")
    struct ResendTests {
        private let key: HTTPHeaders = ["X-Idempotency-Key": "3b2f1c52-7a0e-4b62-9a7e-0d1e5f0a9c11"]

        @Test("a POST without an idempotency key is never sent twice: it is lost, and may have been sent")
        func postWithoutKey() async throws {
            let server = try await TestServer()
            try await withClient { client in
                _ = try await client.get(server.url("/once-then-close"))
                let error = try await client.failure(
                    HTTPClientRequest(method: "POST", url: server.url("/echo"), body: Data("money".utf8)))
                #expect(error.code == .connectionLost)
                #expect(error.mayHaveBeenSent)
                try await server.waitForLine("request again")
                #expect(client.statistics.resent == 0)
            }
            #expect(try await server.countLines("request POST") == 0)
        }

        @Test("a POST with an idempotency key goes again, once, and is counted")
        func postWithKey() async throws {
            let server = try await TestServer()
            try await withClient { client in
                _ = try await client.get(server.url("/once-then-close"))
                let response = try await client.send(
                    HTTPClientRequest(method: "POST", url: server.url("/echo"), headers: key, body: Data("money".utf8)))
                #expect(response.text.hasSuffix("\n\nmoney"))
                try await server.waitForLine("request again")
                #expect(client.statistics.resent == 1)
                #expect(client.statistics.connectionsOpened == 2)
            }
            #expect(try await server.countLines("request POST") == 1)
        }

        @Test("when the second sending can't even connect, the first may still have been acted on")
        func secondConnectionRefused() async throws {
            let server = try await TestServer()
            try await withClient { client in
                _ = try await client.get(server.url("/echo"))
                let error = try await client.failure(
                    HTTPClientRequest(method: "POST", url: server.url("/die"), headers: key, body: Data("money".utf8)))
                try await server.waitForLine("request POST /die")
                #expect(error.code == .cannotConnect)
                #expect(error.curlCode == 7)
                #expect(error.mayHaveBeenSent)
            }
        }

        @Test("a server that takes each request and hangs up gets it again a few times at most")
        func bounded() async throws {
            let server = try await TestServer()
            try await withClient { client in
                _ = try await client.get(server.url("/echo"))
                let error = try await client.failure(
                    HTTPClientRequest(method: "POST", url: server.url("/close"), headers: key))
                #expect(error.code == .connectionLost)
                #expect(error.mayHaveBeenSent)
            }
            // Once on the kept connection, once on a new one.
            #expect(try await server.countLines("request POST /close") == 2)
        }

        @Test("a fresh connection that ends is never tried again, key or not")
        func freshConnection() async throws {
            let server = try await TestServer()
            try await withClient { client in
                let error = try await client.failure(
                    HTTPClientRequest(method: "POST", url: server.url("/close"), headers: key))
                #expect(error.code == .connectionLost)
                #expect(error.mayHaveBeenSent)
            }
            #expect(try await server.countLines("request POST /close") == 1)
        }
    }
}
