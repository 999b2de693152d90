import Foundation
import HTTPClient
import Testing

extension HTTPClientTests {
    @Suite("what comes back")
    struct ResponseTests {
        @Test(
            "any status is a response, a redirect too, which is not followed",
            arguments: [200, 204, 304, 401, 404, 500, 599])
        func statuses(status: Int) async throws {
            let server = try await TestServer()
            try await withClient { client in
                #expect(try await client.get(server.url("/status/\(status)")).status == status)
                let redirect = try await client.get(server.url("/redirect"))
                #expect(redirect.status == 302)
                #expect(redirect.headers["location"] == "/echo")
            }
            #expect(try await server.countLines("request GET /echo") == 0)
        }

        @Test("only the final response's fields are kept: no interim response's, and no trailers")
        func interimAndTrailers() async throws {
            let server = try await TestServer.shared.value
            try await withClient { client in
                let interim = try await client.get(server.url("/interim"))
                #expect(interim.status == 200)
                #expect(interim.text == "final")
                #expect(interim.headers.fields.map(\.name) == ["Content-Length", "X-Final"])
                let trailers = try await client.get(server.url("/trailers"))
                #expect(trailers.status == 200)
                #expect(trailers.text == "final")
                #expect(trailers.headers.fields.map(\.name) == ["Transfer-Encoding", "Trailer"])
                #expect(try await client.get(server.url("/folded")).headers["x-folded"] == "one two")
            }
        }

        @Test("HEAD has the length of a body that does not come, and the connection goes on")
        func head() async throws {
            let server = try await TestServer()
            try await withClient { client in
                let head = try await client.send(HTTPClientRequest(method: "HEAD", url: server.url("/head")))
                #expect(head.headers["content-length"] == "50000000")
                #expect(head.body.isEmpty)
                #expect(try await client.get(server.url("/echo")).status == 200)
            }
            #expect(try await server.countLines("connection") == 1)
        }

        @Test("a body without a length ends with its connection")
        func untilClose() async throws {
            let server = try await TestServer.shared.value
            try await withClient { client in
                let response = try await client.get(server.url("/until-close"))
                #expect(response.text == "until the end")
                #expect(response.httpVersion == "1.0")
            }
        }

        @Test("a body as long as the limit is taken, one byte more is not, whoever sets the limit")
        func limit() async throws {
            let server = try await TestServer.shared.value
            var configuration = HTTPClientConfiguration()
            configuration.maximumResponseBytes = 1000
            try await withClient(configuration) { client in
                #expect(try await client.get(server.url("/long?1000")).body.count == 1000)
                let error = try await client.failure(HTTPClientRequest(method: "GET", url: server.url("/long?1001")))
                #expect(error.code == .responseTooLarge)
                #expect(error.mayHaveBeenSent)
                var request = HTTPClientRequest(method: "GET", url: server.url("/long?1001"))
                request.maximumResponseBytes = 1001
                #expect(try await client.send(request).body.count == 1001)
                request.maximumResponseBytes = 0
                #expect(try await client.failure(request).code == .responseTooLarge)
                request.url = server.url("/status/200")
                #expect(try await client.send(request).status == 200)
            }
        }

        @Test("a body without end is not read on", arguments: ["/endless", "/endless-chunked"])
        func endless(path: String) async throws {
            let server = try await TestServer()
            var configuration = HTTPClientConfiguration()
            configuration.maximumResponseBytes = 100_000
            try await withClient(configuration) { client in
                let error = try await client.failure(HTTPClientRequest(method: "GET", url: server.url(path)))
                #expect(error.code == .responseTooLarge)
                #expect(error.mayHaveBeenSent)
                let sent = Int(try await server.waitForLine("sent ").dropFirst(5))
                // What it got rid of sits in two socket buffers, megabytes at most; on its own it sends 500.
                #expect(sent ?? .max < 50_000_000)
            }
        }

        @Test("a header without end is not read on", arguments: ["/many-fields", "/long-field"])
        func longHeader(path: String) async throws {
            let server = try await TestServer.shared.value
            try await withClient { client in
                let error = try await client.failure(HTTPClientRequest(method: "GET", url: server.url(path)))
                #expect(error.code == .responseTooLarge)
                #expect(error.mayHaveBeenSent)
            }
        }

        @Test(
            "half an answer is no answer",
            arguments: [
                ("/close", [.connectionLost]), ("/half", [.connectionLost]), ("/half-chunked", [.connectionLost]),
                ("/bad-chunk", [.connectionLost, .malformedResponse]), ("/half-header", [.malformedResponse]),
                ("/garbage", [.malformedResponse]), ("/bad-length", [.malformedResponse]),
                ("/bad-trailer", [.malformedResponse]),
            ] as [(String, [HTTPClientError.Code])])
        func half(path: String, expected: [HTTPClientError.Code]) async throws {
            let server = try await TestServer()
            try await withClient { client in
                let error = try await client.failure(HTTPClientRequest(method: "POST", url: server.url(path)))
                #expect(expected.contains(error.code), "\(error)")
                #expect(error.mayHaveBeenSent)
            }
            #expect(try await server.countLines("request") == 1)
        }
    }
}
