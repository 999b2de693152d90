import Basics
import Foundation
import HTTPClient
import Testing

extension HTTPClientTests {
    @Suite("what reaches the server")
    struct RequestTests {
        @Test(
            "method, path, query, headers and body arrive as they were given, and nothing is added for bodies or content"
        )
        func faithful() async throws {
            let server = try await TestServer.shared.value
            try await withClient { client in
                var request = HTTPClientRequest(
                    method: "PATCH", url: server.url("/echo?b=%20&a=1"),
                    headers: ["X-Key": "value ü", "X-Blank": "", "Content-Type": "application/json"],
                    body: Data("{\"a\":0}".utf8))
                let response = try await client.send(request)
                #expect(response.status == 200)
                #expect(response.httpVersion == "1.1")
                #expect(response.headers.all("x-first") == ["one", "two"])
                #expect(response.headers["X-EMPTY"] == "")
                let lines = response.text.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
                #expect(lines.first == "PATCH /echo?b=%20&a=1 HTTP/1.1")
                #expect(lines.last == "{\"a\":0}")
                #expect(lines.contains("X-Key: value ü"))
                #expect(lines.contains("X-Blank:"))
                #expect(lines.contains("Content-Length: 7"))
                #expect(lines.contains("User-Agent: lockstep"))
                #expect(!response.text.lowercased().contains("accept-encoding"))
                #expect(!response.text.lowercased().contains("expect"))
                request.headers = HTTPHeaders()
                let bare = try await client.send(request)
                #expect(!bare.text.lowercased().contains("content-type"))
            }
        }

        @Test(
            "a method says its length when it has a body of its own",
            arguments: [
                ("POST", nil, "Content-Length: 0"), ("PUT", nil, "Content-Length: 0"),
                ("PATCH", nil, "Content-Length: 0"),
                ("DELETE", nil, nil), ("GET", nil, nil), ("DELETE", "", "Content-Length: 0"),
                ("DELETE", "body", "Content-Length: 4"), ("POST", "body", "Content-Length: 4"),
                ("GET", "body", "Content-Length: 4"), ("PUT", "body", "Content-Length: 4"),
            ] as [(String, String?, String?)])
        func lengths(method: String, body: String?, expected: String?) async throws {
            let server = try await TestServer.shared.value
            try await withClient { client in
                let response = try await client.send(
                    HTTPClientRequest(method: method, url: server.url("/echo"), body: body.map { Data($0.utf8) }))
                let lines = response.text.split(separator: "\n").map(String.init)
                #expect(lines.first == "\(method) /echo HTTP/1.1")
                #expect(lines.first { $0.hasPrefix("Content-Length") } == expected)
                #expect(!response.text.contains("chunked"))
                #expect(response.text.hasSuffix("\n\n" + (body ?? "")))
            }
        }

        @Test("a large body arrives whole, without waiting for a 100")
        func largeBody() async throws {
            let server = try await TestServer.shared.value
            let body = Data((0..<3_000_000).map { UInt8(truncatingIfNeeded: $0 &* 31) })
            try await withClient { client in
                let response = try await client.send(
                    HTTPClientRequest(method: "POST", url: server.url("/echo"), body: body))
                #expect(response.body.suffix(body.count) == body)
                let head = String(decoding: response.body.prefix(1000), as: UTF8.self).lowercased()
                #expect(head.contains("content-length: 3000000"))
                #expect(!head.contains("expect"))
            }
        }

        @Test(
            "what could end a header early, or is no method or URL, never leaves",
            arguments: [
                HTTPClientRequest(method: "GET", url: "http://127.0.0.1:PORT/", headers: ["X-A": "a\r\nX-B: b"]),
                HTTPClientRequest(method: "GET", url: "http://127.0.0.1:PORT/", headers: ["X-A": "a\nb"]),
                HTTPClientRequest(method: "GET", url: "http://127.0.0.1:PORT/", headers: ["X-A": "a\0b"]),
                HTTPClientRequest(method: "GET", url: "http://127.0.0.1:PORT/", headers: ["X-A\r\nX-B": "a"]),
                HTTPClientRequest(method: "GET", url: "http://127.0.0.1:PORT/", headers: ["X A": "a"]),
                HTTPClientRequest(method: "GET", url: "http://127.0.0.1:PORT/", headers: ["": "a"]),
                HTTPClientRequest(
                    method: "GET", url: "http://127.0.0.1:PORT/", headers: ["Transfer-Encoding": "chunked"]),
                HTTPClientRequest(method: "GET", url: "http://127.0.0.1:PORT/", headers: ["content-length": "0"]),
                HTTPClientRequest(method: "GET / HTTP/1.1\r\nX: y", url: "http://127.0.0.1:PORT/"),
                HTTPClientRequest(method: "G T", url: "http://127.0.0.1:PORT/"),
                HTTPClientRequest(method: "", url: "http://127.0.0.1:PORT/"),
                HTTPClientRequest(method: "CONNECT", url: "http://127.0.0.1:PORT/"),
                HTTPClientRequest(method: "HEAD", url: "http://127.0.0.1:PORT/", body: Data()),
                HTTPClientRequest(method: "GET", url: "http://127.0.0.1:PORT/a b"),
                HTTPClientRequest(method: "GET", url: "http://127.0.0.1:PORT/a\r\nX: b"),
                HTTPClientRequest(method: "GET", url: "http://127.0.0.1:PORT/\0"),
                HTTPClientRequest(method: "GET", url: "http://127.0.0.1:PORT/ü"),
                HTTPClientRequest(method: "GET", url: "http://user:word@127.0.0.1:PORT/"),
                HTTPClientRequest(method: "GET", url: "127.0.0.1:PORT/"),
                HTTPClientRequest(method: "GET", url: "file:///etc/passwd"),
                HTTPClientRequest(method: "GET", url: "ftp://127.0.0.1:PORT/"),
                HTTPClientRequest(method: "GET", url: "http://"),
                HTTPClientRequest(method: "GET", url: ""),
            ])
        func refused(request: HTTPClientRequest) async throws {
            let server = try await TestServer()
            try await withClient { client in
                var request = request
                request.url = request.url.replacing("PORT", with: "\(server.port)")
                let error = try await client.failure(request)
                #expect(error.code == .invalidRequest)
                #expect(!error.mayHaveBeenSent)
                #expect(error.curlCode == nil)
            }
            #expect(try await server.countLines("connection") == 0)
        }

        @Test(
            "plain http goes to this machine and nowhere else",
            arguments: [
                "http://example.com/", "http://128.0.0.1:9/", "http://localhost.example.com/", "http://[::2]:9/",
                "http://localhost@example.com/", "http://10.0.0.1/", "http://127.0.0.1.example.com/",
                "http://2130706434/",
                "http://[::ffff:10.0.0.1]/", "http://0.0.0.0/",
            ])
        func plainHTTP(url: String) async throws {
            try await withClient { client in
                let error = try await client.failure(HTTPClientRequest(method: "GET", url: url, timeout: .seconds(1)))
                let expected: [HTTPClientError.Code] = [.plainHTTPRefused, .invalidRequest]
                // 2130706434 is 127.0.0.2 in another spelling, where nothing listens.
                #expect(url.contains("2130706434") ? error.code == .cannotConnect : expected.contains(error.code))
                #expect(!error.mayHaveBeenSent)
            }
        }

        @Test(
            "every spelling of this machine may be spoken to in plain http",
            arguments: ["127.0.0.1", "localhost", "127.1"])
        func loopback(host: String) async throws {
            let server = try await TestServer.shared.value
            try await withClient { client in
                let response = try await client.get(server.url("/echo", host: host))
                #expect(response.status == 200)
            }
        }

        @Test("plain http to another host is tried when it is allowed")
        func plainHTTPAllowed() async throws {
            var configuration = HTTPClientConfiguration()
            configuration.allowsPlainHTTP = true
            try await withClient(configuration) { client in
                let error = try await client.failure(HTTPClientRequest(method: "GET", url: "http://nowhere.invalid/"))
                #expect(error.code == .cannotResolve)
            }
        }
    }
}
