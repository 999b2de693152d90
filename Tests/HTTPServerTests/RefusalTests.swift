import Basics
import Foundation
import Testing

@testable import HTTPServer

/// Words refusals as the service does, so that the tests see who answered.
private func worded(_ configuration: inout HTTPServerConfiguration) {
    configuration.refusalResponse = { refusal in
        HTTPServerResponse(
            status: 200, headers: ["Content-Type": "application/problem+json"],
            body: Data("{\"kind\":\"\(refusal.kind.rawValue)\",\"path\":\"\(refusal.path ?? "")\"}".utf8))
    }
}

/// Sends the bytes, and expects this refusal and then the end of the connection.
private func expectRefusal(
    _ kind: HTTPServerRefusal.Kind, of bytes: String, at server: HTTPServer, path: String? = nil,
    sourceLocation: SourceLocation = #_sourceLocation
) async throws {
    let client = try RawClient(port: server.port)
    client.write(bytes)
    let reply = try await client.reply()
    #expect(reply.status == HTTPServerRefusal(kind: kind).status, sourceLocation: sourceLocation)
    #expect(reply.body.hasPrefix("{\"kind\":\"\(kind.rawValue)\""), sourceLocation: sourceLocation)
    #expect(reply["Content-Type"] == "application/problem+json", sourceLocation: sourceLocation)
    #expect(reply["Connection"] == "close", sourceLocation: sourceLocation)
    #expect(reply["Date"] != nil, sourceLocation: sourceLocation)
    if let path { #expect(reply.body.hasSuffix("\"path\":\"\(path)\"}"), sourceLocation: sourceLocation) }
    client.finishWriting()
    #expect(try await client.isEnded(), sourceLocation: sourceLocation)
    #expect(server.statistics.refused[kind] == 1, sourceLocation: sourceLocation)
    #expect(server.statistics.requestsServed == 0, "no handler may see it", sourceLocation: sourceLocation)
}

@Suite("What the server refuses by itself")
struct RefusalTests {
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

    @Test("the longest head is served, one byte more is 431")
    func headerLimit() async throws {
        try await withServer({
            worded(&$0)
            $0.maximumHeaderBytes = 2_000
        }) { server in
            func request(_ size: Int) -> String {
                let start = "GET / HTTP/1.1\r\nHost: a\r\nX: "
                return start + String(repeating: "x", count: size - start.utf8.count - 4) + "\r\n\r\n"
            }
            let client = try RawClient(port: server.port)
            client.write(request(2_000))
            #expect(try await client.reply().status == 200)
            client.write(request(2_001))
            let reply = try await client.reply()
            #expect(reply.status == 431)
            #expect(reply.body.contains("headersTooLarge"))
            #expect(try await client.isEnded())
        }
    }

    @Test("a head that never ends is 431", arguments: ["X-Long: xxxxxxxxxxxxxxxxxxxxxxxx", "xxxxxxxxxxxx", "X: y\r\n"])
    func endlessHead(piece: String) async throws {
        try await withServer(worded) { server in
            let client = try RawClient(port: server.port)
            client.write("GET / HTTP/1.1\r\nHost: a\r\n")
            let pieces = String(repeating: piece, count: 40_000 / piece.utf8.count)
            client.write(pieces)
            let reply = try await client.reply()
            #expect(reply.status == 431)
            #expect(reply["Content-Type"] == "application/problem+json")
        }
    }

    @Test("the longest target is served, one byte more is 414, and so is one that never ends")
    func targetLimit() async throws {
        try await withServer(worded) { server in
            func request(_ size: Int) -> String { "GET /" + String(repeating: "x", count: size - 1) }
            let end = " HTTP/1.1\r\nHost: a\r\n\r\n"
            let client = try RawClient(port: server.port)
            client.write(request(4_096) + end)
            #expect(try await client.reply().status == 200)
            client.write(request(4_097) + end)
            #expect(try await client.reply().status == 414)
            let endless = try RawClient(port: server.port)
            endless.write(request(60_000))
            let reply = try await endless.reply()
            #expect(reply.status == 414)
            #expect(reply.body.contains("uriTooLong"))
        }
    }

    @Test("a body announced as too long is 413 before any of it is read")
    func announcedTooLong() async throws {
        try await withServer({
            worded(&$0)
            $0.maximumBodyBytes = { method, path in method == "POST" && path == "/small" ? 10 : 100 }
        }) { server in
            try await expectRefusal(
                .bodyTooLarge, of: "POST /small HTTP/1.1\r\nHost: a\r\nContent-Length: 11\r\n\r\n", at: server,
                path: "/small")
        }
    }

    @Test("a body just as long as allowed is served; limits differ by path")
    func bodyLimit() async throws {
        try await withServer({ $0.maximumBodyBytes = { _, path in path == "/small" ? 10 : 20 } }) { server in
            let client = try RawClient(port: server.port)
            client.write("POST /small HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n0123456789")
            #expect(try await client.reply().status == 200)
            client.write("POST /large HTTP/1.1\r\nHost: a\r\nContent-Length: 11\r\n\r\n0123456789a")
            #expect(try await client.reply().status == 200)
        }
    }

    @Test("who asks before sending too much is told 413 instead of 100")
    func expectRefused() async throws {
        try await withServer({
            worded(&$0)
            $0.maximumBodyBytes = { _, _ in 10 }
        }) { server in
            try await expectRefusal(
                .bodyTooLarge,
                of: "POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 11\r\n\r\n", at: server)
        }
    }

    @Test("a chunked body is cut off with 413 where it grows too long, and the client can read that")
    func chunkedTooLong() async throws {
        try await withServer({
            worded(&$0)
            $0.maximumBodyBytes = { _, _ in 1_000 }
        }) { server in
            let client = try RawClient(port: server.port)
            client.write("POST /c HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n")
            let chunk = "3e8\r\n" + String(repeating: "x", count: 1_000) + "\r\n"
            for _ in 0..<20 { client.write(chunk) }
            let reply = try await client.reply()
            #expect(reply.status == 413)
            #expect(reply.body == "{\"kind\":\"bodyTooLarge\",\"path\":\"/c\"}")
            #expect(try await client.isEnded())
            #expect(server.statistics.requestsServed == 0)
        }
    }

    @Test("who sends a large body at once still reads the 413")
    func lingering() async throws {
        try await withServer(worded) { server in
            let client = try RawClient(port: server.port)
            client.write("POST /big HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n")
            client.write(String(repeating: "x", count: 1_000_000))
            #expect(try await client.reply().status == 413)
            #expect(try await client.isEnded())
        }
    }

    @Test("an encoded body is 415", arguments: ["gzip", "identity, gzip", "deflate", "br"])
    func contentEncoding(coding: String) async throws {
        try await withServer(worded) { server in
            try await expectRefusal(
                .unsupportedEncoding,
                of: "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nContent-Encoding: \(coding)\r\n\r\nabc",
                at: server)
        }
    }

    @Test("identity is no encoding")
    func identity() async throws {
        try await withServer { server in
            let client = try RawClient(port: server.port)
            client.write("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nContent-Encoding: Identity\r\n\r\nabc")
            #expect(try await client.reply().body == "POST / - abc")
        }
    }

    @Test("a refused HEAD has no body")
    func refusedHead() async throws {
        try await withServer(worded) { server in
            let client = try RawClient(port: server.port)
            client.write("HEAD / HTTP/1.1\r\n\r\n")
            let text = try await client.everything()
            #expect(text.hasPrefix("HTTP/1.1 400 ") && text.hasSuffix("\r\n\r\n"))
        }
    }

    @Test("connections beyond the limit are told 503, and are let in when others have gone")
    func connectionLimit() async throws {
        try await withServer({
            worded(&$0)
            $0.maximumConnections = 3
        }) { server in
            var clients = try (0..<3).map { _ in try RawClient(port: server.port) }
            await eventually("three are in") { server.statistics.connectionsOpen == 3 }
            let fourth = try RawClient(port: server.port)
            fourth.write("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
            let reply = try await fourth.reply()
            #expect(reply.status == 503)
            #expect(reply.body.contains("overloaded"))
            #expect(try await fourth.isEnded())
            clients[0].close()
            clients.removeFirst()
            fourth.close()
            await eventually("one has gone") { server.statistics.connectionsOpen == 2 }
            let fifth = try RawClient(port: server.port)
            fifth.write("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
            #expect(try await fifth.reply().status == 200)
        }
    }
}
