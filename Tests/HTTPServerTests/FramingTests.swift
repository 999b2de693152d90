import Basics
import Foundation
import TestKit
import Testing

@testable import HTTPServer

@Suite("Requests that aren't plain HTTP/1.1")
struct FramingTests {
    @Test(
        "a request that could be read in two ways is refused and its connection closed",
        arguments: [
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n0\r\n\r\n",
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabcd",
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nContent-Length: 3\r\n\r\nabc",
            "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip\r\n\r\nabc",
            "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
            "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n",
            "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: identity\r\n\r\nabc",
            "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
            "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: \"chunked\"\r\n\r\n0\r\n\r\n",
            "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding:\r\n\r\n0\r\n\r\n",
            "POST / HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            "GET / HTTP/1.1\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a\r\nHOST: a\r\n\r\n",
            "GET / HTTP/1.0\r\nHost: a\r\nHost: b\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a b\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a, b\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a@b\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a/b\r\n\r\n",
        ])
    func badFraming(bytes: String) async throws {
        try await withServer(worded) { try await expectRefusal(.badFraming, of: bytes, at: $0, path: "/") }
    }

    @Test(
        "a length that isn't plain digits is refused",
        arguments: ["+5", "-5", "5,5", "5, 5", "0x5", "5 5", "5;", "", "five", "5.0", "\u{b2}"])
    func badContentLength(length: String) async throws {
        try await withServer(worded) { server in
            let client = try RawClient(port: server.port)
            client.write("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: \(length)\r\n\r\nhello")
            client.finishWriting()
            let text = try await client.everything()
            #expect(text.hasPrefix("HTTP/1.1 400 "))
            #expect(text.components(separatedBy: "HTTP/1.1").count == 2, "one answer: \(text)")
            #expect(text.contains("application/problem+json"))
            #expect(server.statistics.requestsServed == 0)
        }
    }

    @Test(
        "bytes that aren't plain HTTP/1.1 are malformed",
        arguments: [
            "GET / HTTP/1.1\r\nHost: a\r\nX: a\r\n b\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a\r\nX: a\r\n\tb\r\nY: c\r\n\r\n",
            "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encodin:chunked\r\n g\r\n\r\n0\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a\r\nX : a\r\n\r\n",
            "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding : chunked\r\n\r\n0\r\n\r\n",
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length\t: 3\r\n\r\nabc",
            "GET / HTTP/1.1\r\n Host: a\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a\r\nX: a\0b\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a\r\nX: a\0\0Y\0b\r\n\r\n",
            "POST / HTTP/1.1\r\nHost: a\r\nX: a\0\0Transfer-Encoding\0chunked\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a\r\nX: a\0\0\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a\r\nX\0Y: b\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a\r\nX: a\u{1}b\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a\r\nX: a\u{7f}b\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a\r\nX: a\rb\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a\r\nX(: a\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a\r\nX\u{e9}: a\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a\r\n: a\r\n\r\n",
            "GET / HTTP/1.1\nHost: a\n\n",
            "GET / HTTP/1.1\r\nHost: a\nX: b\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a\r\n\n",
            "GET  / HTTP/1.1\r\nHost: a\r\n\r\n",
            "GET /a b HTTP/1.1\r\nHost: a\r\n\r\n",
            "GET /a\0b HTTP/1.1\r\nHost: a\r\n\r\n",
            "GET /a?b=\0&c HTTP/1.1\r\nHost: a\r\n\r\n",
            "GET /\u{e9} HTTP/1.1\r\nHost: a\r\n\r\n",
            "GET /a\tb HTTP/1.1\r\nHost: a\r\n\r\n",
            "GET /a#b HTTP/1.1\r\nHost: a\r\n\r\n",
            "GET a HTTP/1.1\r\nHost: a\r\n\r\n",
            "GET http:///a HTTP/1.1\r\nHost: a\r\n\r\n",
            "GET ftp://a/b HTTP/1.1\r\nHost: a\r\n\r\n",
            "CONNECT shop.example:443 HTTP/1.1\r\nHost: a\r\n\r\n",
            "GE\0T / HTTP/1.1\r\nHost: a\r\n\r\n",
            "G(T / HTTP/1.1\r\nHost: a\r\n\r\n",
        ])
    func malformed(bytes: String) async throws {
        try await withServer(worded) { try await expectRefusal(.malformedRequest, of: bytes, at: $0) }
    }

    @Test("a header value that isn't UTF-8 is malformed")
    func invalidUTF8() async throws {
        try await withServer(worded) { server in
            let client = try RawClient(port: server.port)
            client.write(Array("GET / HTTP/1.1\r\nHost: a\r\nX: ".utf8) + [0xC3, 0x28] + Array("\r\n\r\n".utf8))
            #expect(try await client.reply().status == 400)
        }
    }

    @Test(
        "what the library itself finds wrong is worded by the caller too",
        arguments: [
            ("GET / HTTP/1.1\r\nHost: a\r\nno colon\r\n\r\n", 400), ("GET / HTTQ/1.1\r\nHost: a\r\n\r\n", 400),
            ("GET /\r\nHost: a\r\n\r\n", 400), ("GET / HTTP/1.1 \r\nHost: a\r\n\r\n", 400),
            ("GET / HTTP/2.0\r\nHost: a\r\n\r\n", 400),
            ("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n", 400),
            ("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3 \r\nabc\r\n0\r\n\r\n", 400),
            ("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n-3\r\nabc\r\n0\r\n\r\n", 400),
            ("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabcd\r\n0\r\n\r\n", 400),
            ("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n", 413),
            ("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999999999999999999\r\n\r\n", 413),
        ])
    func libraryRefusals(bytes: String, status: Int) async throws {
        try await withServer(worded) { server in
            let client = try RawClient(port: server.port)
            client.write(bytes)
            let text = try await client.everything()
            #expect(text.hasPrefix("HTTP/1.1 \(status) "), "\(text)")
            #expect(text.components(separatedBy: "HTTP/1.1 ").count == 2, "one answer: \(text)")
            #expect(text.contains("application/problem+json"), "\(text)")
            #expect(server.statistics.requestsServed == 0)
            #expect(server.statistics.refused.values.reduce(0, +) == 1)
        }
    }

    @Test(
        "a line that isn't a request line at all is closed on", arguments: ["garbage\r\n\r\n", " / HTTP/1.1\r\n\r\n"])
    func notARequestLine(bytes: String) async throws {
        try await withServer(worded) { server in
            let client = try RawClient(port: server.port)
            client.write(bytes)
            #expect(try await client.everything() == "")
        }
    }

    @Test("nothing after a refused request is taken for a request")
    func nothingIsSmuggled() async throws {
        try await withServer(worded) { server in
            let client = try RawClient(port: server.port)
            client.write(
                "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 6\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
                    + "GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n")
            client.finishWriting()
            let text = try await client.everything()
            #expect(text.components(separatedBy: "HTTP/1.1 ").count == 2)
            #expect(server.statistics.requestsServed == 0)
        }
    }

    @Test("nor is what follows a chunked body, whose line ends can be read in two ways")
    func nothingFollowsChunked() async throws {
        try await withServer { server in
            let client = try RawClient(port: server.port)
            client.write(
                "POST /c HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n2;\nxx\r\n0\r\n\r\n"
                    + "GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n")
            client.finishWriting()
            let text = try await client.everything()
            #expect(!text.contains("smuggled"))
        }
    }
}
